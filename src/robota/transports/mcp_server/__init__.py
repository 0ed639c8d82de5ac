"""A session as the tools of an MCP server, for other agents."""
