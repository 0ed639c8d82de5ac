"""The Chat Completions wire: requests encoded, replies read."""
