"""The user's settings deleted: `robota --reset`, which asks first, and `/reset`."""

from __future__ import annotations

import os
import sys

from robota.cli.flags import UsageError
from robota.core.errors import StorageError
from robota.sdk.places import find_places


def reset_settings(*, yes: bool) -> int:
    """Delete the settings file after a question; 1 if the user would rather not."""
    path = find_places().user("settings.json")
    if os.path.lexists(path) and not yes:
        if not sys.stdin.isatty():
            raise UsageError("--reset asks before it deletes, and this is no terminal: add --yes.")
        print(f"Delete {path}? [y/N] ", end="", file=sys.stderr, flush=True)
        if sys.stdin.readline().strip().lower() not in ("y", "yes"):
            print("Nothing was deleted.")
            return 1
    print(delete_settings())
    return 0


def delete_settings() -> str:
    """Delete the file; a sentence about it."""
    path = find_places().user("settings.json")
    try:
        os.remove(path)
    except FileNotFoundError:
        return f"There is nothing to delete: {path} does not exist."
    except OSError as error:
        raise StorageError(f"{path} cannot be deleted ({error.strerror}).") from error
    return f"{path} is deleted. Keys, sessions and the trust in directories are kept."
