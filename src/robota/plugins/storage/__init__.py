"""Where plugins keep what they gather: one small protocol, and a module for each kind of place."""
