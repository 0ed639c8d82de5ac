"""Agents that a session may give tasks to: what they are, where they are found, how they work."""
