"""A journal in a file of its own: one line per record, kept whole by checksums, numbers and a lock."""
