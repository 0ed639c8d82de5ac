from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.support.command import model_requests, place, started
from tests.support.processes import mark
from tests.support.terminal import Terminal

from robota.core.messages import AssistantMessage
from robota.sdk.kept_sessions import create_project_session_store
from robota.sessions.start import restore
from robota.testing import Stall, call
from robota.testing.model_server import ModelServer

__all__ = ["mark"]

pytestmark = pytest.mark.usefixtures("mark")

SIGNALS = Path(__file__).parents[2] / "fuzz" / "signals.py"
ENDINGS = {signal.SIGINT: 130, signal.SIGTERM: 143, signal.SIGHUP: 129}
EVERY = pytest.mark.parametrize("number", list(ENDINGS))


def said_in_session(cwd: Path) -> list[tuple[str, str]]:
    """The answers in the only session of this directory, and their states."""
    store = create_project_session_store()
    [summary] = store.list(cwd=str(cwd))
    messages = restore(store, summary.id).messages
    return [(each.content, each.state) for each in messages if isinstance(each, AssistantMessage)]


@EVERY
def test_a_signal_stops_the_turn_and_keeps_its_text(tmp_path: Path, number: int) -> None:
    with (
        ModelServer(["Half an answer", Stall()]).in_thread() as server,
        started("-p", "go", cwd=tmp_path, server=server) as process,
    ):
        assert process.stdout is not None
        first = process.stdout.read(len("Half an answer"))
        process.send_signal(number)
        rest, errors = process.communicate(timeout=60)

    assert (first + rest, process.returncode) == ("Half an answer\n", ENDINGS[number])
    assert "Traceback" not in errors
    assert said_in_session(tmp_path) == [("Half an answer", "interrupted")]


@EVERY
def test_a_signal_ends_the_commands_that_run(tmp_path: Path, number: int, mark: str) -> None:
    script = [call("Bash", command="echo up > started; sleep 1000")]
    with (
        ModelServer(script).in_thread() as server,
        started("-p", "go", "--permission-mode", "bypassPermissions", cwd=tmp_path, server=server) as process,
    ):
        assert process.stderr is not None
        while "Bash(" not in process.stderr.readline():
            pass
        process.send_signal(number)
        process.communicate(timeout=60)

    assert process.returncode == ENDINGS[number]  # and the fixture finds no process


@EVERY
def test_a_signal_at_the_prompt_leaves(tmp_path: Path, number: int) -> None:
    with ModelServer("never asked").in_thread() as server:
        terminal = Terminal(tmp_path, **place(server))
        terminal.wait_for("robota> ")
        terminal.signal(number)
        code = terminal.leave()

    assert code == ENDINGS[number]
    assert "Traceback" not in terminal.seen


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_at_a_question_is_a_no_and_leaves(tmp_path: Path, number: int) -> None:
    with ModelServer([call("Bash", command="touch one")], "never").in_thread() as server:
        terminal = Terminal(tmp_path, **place(server))
        terminal.wait_for("robota> ")
        terminal.type("first\n")
        terminal.wait_for("N] ")
        terminal.signal(number)
        code = terminal.leave()

    assert code == ENDINGS[number]
    assert not (tmp_path / "one").exists()
    assert len(model_requests(server)) == 1


def test_a_terminal_that_is_closed_in_mid_answer_keeps_what_it_showed(tmp_path: Path) -> None:
    with ModelServer(["Half an answer", Stall()]).in_thread() as server:
        terminal = Terminal(tmp_path, **place(server))
        terminal.wait_for("robota> ")
        terminal.type("go\n")
        terminal.wait_for("Half an answer")
        code = terminal.hang_up()

    assert code == 129
    assert said_in_session(tmp_path) == [("Half an answer", "interrupted")]


def test_a_hang_up_that_was_ignored_at_the_start_stays_ignored(tmp_path: Path) -> None:
    def ignore() -> None:
        signal.signal(signal.SIGHUP, signal.SIG_IGN)

    with (
        ModelServer(["Half an answer", Stall()]).in_thread() as server,
        started("-p", "go", cwd=tmp_path, server=server, prepare=ignore) as process,
    ):
        assert process.stdout is not None
        process.stdout.read(len("Half an answer"))
        process.send_signal(signal.SIGHUP)
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=60)

    assert process.returncode == 143


def test_a_second_signal_that_follows_the_first_does_not_spoil_the_end(tmp_path: Path) -> None:
    with (
        ModelServer(["Half an answer", Stall()]).in_thread() as server,
        started("-p", "go", cwd=tmp_path, server=server) as process,
    ):
        assert process.stdout is not None
        process.stdout.read(len("Half an answer"))
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGTERM):
            process.send_signal(number)
        _, errors = process.communicate(timeout=60)

    assert process.returncode in (143, 129)  # the system delivers pending signals in an order of its own
    assert "Traceback" not in errors
    assert said_in_session(tmp_path) == [("Half an answer", "interrupted")]


@pytest.mark.slow
def test_a_signal_is_right_at_every_moment_from_the_start(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["--first", "80", "--until", "560", "--step", "80"]
    done = subprocess.run(
        [sys.executable, str(SIGNALS), *arguments], capture_output=True, text=True, check=False
    )

    with capsys.disabled():
        print(f"\n{done.stdout.splitlines()[-1]}")
    assert done.returncode == 0, done.stdout + done.stderr
