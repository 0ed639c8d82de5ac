"""Sessions over HTTP: routes, server-sent events, and who may use them."""
