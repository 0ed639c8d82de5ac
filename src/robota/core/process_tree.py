"""Looking at other processes through /proc: who belongs to a call, which groups are still there; and a shell
of ours that ends what a killed robota leaves running.

Where there is no /proc nothing is found, and only the group that was started is known. Whoever is ended by
`kill -9` cannot clean up. So the first command starts a small shell beside us, which is told when calls begin
and end; when its input ends, because we are gone, it kills what carries the mark of a call that is still
open. A sandbox dies with its first process, whatever has been started in it.
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import IO

from robota.core.plain_text import to_plain_text

_STARTED = 19
"""Where in the fields of `_stat` the time of the start is."""
_UNREPEATED_SECONDS = 1.0
"""No machine uses up all its process numbers in this time."""
_GUARD = """
open=
while read -r sign id; do
  rest=
  for each in $open; do [ "$each" = "$id" ] || rest="$rest $each"; done
  open=$rest
  [ "$sign" = + ] && open="$open $id"
done
for id in $open; do
  for round in 1 2 3 4 5 6 7 8; do
    files=$(grep -ls -e "$id" /proc/[0-9]*/environ)
    [ -n "$files" ] || break
    for file in $files; do file=${file#/proc/}; kill -9 "${file%/environ}" 2>/dev/null; done
  done
done
"""
_SHELL = "/bin/sh"


def lowest_relative(pid: int | None, age: float) -> int:
    """The lowest number a descendant of a process can have; 0 where numbers may have begun anew since.

    Looking at the few processes that are younger than a short command is much cheaper than looking at all.
    """
    if pid is None or age > _UNREPEATED_SECONDS:
        return 0
    return pid if _newest() >= pid else 0


def _newest() -> int:
    """The number of the process that was started last; 0 where that is not told."""
    last = _read("loadavg").split()[-1:]
    return int(last[0]) if last and last[0].isdigit() else 0


def group_is_alive(group: int | None, lowest: int = 0) -> bool:
    """Whether a process group has members other than zombies, none of which has a number below `lowest`."""
    if group is None or os.name != "posix":
        return False
    try:
        os.killpg(group, 0)
    except (ProcessLookupError, PermissionError):  # the latter is what macOS says of zombies
        return False
    states = [fields for pid in process_ids(lowest) if (fields := _stat(pid))]
    return not states or any(fields[2] == str(group) and fields[0] not in "ZX" for fields in states)


class Family:
    """The processes of a call: those that carry its mark, hold its pipes, or descend from one that does.

    The mark is lost with the environment (`env -i`), descent with the parent, so whoever was found once is
    remembered.
    """

    __slots__ = ("_known", "_mark", "_pipes")

    def __init__(self, call_id: str) -> None:
        self._mark = call_id.encode()
        self._pipes: frozenset[str] = frozenset()
        self._known: dict[int, str] = {}
        """When each of them was started: its number may belong to another one later."""

    def know_pipe(self, end: IO[bytes] | None) -> None:
        """Our end of one; that of a short command may be closed already."""
        if end is not None and not end.closed:
            with suppress(OSError):
                self._pipes |= {os.readlink(f"/proc/self/fd/{end.fileno()}")}

    def find(self, lowest: int, parent: int | None) -> list[int]:
        """Those that run, none of which has a number below `lowest`; none where there is no /proc."""
        stats = {pid: fields for pid in process_ids(lowest) if (fields := _stat(pid))}
        stats.pop(os.getpid(), None)
        found = {pid for pid, fields in stats.items() if self._belongs(pid, fields)}
        grown = -1
        while grown != len(found):
            grown = len(found)
            found |= {
                pid for pid, fields in stats.items() if int(fields[1]) in found or int(fields[1]) == parent
            }
        self._known = {pid: stats[pid][_STARTED] for pid in found}
        return sorted(pid for pid in found if stats[pid][0] not in "ZX")

    def _belongs(self, pid: int, fields: list[str]) -> bool:
        if self._known.get(pid) == fields[_STARTED] or self._mark in _read(f"{pid}/environ"):
            return True
        with suppress(OSError):
            return any(os.readlink(f"/proc/{pid}/fd/{each}") in self._pipes for each in (1, 2))
        return False


def process_ids(lowest: int = 0) -> list[int]:
    """Those that run; with `lowest`, those that were started since the process of that number was."""
    try:
        numbers = [int(name) for name in os.listdir("/proc") if name.isdigit()]
    except OSError:
        return []
    if not lowest or (newest := _newest()) < lowest:  # all are asked for, or numbers have begun anew
        return numbers
    # Those above the newest one are from before the numbers last began anew.
    return [number for number in numbers if lowest <= number <= newest]


def _read(name: str) -> bytes:
    try:
        with open(f"/proc/{name}", "rb", buffering=0) as file:
            return file.read()
    except OSError:  # gone meanwhile, or not ours
        return b""


def _stat(pid: int) -> list[str]:
    """State, parent, group … of a process: what follows its name, which may hold blanks and brackets."""
    return _read(f"{pid}/stat").rpartition(b")")[2].decode("ascii", "replace").split()


def group_of(pid: int) -> int | None:
    fields = _stat(pid)
    return int(fields[2]) if fields else None


def process_name(pid: int) -> str:
    command = to_plain_text(_read(f"{pid}/cmdline").replace(b"\0", b" ").strip())
    return f"{pid} {command[:80]}"


class Guardian:
    """Started when it is first told of a call; where it cannot be, nothing is guarded."""

    __slots__ = ("_owner", "_pipe")

    def __init__(self) -> None:
        self._owner = 0
        """The process it was started by: after a fork the new process needs its own."""
        self._pipe = -1

    def begin(self, call_id: str) -> None:
        if self._owner != os.getpid():
            self._owner, self._pipe = os.getpid(), _start_guard()
        self._tell(f"+ {call_id}\n")

    def end(self, call_id: str) -> None:
        self._tell(f"- {call_id}\n")

    def _tell(self, line: str) -> None:
        if self._pipe >= 0 and self._owner == os.getpid():
            try:
                os.write(self._pipe, line.encode())
            except OSError:  # somebody ended it
                with suppress(OSError):
                    os.close(self._pipe)
                self._owner, self._pipe = 0, -1


def _start_guard() -> int:
    """The descriptor that it reads from, -1 where it cannot work."""
    if not (os.path.exists("/proc/self/environ") and hasattr(os, "posix_spawn")):
        return -1
    read, write = os.pipe()
    try:
        os.posix_spawn(
            _SHELL,
            [_SHELL, "-c", _GUARD],
            {"PATH": "/usr/bin:/bin"},
            file_actions=[
                (os.POSIX_SPAWN_DUP2, read, 0),
                (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
                (os.POSIX_SPAWN_DUP2, 1, 2),
            ],
            setsid=True,
        )
    except (OSError, NotImplementedError):
        os.close(write)
        return -1
    finally:
        os.close(read)
    return write


GUARDIAN = Guardian()
