"""A small text file that several processes change: locked, read, changed and replaced as a whole.

Whoever reads it sees the old content or the new one, also after a power cut; what cannot be changed stays.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from robota.core.errors import ConfigurationError, StorageError
from robota.core.private_directory import make_private_directories
from robota.tools.files.directory import Directory
from robota.tools.files.path import contained

MAX_BYTES = 1 << 20
_PATIENCE = 10.0
"""Seconds; a change takes milliseconds, so whoever has the lock for longer was stopped."""


def change_file(
    path: str, change: Callable[[str], str], *, private: bool = False, within: str | None = None
) -> bool:
    """Replace the text of a file, empty if it is missing, by what `change` makes of it; whether it changed.

    A `private` file and the directories made for it are the user's alone. A link is followed, with `within`
    only inside that directory. What `change` raises leaves the file as it is.
    """
    real = os.path.realpath(path)
    if within is not None and not contained(real, (os.path.realpath(within),)):
        raise ConfigurationError(f"{path} leads out of the project to {real}: nothing was written there.")
    place, name = os.path.split(real)
    try:
        if private:
            make_private_directories(place)
        with Directory(place, create=True) as directory, _locked(place):
            while True:
                found = directory.read(name, MAX_BYTES, writable=True)
                before = _decode(path, b"" if found is None else found.data, found is None or found.whole)
                after = change(before)
                if after == before:
                    return False
                facts = None if found is None else found.facts
                if directory.replace(name, after.encode(), facts, private=private):
                    return True  # else somebody who knows no lock was faster
    except OSError as error:
        reason = error.strerror or str(error) or type(error).__name__
        raise StorageError(
            f"{path} cannot be written ({reason}): check its permissions and the disk."
        ) from error


def _decode(path: str, data: bytes, whole: bool) -> str:
    if not whole:
        raise ConfigurationError(f"{path} is larger than {MAX_BYTES >> 20} MB: nothing was written to it.")
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise ConfigurationError(f"{path} is not UTF-8 text: nothing was written to it.") from error


@contextmanager
def _locked(directory: str) -> Iterator[None]:
    """Alone among those who change files of the directory, without leaving a file there."""
    if sys.platform == "win32":
        from filelock import FileLock  # noqa: PLC0415 - as below

        with FileLock(os.path.join(directory, ".robota.lock"), timeout=_PATIENCE):
            yield
        return
    from filelock import lock_descriptor  # noqa: PLC0415 - for those who write

    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        until = time.monotonic() + _PATIENCE
        while not lock_descriptor(descriptor, blocking=False):
            if time.monotonic() > until:
                raise StorageError(f"Another process has been changing {directory} for too long: end it.")
            time.sleep(0.005)  # flock has no deadline: a thread in it could not be called back
        yield
    finally:
        os.close(descriptor)
