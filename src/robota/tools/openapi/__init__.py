"""An OpenAPI 3 document as tools: reading it, its operations, the request of a call, the tools themselves."""
