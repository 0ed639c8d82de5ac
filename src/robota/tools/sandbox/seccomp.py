"""A system-call filter that says which kinds of sockets may be opened.

Landlock holds back TCP, but neither UDP nor the sockets of other programs in the file system, through which a
command could have somebody outside do what it may not. Uses nothing but the standard library: it runs in the
launcher, before the command.
"""

from __future__ import annotations

import ctypes
import os
import struct
from collections.abc import Sequence

AF_INET, AF_INET6, AF_NETLINK = 2, 10, 16
INTERNET = (AF_INET, AF_INET6, AF_NETLINK)

_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER = 22, 2
_ALLOW, _ERRNO = 0x7FFF0000, 0x00050000
_EACCES, _ENOSYS = 13, 38
_LOAD, _EQUAL, _AT_LEAST, _RETURN = 0x20, 0x15, 0x35, 0x06
_NUMBER, _ARCHITECTURE, _FIRST_ARGUMENT = 0, 4, 16
_IO_URING_SETUP = 425
_X32 = 0x40000000
_MACHINES = {"x86_64": (0xC000003E, 41), "aarch64": (0xC00000B7, 198)}
"""The architecture's audit number and its number of `socket`."""


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_char_p))


def can_filter() -> bool:
    return os.uname().machine in _MACHINES


def allow_sockets(families: Sequence[int]) -> None:
    """From now on this process and its children open sockets of these families only. Raises OSError.

    Programs of another architecture (32 bit) get no system call through. `io_uring` could open sockets
    without asking and is switched off.
    """
    program = _build(*_MACHINES[os.uname().machine], families)
    filter_ = _Program(len(program) // 8, program)
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, ctypes.byref(filter_), 0, 0) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"the system-call filter was refused: {os.strerror(number)}")


def _build(architecture: int, socket_call: int, families: Sequence[int]) -> bytes:
    allowed = len(families)
    steps = [
        (_LOAD, 0, 0, _ARCHITECTURE),
        (_EQUAL, 1, 0, architecture),
        (_RETURN, 0, 0, _ERRNO | _ENOSYS),
        (_LOAD, 0, 0, _NUMBER),
        (_AT_LEAST, 0, 1, _X32),
        (_RETURN, 0, 0, _ERRNO | _ENOSYS),
        (_EQUAL, 0, 1, _IO_URING_SETUP),
        (_RETURN, 0, 0, _ERRNO | _ENOSYS),
        (_EQUAL, 0, allowed + 2, socket_call),
        (_LOAD, 0, 0, _FIRST_ARGUMENT),
        *((_EQUAL, allowed - index, 0, family) for index, family in enumerate(families)),
        (_RETURN, 0, 0, _ERRNO | _EACCES),
        (_RETURN, 0, 0, _ALLOW),
    ]
    return b"".join(struct.pack("HBBI", *step) for step in steps)
