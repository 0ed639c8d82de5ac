"""Whole screens, as a user sees them; `GOLDEN=write` in the environment writes them anew."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.e2e.terminal import Terminal, idle, open_terminal, ready

from robota.testing import call
from robota.testing.model_server import ModelServer

GOLDEN = Path(__file__).parent / "golden"
ANSWER = """# What I found

The parser has **two** problems, `lexer.py` has one of them:

1. It reads *too much*.
2. It never closes the file.

| file | lines |
|---|---|
| lexer.py | 120 |
| 한글.py | 7 |

```python
def read(path):
    with open(path) as file:  # closes it
        return file.read()
```

> Nothing else.
"""


@pytest.fixture
def place() -> Iterator[Path]:
    """A directory whose name is as long as on every other machine: lines are wrapped."""
    with tempfile.TemporaryDirectory(dir="/tmp", prefix="golden") as path:
        yield Path(path)


def compare(terminal: Terminal, name: str, cwd: Path) -> None:
    """The screen without what differs from run to run: the directory and times."""
    shown = "\n".join(line.replace(str(cwd), "DIR") for line in terminal.lines) + "\n"
    shown = re.sub(r"\b\d+(\.\d+)?s\b", "0s", shown)
    shown = re.sub(r"(?m)(?<=\))  0s$", "", shown)  # only calls that take a while have a time
    shown = re.sub(r"\(\d+/200K\)", "(1/200K)", shown)  # instructions name the system and the day
    shown = re.sub("[⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏]", "⠋", shown)
    path = GOLDEN / f"{name}.txt"
    if os.environ.get("GOLDEN") == "write":
        path.parent.mkdir(exist_ok=True)
        path.write_text(shown)
    assert shown == path.read_text()


def test_an_answer_in_markdown(place: Path) -> None:
    with ModelServer(ANSWER).in_thread() as server, open_terminal(place, server) as terminal:
        ready(terminal)
        terminal.type("look at the parser\r")
        terminal.until("Nothing else.")
        idle(terminal)
        terminal.settle()
        compare(terminal, "answer", place)


def test_a_turn_with_tools_and_an_approval(place: Path) -> None:
    (place / "a.py").write_text("def hello():\n    print('hello')\n")
    script = (
        ["I will look first.", call("Read", "r", file_path="a.py")],
        [call("Edit", "e", file_path="a.py", old_string="'hello'", new_string="'good day'")],
        "It greets politely now.",
    )
    with ModelServer(*script).in_thread() as server, open_terminal(place, server) as terminal:
        ready(terminal)
        terminal.type("make it polite\r")
        terminal.until("Allow Edit?")
        terminal.until("or the letter")
        terminal.settle()
        compare(terminal, "approval", place)
        terminal.type("y")
        terminal.until("politely now.")
        idle(terminal)
        terminal.settle()
        compare(terminal, "turn", place)


def test_the_palette(place: Path) -> None:
    with ModelServer("never").in_thread() as server, open_terminal(place, server) as terminal:
        ready(terminal)
        terminal.press("/re")
        terminal.until("/rename")
        terminal.settle()
        compare(terminal, "palette", place)


def test_korean(place: Path) -> None:
    script = [call("Bash", command="touch 하나")], "됐습니다."
    with (
        ModelServer(*script).in_thread() as server,
        open_terminal(place, server, ROBOTA_LANGUAGE="ko", rows=24, columns=72) as terminal,
    ):
        terminal.until("컨텍스트")
        terminal.type("만들어 줘\r")
        terminal.until("또는 글자 키")
        terminal.settle()
        compare(terminal, "korean", place)
