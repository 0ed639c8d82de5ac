"""Slash commands: the registry that menus and prompts ask, the built-in commands, and what they answer."""
