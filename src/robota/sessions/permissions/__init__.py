"""A tool runs only as hooks, rules and people allow."""
