"""The Responses wire: requests encoded, replies read."""
