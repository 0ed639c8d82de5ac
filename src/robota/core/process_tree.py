"""Looking at other processes through /proc: who belongs to a call, which groups are still there.

Where there is no /proc nothing is found, and only the group that was started is known.
"""

from __future__ import annotations

import os

from robota.core.plain_text import to_plain_text


def group_is_alive(group: int | None) -> bool:
    """Whether a process group has members other than zombies."""
    if group is None or os.name != "posix":
        return False
    try:
        os.killpg(group, 0)
    except (ProcessLookupError, PermissionError):  # the latter is what macOS says of zombies
        return False
    states = [fields for pid in process_ids() if (fields := _stat(pid))]
    return not states or any(fields[2] == str(group) and fields[0] not in "ZX" for fields in states)


def find_relatives(call_id: str) -> list[int]:
    """Running processes that carry this call's mark; none where there is no /proc."""
    mark = call_id.encode()
    return [pid for pid in process_ids() if mark in _read(pid, "environ")]


def process_ids() -> list[int]:
    try:
        return [int(name) for name in os.listdir("/proc") if name.isdigit()]
    except OSError:
        return []


def _read(pid: int, name: str) -> bytes:
    try:
        with open(f"/proc/{pid}/{name}", "rb") as file:
            return file.read()
    except OSError:  # gone meanwhile, or not ours
        return b""


def _stat(pid: int) -> list[str]:
    """State, parent, group … of a process: what follows its name, which may hold blanks and brackets."""
    return _read(pid, "stat").rpartition(b")")[2].decode("ascii", "replace").split()


def group_of(pid: int) -> int | None:
    fields = _stat(pid)
    return int(fields[2]) if fields else None


def process_name(pid: int) -> str:
    command = to_plain_text(_read(pid, "cmdline").replace(b"\0", b" ").strip())
    return f"{pid} {command[:80]}"
