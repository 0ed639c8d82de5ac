"""What goes on around an answer in the interface: background work, thinking, notices to the terminal, other
providers; and what code beside it does that must not harm the screen."""

from __future__ import annotations

import json
import os
import re
import sys
import threading
from pathlib import Path

import pytest
from tests.e2e.terminal import Terminal, idle, leave, open_terminal, ready, robota_terminal
from tests.support.command import model_requests

from robota.testing import call
from robota.testing.model_server import ModelServer
from robota.tui.surface import FrameOutput

PROGRAM = """
import asyncio, sys
from robota import InteractiveSession, tool
from robota.core.provider import Capabilities, ReasoningChunk, StopChunk, TextChunk
from robota.testing import ScriptedProvider, call
from robota.sdk.view.status import read_status
from robota.tui.app import run_terminal

class Host:
    def setting(self, name): return None
    def read_status(self, session): return read_status(session)
    def stop_turn(self): pass

@tool
async def misbehave() -> str:
    "Print, and leave a task behind that fails."
    print("printed by a tool")
    sys.stdout.write("half a line")
    async def fail():
        raise ValueError("nobody waits for this")
    task = asyncio.create_task(fail())
    await asyncio.sleep(0)
    del task
    return "done"

class Thoughtful:
    name, capabilities = "thoughtful", Capabilities()
    async def stream(self, request):
        while "pygments.lexers.python" not in sys.modules:  # drawn beforehand, in a thread
            await asyncio.sleep(0.01)
        yield ReasoningChunk("I wonder about pears.")
        while not gate.is_file():
            await asyncio.sleep(0.01)
        yield TextChunk("An answer that was ready.")
        yield StopChunk("end_turn")

from pathlib import Path
gate = Path("gate")
script = ScriptedProvider([call("misbehave")], "All is well.")
async def main():
    provider = Thoughtful() if sys.argv[1:] == ["thoughtful"] else script
    options = {"permission_mode": "bypassPermissions", "context_window": 100_000}
    async with InteractiveSession(provider=provider, model="m", tools=[misbehave], **options) as session:
        await run_terminal(session, Host())
asyncio.run(main())
"""


def open_program(cwd: Path, *arguments: str) -> Terminal:
    home = str(cwd / "home")
    argv = [sys.executable, "-c", PROGRAM, *arguments]
    return Terminal(argv, cwd=cwd, ROBOTA_HOME=home)


def test_what_tools_print_and_tasks_that_fail_are_remarks(tmp_path: Path) -> None:
    with open_program(tmp_path) as terminal:
        ready(terminal)
        terminal.type("go\r")
        terminal.until("All is well.")
        terminal.until("nobody waits for this")
        idle(terminal)
        terminal.press("still in its place")
        terminal.until("> still in its place")
        terminal.type("\x15")
        assert leave(terminal) == 0

    assert "printed by a tool" in terminal.text
    assert "Traceback" not in terminal.text
    assert "Press ENTER" not in terminal.text
    log = (tmp_path / "home" / "logs" / "terminal.log").read_text()
    assert "ValueError: nobody waits for this" in log


def test_code_and_tables_are_loaded_before_the_first_of_them_and_thinking_is_shown_by_a_key(
    tmp_path: Path,
) -> None:
    with open_program(tmp_path, "thoughtful") as terminal:
        ready(terminal)
        terminal.type("go\r")
        terminal.until("Esc stops")
        terminal.settle()
        assert "pears" not in terminal.text
        terminal.type("\x14")
        terminal.until("I wonder about pears.")
        (tmp_path / "gate").touch()
        terminal.until("An answer that was ready.")
        idle(terminal)
        assert leave(terminal) == 0


def test_a_slow_terminal_gets_fewer_frames(monkeypatch: pytest.MonkeyPatch) -> None:
    reading, writing = os.pipe()

    def drip() -> None:
        while os.read(reading, 64):
            pass

    with os.fdopen(writing, "w") as slow, open(os.devnull, "w") as quick:
        reader = threading.Thread(target=drip)
        reader.start()
        pauses = []
        for end in (quick, slow):
            monkeypatch.setattr(sys, "stdout", end)
            output = FrameOutput(None, "xterm")
            output.write_raw("x" * 2_000_000)
            output.flush()
            pauses.append(output.pause)
        monkeypatch.undo()
    reader.join()
    os.close(reading)

    assert pauses[0] < pauses[1] <= 1.0


