"""Sessions: one agent with permissions, a bounded context, and a journal from which nothing is lost."""
