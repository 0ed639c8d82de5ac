"""robota."""
