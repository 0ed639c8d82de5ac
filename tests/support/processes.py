"""Watching over processes that a test starts: none may be left, and what they say is waited for."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from uuid import uuid4

import anyio
import pytest


def running_with(mark: str) -> list[str]:
    """Commands of running processes whose environment holds the mark."""
    found = []
    for directory in Path("/proc").iterdir():
        try:
            if directory.name.isdigit() and mark.encode() in (directory / "environ").read_bytes():
                found.append((directory / "cmdline").read_text().replace("\0", " "))
        except OSError:
            continue
    return found


def sleeping(seconds: str) -> list[str]:
    """Processes that run `sleep` for so long."""
    entries = (entry for entry in Path("/proc").iterdir() if entry.name.isdigit())
    found = []
    for entry in entries:
        with suppress(OSError):
            if (entry / "cmdline").read_bytes().startswith(b"sleep\0" + seconds.encode()):
                found.append(entry.name)
    return found


@pytest.fixture
def mark(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A mark in the environment of everything the test starts; afterwards nothing may carry it."""
    value = f"mark-{uuid4().hex}"
    monkeypatch.setenv("ROBOTA_TEST_MARK", value)
    yield value
    assert running_with(value) == []


async def read_fifo(path: Path) -> str:
    """What a process writes into a named pipe, once it does."""
    return await anyio.to_thread.run_sync(path.read_text, abandon_on_cancel=True)
