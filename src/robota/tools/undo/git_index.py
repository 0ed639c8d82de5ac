"""What git's index says, apart from what it remembers about files to be faster.

Looking at a repository (`git status`, an editor) writes the index anew. It says the same as before then, and
nobody has to be asked about such a change.
"""

from __future__ import annotations

from hashlib import sha1, sha256

INDEX_SIGNATURE = b"DIRC"
_HEADER = 12
_STAT = 24
"""Bytes at the start of an entry: times, device and inode."""
_MODE_END = 28
_OWNER_AND_SIZE = 40
_NAME_MASK = 0x0FFF
_EXTENDED = 0x4000
_VERSIONS = (2, 3)


def digest_index(data: bytes) -> bytes | None:
    """A digest of the entries; None for what is no index, or not one that we can read."""
    version, count = int.from_bytes(data[4:8], "big"), int.from_bytes(data[8:12], "big")
    if not data.startswith(INDEX_SIGNATURE) or version not in _VERSIONS:
        return None
    if data[-20:] != sha1(data[:-20], usedforsecurity=False).digest():
        return None
    check, at = sha256(), _HEADER
    for _ in range(count):
        flags = int.from_bytes(data[at + 60 : at + 62], "big")
        name = at + (64 if flags & _EXTENDED else 62)
        end = data.index(b"\0", name) if flags & _NAME_MASK == _NAME_MASK else name + (flags & _NAME_MASK)
        check.update(data[at + _STAT : at + _MODE_END])
        check.update(data[at + _OWNER_AND_SIZE : end + 1])
        at += (end - at + 8) & ~7
    return None if b"link" in data[at : at + 4] else check.digest()
