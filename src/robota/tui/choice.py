"""Whether a terminal can show the interface, or only lines."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping

LEAST_COLUMNS, LEAST_ROWS = 20, 4
NO_SCREEN = ("", "dumb", "unknown")


def wants_lines(environment: Mapping[str, str]) -> bool:
    """Line mode: no terminal at one of the two ends, one that cannot move its cursor, or hardly any room."""
    if environment.get("TERM", "") in NO_SCREEN:
        return True
    try:
        if not (sys.stdin.isatty() and sys.stdout.isatty()):
            return True
        size = os.get_terminal_size(sys.stdout.fileno())
    except (OSError, ValueError):
        return True
    unknown = size.columns == 0 or size.lines == 0  # some say nothing, and are large enough
    return not unknown and (size.columns < LEAST_COLUMNS or size.lines < LEAST_ROWS)
