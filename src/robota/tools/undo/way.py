"""The way down to a directory, opened name by name without following a link, left open for the next path."""

from __future__ import annotations

import os

from msgspec import Struct

from robota.tools.files.directory import SystemCalls

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC | getattr(os, "O_PATH", 0)


class Way(Struct):
    system: SystemCalls
    held: list[tuple[bytes, int]] = []
    """The directory that was used last and those above it: the next path is mostly near."""

    def to(self, path: bytes) -> tuple[int, bytes]:
        """The directory of a path, open until the next call, and the last name."""
        head, _, name = path.rpartition(b"/")
        if not self.held or self.held[-1][0] != head:
            self._lead_to(head or b"/")
        return self.held[-1][1], name

    def _lead_to(self, path: bytes) -> None:
        held = self.held
        while held and held[-1][0] not in (b"/", path) and not path.startswith(held[-1][0] + b"/"):
            self.system.close(held.pop()[1])
        if not held:
            held.append((b"/", self.system.open(b"/", _FOLDER)))
        above, descriptor = held[-1]
        for part in path[len(above) :].split(b"/"):
            if part:
                above = os.path.join(above, part)
                descriptor = self.system.open(part, _FOLDER, dir_fd=descriptor)
                held.append((above, descriptor))

    def let_go(self) -> None:
        """Other directories may have the names of those that are held."""
        while self.held:
            self.system.close(self.held.pop()[1])
