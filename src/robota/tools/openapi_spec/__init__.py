"""What `robota.tools.openapi` is made of: the document, its schemas and operations, credentials, the wire."""
