"""The Landlock launcher: `python -m robota.tools.sandbox --write DIRECTORY … -- command …`.

It starts the command in a child that confines itself first: no code of ours runs between fork and exec of a
threaded program. The launcher itself stays, as the parent of whatever the command leaves behind however it
hides, ends that too and names it on stderr. If the policy cannot be applied, the command does not run.

Every command waits for this program to start, so it loads only modules that Python has at hand: `json`,
`signal`, `typing` and `contextlib` take longer to load than everything here takes to run.
"""

from __future__ import annotations

import ctypes
import errno
import os
import sys
import time

from robota.tools.sandbox.landlock import (
    INTERNET,
    NETWORK_ABI,
    allow_sockets,
    can_filter,
    confine,
    landlock_abi,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
    from typing import NoReturn
else:
    import _signal as signal  # what `signal` has, without its enumerations

REFUSED = 125
"""The exit code when the sandbox could not be set up."""
PATIENCE_SECONDS = 1.0
"""Between being asked to end and ending everything; whoever asks waits longer."""
_PAUSE_SECONDS = 0.002
_USAGE = (
    "usage: [--write PATH | --keep PATH | --hide PATH | --network on]… -- command …, with a place to write"
)
_PR_SET_CHILD_SUBREAPER = 36


def main(arguments: list[str]) -> NoReturn:
    policy: dict[str, list[str]] = {"--write": [], "--keep": [], "--hide": [], "--network": []}
    while len(arguments) > 1 and arguments[0] in policy:
        policy[arguments[0]].append(arguments[1])
        arguments = arguments[2:]
    if len(arguments) < 2 or arguments[0] != "--" or not policy["--write"]:
        _refuse(_USAGE)
    try:
        if ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
            _refuse("what the command leaves behind could not be kept hold of")
        asked = _Asked()
        child = os.fork()
        if child == 0:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            _become(policy, arguments[1:])
    except OSError as error:
        _refuse(str(error))
    _leave(_wait(child, asked))


def _become(policy: dict[str, list[str]], command: list[str]) -> NoReturn:
    try:
        network = policy["--network"] == ["on"]
        if not network and not can_filter() and landlock_abi() < NETWORK_ABI:
            _refuse("this kernel cannot keep commands off the network")
        confine(policy["--write"], policy["--keep"], policy["--hide"], network=network)
        if can_filter():
            allow_sockets(INTERNET if network else ())
    except (OSError, ValueError, AttributeError) as error:
        _refuse(str(error))
    _refuse(f"could not start {command[0]!r}: {_execute(command)}")


def _execute(command: list[str]) -> str:
    """Become the command; why that cannot be. `os.execvp` would load `warnings` first."""
    reason = os.strerror(errno.ENOENT)
    places = [""] if "/" in command[0] else os.environ.get("PATH", os.defpath).split(os.pathsep)
    for place in places:
        try:
            os.execv(os.path.join(place, command[0]), command)
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as error:
            reason = error.strerror or str(error)
    return reason


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


def _end(number: int, seconds: float = float("inf")) -> None:
    """Signal what hangs below us until nothing is left, as it may be starting processes; or time is up."""
    deadline = time.monotonic() + seconds
    told: set[int] = set()
    while (victims := _descendants()) and time.monotonic() < deadline:
        for pid in victims:
            if number == signal.SIGKILL or pid not in told:
                _signal(pid, number)
        told.update(victims)
        _reap()
        time.sleep(_PAUSE_SECONDS)


def _signal(pid: int, number: int) -> None:
    try:
        os.kill(pid, number)
    except ProcessLookupError:  # it ended meanwhile
        return


def _reap() -> None:
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            continue
    except ChildProcessError:  # that was the last one
        return


def _is_alone() -> bool:
    """Whether nothing is below us: whoever loses its parent there becomes our child."""
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return True
    return False


def _descendants() -> list[int]:
    """Everything below us that runs."""
    if _is_alone():
        return []
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
