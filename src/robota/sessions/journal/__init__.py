"""The journal of a session: everything that happens, written at once and never changed."""
