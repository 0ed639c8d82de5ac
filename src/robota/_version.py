"""The version, in a module that costs nothing to read."""

__version__ = "0.1.0"
