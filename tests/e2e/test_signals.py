from __future__ import annotations

import asyncio
import ctypes
import importlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.support.command import environment, model_requests, place, started
from tests.support.fork_server import Forked
from tests.support.forms import some_of
from tests.support.lines import Line, before_each_line, source_files
from tests.support.processes import mark
from tests.support.terminal import Terminal

from robota.cli.signals import INTERRUPTED, Signals
from robota.cli.turns import take_turn
from robota.core.events import AssistantMessageCommitted
from robota.core.messages import AssistantMessage
from robota.sdk.interactive import InteractiveSession
from robota.sdk.kept_sessions import create_project_session_store
from robota.sessions.start import restore
from robota.testing import ScriptedProvider, Stall, call
from robota.testing.model_server import ModelServer
from robota.transports.headless import LinePrinter

__all__ = ["mark"]

pytestmark = pytest.mark.usefixtures("mark")

FUZZ = Path(__file__).parents[2] / "fuzz"
ENDINGS = {signal.SIGINT: 130, signal.SIGTERM: 143, signal.SIGHUP: 129}
TURN = source_files(
    "cli/turns.py", "transports/headless.py", "sdk/interactive.py", "sdk/prompt_queue.py", "sdk/turn.py",
    "sessions/session.py", "core/robota.py", "core/run_task.py",
)  # fmt: skip
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
        terminal.wait_for("w] ")
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
    with ModelServer(["Half an answer", Stall()]).in_thread() as server:
        process = subprocess.Popen(
            ["nohup", sys.executable, "-m", "robota", "-p", "go"],
            cwd=tmp_path, env=environment(**place(server)), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        )  # fmt: skip
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


def wait_until_idle(pid: int) -> None:
    """Nothing tells us when a loop has gone to sleep, so look whether it stirs."""
    before, now = "", "?"
    while before != now:
        time.sleep(0.5)
        before, now = now, Path(f"/proc/{pid}/task/{pid}/status").read_text().partition("voluntary")[2]


def send_to_a_thread(process: Forked, number: int) -> None:
    """Let another thread than the main one take the signal, as the system may."""
    [*_, thread] = sorted(map(int, os.listdir(f"/proc/{process.pid}/task")))
    assert thread != process.pid
    assert ctypes.CDLL(None).tgkill(process.pid, thread, number) == 0


@pytest.mark.parametrize("script", [[Stall()], [call("Bash", command="sleep 1000")]], ids=["model", "tool"])
@EVERY
def test_a_signal_that_another_thread_takes_wakes_the_program(
    tmp_path: Path, number: int, script: list[object]
) -> None:
    with (
        ModelServer(["Half an answer", *script]).in_thread() as server,
        started("-p", "go", "--permission-mode", "bypassPermissions", cwd=tmp_path, server=server) as process,
    ):
        assert process.stdout is not None
        process.stdout.read(len("Half an answer"))
        wait_until_idle(process.pid)
        send_to_a_thread(process, number)
        process.communicate(timeout=30)

    assert process.returncode == ENDINGS[number]


def test_a_signal_before_any_line_of_a_turn_is_heeded(tmp_path: Path) -> None:
    """Ctrl-C stops the turn, or, where there is none, whatever it stopped before."""
    lines = list(asyncio.run(turn_with_a_signal(tmp_path, None)).lines)
    assert len(lines) > 100
    for line in some_of(lines):
        turn = asyncio.run(turn_with_a_signal(tmp_path, line))
        assert turn.answered or turn.left or turn.code == INTERRUPTED, line


class SignalledTurn:
    """What became of a turn with a signal in it."""

    def __init__(self) -> None:
        self.lines: dict[Line, None] = {}
        self.code = -1
        self.left = self.answered = False
        """Whether the signal went to whoever minds them outside turns; whether it came after the answer."""


async def turn_with_a_signal(cwd: Path, line: Line | None) -> SignalledTurn:
    seen, signals = SignalledTurn(), Signals()
    loop = asyncio.get_running_loop()

    printer = LinePrinter(sys.stdout, sys.stderr)

    def leave(number: int) -> None:
        seen.left = True
        loop.call_soon_threadsafe(task.cancel)

    def act(now: Line) -> None:
        if line == now and line not in seen.lines:
            signal.raise_signal(signal.SIGINT)
            seen.answered = answered
        seen.lines.setdefault(now)

    def hear(_: object) -> None:
        nonlocal answered
        answered = True

    answered = False
    provider = ScriptedProvider("An answer.")
    session = InteractiveSession(cwd=cwd, provider=provider)
    session.events.on(AssistantMessageCommitted, hear)
    before = {number: signal.getsignal(number) for number in ENDINGS}
    task = asyncio.ensure_future(take_turn(session, "go", printer, signals))
    with signals.acting(leave):
        signals.install()
        try:
            with before_each_line(TURN, act):
                seen.code = await task
        except asyncio.CancelledError:
            assert seen.left
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
    await session.shutdown()
    return seen


@pytest.mark.slow
def test_a_signal_is_right_at_every_moment_from_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every 80 ms another signal, in 21 processes; `make signals` sends all of them every 5 ms."""
    monkeypatch.syspath_prepend(str(FUZZ))
    signals = importlib.import_module("signals")
    endings = [
        ending
        for name, moments in (("INT", (80, 320, 560)), ("TERM", (160, 400)), ("HUP", (240, 480)))
        for ending in signals.run_signals([name], moments, list(signals.SCRIPTS))
    ]

    assert len(endings) == 21
    assert [ending for ending in endings if ending.problems] == []
