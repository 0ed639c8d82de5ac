"""The services and servers that speak Chat Completions, one module each: addresses, keys and habits."""
