"""A terminal on a session of `robota serve`, beside another client of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.e2e.terminal import idle, leave, ready, robota_terminal
from tests.support.command import robota
from tests.support.page import Served, served

from robota.client import RemoteSession
from robota.core.sync import run_sync
from robota.testing import Gate, call
from robota.testing.model_server import ModelServer


def project(tmp_path: Path) -> Path:
    path = tmp_path / "project"
    path.mkdir()
    return path


def attach(cwd: Path, server: Served, *arguments: str) -> Any:
    return robota_terminal(cwd, "--attach", server.page, *arguments)


def test_what_is_typed_in_one_streams_in_both(tmp_path: Path) -> None:
    cwd = project(tmp_path)
    with ModelServer("From the other.", "From here.").in_thread() as model, served(model, cwd) as server:
        other = RemoteSession(server.url, server.token)
        run_sync(other.ready())
        with attach(cwd, server) as terminal:
            ready(terminal)
            assert run_sync(other.submit("typed elsewhere")).text == "From the other."
            terminal.until("From the other.")
            assert "> typed elsewhere" in terminal.lines

            terminal.type("typed here\r")
            terminal.until("From here.")
            idle(terminal)
            terminal.type("/rename shared\r")
            terminal.until("shared")
            assert leave(terminal) == 0
        assert [message.content for message in other.messages] == [
            "typed elsewhere", "From the other.", "typed here", "From here.",
        ]  # fmt: skip
        run_sync(other.aclose())


def test_a_question_is_answered_in_the_terminal(tmp_path: Path) -> None:
    cwd = project(tmp_path)
    script = [call("Write", file_path="a.txt", content="hello")], "Written."
    with (
        ModelServer(*script).in_thread() as model,
        served(model, cwd) as server,
        attach(cwd, server) as terminal,
    ):
        ready(terminal)
        terminal.type("write it\r")
        terminal.until("or the letter")
        terminal.type("y")
        terminal.until("Written.")
        idle(terminal)
        assert leave(terminal) == 0
    assert (cwd / "a.txt").read_text() == "hello"


def test_whoever_leaves_leaves_the_turn_running_and_sees_it_again(tmp_path: Path) -> None:
    cwd, gate = project(tmp_path), Gate()
    with ModelServer(["Begun. ", gate, "Done."]).in_thread() as model, served(model, cwd) as server:
        with attach(cwd, server) as terminal:
            ready(terminal)
            terminal.type("go\r")
            terminal.until("Begun.")
            assert leave(terminal) == 0
        gate.open()
        with attach(cwd, server) as again:
            again.until("Done.")
            assert "> go" in again.lines
            idle(again)
            assert leave(again) == 0


def test_a_host_that_is_not_there_is_told_in_a_sentence(tmp_path: Path) -> None:
    cwd = project(tmp_path)
    gone = robota("--attach", "http://127.0.0.1:1/#token=x", "--no-tui", cwd=cwd)
    assert gone.returncode == 1
    assert "cannot be reached" in gone.stderr
    assert "Traceback" not in gone.stderr
    bare = robota("--attach", "--no-tui", cwd=cwd)
    assert bare.returncode == 1
    assert "A token is needed" in bare.stderr
    print_mode = robota("-p", "hi", "--attach", "http://127.0.0.1:1", cwd=cwd)
    assert print_mode.returncode == 2
    assert "leave -p out" in print_mode.stderr
