"""Names of tables: they stand in SQL as they are, so they are words."""

from __future__ import annotations

import re

from robota.core.errors import ConfigurationError

_NAME = re.compile(r"[a-z_][a-z0-9_]{0,62}")


def check_table(name: str) -> str:
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise ConfigurationError(
            f"The table {name!r} cannot be used: its name has lower-case letters, digits and underscores."
        )
    return name
