"""The Landlock launcher: `python -m robota.tools.sandbox --write DIRECTORY … -- command …`.

It starts the command in a child that confines itself first: no code of ours runs between fork and exec of a
threaded program. The launcher itself stays, as the parent of whatever the command leaves behind however it
hides, ends that too and names it on stderr. If the policy cannot be applied, the command does not run.

Python takes longer to start than all this takes to run. So a sandbox starts it once, as a server
(`fork_server.py`), which forks a launcher for each command. It loads only modules that Python has at hand:
`json`, `signal`, `socket`, `typing` and `contextlib` would double the time.
"""

from __future__ import annotations

import _socket
import ctypes
import errno
import marshal
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
_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36
_REPLACED = (signal.SIGTERM, signal.SIGALRM, signal.SIGPIPE, signal.SIGXFSZ)
"""Signals that Python or this program treats otherwise than a command expects."""
DESCRIPTORS = 5
"""That come with a request: what it says, input, output, errors, and where the launcher reports to."""


def main(arguments: list[str]) -> NoReturn:
    """Run one command and end as it did."""
    policy: dict[str, list[str]] = {"--write": [], "--keep": [], "--hide": [], "--network": []}
    while len(arguments) > 1 and arguments[0] in policy:
        policy[arguments[0]].append(arguments[1])
        arguments = arguments[2:]
    if len(arguments) < 2 or arguments[0] != "--" or not policy["--write"]:
        _refuse(_USAGE)
    try:
        status = _run(policy, list(map(os.fsencode, arguments[1:])), dict(os.environb))
    except OSError as error:
        _refuse(str(error))
    _leave(status)


def serve() -> NoReturn:
    """Fork a launcher for each request on descriptor 0, until whoever sends them is gone."""
    os.setsid()  # not every build of Python can have this done where it starts a process
    _close_inherited()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for launchers: they report themselves
    requests = _socket.socket(fileno=0)
    own = os.getpid()
    while True:
        received, descriptors = _receive(requests)
        if not received:
            os._exit(0)
        if _fork(descriptors) == 0:
            _launch(descriptors, own)
        for descriptor in descriptors:
            os.close(descriptor)


def _close_inherited() -> None:
    """What whoever started us had open is not for commands. A range up to the limit may be a thousand million
    calls: containers often have such limits, and not every build of Python knows `close_range`."""
    for number in map(int, os.listdir("/proc/self/fd")):
        if number > 2:
            os.closerange(number, number + 1)  # one of them was only there for the list


def _receive(requests: _socket.socket) -> tuple[bytes, list[int]]:
    data, ancillary, _, _ = requests.recvmsg(1, _socket.CMSG_SPACE(4 * DESCRIPTORS), _socket.MSG_CMSG_CLOEXEC)
    packed = b"".join([each for _, _, each in ancillary])
    return data, list(memoryview(packed).cast("i"))


def _fork(descriptors: list[int]) -> int:
    try:
        return os.fork()
    except OSError as error:  # there are too many processes; what runs already goes on
        for report in descriptors[-1:]:
            _report(report, error.strerror or str(error))
        return -1


def _launch(descriptors: list[int], server: int) -> NoReturn:
    """Run the command of a request in a session of its own; nothing of it outlives the server."""
    request, *streams, report = descriptors
    for descriptor, stream in enumerate(streams):
        os.dup2(stream, descriptor)
        os.close(stream)
    with open(request, "rb") as file:
        places, command, directory, environment = marshal.load(file)
    os.setsid()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    try:
        os.chdir(directory)
    except OSError as error:
        _report(report, f"{error.strerror}: {os.fsdecode(directory)!r}")
        os._exit(REFUSED)
    if not _report(report, str(os.getpid())):
        os._exit(REFUSED)
    policy = {option: list(map(os.fsdecode, paths)) for option, paths in places.items()}
    try:
        status = _run(policy, command, environment, server)
    except OSError as error:
        _say_refused(str(error))
        status = REFUSED << 8
    _report(report, str(status))
    os._exit(0)


def _report(descriptor: int, line: str) -> bool:
    """Whether anybody wants to know."""
    try:
        os.write(descriptor, f"{line}\n".encode("utf-8", "surrogateescape"))
    except BrokenPipeError:
        return False
    return True


def _run(
    policy: dict[str, list[str]], command: list[bytes], environment: dict[bytes, bytes], server: int = 0
) -> int:
    """The status of a command that has ended; with a `server`, our parent, it ends at the latest."""
    prctl = ctypes.CDLL(None, use_errno=True).prctl
    if prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        raise OSError("what the command leaves behind could not be kept hold of")
    asked = _Asked()
    if server:
        prctl(_PR_SET_PDEATHSIG, int(signal.SIGALRM), 0, 0, 0)
    child = os.fork()
    if child == 0:
        for number in _REPLACED:
            signal.signal(number, signal.SIG_DFL)
        _become(policy, command, environment)
    if server and os.getppid() != server:  # it was gone before it could be told
        _end(signal.SIGKILL)
    return _wait(child, asked)


def _become(policy: dict[str, list[str]], command: list[bytes], environment: dict[bytes, bytes]) -> NoReturn:
    try:
        network = policy["--network"] == ["on"]
        if not network and not can_filter() and landlock_abi() < NETWORK_ABI:
            _refuse("this kernel cannot keep commands off the network")
        confine(policy["--write"], policy["--keep"], policy["--hide"], network=network)
        if can_filter():
            allow_sockets(INTERNET if network else ())
    except (OSError, ValueError, AttributeError) as error:
        _refuse(str(error))
    _refuse(f"could not start {os.fsdecode(command[0])!r}: {_execute(command, environment)}")


def _execute(command: list[bytes], environment: dict[bytes, bytes]) -> str:
    """Become the command; why that cannot be. `os.execvpe` would load `warnings` first."""
    reason = os.strerror(errno.ENOENT)
    searched = environment.get(b"PATH", os.fsencode(os.defpath)).split(b":")
    for place in [b""] if b"/" in command[0] else searched:
        try:
            os.execve(os.path.join(place, command[0]), command, environment)
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as error:
            reason = error.strerror or str(error)
        except ValueError as error:  # a zero byte, or a variable without a name
            return str(error)
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
        try:
            pid, status = os.waitpid(-1, 0)  # a signal is handled, and waiting goes on
        except ChildProcessError:  # we were told to end everything
            return signal.SIGKILL
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
    _say_refused(reason)
    os._exit(REFUSED)


def _say_refused(reason: str) -> None:
    sys.stderr.write(f"robota sandbox: {reason}; nothing was run.\n")
    sys.stderr.flush()


if __name__ == "__main__":
    main(sys.argv[1:])
