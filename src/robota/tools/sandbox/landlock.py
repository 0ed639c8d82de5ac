"""This process, and what it becomes, confined to a policy, by Landlock and a filter of system calls.

Uses nothing but the standard library: it runs in the launcher, before the command. Landlock adds up what is
allowed and knows no exceptions, so a directory with something to keep out of reach is not allowed as a whole:
its other entries are, one by one. It holds back TCP, but neither UDP nor the sockets of other programs in the
file system, through which a command could have somebody outside do what it may not; so a system-call filter
says which kinds of sockets may be opened.
"""

from __future__ import annotations

import ctypes
import os
import struct
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:  # loading these takes longer than confining a process
    from collections.abc import Iterable, Iterator, Sequence

MINIMUM_ABI = 3
"""Older kernels let everybody truncate files."""
NETWORK_ABI = 4

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_VERSION_FLAG, _PATH_BENEATH = 1, 1
_WRITE_FILE, _READ_FILE, _TRUNCATE, _IOCTL_DEVICE = 1 << 1, 1 << 2, 1 << 14, 1 << 15
_CHANGE_DIRECTORY = sum(1 << bit for bit in range(4, 14))
"""Remove and make entries of every kind, move them between directories."""
_NETWORK = 1 << 0 | 1 << 1
_SCOPES = 1 << 0 | 1 << 1
"""Abstract sockets of, and signals to, processes outside."""
_IOCTL_ABI, _SCOPE_ABI = 5, 6
_PR_SET_NO_NEW_PRIVS, _PR_CAPBSET_DROP = 38, 24
_CAPABILITIES = 64
_DEVICES = [f"/dev/{name}" for name in ["null", "zero", "full", "random", "urandom", "tty", "ptmx", "pts"]]


def landlock_abi() -> int:
    """The version of the kernel's Landlock; 0 without it."""
    if sys.platform != "linux":  # the numbers mean other calls elsewhere
        return 0
    try:
        version: int = _libc().syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), _VERSION_FLAG)
    except (OSError, AttributeError):  # no such C library
        return 0
    return max(version, 0)


def confine(
    writable: Sequence[str], read_only: Sequence[str], deny_read: Sequence[str], *, network: bool
) -> None:
    """Confine this process for good. Raises OSError when it cannot be done."""
    abi = landlock_abi()
    if abi < MINIMUM_ABI:
        raise OSError(f"this kernel's Landlock is version {abi}, and {MINIMUM_ABI} is needed")
    changes = _WRITE_FILE | _TRUNCATE | _CHANGE_DIRECTORY | (_IOCTL_DEVICE if abi >= _IOCTL_ABI else 0)
    handled = changes | (_READ_FILE if deny_read else 0)
    attributes = struct.pack(
        "QQQ", handled, 0 if network or abi < NETWORK_ABI else _NETWORK, _SCOPES if abi >= _SCOPE_ABI else 0
    )
    size = 24 if abi >= _SCOPE_ABI else 16 if abi >= NETWORK_ABI else 8
    ruleset = _call(_CREATE_RULESET, attributes, ctypes.c_size_t(size), 0)
    try:
        for path in _allowed(writable, (*read_only, *deny_read)):
            _allow(ruleset, path, changes)
        for path in _DEVICES:
            _allow(ruleset, path, changes & ~_CHANGE_DIRECTORY)
        if deny_read:
            for path in _allowed(["/"], deny_read):
                _allow(ruleset, path, _READ_FILE)
        _drop_capabilities()
        if _libc().prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0:
            raise OSError(ctypes.get_errno(), "new privileges could not be given up")
        _call(_RESTRICT_SELF, ruleset, 0)
    finally:
        os.close(ruleset)


def _allowed(roots: Iterable[str], exceptions: Sequence[str]) -> Iterator[str]:
    """The roots without the exceptions, existing or not; entries instead of directories that hold one."""
    for root in roots:
        if root in exceptions:
            continue
        inner = [exception for exception in exceptions if _is_inside(exception, root)]
        if not inner:
            yield root
            continue
        try:
            with os.scandir(root) as entries:
                children = [entry.path for entry in entries if not entry.is_symlink()]
        except OSError:
            continue
        yield from _allowed(children, inner)


def _is_inside(path: str, root: str) -> bool:
    return path == root or path.startswith(root.rstrip("/") + "/")


def _allow(ruleset: int, path: str, access: int) -> None:
    """Allow it below a directory; of a file only what a file can be asked for."""
    try:
        descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:  # gone, or out of our reach as well
        return
    try:
        if not os.path.isdir(path):
            access &= _WRITE_FILE | _READ_FILE | _TRUNCATE | _IOCTL_DEVICE
        _call(_ADD_RULE, ruleset, _PATH_BENEATH, struct.pack("=Qi", access, descriptor), 0)
    finally:
        os.close(descriptor)


def _drop_capabilities() -> None:
    """Root keeps its name, and no power that Landlock does not see. Nobody else has any to drop."""
    for capability in range(_CAPABILITIES):
        if _libc().prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0) != 0:
            return  # there are no more


def _call(number: int, *arguments: int | bytes | ctypes.c_size_t) -> int:
    result: int = _libc().syscall(number, *arguments)
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, f"Landlock refused: {os.strerror(code)}")
    return result


def _libc() -> ctypes.CDLL:
    if not _loaded:  # which takes longer than most of what is asked of it
        _loaded.append(ctypes.CDLL(None, use_errno=True))
    return _loaded[0]


_loaded: list[ctypes.CDLL] = []


# --- sockets -------------------------------------------------------------------------------------------

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
    if _libc().prctl(_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, ctypes.byref(filter_), 0, 0) != 0:
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
