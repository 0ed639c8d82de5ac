"""MCP servers of a session: found in files, connected beside it, their tools, prompts and resources in it."""
