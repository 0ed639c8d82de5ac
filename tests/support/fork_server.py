"""Processes of the command that begin with its modules loaded: forked from one that imported them once.

Each is a process of its own with its own directory, environment and pipes; only the import is not repeated,
which is most of what a short command costs.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import pkgutil
import socket
import subprocess
import sys
import threading
from functools import cache
from pathlib import Path

LOADED = (
    "anyio._backends._asyncio",
    "click",
    "robota.sdk.assembly",
    "robota.providers.choice",
    "robota.http.client",
)
PATIENCE = 60.0


class ForkServer:
    def __init__(self) -> None:
        self.door, there = socket.socketpair()
        command = [sys.executable, __file__, str(there.fileno())]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        # Python looks at its streams when it starts: here as there they are pipes.
        self.process = subprocess.Popen(command, pass_fds=[there.fileno()], **pipes)
        there.close()

    def run(
        self, arguments: list[str], cwd: Path, env: dict[str, str], stdin: str
    ) -> subprocess.CompletedProcess[str]:
        """As `subprocess.run` does it."""
        pipes = [os.pipe() for _ in range(4)]
        order, given, *heard = pipes
        theirs = [order[0], given[0], *(pipe[1] for pipe in heard)]
        socket.send_fds(self.door, [b"\n"], theirs)
        for descriptor in theirs:
            os.close(descriptor)
        texts = ["", ""]
        said = json.dumps({"arguments": arguments, "cwd": str(cwd), "env": env})
        work = [
            threading.Thread(target=write, args=(order[1], said)),
            threading.Thread(target=write, args=(given[1], stdin)),
            *(threading.Thread(target=read, args=(pipe[0], texts, at)) for at, pipe in enumerate(heard)),
        ]
        for thread in work:
            thread.start()
        code = self._code(arguments)
        for thread in work:
            thread.join()
        return subprocess.CompletedProcess(arguments, code, *texts)

    def _code(self, arguments: list[str]) -> int:
        answers = self.door.makefile()
        child = int(answers.readline())
        self.door.settimeout(PATIENCE)
        try:
            return int(answers.readline())
        except TimeoutError:
            os.kill(child, 9)
            self.door.settimeout(None)
            self.door.makefile().readline()
            raise subprocess.TimeoutExpired(arguments, PATIENCE) from None
        finally:
            self.door.settimeout(None)


@cache
def fork_server() -> ForkServer:
    """The one of this process; it ends when this one does."""
    return ForkServer()


def write(descriptor: int, text: str) -> None:
    try:
        with open(descriptor, "w", encoding="utf-8", newline="") as pipe:
            pipe.write(text)
    except BrokenPipeError:
        pass  # a command need not read what it is given


def read(descriptor: int, texts: list[str], at: int) -> None:
    with open(descriptor, encoding="utf-8") as pipe:
        texts[at] = pipe.read()


# --- in the process that forks ---------------------------------------------------------------------------


def serve(door: socket.socket) -> list[str] | None:
    """Fork a child for every order; return only in a child, with its arguments, or at the end."""
    while True:
        word, descriptors, *_ = socket.recv_fds(door, 1, 4)
        if not word:
            return None
        child = os.fork()
        if child == 0:
            door.close()
            return become(*descriptors)
        for descriptor in descriptors:
            os.close(descriptor)
        door.sendall(b"%d\n" % child)
        _, status = os.waitpid(child, 0)
        door.sendall(b"%d\n" % os.waitstatus_to_exitcode(status))


def become(order: int, *streams: int) -> list[str]:
    with open(order, encoding="utf-8") as pipe:
        said = json.load(pipe)
    for descriptor, stream in enumerate(streams):
        os.dup2(stream, descriptor)
        os.close(stream)
    os.chdir(said["cwd"])
    os.environ.clear()
    os.environ.update(said["env"])
    return [str(word) for word in said["arguments"]]


def load() -> None:
    import robota.cli

    for module in pkgutil.iter_modules(robota.cli.__path__, "robota.cli."):
        importlib.import_module(module.name)
    for name in LOADED:
        importlib.import_module(name)


if __name__ == "__main__":
    sys.path.pop(0)  # the directory of this file, where `-m robota` has that of its user
    load()
    gc.freeze()  # or the first collection of every child copies the memory that they share
    arguments = serve(socket.socket(fileno=int(sys.argv[1])))
    if arguments is not None:
        from robota.__main__ import main

        sys.argv = ["robota", *arguments]
        main()
