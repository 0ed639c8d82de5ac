"""Sessions on disk: one snapshot each, an index over all of them."""