def test_background_work_has_a_row_as_long_as_it_goes_on(tmp_path: Path) -> None:
    script = [call("Bash", command="cat gate", run_in_background=True)], "It runs."
    os.mkfifo(tmp_path / "gate")
    allowed = ("--permission-mode", "bypassPermissions")
    with (
        ModelServer(*script).in_thread() as server,
        open_terminal(tmp_path, server, *allowed, ROBOTA_HOME=str(tmp_path / "home")) as terminal,
    ):
        ready(terminal)
        terminal.type("go\r")
        terminal.until("It runs.")
        idle(terminal)
        terminal.until(lambda seen: any("◦ cat gate" in line for line in seen.lines), "the row")
        (tmp_path / "gate").write_text("")
        terminal.until(lambda seen: not any("◦ cat gate" in line for line in seen.lines), "its end")
        assert leave(terminal) == 0


def test_a_terminal_that_shows_notices_is_given_words(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / "settings.json").write_text('{"notifications": "osc9"}')
    with (
        ModelServer("Done.").in_thread() as server,
        open_terminal(tmp_path, server, ROBOTA_HOME=str(home)) as terminal,
    ):
        ready(terminal)
        terminal.type("go\r")
        terminal.until("Done.")
        terminal.until(lambda seen: re.search(rb"\x1b\]9;[^\x07\x1b]+\x07", seen.log), "a notice")
        assert leave(terminal) == 0


def test_code_has_other_colours_on_a_light_screen(tmp_path: Path) -> None:
    shown = []
    for theme in ("light", "dark"):
        home = tmp_path / theme
        home.mkdir()
        (home / "settings.json").write_text(json.dumps({"theme": theme}))
        with (
            ModelServer("```python\ndef pear(): return 'x'  # why\n```\n").in_thread() as server,
            open_terminal(tmp_path, server, ROBOTA_HOME=str(home)) as terminal,
        ):
            ready(terminal)
            terminal.type("go\r")
            terminal.until("def pear")
            idle(terminal)
            terminal.settle()
            assert leave(terminal) == 0
        line = next(
            part for part in bytes(terminal.log).split(b"\r\n") if re.search(rb"def.{1,40}pear", part)
        )
        shown.append(re.findall(rb"\x1b\[[0-9;]*m", line))

    assert shown[0] != shown[1]
    assert not any(b"48;" in sequence for sequences in shown for sequence in sequences)  # no background


def test_another_provider_answers_from_the_middle_of_a_session(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    with (
        ModelServer("From the first.").in_thread() as first,
        ModelServer("From the second.").in_thread() as second,
    ):
        profiles = {
            name: {"type": "openai-compatible", "model": name, "baseURL": f"{server.url}/v1", "apiKey": "k"}
            for name, server in (("one", first), ("two", second))
        }
        settings = {"currentProvider": "one", "providers": profiles}
        (home / "settings.json").write_text(json.dumps(settings))
        with robota_terminal(tmp_path, ROBOTA_HOME=str(home)) as terminal:
            ready(terminal)
            terminal.type("hello\r")
            terminal.until("From the first.")
            idle(terminal)
            terminal.type("/provider switch two\r")
            terminal.until("two (two) answers from now on.")
            idle(terminal)
            terminal.type("and now?\r")
            terminal.until("From the second.")
            idle(terminal)
            assert leave(terminal) == 0
        [asked] = model_requests(second)

    said = [message["content"] for message in asked.body["messages"] if message["role"] != "system"]
    assert said == ["hello", "From the first.", "and now?"]
    assert asked.body["model"] == "two"


def test_what_is_typed_in_a_locale_that_knows_only_ascii_is_sent_whole(tmp_path: Path) -> None:
    python = {"PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "PYTHONIOENCODING": ""}
    with (
        ModelServer("Read.").in_thread() as server,
        open_terminal(tmp_path, server, LC_ALL="C", **python) as terminal,
    ):
        ready(terminal)
        terminal.type("caf\u00e9 \ud55c\uae00\r")
        terminal.until("Read.")
        idle(terminal)
        sent = model_requests(server)[0].body["messages"][-1]["content"]

    assert sent == "caf\u00e9 \ud55c\uae00"
