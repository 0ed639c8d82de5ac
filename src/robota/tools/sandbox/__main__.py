"""The Landlock launcher: `python -m robota.tools.sandbox --policy JSON -- command …`.

It starts the command in a child that confines itself first: no code of ours runs between fork and exec of a
threaded program. The launcher itself stays, as the parent of whatever the command leaves behind however it
hides, ends that too and names it on stderr. The policy has the fields of `SandboxPolicy`. If it cannot be
applied, the command does not run.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import sys
import time
from contextlib import suppress
from typing import Any, NoReturn

from robota.tools.sandbox.landlock import (
    INTERNET,
    NETWORK_ABI,
    allow_sockets,
    can_filter,
    confine,
    landlock_abi,
)

REFUSED = 125
"""The exit code when the sandbox could not be set up."""
PATIENCE_SECONDS = 1.0
"""Between being asked to end and ending everything; whoever asks waits longer."""
_PAUSE_SECONDS = 0.002
_PR_SET_CHILD_SUBREAPER = 36


def main(arguments: list[str]) -> NoReturn:
    if len(arguments) < 4 or arguments[0] != "--policy" or arguments[2] != "--":
        _refuse("usage: python -m robota.tools.sandbox --policy JSON -- command …")
    try:
        policy: dict[str, Any] = json.loads(arguments[1])
        if ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
            _refuse("what the command leaves behind could not be kept hold of")
        asked = _Asked()
        child = os.fork()
        if child == 0:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            _become(policy, arguments[3:])
    except (OSError, ValueError) as error:
        _refuse(str(error))
    _leave(_wait(child, asked))


def _become(policy: dict[str, Any], command: list[str]) -> NoReturn:
    try:
        network = policy.get("network", "off") == "on"
        if not network and not can_filter() and landlock_abi() < NETWORK_ABI:
            _refuse("this kernel cannot keep commands off the network")
        confine(
            policy["writable"],
            policy.get("read_only_even_if_missing", ()),
            policy.get("deny_read", ()),
            network=network,
        )
        if can_filter():
            allow_sockets(INTERNET if network else ())
    except (OSError, ValueError, KeyError, AttributeError) as error:
        _refuse(str(error))
    try:
        os.execvp(command[0], command)
    except OSError as error:
        _refuse(f"could not start {command[0]!r}: {error.strerror}")


class _Asked:
    """Whether we were asked to end: the command was too, and gets a moment to do so."""

    def __init__(self) -> None:
        self.yes = False
        signal.signal(signal.SIGTERM, self._note)
        signal.signal(signal.SIGALRM, lambda *_: _end(signal.SIGKILL))

    def _note(self, *_: object) -> None:
        if not self.yes:
            self.yes = True
            signal.setitimer(signal.ITIMER_REAL, PATIENCE_SECONDS)


def _wait(child: int, asked: _Asked) -> int:
    """The status of the command; nothing that it started is left then."""
    pid, status = 0, 0
    while pid != child:
        pid, status = os.waitpid(-1, 0)  # a signal is handled, and waiting goes on
    if not asked.yes:
        for left in _descendants():
            sys.stderr.write(f"[ended with the command: {_describe(left)}]\n")
        sys.stderr.flush()
        _end(signal.SIGTERM, PATIENCE_SECONDS)
    _end(signal.SIGKILL)
    return status


def _end(number: signal.Signals, seconds: float = float("inf")) -> None:
    """Signal what hangs below us until nothing is left, as it may be starting processes; or time is up."""
    deadline = time.monotonic() + seconds
    told: set[int] = set()
    while (victims := _descendants()) and time.monotonic() < deadline:
        for pid in victims:
            if number == signal.SIGKILL or pid not in told:
                with suppress(ProcessLookupError):
                    os.kill(pid, number)
        told.update(victims)
        _reap()
        time.sleep(_PAUSE_SECONDS)


def _reap() -> None:
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            continue


def _descendants() -> list[int]:
    """Everything below us that runs."""
    family: dict[int, list[int]] = {}
    for name in filter(str.isdigit, os.listdir("/proc")):
        state, parent, *_ = _read(name, "stat").rpartition(b")")[2].split() or [b"X", b"0"]
        if state not in (b"Z", b"X"):
            family.setdefault(int(parent), []).append(int(name))
    found: list[int] = []
    unseen = [os.getpid()]
    while unseen:
        children = family.get(unseen.pop(), [])
        found += children
        unseen += children
    return found


def _describe(pid: int) -> str:
    words = _read(str(pid), "cmdline").replace(b"\0", b" ").decode("utf-8", "replace").strip()
    return f"{pid} {words[:80]}"


def _read(pid: str, name: str) -> bytes:
    try:
        with open(f"/proc/{pid}/{name}", "rb") as file:
            return file.read()
    except OSError:  # gone meanwhile
        return b""


def _leave(status: int) -> NoReturn:
    """End the way the command did."""
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        if number != signal.SIGKILL:
            signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
    os._exit(os.waitstatus_to_exitcode(status))


def _refuse(reason: str) -> NoReturn:
    sys.stderr.write(f"robota sandbox: {reason}; nothing was run.\n")
    sys.stderr.flush()
    os._exit(REFUSED)


if __name__ == "__main__":
    main(sys.argv[1:])
