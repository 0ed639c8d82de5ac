"""A shell of ours that ends what a killed robota leaves running.

Whoever is ended by `kill -9` cannot clean up. So the first command starts a small shell beside us, which is
told when calls begin and end; when its input ends, because we are gone, it kills what carries the mark of a
call that is still open. A sandbox dies with its first process, whatever has been started in it.
"""

from __future__ import annotations

import os
from contextlib import suppress

_SCRIPT = """
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


class Guardian:
    """Started when it is first told of a call; where it cannot be, nothing is guarded."""

    __slots__ = ("_owner", "_pipe")

    def __init__(self) -> None:
        self._owner = 0
        """The process it was started by: after a fork the new process needs its own."""
        self._pipe = -1

    def begin(self, call_id: str) -> None:
        if self._owner != os.getpid():
            self._owner, self._pipe = os.getpid(), _start()
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


def _start() -> int:
    """The descriptor that it reads from, -1 where it cannot work."""
    if not (os.path.exists("/proc/self/environ") and hasattr(os, "posix_spawn")):
        return -1
    read, write = os.pipe()
    try:
        os.posix_spawn(
            _SHELL,
            [_SHELL, "-c", _SCRIPT],
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
