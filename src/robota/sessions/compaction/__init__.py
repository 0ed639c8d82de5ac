"""A conversation that no longer fits becomes a summary and goes on."""
