"""The tour, as somebody without a key takes it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.support.terminal import Terminal


def _number(written: str) -> int:
    return int(written.replace(",", ""))


def test_the_tour_streams_asks_edits_undoes_replays_and_leaves_nothing(tmp_path: Path) -> None:
    terminal = Terminal(tmp_path, "tour", ANTHROPIC_API_KEY="must-not-be-used")
    terminal.wait_for("Type: fix the failing test")
    terminal.wait_for("> ")
    terminal.type("fix the failing test\n")
    for asked in ("Bash", "Edit", "Bash"):
        terminal.wait_for(f"Allow {asked}?")
        terminal.wait_for("w] ")
        terminal.type("y\n")
    terminal.wait_for("The test passes.")
    terminal.wait_for("> ")
    terminal.type("/context\n")
    terminal.wait_for("Conversation: ")
    terminal.type("/undo\n")
    terminal.wait_for("restored prices.py")
    terminal.wait_for("> ")
    terminal.type("once more\n")
    terminal.wait_for("Allow Bash?")
    terminal.wait_for("w] ")
    terminal.type("n\n")
    terminal.wait_for("You said no")
    terminal.wait_for("> ")
    terminal.type("/exit\n")
    code = terminal.leave()
    place = re.search(r"in (/\S+/project)", terminal.seen)

    used = re.search(r"Context: ([\d,]+) /", terminal.seen)
    parts = re.findall(r"  \w[\w ]+: ([\d,]+) tokens", terminal.seen)

    assert code == 0
    assert used is not None
    assert _number(used[1]) == pytest.approx(sum(map(_number, parts)), rel=0.3)  # the parts are estimates
    assert "messages, as they were recorded." in terminal.seen
    assert "Continue this session" not in terminal.seen, "it is gone"
    assert place is not None
    assert not Path(place[1]).exists()
