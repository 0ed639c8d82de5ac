"""What undo asks of the system, in one place so that each call can be made to fail or to be the last."""

from __future__ import annotations

import os

from robota.tools.files.directory import SystemCalls


class UndoCalls(SystemCalls):
    """The calls of the file layer and those that only undo needs."""

    sync = staticmethod(os.sync)
    mkfifo = staticmethod(os.mkfifo)
    symlink = staticmethod(os.symlink)
    chmod = staticmethod(os.chmod)
    chown = staticmethod(os.chown)
    utime = staticmethod(os.utime)
    ftruncate = staticmethod(os.ftruncate)


CALLS = UndoCalls()


def write_all(calls: UndoCalls, descriptor: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[calls.write(descriptor, rest) :]
