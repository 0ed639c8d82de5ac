"""The compiled modules that a start loads, in one file beside Python's own compiled files.

A session is some five hundred modules. Finding, opening, checking and reading each of them takes Python as
long as running what is in them. Here one file is open, and a module costs a look at its source, which must be
as old and as long as when it was compiled. The file is written at the end of a program that had to load much
without it, and only where Python keeps compiled files itself: without it everything works, a little later.
"""

from __future__ import annotations

import marshal
import os
import sys
from importlib.machinery import ModuleSpec, SourceFileLoader

TYPE_CHECKING = False  # typing is not loaded for it
if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import CodeType, ModuleType

WORTH_WRITING = 25
"""Modules that had to be loaded without it."""
LIMIT_BYTES = 32 * 1024 * 1024
"""What the tools of an agent load must not make it grow for ever."""
_FORMAT = "2"
"""Of the index: files of earlier versions of robota may lie in the same directory."""
_LENGTH_BYTES = 8
"""Of the number at its beginning: how long the index is that follows. The code is behind that."""
_COMPILED_HEADER = 16
"""Before the code in a file of Python's: magic number, flags, time and size of the source."""
_PRIME = 2**61 - 1
_ENVIRONMENTS = 4
"""So many may share one copy of robota, each with its own file."""
_DAMAGED = (OSError, EOFError, ValueError, TypeError, OverflowError, MemoryError)


class ModuleCache:
    """A finder for `sys.meta_path`; what it does not know, or not as it is now, the others find."""

    def __init__(self, directory: str, version: str) -> None:
        self._directory = directory
        self._roots = sys.path[1:]
        """First on the path is where the program is started, which says nothing about the next one."""
        self._conditions = "\0".join((_FORMAT, sys.version, *self._roots))
        """Under which the same names mean the same files."""
        number = int.from_bytes(self._conditions.encode("utf-8", "surrogateescape"), "big") % _PRIME
        self._path = os.path.join(directory, f"modules.{version}.{number:016x}.cache")
        self._index: dict[str, tuple[str, int, int, bool, str, int, int]] = {}
        """By name: source, its time and size, whether it is a package, where Python keeps what it compiled of
        it, where its code is and how long."""
        self._file = -1
        self._begin = 0
        self._read_index()

    def _read_index(self) -> None:
        try:
            self._file = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC)
            length = int.from_bytes(os.pread(self._file, _LENGTH_BYTES, 0), "little")
            self._begin = _LENGTH_BYTES + length
            conditions, index = marshal.loads(os.pread(self._file, length, _LENGTH_BYTES))
        except _DAMAGED:  # or there is none yet
            return
        if conditions == self._conditions:
            self._index = index

    def find_spec(
        self, name: str, _path: Sequence[str] | None = None, _target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if not self._is_current(name):
            return None
        source, is_package = self._index[name][0], self._index[name][3]
        spec = ModuleSpec(name, _Loader(name, source, self), origin=source, is_package=is_package)
        spec.has_location = True
        spec.cached = self._index[name][4]  # to find it costs Python as much as all of this
        if is_package:
            spec.submodule_search_locations = [os.path.dirname(source)]
        return spec

    def _is_current(self, name: str) -> bool:
        entry = self._index.get(name)
        return entry is not None and _stamp(entry[0]) == entry[1:3]

    def code_of(self, name: str) -> bytes:
        place, length = self._index[name][5:]
        return os.pread(self._file, length, self._begin + place)

    def update(self) -> None:
        """Write it anew if much was not in it, or is not any more what it was."""
        if sys.dont_write_bytecode:
            return
        missed = {
            name: spec
            for name, module in sys.modules.copy().items()
            if (spec := getattr(module, "__spec__", None)) is not None
            and type(spec.loader) is SourceFileLoader
            and self._is_found_again(name, spec)
            and not self._is_current(name)  # as is what was loaded before there was a cache
        }
        if len(missed) < WORTH_WRITING:
            return
        kept = {
            name: (*entry[:5], self.code_of(name))
            for name, entry in self._index.items()
            if self._is_current(name)
        }
        new = {name: compiled for name, spec in missed.items() if (compiled := _read_compiled(spec))}
        self._write({**new, **kept})

    def _is_found_again(self, name: str, spec: ModuleSpec) -> bool:
        """Whether the name means this file wherever the program is started next."""
        package, _, below = name.partition(".")
        if spec.name != name or spec.origin is None:
            return False
        top = sys.modules.get(package) if below else None
        origin = spec.origin if top is None else getattr(top, "__file__", None) or ""
        parent = os.path.dirname(origin)
        is_package = top is not None or spec.submodule_search_locations is not None
        return package == "robota" or (os.path.dirname(parent) if is_package else parent) in self._roots

    def _write(self, modules: dict[str, tuple[str, int, int, bool, str, bytes]]) -> None:
        index, place = {}, 0
        for name, (*facts, code) in modules.items():
            if place + len(code) <= LIMIT_BYTES:
                index[name] = (*facts, place, len(code))
                place += len(code)
        head = marshal.dumps((self._conditions, index))
        codes = (modules[name][5] for name in index)
        beside = f"{self._path}.{os.getpid()}"
        try:
            with open(beside, "xb") as file:
                file.writelines((len(head).to_bytes(_LENGTH_BYTES, "little"), head, *codes))
            os.replace(beside, self._path)  # in one step: another robota may be starting
            for path in self._find_old():
                os.unlink(path)
        except OSError:  # Python has no complaint either when it cannot keep what it compiled
            return

    def _find_old(self) -> list[str]:
        with os.scandir(self._directory) as entries:
            files = [
                entry for entry in entries if entry.name.startswith("modules.") and ".cache" in entry.name
            ]
        files.sort(key=lambda entry: entry.stat().st_mtime_ns, reverse=True)
        return [entry.path for entry in files[_ENVIRONMENTS:]]


class _Loader(SourceFileLoader):
    """Python's own, with the code from the cache."""

    def __init__(self, name: str, path: str, cache: ModuleCache) -> None:
        super().__init__(name, path)
        self._cache = cache

    def get_code(self, fullname: str) -> CodeType | None:
        try:
            code: CodeType = marshal.loads(self._cache.code_of(fullname))
        except _DAMAGED:
            return super().get_code(fullname)
        return code


def install_module_cache() -> ModuleCache | None:
    """From now on look there first; `None` where Python keeps no compiled files, and on Windows."""
    package = sys.modules["robota"].__spec__
    if package is None or package.cached is None or not hasattr(os, "pread"):
        return None
    directory, name = os.path.split(package.cached)
    version = name.removeprefix("__init__.").removesuffix(".pyc")
    cache = ModuleCache(directory, version)
    sys.meta_path.insert(0, cache)
    return cache


def _stamp(path: str) -> tuple[int, int] | None:
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size


def _read_compiled(spec: ModuleSpec) -> tuple[str, int, int, bool, str, bytes] | None:
    """What Python compiled from the source as it is now, if that is there."""
    stamp = _stamp(spec.origin or "")
    if spec.origin is None or spec.cached is None or stamp is None:
        return None
    try:
        with open(spec.cached, "rb") as file:
            compiled = file.read()
    except OSError:
        return None
    flags, *made_from = (int.from_bytes(compiled[at : at + 4], "little") for at in (4, 8, 12))
    if flags or made_from != [stamp[0] // 10**9 & 0xFFFFFFFF, stamp[1] & 0xFFFFFFFF]:
        return None
    is_package = spec.submodule_search_locations is not None
    return spec.origin, *stamp, is_package, spec.cached, compiled[_COMPILED_HEADER:]
