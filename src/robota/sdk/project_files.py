"""The files of a project, for completion: as git or ripgrep lists them, kept for a while."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator

FRESH_SECONDS = 10.0
MOST_FILES = 200_000
LISTING_SECONDS = 5.0
GIT_LISTING = ("ls-files", "-z", "--cached", "--others", "--exclude-standard")
RIPGREP = ("rg", "--files", "--null", "--hidden", "--glob", "!.git")
_SKIPPED = frozenset({".git", "node_modules", ".venv", "__pycache__"})


class ProjectFiles:
    """Asked from a thread; the list is made again when it is old."""

    def __init__(self, root: str) -> None:
        self._root = root
        self._found: list[str] = []
        self._made = -FRESH_SECONDS

    def paths(self) -> list[str]:
        """Paths below the directory, those of directories with a slash at the end."""
        if time.monotonic() - self._made >= FRESH_SECONDS:
            files = self._ask() or self._walk()
            shown = [path for path in files if path.isprintable()]
            folders = {path[: at + 1] for path in shown for at, letter in enumerate(path) if letter == "/"}
            self._found = [*shown, *sorted(folders)]
            self._made = time.monotonic()
        return self._found

    def _ask(self) -> list[str]:
        for command, variables in _list_commands():
            try:
                done = subprocess.run(
                    command,
                    cwd=self._root,
                    env=variables,
                    stdin=subprocess.DEVNULL,
                    capture_output=True,
                    timeout=LISTING_SECONDS,
                    check=False,
                )
            except (OSError, subprocess.TimeoutExpired):
                continue  # not there, or a tree that is too large for it
            if done.returncode == 0:
                names = done.stdout.decode("utf-8", "replace").split("\0")
                return [name for name in names if name][:MOST_FILES]
        return []

    def _walk(self) -> list[str]:
        found: list[str] = []
        for place, folders, files in os.walk(self._root):
            folders[:] = [name for name in folders if name not in _SKIPPED]
            below = os.path.relpath(place, self._root)
            found += [name if below == "." else f"{below}/{name}" for name in files]
            if len(found) > MOST_FILES:
                break
        return found


def _list_commands() -> Iterator[tuple[list[str], dict[str, str]]]:
    from robota.core.process import clean_environment  # noqa: PLC0415 - when files are asked for
    from robota.sdk.git import git_environment, plain_command  # noqa: PLC0415 - likewise

    yield plain_command(*GIT_LISTING), git_environment()
    yield list(RIPGREP), clean_environment()
