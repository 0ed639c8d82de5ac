"""Changes to settings files on somebody's word: a key, a rule. Comments, order and unknown keys stay.

A file that does not parse is refused and stays as it is; one in a project never leads out of it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from robota.core.errors import ConfigurationError
from robota.core.messages import Json
from robota.sdk.settings.jsonc import JsoncError
from robota.sdk.settings.jsonc_edit import add_item, remove_item, remove_value, set_value
from robota.sdk.shared_file import change_file

Key: TypeAlias = str | Sequence[str]
"""`"permissions.defaultMode"`, or its parts one by one where one of them has a dot in it."""


def change_setting(path: str, key: Key, value: Json, *, project: str | None = None) -> bool:
    """Give a key a value; whether the file changed. `project` is the directory a project's file belongs to:
    without it the file is the user's own, and private."""
    return _change(path, lambda text: set_value(text, _split(key), value), project)


def remove_setting(path: str, key: Key, *, project: str | None = None) -> bool:
    """Take a key out."""
    return _change(path, lambda text: remove_value(text, _split(key)), project)


def add_to_setting(path: str, key: Key, item: str, *, project: str | None = None) -> bool:
    """Add to a list, behind what is there, if it is not in it."""
    return _change(path, lambda text: add_item(text, _split(key), item), project)


def remove_from_setting(path: str, key: Key, item: str, *, project: str | None = None) -> bool:
    """Take out of a list."""
    return _change(path, lambda text: remove_item(text, _split(key), item), project)


def _split(key: Key) -> Sequence[str]:
    return key.split(".") if isinstance(key, str) else key


def _change(path: str, change: Callable[[str], str], project: str | None) -> bool:
    def checked(text: str) -> str:
        try:
            return change(text)
        except JsoncError as error:
            raise ConfigurationError(
                f"{path}:{error.line} is not JSON ({error}): nothing was written to it; correct it first."
            ) from error
        except ValueError as error:
            raise ConfigurationError(f"{path} was not changed: {error}.") from error

    return change_file(path, checked, private=project is None, within=project)
