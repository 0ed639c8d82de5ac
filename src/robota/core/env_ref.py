"""References to environment variables: `$ENV:NAME` in a settings file stands for the variable's value.

Nothing here puts a value into a message or an error.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping

ENV_REFERENCE_PREFIX = "$ENV:"
_IN_USE: set[str] = set()


def is_env_reference(value: object) -> bool:
    """Whether a text refers to an environment variable."""
    return isinstance(value, str) and value.startswith(ENV_REFERENCE_PREFIX)


def format_env_reference(name: str) -> str:
    """The text that refers to an environment variable: `$ENV:NAME`."""
    return f"{ENV_REFERENCE_PREFIX}{name}"


def resolve_env_reference(value: str, env: Mapping[str, str] | None = None) -> str | None:
    """What the reference stands for, `None` when the variable is missing or empty; other text as it is."""
    if not is_env_reference(value):
        return value
    name = value.removeprefix(ENV_REFERENCE_PREFIX).strip()
    if env is None:
        _IN_USE.add(name)
    return (os.environ if env is None else env).get(name) or None


def has_usable_secret_reference(value: str | None, env: Mapping[str, str] | None = None) -> bool:
    """Whether the value is, or stands for, a text that could be a key."""
    return bool(value and resolve_env_reference(value, env))


def names_in_use() -> Collection[str]:
    """The variables that references were resolved to: they hold keys, whatever their names."""
    return _IN_USE
