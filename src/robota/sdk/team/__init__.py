"""Agents that work together: tasks given to templates, and patterns of who speaks when."""
