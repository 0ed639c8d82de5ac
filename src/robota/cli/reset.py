"""`robota --reset`: the user's settings deleted, after a question."""

from __future__ import annotations

import os
import sys

from robota.cli.flags import UsageError
from robota.core.errors import StorageError
from robota.sdk.places import find_places


def reset_settings(*, yes: bool) -> int:
    """Delete the settings file; 1 if the user would rather not."""
    path = find_places().user("settings.json")
    if not os.path.lexists(path):
        print(f"There is nothing to delete: {path} does not exist.")
        return 0
    if not yes:
        if not sys.stdin.isatty():
            raise UsageError(
                "--reset asks before it deletes your settings, and this is no terminal: add --yes."
            )
        print(f"Delete {path}? [y/N] ", end="", file=sys.stderr, flush=True)
        if sys.stdin.readline().strip().lower() not in ("y", "yes"):
            print("Nothing was deleted.")
            return 1
    try:
        os.remove(path)
    except OSError as error:
        raise StorageError(f"{path} cannot be deleted ({error.strerror}).") from error
    print(f"{path} is deleted. Keys, sessions and the trust in directories are kept.")
    return 0
