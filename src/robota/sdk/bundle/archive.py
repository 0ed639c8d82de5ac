"""Archives from strangers, unpacked so that nothing leaves the directory and nothing grows without bounds."""

from __future__ import annotations

import os
import posixpath
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from typing import IO, Self

from robota.sdk.bundle.names import BundleError

MAX_FILES = 20_000
MAX_BYTES = 200 * 1024 * 1024
MAX_RATIO = 200
"""How many bytes one byte of an archive may stand for, once it stands for a good many."""
FREE_BYTES = 4 * 1024 * 1024
MAX_PATH = 1_000
MAX_DEPTH = 40
MAX_HEADER = 64 * 1024
"""Bytes of what stands before a file in a tar archive, such as its long name: it is read as a whole."""
_CHUNK = 1 << 16
_READ_WHOLE = frozenset((
    tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK, tarfile.XHDTYPE, tarfile.XGLTYPE,
    tarfile.SOLARIS_XHDTYPE,
))  # fmt: skip


def unpack(path: str, into: str) -> None:
    """Put the files of a zip or tar archive into an empty directory. What is wrong with one raises, and the
    directory is the caller's to remove."""
    try:
        if zipfile.is_zipfile(path):
            with zipfile.ZipFile(path) as archive:
                _Unpacking(into, os.path.getsize(path)).take_zip(archive)
        else:
            with tarfile.open(path, "r:*", tarinfo=_Header) as archive:
                _Unpacking(into, os.path.getsize(path)).take_tar(archive)
    except (zipfile.BadZipFile, tarfile.TarError, EOFError, zlib.error, NotImplementedError) as error:
        raise BundleError(
            f"The archive cannot be read ({error}): it is neither a whole zip nor tar file."
        ) from error
    except (OSError, RuntimeError) as error:  # damaged data, or an encrypted file
        raise BundleError(f"The archive cannot be unpacked ({error}).") from error


class _Header(tarfile.TarInfo):
    """What stands before a file, refused when it would not fit into the memory."""

    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> Self:
        header = super().frombuf(buf, encoding, errors)
        if header.type in _READ_WHOLE and header.size > MAX_HEADER:
            raise BundleError(
                f"The archive has a name or a note of {header.size:,} bytes before a file; at most "
                f"{MAX_HEADER >> 10} KiB: refused."
            )
        return header


class _Unpacking:
    """What was put where, and how much there is room for."""

    def __init__(self, into: str, size: int) -> None:
        self._into = into
        self._room = min(MAX_BYTES, max(FREE_BYTES, size * MAX_RATIO))
        self._size = size
        self._taken: dict[str, str] = {}
        """Path without regard to case to how it was spelled."""
        self._links: list[tuple[str, str]] = []
        self._count = 0

    def take_zip(self, archive: zipfile.ZipFile) -> None:
        for info in archive.infolist():
            mode = info.external_attr >> 16
            if stat.S_ISLNK(mode):
                with archive.open(info) as source:
                    target = source.read(MAX_PATH + 1).decode("utf-8", "replace")
                self._links.append((self._check(info.filename), target))
            elif mode and stat.S_IFMT(mode) not in (0, stat.S_IFREG, stat.S_IFDIR):
                raise BundleError(
                    f"The archive has a device or the like, {info.filename!r}, which no plugin needs."
                )
            elif info.is_dir():
                self._make_directory(self._check(info.filename))
            else:
                with archive.open(info) as source:
                    self._write(self._check(info.filename), source, bool(mode & 0o100))
        self._settle_links()

    def take_tar(self, archive: tarfile.TarFile) -> None:
        for info in archive:
            if info.isdir():
                self._make_directory(self._check(info.name))
            elif info.issym():
                self._links.append((self._check(info.name), info.linkname))
            elif info.islnk():
                path = self._check(info.name)
                target = posixpath.relpath(info.linkname, posixpath.dirname(path) or ".")
                self._links.append((path, target))
            elif info.isreg():
                source = archive.extractfile(info)
                assert source is not None, "a file has a content"
                with source:
                    self._write(self._check(info.name), source, bool(info.mode & 0o100))
            elif info.type not in (tarfile.XHDTYPE, tarfile.XGLTYPE):
                raise BundleError(
                    f"The archive has a device or the like, {info.name!r}, which no plugin needs."
                )
        self._settle_links()

    def _check(self, name: str) -> str:
        """A path inside of the directory, for one file only."""
        parts = [part for part in name.rstrip("/").split("/") if part != "."]
        if not parts or parts == [""]:
            return ""
        wrong = (
            name.startswith("/")
            or any(letter in name for letter in "\\\0")
            or any(part in ("", "..") for part in parts)
            or parts[0][1:2] == ":"
            or len(name) > MAX_PATH
            or len(parts) > MAX_DEPTH
        )
        if wrong:
            raise BundleError(
                f"The archive has a file {name[:200]!r}, which would lie outside of the plugin: refused."
            )
        path = "/".join(parts)
        spelled = self._taken.setdefault(path.casefold(), path)
        if spelled != path:
            raise BundleError(
                f"The archive has {spelled!r} and {path!r}, which are one file on some systems."
            )
        return path

    def _count_one(self) -> None:
        self._count += 1
        if self._count > MAX_FILES:
            raise BundleError(f"The archive has more than {MAX_FILES:,} files.")

    def _make_directory(self, path: str) -> None:
        self._count_one()
        os.makedirs(os.path.join(self._into, path), exist_ok=True)

    def _write(self, path: str, source: IO[bytes], executable: bool) -> None:
        self._count_one()
        target = os.path.join(self._into, path)
        os.makedirs(os.path.dirname(target), exist_ok=True)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0)
        with open(os.open(target, flags, 0o755 if executable else 0o644), "wb") as file:
            while data := source.read(_CHUNK):
                self._room -= len(data)
                if self._room < 0:
                    raise BundleError(
                        f"The archive of {self._size:,} bytes holds more than a plugin may: at most "
                        f"{MAX_BYTES >> 20} MB, and {MAX_RATIO} times its own size."
                    )
                file.write(data)

    def _settle_links(self) -> None:
        """A link to a file of the archive becomes a copy of it; every other is refused."""
        for path, target in self._links:
            place = posixpath.normpath(posixpath.join(posixpath.dirname(path), target))
            source = os.path.join(self._into, place)
            if "\0" in target or len(target) > MAX_PATH:
                raise BundleError(f"The archive has a link, {path!r}, to what is no path: refused.")
            if posixpath.isabs(target) or place == ".." or place.startswith("../"):
                raise BundleError(
                    f"The archive has a link, {path!r}, that leads out of it to {target!r}: refused."
                )
            for each, name in list(_walk(source)):
                with open(each, "rb") as file:
                    executable = bool(os.stat(each).st_mode & 0o100)
                    self._write(posixpath.join(path, name) if name else path, file, executable)


def _walk(path: str) -> Iterator[tuple[str, str]]:
    """The files there and their names below it; nothing if a link leads to nothing."""
    if os.path.isfile(path):
        yield path, ""
    for place, _, files in os.walk(path):
        for name in files:
            full = os.path.join(place, name)
            yield full, os.path.relpath(full, path).replace(os.sep, "/")


def find_top(root: str) -> str:
    """The directory that everything in an archive lies in, if there is one, else `root`."""
    names = os.listdir(root)
    only = os.path.join(root, names[0]) if len(names) == 1 else root
    return only if os.path.isdir(only) and names[0] != ".claude-plugin" else root
