from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
import uuid
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.command import model_requests

from robota.testing import Gate, call
from robota.testing.model_server import ModelServer

pytestmark = pytest.mark.system


class Tmux:
    """A terminal session of its own server, so that no other session is touched."""

    def __init__(self, cwd: Path, command: str) -> None:
        self.socket = f"robota-{uuid.uuid4().hex}"
        self.call("new-session", "-d", "-x", "100", "-y", "30", "-c", str(cwd), command)

    def call(self, *arguments: str) -> str:
        tool = shutil.which("tmux")
        assert tool, "tmux is missing: run `make test-system`, which installs it"
        return subprocess.run(
            [tool, "-L", self.socket, "-f", "/dev/null", *arguments],
            capture_output=True,
            text=True,
            check=True,
        ).stdout

    def wait_for(self, text: str) -> str:
        # `wait-for` needs a signal from inside; the screen is the only event a user has, so it is looked at.
        for _ in range(20_000):
            screen = self.call("capture-pane", "-p")
            if text in screen:
                return screen
        raise AssertionError(f"{text!r} never appeared:\n{screen}")

    def close(self) -> None:
        self.call("kill-server")


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with ModelServer("Hello from the model.").in_thread() as running:
        yield running


def test_a_person_types_a_prompt_in_a_real_terminal_and_reads_the_answer(
    tmp_path: Path, server: ModelServer
) -> None:
    command = (
        f"env ROBOTA_BASE_URL={server.url}/v1 ROBOTA_MODEL=scripted {shlex.quote(sys.executable)} -m robota"
    )
    terminal = Tmux(tmp_path, command)
    try:
        terminal.wait_for("Context:")
        terminal.call("send-keys", "-l", "안녕 hello")
        terminal.call("send-keys", "Enter")
        screen = terminal.wait_for("Hello from the model.")
    finally:
        terminal.close()

    assert "안녕 hello" in screen
    assert model_requests(server)[0].body["messages"][-1]["content"] == "안녕 hello"


def test_what_was_only_drawn_stays_out_of_the_scrollback(tmp_path: Path, server: ModelServer) -> None:
    terminal = open_screen(tmp_path, server)  # which begins at the top of the screen
    try:
        send(terminal, "hello")
        terminal.wait_for("Hello from the model.")
        everything = terminal.call("capture-pane", "-p", "-S", "-")
    finally:
        terminal.close()

    assert everything.count("Context:") == 1


def open_screen(cwd: Path, server: ModelServer) -> Tmux:
    command = (
        f"env ROBOTA_BASE_URL={server.url}/v1 ROBOTA_MODEL=scripted {shlex.quote(sys.executable)} -m robota"
    )
    terminal = Tmux(cwd, command)
    terminal.wait_for("Context:")
    return terminal


def send(terminal: Tmux, text: str) -> None:
    terminal.call("send-keys", "-l", text)
    terminal.call("send-keys", "Enter")


def marks(terminal: Tmux) -> Counter[str]:
    text = terminal.call("capture-pane", "-p", "-J", "-S", "-")
    return Counter(re.findall(r"mark\d+", text))


def test_a_window_that_is_dragged_while_an_answer_streams_loses_nothing(tmp_path: Path) -> None:
    lines = [
        f"Paragraph mark{number} with words to wrap in a narrow window, and more of them.\n\n"
        for number in range(60)
    ]
    gate = Gate()
    with ModelServer([*lines, gate, "The end."]).in_thread() as running:
        terminal = open_screen(tmp_path, running)
        try:
            send(terminal, "go")
            terminal.wait_for("mark59")
            for columns in (*range(100, 60, -4), *range(60, 110, 5)):
                terminal.call("resize-window", "-x", str(columns), "-y", "30")
            gate.open()
            terminal.wait_for("The end.")
            found = marks(terminal)
        finally:
            terminal.close()

    assert set(found) == {f"mark{number}" for number in range(60)}
    assert all(count <= 2 for count in found.values())  # the tail of a moment may stay behind once


def test_a_call_is_approved_in_a_real_terminal(tmp_path: Path) -> None:
    script = [call("Bash", command="touch one")], "Made it."
    with ModelServer(*script).in_thread() as running:
        terminal = open_screen(tmp_path, running)
        try:
            send(terminal, "make one")
            terminal.wait_for("Allow Bash?")
            terminal.wait_for("or the letter")
            terminal.call("send-keys", "-l", "y")
            terminal.wait_for("Made it.")
        finally:
            terminal.close()

    assert (tmp_path / "one").exists()
