"""The real command in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

from tests.support.fork_server import Forked, run

from robota.testing.http_server import ReceivedRequest
from robota.testing.model_server import ModelServer

AT_START = ("PYTHON", "LANG", "LC_", "MALLOC")  # what Python or the C library look at when they start
KEPT = ("PATH", "HOME", "LANG", "ROBOTA_HOME", "ROBOTA_TEST_MARK")


def environment(**more: str) -> dict[str, str]:
    kept = {name: os.environ[name] for name in KEPT if name in os.environ}
    return {**kept, "PYTHONIOENCODING": "utf-8", **more}


def starts_fresh(variables: Iterable[str]) -> bool:
    """Whether Python itself has to hear of them."""
    return any(name.startswith(AT_START) for name in variables)


def robota(
    *arguments: str, cwd: Path, server: ModelServer | None = None, stdin: str | None = None, **variables: str
) -> subprocess.CompletedProcess[str]:
    """Run it to its end."""
    env = environment(**place(server), **variables)
    if not starts_fresh(variables):
        return run(arguments, cwd=cwd, env=env, input=stdin)
    return subprocess.run(
        [sys.executable, "-m", "robota", *arguments],
        cwd=cwd,
        env=env,
        input=stdin if stdin is not None else "",
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def started(*arguments: str, cwd: Path, server: ModelServer | None, **variables: str) -> Forked:
    """Start it, with pipes for what it prints."""
    env = environment(**place(server), **variables)
    return Forked(arguments, (subprocess.DEVNULL, subprocess.PIPE, subprocess.PIPE), cwd=cwd, env=env)


def place(server: ModelServer | None) -> dict[str, str]:
    """The variables that name a scripted model."""
    return {} if server is None else {"ROBOTA_BASE_URL": f"{server.url}/v1", "ROBOTA_MODEL": "scripted"}


def model_requests(server: ModelServer) -> list[ReceivedRequest]:
    """What the model was asked, without the questions about its server."""
    return [request for request in server.requests if request.method == "POST"]
