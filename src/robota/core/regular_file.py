"""Files that somebody else put there, opened so that what stands in the place of one makes nobody wait."""

from __future__ import annotations

import errno
import os
import stat
from typing import BinaryIO

_AT_ONCE = sum(getattr(os, name, 0) for name in ("O_NONBLOCK", "O_NOCTTY"))


def open_regular(path: str | os.PathLike[str], *, buffering: int = -1) -> BinaryIO:
    """A file to read. A pipe, a terminal or another device, also behind a link, is an `OSError`."""
    file: BinaryIO = open(path, "rb", buffering, opener=_open)  # noqa: SIM115 - the caller closes it
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise OSError(errno.EINVAL, "it is not a regular file", os.fspath(path))
    return file


def _open(path: str, flags: int) -> int:
    return os.open(path, flags | _AT_ONCE)
