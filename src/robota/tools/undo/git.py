"""What undo knows of git: where a repository keeps its state, what commands do to it, what its index says."""

from __future__ import annotations

import os
from collections.abc import Sequence
from hashlib import sha1, sha256

from msgspec import Struct

from robota.core.shell.script import Word
from robota.tools.search.gitignore import git_directories

_KEEPS_OBJECTS = frozenset({
    "add", "am", "apply", "bisect", "branch", "checkout", "checkout-index", "cherry-pick", "clean", "commit",
    "config", "fetch", "merge", "mv", "notes", "pack-refs", "pull", "push", "read-tree", "rebase", "reflog",
    "remote", "replace", "reset", "restore", "revert", "rm", "sparse-checkout", "stash", "switch",
    "symbolic-ref", "tag", "update-index", "update-ref",
})  # fmt: skip
"""Subcommands that never take an object away. Of any other one the objects are saved as well."""
_HARMLESS = {"reflog": ("", "show", "exists"), "stash": ("list", "show"), "remote": ("", "-v", "show")}


class Repository(Struct, frozen=True):
    top: str
    """The working tree."""
    folders: tuple[str, ...]
    """The git directory, and for a linked working tree the one it shares."""


class GitCall(Struct, frozen=True):
    """A git command as far as its place and its subcommand."""

    directory: str | None
    """Where `-C` leads, None when that is not known."""
    subcommand: str
    first: str
    elsewhere: bool
    """Whether options name another repository or working tree."""

    @property
    def keeps_objects(self) -> bool:
        return self.subcommand in _KEEPS_OBJECTS and not self.elsewhere

    @property
    def is_harmless(self) -> bool:
        """Whether this form of a subcommand that has harmful forms only shows something."""
        return self.first in _HARMLESS.get(self.subcommand, ())


def read_git_call(words: Sequence[Word], directory: str | None) -> GitCall:
    elsewhere, index = False, 1
    while index < len(words) and words[index].text.startswith("-"):
        text = words[index].text
        if text == "-C" and index + 1 < len(words):
            index += 1
            target = words[index]
            known = directory is not None and target.literal and not target.tilde
            directory = os.path.join(directory or "", target.text) if known else None
        elif text.startswith(("--git-dir", "--work-tree", "-c", "--config-env", "--exec-path")):
            elsewhere = True
            index += "=" not in text
        index += 1
    subcommand, first = [*(word.text for word in words[index : index + 2]), "", ""][:2]
    return GitCall(directory, subcommand, first, elsewhere)


def find_repository(directory: str) -> Repository | None:
    folder = os.path.realpath(directory)
    while True:
        inside = os.path.join(folder, ".git")
        if os.path.isdir(inside) or os.path.isfile(inside):
            return Repository(folder, tuple(map(os.fsdecode, git_directories(os.fsencode(folder)))))
        if all(os.path.exists(os.path.join(folder, name)) for name in ("HEAD", "objects", "refs")):
            return Repository(folder, (folder,))
        if folder == os.path.dirname(folder):
            return None
        folder = os.path.dirname(folder)


# --- the index -----------------------------------------------------------------------------------------

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
    """A digest of the entries; None for what is no index, or not one that we can read.

    Looking at a repository (`git status`, an editor) writes the index anew, with what it remembers about
    files to be faster. It says the same as before then, and nobody has to be asked about such a change.
    """
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
