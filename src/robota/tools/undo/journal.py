"""The list of entries: one line for each beginning and each end, every line with its checksum.

Lines are only added. What a kill left of a line is passed over, and never joined to the next one. Only
`rewrite`, which takes the place of the whole file in one step, leaves something out.
"""

from __future__ import annotations

import os
from hashlib import sha256
from typing import TypeAlias

import msgspec
from msgspec import Struct

from robota.core.errors import StorageError
from robota.tools.undo.blobs import sync_path
from robota.tools.undo.calls import UndoCalls, write_all

_CHECK_CHARACTERS = 16


class Begun(Struct, frozen=True, kw_only=True, tag="begun", rename="camel", omit_defaults=True):
    """Everything that the call may change is saved; written before it runs."""

    id: str
    at: float
    label: str
    manifest: str
    """The content that lists the states before."""
    stored: int
    tool: str = ""
    session_id: str = ""
    call_id: str = ""
    undoes: str = ""
    """The entry that this one takes back."""
    unprotected: tuple[str, ...] = ()


class Ended(Struct, frozen=True, kw_only=True, tag="ended", rename="camel"):
    id: str
    at: float
    changes: str
    """The content that lists what became different; it takes the place of the manifest."""
    files: int
    size: int
    """Bytes of the files before."""
    stored: int


class Carried(Struct, frozen=True, tag="carried"):
    """Room that is in use although the records that took it are gone."""

    stored: int


Record: TypeAlias = Begun | Ended | Carried
_DECODER: msgspec.json.Decoder[Record] = msgspec.json.Decoder(Record)


class Journal:
    __slots__ = ("_calls", "_offset", "_path", "_seen", "records")

    def __init__(self, path: str, calls: UndoCalls) -> None:
        self._path = path
        self._calls = calls
        self._seen: tuple[int, int] | None = None
        self._offset = 0
        self.records: list[Record] = []
        """What was there at the last refresh or append."""

    def refresh(self) -> bool:
        """Read what was added; True when the file is another one and everything known is out of date."""
        try:
            with open(self._path, "rb") as file:
                facts = os.fstat(file.fileno())
                fresh = (facts.st_dev, facts.st_ino) != self._seen
                if fresh:
                    self._seen, self._offset, self.records = (facts.st_dev, facts.st_ino), 0, []
                file.seek(self._offset)
                data = file.read()
        except FileNotFoundError:
            fresh = self._seen is not None
            self._seen, self._offset, self.records = None, 0, []
            return fresh
        whole = data.rfind(b"\n") + 1
        self._offset += whole
        self.records += [record for line in data[:whole].split(b"\n") if (record := _decode(line))]
        return fresh

    def append(self, record: Record) -> None:
        new = not os.path.lexists(self._path)
        flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        descriptor = self._calls.open(self._path, flags, 0o600)
        try:
            size = os.fstat(descriptor).st_size
            torn = size > 0 and os.pread(descriptor, 1, size - 1) != b"\n"
            write_all(self._calls, descriptor, b"\n" * torn + _encode(record))
            self._calls.fsync(descriptor)
        finally:
            self._calls.close(descriptor)
        if new:
            sync_path(self._calls, os.path.dirname(self._path))
        self.refresh()

    def rewrite(self, records: list[Record], temporary: str) -> None:
        path = f"{temporary}/{os.urandom(8).hex()}"
        descriptor = self._calls.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            write_all(self._calls, descriptor, b"".join(map(_encode, records)))
            self._calls.fsync(descriptor)
        finally:
            self._calls.close(descriptor)
        self._calls.replace(path, self._path)
        sync_path(self._calls, os.path.dirname(self._path))
        self.refresh()


def _encode(record: Record) -> bytes:
    body = msgspec.json.encode(record)
    return _checksum(body) + b" " + body + b"\n"


def _decode(line: bytes) -> Record | None:
    check, _, body = line.partition(b" ")
    if check != _checksum(body):
        return None
    try:
        return _DECODER.decode(body)
    except msgspec.ValidationError as error:
        raise StorageError("The undo store was written by a newer version; update robota.") from error


def _checksum(body: bytes) -> bytes:
    return sha256(body).hexdigest()[:_CHECK_CHARACTERS].encode()
