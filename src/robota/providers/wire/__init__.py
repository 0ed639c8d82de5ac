"""What every adapter stands on: HTTP, server-sent events, errors."""
