"""A client of MCP servers: one connection each, and their tools. Nothing here knows settings or sessions."""
