"""What starting the `robota` command costs: beside a bare interpreter, and beside a script on httpx2.

    python bench/cli.py [--quick]

Each sample is a process of its own, the sides take turns, and the smallest sample counts. Times are on the
clock; peak memory is the kernel's. A missed goal is no failure.
"""

from __future__ import annotations

import argparse
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import NamedTuple

from processes import ENVIRONMENT, HERE

REPLY = (
    b'data: {"choices":[{"index":0,"delta":{"role":"assistant","content":"Hello."}}]}\n\n'
    b'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n'
    b"data: [DONE]\n\n"
)
HEAD = (
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n"
    b"content-length: %d\r\n\r\n" % len(REPLY)
)


class Service:
    """Answers every request with the same words, and notes when the last one was there."""

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}/v1"
        self.asked = 0.0
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            connection, _ = self._listener.accept()
            with connection:
                read = b""
                while b"\r\n\r\n" not in read:
                    read += connection.recv(65536)
                head, _, body = read.partition(b"\r\n\r\n")
                lines = head.lower().split(b"\r\n")
                length = sum(int(line[15:]) for line in lines if line.startswith(b"content-length:"))
                while len(body) < length:
                    body += connection.recv(65536)
                self.asked = time.perf_counter()
                connection.sendall(HEAD + REPLY)


class Sample(NamedTuple):
    wall: float
    asked: float
    """Seconds from the start to its request."""
    cpu: float
    mib: float


class Bench:
    def __init__(self, directory: Path) -> None:
        self.service = Service()
        self._project = directory / "project"
        self._project.mkdir()
        home = directory / "home"
        home.mkdir()
        known = {name: ENVIRONMENT[name] for name in ("PATH", "PYTHONPYCACHEPREFIX")}
        self._environment = {**known, "HOME": str(home), "ROBOTA_API_KEY": "k"}

    def sample(self, *arguments: str) -> Sample:
        began = time.perf_counter()
        with subprocess.Popen(
            [sys.executable, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=self._project,
            env=self._environment,
        ) as process:
            assert process.stdout is not None
            assert process.stderr is not None
            process.stdout.read()
            errors = process.stderr.read()
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            raise SystemExit(f"{' '.join(arguments)} ended with {process.returncode}: {errors.decode()}")
        now = time.perf_counter()
        cpu = usage.ru_utime + usage.ru_stime
        return Sample(now - began, self.service.asked - began, cpu, usage.ru_maxrss / 1024)

    def compare(self, ours: list[str], floor: list[str], repeats: int) -> tuple[Sample, Sample]:
        """The least of each figure, of both sides."""
        sides: tuple[list[Sample], list[Sample]] = ([], [])
        for number in range(repeats + 1):
            for arguments, samples in zip((ours, floor), sides, strict=True):
                taken = self.sample(*arguments)
                if number:  # the first has compiled the modules
                    samples.append(taken)
        least = [Sample(*map(min, zip(*samples, strict=True))) for samples in sides]
        return least[0], least[1]


def show(name: str, ours: float, floor: float, goal: float) -> None:
    times = f"{floor * 1000:9.1f} ms {ours * 1000:9.1f} ms"
    print(f"{name:<42} {times} {ours / floor:6.2f}x  (goal {goal}x)")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    repeats = 5 if parser.parse_args().quick else 20
    with tempfile.TemporaryDirectory() as directory:
        bench = Bench(Path(directory))
        print(f"{'':<42} {'by hand':>12} {'robota':>12}")
        for option, goal in (("--version", 2), ("--help", 4)):
            ours, floor = bench.compare(["-m", "robota", option], ["-c", "pass"], repeats)
            show(f"robota {option}, beside python -c pass", ours.wall, floor.wall, goal)
        url = bench.service.url
        command = ["-m", "robota", "-p", "Hello", "--base-url", url, "--model", "m"]
        ours, floor = bench.compare(command, [str(HERE / "first_answer_floor.py"), url], repeats)
        show("robota -p to its request, beside httpx2", ours.asked, floor.asked, 1.2)
        show("… to its end", ours.wall, floor.wall, 1.6)
        show("… CPU", ours.cpu, floor.cpu, 1.6)
        print(f"{'… peak memory':<42} {floor.mib:8.1f} MiB {ours.mib:8.1f} MiB {'':7}  (goal 45 MiB)")


if __name__ == "__main__":
    main()
