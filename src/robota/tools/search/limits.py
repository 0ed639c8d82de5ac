"""How much a search shows and takes."""

from __future__ import annotations

DEFAULT_LIMIT = 1_000
"""Results shown when the call names no limit."""
DEFAULT_TIMEOUT = 30.0
"""Seconds."""
MAX_PATTERN_CHARACTERS = 10_000
MAX_LINE_CHARACTERS = 500
MAX_CONTEXT_LINES = 1_000
MAX_OUTPUT_CHARACTERS = 256 * 1024
