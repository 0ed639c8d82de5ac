"""A file that goes to the model as text, read within bounds: no device, no directory, no binary data."""

from __future__ import annotations

import os
import stat

from msgspec import Struct

from robota.sdk.frontmatter import read_within
from robota.tools.files.text import decode

_FLAGS = sum(getattr(os, name, 0) for name in ("O_RDONLY", "O_NONBLOCK", "O_NOCTTY", "O_CLOEXEC", "O_BINARY"))
"""A FIFO in the place of a file must not block, nor a device become our terminal."""


class Unreadable(Exception):
    """Why a file cannot be used, to be put behind its name: "is a directory"."""


class TextFile(Struct, frozen=True, kw_only=True):
    """What was read."""

    text: str
    size: int
    """Bytes of the whole file."""
    cut: bool = False
    """Only the beginning was read, to the end of a line."""


def read_bytes(path: str, limit: int) -> tuple[bytes, int]:
    """The beginning of a regular file and the size of the whole. A file that is not there raises
    `FileNotFoundError`: only the caller knows whether it has to be."""
    try:
        descriptor = os.open(path, _FLAGS)
        try:
            facts = os.fstat(descriptor)
            if not stat.S_ISREG(facts.st_mode):
                raise Unreadable("is a directory" if stat.S_ISDIR(facts.st_mode) else "is not a regular file")
            with os.fdopen(descriptor, "rb", closefd=False) as file:
                return read_within(file, limit), facts.st_size
        finally:
            os.close(descriptor)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise FileNotFoundError(path) from error
    except OSError as error:
        raise Unreadable(f"cannot be read ({error.strerror or error})") from error
    except ValueError as error:  # a NUL in the name
        raise FileNotFoundError(path) from error


def read_text(path: str, limit: int) -> TextFile:
    """The text of a file, or as many of its lines as fit into `limit` bytes."""
    data, size = read_bytes(path, limit + 1)
    cut = len(data) > limit
    if cut:
        data = data[: data.rfind(b"\n", 0, limit) + 1] or data[:limit]
    decoded = decode(data, cut=cut)
    if decoded is None:
        raise Unreadable("is not text")
    text = decoded.text.replace("\r\n", "\n").replace("\r", "\n")
    return TextFile(text=text, size=max(size, len(data)), cut=cut)


def quote_file(path: str, text: str) -> str:
    """A file as it stands in a prompt."""
    name = path.replace('"', "&quot;")
    return f'<file path="{name}">\n{text.rstrip()}\n</file>'
