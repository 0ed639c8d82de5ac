"""Child processes of a benchmark: the server, workers that answer with JSON, programs timed from outside."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import urllib.request
from pathlib import Path
from types import TracebackType
from typing import Any, Self

HERE = Path(__file__).resolve().parent


_bytecode = tempfile.TemporaryDirectory(prefix="bench-bytecode-")
_disk = tempfile.TemporaryDirectory(prefix="bench-", dir="/var/tmp" if Path("/var/tmp").is_dir() else None)
"""Where sessions are kept: a real disk, also where /tmp is kept in memory."""
ENVIRONMENT = {
    **{name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"},
    "PYTHONPYCACHEPREFIX": _bytecode.name,
    "BENCH_DISK": _disk.name,
}
"""Children run compiled modules, as installed programs do, whatever state the source tree is in."""


class DidNotWork(Exception):
    """A measurement that has no figure: something failed, or the sides did not do the same work."""


class ModelService:
    """`server.py` as a process of its own; `authority` is the file of who vouches for its certificate."""

    def __enter__(self) -> Self:
        self.authority = str(Path(_disk.name) / "authority.pem")
        command = [sys.executable, str(HERE / "server.py"), self.authority]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=ENVIRONMENT
        )
        assert self.process.stdout is not None
        plain, secure = map(int, self.process.stdout.readline().split())
        self.url, self.secure_url = f"http://127.0.0.1:{plain}", f"https://127.0.0.1:{secure}"
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.process.communicate()

    def seen(self, key: str) -> tuple[int, dict[str, Any]]:
        """How many requests came under that key since this was last asked, and the latest of them."""
        with urllib.request.urlopen(f"{self.url}/seen/{key}") as response:
            told = json.load(response)
        return told["requests"], json.loads(told["last"] or "{}")


def run_worker(side: str, action: str, options: dict[str, Any], authority: str = "") -> dict[str, Any]:
    """Its figures; it trusts the system's certificates, or that authority alone."""
    command = [sys.executable, str(HERE / "worker.py"), side, action, json.dumps(options)]
    env = {**ENVIRONMENT, "SSL_CERT_FILE": authority} if authority else ENVIRONMENT
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, env=env)
    if done.returncode:
        raise DidNotWork(f"{side} {action} failed: {done.stderr.strip()[-800:]}")
    figures: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return figures


def time_program(arguments: list[str]) -> tuple[float, str]:
    """CPU seconds of a whole Python process and what it printed."""
    command = [sys.executable, *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=ENVIRONMENT) as process:
        assert process.stdout is not None
        printed = process.stdout.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise DidNotWork(f"python {' '.join(arguments)} ended with {process.returncode}.")
    return usage.ru_utime + usage.ru_stime, printed.strip()
