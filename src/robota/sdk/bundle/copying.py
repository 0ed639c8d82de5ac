"""Copies a plugin from where it was fetched to where it is used: files only, and not too many of them."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Iterator

from robota.sdk.bundle.archive import MAX_BYTES, MAX_FILES
from robota.sdk.bundle.names import BundleError

_LEFT_OUT = frozenset((".git", "__pycache__", ".DS_Store"))


def copy_bundle(source: str, into: str, within: str) -> None:
    """Copy the files of `source` into a new directory. Links to files `within` the directory that was fetched
    become what they lead to, all others are refused."""
    count = size = 0
    root = os.path.realpath(within)
    os.makedirs(into)
    for path, name in _walk(source, "", root, (os.path.realpath(source),)):
        facts = os.stat(path)
        if not stat.S_ISREG(facts.st_mode):
            raise BundleError(f"{name} is neither a file nor a directory, which no plugin needs: refused.")
        count, size = count + 1, size + facts.st_size
        if count > MAX_FILES or size > MAX_BYTES:
            raise BundleError(f"It is too large: at most {MAX_FILES:,} files and {MAX_BYTES >> 20} MB.")
        target = os.path.join(into, name)
        os.makedirs(os.path.dirname(target), exist_ok=True)
        shutil.copyfile(path, target)
        os.chmod(target, 0o755 if facts.st_mode & 0o100 else 0o644)


def _walk(directory: str, prefix: str, root: str, above: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    with os.scandir(directory) as entries:
        found = sorted(entries, key=lambda entry: entry.name)
    for entry in found:
        if entry.name in _LEFT_OUT:
            continue
        name, real = f"{prefix}{entry.name}", os.path.realpath(entry.path)
        if entry.is_symlink():
            if real != root and not real.startswith(root + os.sep):
                raise BundleError(
                    f"{name} is a link that leads out of it to {os.readlink(entry.path)!r}: refused."
                )
            if not os.path.exists(real):
                continue
        if entry.is_dir():
            if real in above:
                raise BundleError(f"{name} is a link to a directory that it lies in: refused.")
            yield from _walk(entry.path, f"{name}/", root, (*above, real))
        else:
            yield entry.path, name
