"""Values too large for a journal line, in files named by the hash of their content.

A payload is on the disk before the line that refers to it is written. Reading believes nothing: neither the
path in a reference, nor the size or content of the file it names.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

from robota.core.errors import StorageError
from robota.core.jsontext import decode, encode
from robota.core.messages import Json
from robota.sessions.files import REAL_FILES, Files, close_quietly, explain, write_durably

KIND = "external-payload"
DEPTH_LIMIT = 32
TOTAL_LIMIT = 64 * 1024 * 1024

_HEX = frozenset("0123456789abcdef")
_BLOCK = 1024 * 1024


class PayloadReferenceError(StorageError):
    """A reference that does not lead to the content it promises."""

    code = "PAYLOAD_REFERENCE_INVALID"


class PayloadStore:
    """The payloads beside the journals of one directory; `put` writes those of one session."""

    __slots__ = ("_cleaned", "_directory", "_files", "_name", "_stored")

    def __init__(self, directory: str, session_id: str, *, files: Files = REAL_FILES) -> None:
        self._directory = directory
        self._name = f"{session_id}.payloads"
        self._files = files
        self._stored: set[str] = set()
        """Hashes known to be on the disk for good."""
        self._cleaned = False

    def put(self, encoded: bytes) -> bytes:
        """Store encoded JSON durably and return the reference to write in its place, as JSON.

        When the disk refuses, the value belongs into the line itself.
        """
        from hashlib import sha256  # noqa: PLC0415 - most sessions have no payload

        digest = sha256(encoded).hexdigest()
        if digest not in self._stored:
            self._store(digest, encoded)
            self._stored.add(digest)
        return encode(
            {
                "kind": KIND,
                "encoding": "json",
                "sha256": digest,
                "byteLength": len(encoded),
                "relativePath": f"{self._name}/{digest}.json",
            }
        )

    def get(self, reference: Mapping[str, Json]) -> bytes:
        """The encoded JSON a reference stands for; `PayloadReferenceError` unless it is exactly that."""
        from hashlib import sha256  # noqa: PLC0415 - most sessions have no payload

        digest, size, path = _check_reference(reference)
        place = os.path.join(self._directory, path)
        try:
            content = self._read(place, size)
        except OSError as error:
            raise _invalid(f"{place} cannot be read: {explain(error)[0]}") from error
        if len(content) != size:
            raise _invalid(f"{place} does not have the {size} bytes that were written")
        if sha256(content).hexdigest() != digest:
            raise _invalid(f"{place} was changed: its hash does not match")
        return content

    def resolve(self, value: Json) -> Json:
        """The value with every reference in it replaced by its content, references in contents included."""
        root: list[Json] = [value]
        waiting: list[tuple[Json, Json, int]] = [(root, 0, 0)]  # deep nesting costs no stack
        left = TOTAL_LIMIT
        while waiting:
            parent, key, depth = waiting.pop()
            item = parent[key]
            while isinstance(item, Mapping) and item.get("kind") == KIND:
                left -= _check_reference(item)[1]
                if depth >= DEPTH_LIMIT:
                    raise _invalid(f"references are nested more than {DEPTH_LIMIT} deep")
                if left < 0:
                    raise _invalid(f"the payloads together have more than {TOTAL_LIMIT} bytes")
                item = self._fetch(item)
                depth += 1
            if isinstance(item, Mapping):
                item = dict(item)
                waiting.extend((item, name, depth) for name in item)
            elif isinstance(item, list | tuple):
                item = list(item)
                waiting.extend((item, place, depth) for place in range(len(item)))
            parent[key] = item
        return root[0]

    def _fetch(self, reference: Mapping[str, Json]) -> Json:
        try:
            return decode(self.get(reference))
        except ValueError as error:
            raise _invalid(f"{reference['relativePath']} is not JSON: {error}") from error

    def _store(self, digest: str, encoded: bytes) -> None:
        directory = os.path.join(self._directory, self._name)
        self._files.make_directory(directory)
        self._clean(directory)
        path = os.path.join(directory, f"{digest}.json")
        if self._has(path, len(encoded)):
            self._files.sync_directory(directory)  # whoever made it may have died before its name was safe
            return
        write_durably(self._files, path, encoded)

    def _has(self, path: str, size: int) -> bool:
        try:
            return self._files.size_of(path) == size
        except FileNotFoundError:
            return False

    def _clean(self, directory: str) -> None:
        """Remove what a killed predecessor left half written; the session's lock says that we are alone."""
        if not self._cleaned:
            for name in self._files.names(directory):
                if name.endswith(".tmp"):
                    self._files.unlink(os.path.join(directory, name))
            self._cleaned = True

    def _read(self, path: str, size: int) -> bytes:
        fd = self._files.open_read_unlinked(path)
        try:
            if self._files.size(fd) != size:
                return b""
            pieces = []
            while piece := self._files.read(fd, _BLOCK):
                pieces.append(piece)
            return b"".join(pieces)
        finally:
            close_quietly(self._files, fd)


def _check_reference(reference: Mapping[str, Json]) -> tuple[str, int, str]:
    """Hash, size and path, if the path is the only one such a reference can have."""
    if reference.get("kind") != KIND or reference.get("encoding") != "json":
        raise _invalid("it is not of the kind external-payload with encoding json")
    digest, size, path = (reference.get(name) for name in ("sha256", "byteLength", "relativePath"))
    if not isinstance(digest, str) or len(digest) != 64 or not _HEX.issuperset(digest):
        raise _invalid("its sha256 is not a hash")
    if type(size) is not int or size < 0:
        raise _invalid("its byteLength is not a size")
    if not isinstance(path, str):
        raise _invalid("its relativePath is not a text")
    folder, _, name = path.partition("/")
    plain = not set(folder) & set("/\\:\0") and folder not in (".payloads", "..payloads")
    if name != f"{digest}.json" or not folder.endswith(".payloads") or not plain:
        raise _invalid(f"its path {path!r} does not lead to a payload beside the journal")
    return digest, size, path


def _invalid(reason: str) -> PayloadReferenceError:
    return PayloadReferenceError(f"A payload reference cannot be followed: {reason}.")
