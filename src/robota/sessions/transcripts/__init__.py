"""Conversations that another assistant has kept."""
