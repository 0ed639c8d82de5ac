"""HTTP/1.1 for everything that robota asks of a server; the lowest layer, which knows nothing of the others.

`HttpClient` sends a `Request` and gives back a `Reply`. Failures are `HttpError`s, whose `kind` says what
happened; who was asked for what, callers put into words for their readers.
"""
