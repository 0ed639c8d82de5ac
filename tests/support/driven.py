"""The command, driven over its pipes by a program: a process and the other end of them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.support.command import environment, place
from tests.support.fork_server import Forked

from robota.testing import ModelServer

ARGUMENTS = ("--output-format", "stream-json", "--verbose")
Frame = dict[str, Any]


class Driven:
    """A process of the command and the two pipes to it."""

    def __init__(self, process: Forked) -> None:
        self.process = process
        self.seen: list[Frame] = []

    def send_line(self, line: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(line.encode() + b"\n")
        self.process.stdin.flush()

    def send(self, frame: Frame) -> None:
        self.send_line(json.dumps(frame))

    def initialize(self, **fields: Any) -> Frame:
        request = {"subtype": "initialize", "hooks": None, **fields}
        self.send({"type": "control_request", "request_id": "init", "request": request})
        return self.until("control_response")

    def request(self, subtype: str, **fields: Any) -> Frame:
        request = {"subtype": subtype, **fields}
        self.send({"type": "control_request", "request_id": subtype, "request": request})
        return self.until("control_response")["response"]  # type: ignore[no-any-return]

    def prompt(self, words: str, **more: Any) -> None:
        self.send({"type": "user", "message": {"role": "user", "content": words}, "session_id": "", **more})

    def read(self) -> Frame:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, self.process.stderr and self.process.stderr.read()
        frame: Frame = json.loads(line)
        self.seen.append(frame)
        return frame

    def until(self, kind: str) -> Frame:
        while kind not in ((frame := self.read())["type"], frame.get("subtype")):
            pass
        return frame

    def ask(self, words: str) -> Frame:
        self.prompt(words)
        return self.until("result")

    def finish(self) -> tuple[int, str]:
        """The exit code, and what was said on stderr."""
        out, err = self.process.communicate(timeout=60)
        self.seen += [json.loads(line) for line in out.splitlines()]
        return self.process.returncode, err.decode()


@contextmanager
def driven(
    *arguments: str, cwd: Path, server: ModelServer | None = None, **variables: str
) -> Iterator[Driven]:
    words = *ARGUMENTS, *arguments, "--input-format", "stream-json"
    with Forked(words, cwd=cwd, env=environment(**place(server), **variables), text=False) as process:
        yield Driven(process)
