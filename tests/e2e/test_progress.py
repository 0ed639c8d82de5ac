"""How far something has come, on terminals of all kinds."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from tests.e2e.terminal import Terminal

WORK = """\
from robota.cli.progress import download, progress
with progress("index [bold]\\x1b]0;evil\\x07of files") as advance:
    for done in range(0, 101, 5):
        advance(done, 100)
with download("model") as advance:
    advance(5_000_000, 10_000_000)
    advance(10_000_000, 10_000_000)
print("finished")
"""


def test_a_pipe_is_told_of_downloads_alone() -> None:
    done = subprocess.run([sys.executable, "-c", WORK], capture_output=True, text=True, check=True)
    assert done.stderr.splitlines() == ["model: 5 MB of 10 MB (50%)", "model: 10 MB of 10 MB (100%)"]
    assert done.stdout == "finished\n"


@pytest.mark.parametrize(("term", "draws"), [("xterm-256color", True), ("dumb", False)])
def test_a_terminal_gets_a_bar_if_it_can_draw_one(tmp_path: Path, term: str, draws: bool) -> None:
    with Terminal([sys.executable, "-c", WORK], cwd=tmp_path, TERM=term) as terminal:
        terminal.until("finished")
        assert (b"\x1b[" in terminal.log) is draws
        assert b"\x1b]0;" not in terminal.log
        assert terminal.screen.emulator.titles == []
        assert "model" in terminal.text
        assert terminal.wait() == 0
