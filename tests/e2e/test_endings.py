"""How the command ends when a run does not come to an answer: one sentence on stderr and an exit code."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.support.command import environment, model_requests, place, robota
from tests.support.fork_server import Forked
from tests.support.terminal import Terminal

from robota.core.provider import StopChunk
from robota.sdk.kept_sessions import create_project_session_store
from robota.testing import HttpError, ModelServer, call

FAILING = [call("Read", file_path="missing.txt")]
UNKNOWN = [call("Nonsense")]


@pytest.mark.parametrize(
    ("script", "arguments", "code", "sentence"),
    [
        ([[call("Glob", pattern="*")], "Half."], ("--max-turns", "1"), 5, "its limit is 1 rounds"),
        ([[call("Glob", pattern="*")], []], ("--max-turns", "1"), 5, "its limit is 1 rounds"),
        (["Never sent."], ("--max-budget-usd", "0", "--model", "gpt-4o"), 6, "budget"),
        ([FAILING, FAILING, FAILING, "I give up."], (), 4, "same call of Read failed 3 times"),
        ([UNKNOWN, UNKNOWN, "I give up."], (), 4, "tools that do not exist: Nonsense"),
        ([[], [], []], (), 4, "answered with nothing, three times"),
        ([["Half", StopChunk("max_tokens")]], (), 4, "The answer is cut"),
        ([["Half", StopChunk("content_filter")]], (), 4, "content filter"),
        ([HttpError(400, "no such thing")], (), 1, "no such thing"),
    ],
    ids=[
        "rounds",
        "rounds, no summary",
        "budget",
        "failing",
        "unknown",
        "empty",
        "max_tokens",
        "filter",
        "refused",
    ],
)
def test_a_run_without_an_answer_ends_with_a_sentence_and_a_code(
    tmp_path: Path, script: list[Any], arguments: tuple[str, ...], code: int, sentence: str
) -> None:
    with ModelServer(*script).in_thread() as server:
        done = robota("-p", "go", *arguments, cwd=tmp_path, server=server)

    told = [line for line in done.stderr.splitlines() if sentence in line]
    assert (done.returncode, len(told)) == (code, 1), done.stderr
    assert sentence not in done.stdout
    assert "Traceback" not in done.stderr


def test_a_call_that_was_cut_is_told_and_the_run_goes_on(tmp_path: Path) -> None:
    cut = [call("Bash", command="rm -r build"), StopChunk("max_tokens")]
    with ModelServer(cut, "Another way.").in_thread() as server:
        done = robota("-p", "go", cwd=tmp_path, server=server)

    assert (done.returncode, done.stdout) == (3, "Another way.\n")
    assert "✗ Bash:" in done.stderr


# --- what comes in ------------------------------------------------------------------------------------------


def test_what_is_piped_in_without_end_is_refused_before_anything_is_sent(tmp_path: Path) -> None:
    with ModelServer("never").in_thread() as server, open("/dev/zero", "rb") as endless:
        streams = endless, subprocess.PIPE, subprocess.PIPE
        process = Forked(["-p", "summarise"], streams, cwd=tmp_path, env=environment(**place(server)))
        _, errors = process.communicate()

    assert process.returncode == 2
    assert "More than 8 MB were piped in" in errors
    assert server.requests == []


def test_piped_bytes_that_are_no_text_cause_no_traceback(tmp_path: Path) -> None:
    with ModelServer("ok").in_thread() as server:
        process = Forked(["-p", "what is it?"], cwd=tmp_path, env=environment(**place(server)), text=False)
        process.communicate(b"\xff\xfe caf\xe9")
        asked = model_requests(server)[0].body["messages"][-1]["content"]

    assert (process.returncode, asked) == (0, "\ufffd\ufffd caf\ufffd\n\nwhat is it?")


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("doctor", "robota setup"),
        ("auth set x", "No key came"),
        ("setup", "--local"),
        ("tour", "in a terminal"),
    ],
)
def test_an_input_that_is_closed_is_an_empty_one(tmp_path: Path, command: str, words: str) -> None:
    done = subprocess.run(
        ["bash", "-c", f"{sys.executable} -m robota {command} <&-"],
        cwd=tmp_path,
        env=environment(HOME=str(tmp_path), ROBOTA_HOME=str(tmp_path / "home")),
        capture_output=True,
        text=True,
        check=False,
    )

    assert words in done.stdout + done.stderr
    assert "Traceback" not in done.stderr


def test_a_key_of_blanks_is_a_missing_one(tmp_path: Path) -> None:
    done = robota("-p", "x", "--provider", "anthropic", cwd=tmp_path, ANTHROPIC_API_KEY="   ")

    assert done.returncode == 1
    assert "ANTHROPIC_API_KEY" in done.stderr


def test_a_key_does_not_leave_in_the_clear(tmp_path: Path) -> None:
    done = robota(
        "-p", "x", "--provider", "openai", "--base-url", "http://example.com/v1", "--model", "m",
        cwd=tmp_path, OPENAI_API_KEY="sk-something",
    )  # fmt: skip

    assert done.returncode == 1
    assert "would go to example.com without encryption" in done.stderr
    assert "sk-something" not in done.stderr


# --- going on -----------------------------------------------------------------------------------------------


def test_going_on_keeps_the_model_the_session_was_left_with(tmp_path: Path) -> None:
    with ModelServer("Hello.", repeat=True).in_thread() as server:
        robota("-p", "one", "--model", "the-large-one", cwd=tmp_path, server=server)
        robota("-c", "-p", "two", cwd=tmp_path, server=server)
        robota("-c", "-p", "three", "--model", "another", cwd=tmp_path, server=server)
        robota("-c", "-p", "four", cwd=tmp_path, server=server)
        asked = [request.body["model"] for request in model_requests(server)]

    assert asked == ["the-large-one", "the-large-one", "another", "another"]


def test_going_on_keeps_the_provider_too(tmp_path: Path) -> None:
    with ModelServer("Hello.", repeat=True).in_thread() as server:
        keys = {"OPENAI_API_KEY": "sk-a", "ANTHROPIC_API_KEY": "sk-b", "ANTHROPIC_BASE_URL": server.url}
        robota("-p", "one", "--model", "claude-sonnet-4-5", cwd=tmp_path, **keys)
        done = robota("-c", "-p", "two", cwd=tmp_path, ROBOTA_MODEL="gpt-5.2", **keys)
        asked = [(request.path, request.body["model"]) for request in model_requests(server)]

    assert done.returncode == 0, done.stderr
    assert asked == [("/v1/messages", "claude-sonnet-4-5")] * 2


@pytest.mark.parametrize(
    "name",
    [b"two words", b"a\nb", b"password=hunter2", b"sk-ant-api03-" + b"Qm9vdGhz" * 9, b"\xff\xfe", b"%41"],
)
def test_going_on_works_in_any_directory(tmp_path: Path, name: bytes) -> None:
    where = os.path.join(os.fsencode(tmp_path), name)
    os.mkdir(where)
    with ModelServer("Hello.", repeat=True).in_thread() as server:
        robota("-p", "one", cwd=Path(os.fsdecode(where)), server=server)
        done = robota("-c", "-p", "two", cwd=Path(os.fsdecode(where)), server=server)
        roles = [message["role"] for message in model_requests(server)[-1].body["messages"]]

    assert done.returncode == 0, done.stderr
    assert roles == ["system", "user", "assistant", "user"]


def test_whoever_leaves_is_told_how_to_go_on(tmp_path: Path) -> None:
    with ModelServer("Hello.", "Hello again.").in_thread() as server:
        terminal = Terminal(tmp_path, **place(server))
        terminal.wait_for("robota> ")
        terminal.type("hi\n")
        terminal.wait_for("Hello.")
        terminal.wait_for("robota> ")
        terminal.type("/exit\n")
        terminal.leave()
        [summary] = create_project_session_store().list(cwd=str(tmp_path))
        assert f"robota -r {summary.id}" in terminal.seen
        done = robota("-r", summary.id, "-p", "and?", cwd=tmp_path, server=server)

    assert (done.returncode, done.stdout) == (0, "Hello again.\n")


def test_a_prompt_that_was_left_unused_leaves_no_session(tmp_path: Path) -> None:
    with ModelServer("never").in_thread() as server:
        terminal = Terminal(tmp_path, **place(server))
        terminal.wait_for("robota> ")
        terminal.type("/exit\n")
        terminal.leave()

    assert "robota -r" not in terminal.seen


# --- what is kept -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077, 0o777])
def test_the_home_is_private_whatever_the_umask(tmp_path: Path, umask: int) -> None:
    home = tmp_path / "user" / ".robota"
    with ModelServer("Hello.").in_thread() as server:
        env = environment(**place(server), ROBOTA_HOME=str(home))
        process = Forked(["-p", "x"], cwd=tmp_path, env=env, umask=umask)
        _, errors = process.communicate()

    assert process.returncode == 0, errors
    assert {stat.S_IMODE(path.stat().st_mode) for path in (home, home / "sessions")} == {0o700}


def test_a_home_that_a_terminal_or_an_editor_makes_is_private_too(tmp_path: Path) -> None:
    home, other = tmp_path / "user" / ".robota", tmp_path / "other" / ".robota"
    with ModelServer("Hello.").in_thread() as server:
        terminal = Terminal(tmp_path, **place(server), ROBOTA_HOME=str(home))
        terminal.wait_for("robota> ")
        terminal.type("hi\n")
        terminal.wait_for("Hello.")
        terminal.type("\x04")
        terminal.leave()
    edited = robota("config", "edit", cwd=tmp_path, ROBOTA_HOME=str(other), EDITOR="touch")

    assert edited.returncode == 0, edited.stderr
    assert {stat.S_IMODE(path.stat().st_mode) for path in (home, home / "prompts", other)} == {0o700}
    assert stat.S_IMODE((other / "settings.json").stat().st_mode) == 0o600


def test_odd_files_do_not_stop_the_list_of_sessions(tmp_path: Path) -> None:
    home = tmp_path / "home"
    sessions = home / "sessions"
    with ModelServer("Hello.", repeat=True).in_thread() as server:
        robota("-p", "one", cwd=tmp_path, server=server, ROBOTA_HOME=str(home))
        (sessions / "directory.jsonl").mkdir()
        (sessions / "loop.jsonl").symlink_to(sessions / "loop.jsonl")
        (sessions / "nowhere.json").symlink_to("nowhere")
        (sessions / "zeros.jsonl").write_bytes(bytes(100))
        (sessions / "deep.json").write_text("[" * 100_000)
        (sessions / "wrong.json").write_text('{"id": 5, "messages": 7, "updatedAt": {}}')
        os.mkfifo(sessions / "pipe.jsonl")
        os.close(os.open(os.fsencode(sessions) + b"/\xff.jsonl", os.O_CREAT | os.O_WRONLY))
        done = robota("-c", "-p", "two", cwd=tmp_path, server=server, ROBOTA_HOME=str(home))

    assert (done.returncode, done.stdout) == (0, "Hello.\n"), done.stderr


def test_a_warning_is_one_line_without_a_traceback(tmp_path: Path) -> None:
    code = (
        "import logging, sys, warnings; from robota.cli.screen import say_warnings_in_one_line as f; f()\n"
        "warnings.warn('old thing')\n"
        "try: 1 / 0\n"
        "except ZeroDivisionError: logging.getLogger('robota.engine').exception('It failed.')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)

    assert done.stderr == "robota: old thing\nrobota: It failed.\n"


def test_a_session_that_is_open_elsewhere_is_refused_before_anybody_types(tmp_path: Path) -> None:
    with ModelServer("First.").in_thread() as server:
        first = Terminal(tmp_path, "hello", **place(server))
        first.wait_for("First.")
        first.wait_for("robota> ")
        id = json.loads(robota("sessions", "list", "--json", cwd=tmp_path).stdout)["id"]
        second = Terminal(tmp_path, "-r", id, **place(server))
        code = second.leave()
        first.type("\x04")
        first.leave()

    assert code == 1
    assert f"robota: Session {id} is open in process " in second.seen
    assert second.seen.rstrip().endswith("close it there, or begin a copy with --fork-session.")
    assert "robota>" not in second.seen
