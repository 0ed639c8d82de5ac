"""Directories for nobody else, as all are that robota makes below its home."""

from __future__ import annotations

import os

PRIVATE_DIRECTORY = 0o700


def make_private_directories(path: str | os.PathLike[str]) -> None:
    """Have a directory. It and those above it that are missing become private, whatever the umask is."""
    missing, place = [], os.path.abspath(path)
    while not os.path.isdir(place):
        missing.append(place)
        place = os.path.dirname(place)
    for place in reversed(missing):
        make_private_directory(place)


def make_private_directory(path: str) -> None:
    """Make one directory; one that somebody else has made meanwhile stays as it is."""
    try:
        os.mkdir(path, PRIVATE_DIRECTORY)
    except FileExistsError:
        if not os.path.isdir(path):
            raise
        return
    os.chmod(path, PRIVATE_DIRECTORY)  # the umask may have taken rights from the owner
