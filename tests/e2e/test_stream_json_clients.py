"""What clients of the stream-json protocol do, other than the one that the system tests have."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from tests.support.command import environment, model_requests, place
from tests.support.driven import Driven, driven

from robota.testing import ModelServer, Stall

STREAM = ("--output-format", "stream-json")


def block(words: str) -> dict[str, str]:
    return {"type": "text", "text": words}


def say(host: Driven, *blocks: dict[str, str]) -> None:
    host.send({"type": "user", "message": {"role": "user", "content": blocks}})


def test_a_switch_with_an_empty_value_is_a_switch(tmp_path: Path) -> None:
    """As the bridge of editors passes it."""
    with (
        ModelServer("Hello.").in_thread() as server,
        driven("--replay-user-messages", "", cwd=tmp_path, server=server) as host,
    ):
        host.initialize()
        result = host.ask("hi")

    assert result["result"] == "Hello."
    assert [frame["message"]["content"] for frame in host.seen if frame["type"] == "user"] == ["hi"]


def test_a_prompt_on_the_command_line_is_refused_where_prompts_come_as_frames(tmp_path: Path) -> None:
    with driven("hi", cwd=tmp_path) as host:
        code, said = host.finish()

    assert code == 2
    assert "leave it out" in said
    assert host.seen[-1]["errors"] == [said.removeprefix("robota: ").rstrip()]


def test_a_command_in_a_block_is_a_command(tmp_path: Path) -> None:
    with ModelServer("Two.").in_thread() as server, driven(cwd=tmp_path, server=server) as host:
        say(host, block("/help"))
        command = host.until("result")
        say(host, block("/help"), block("is what I typed"))
        host.until("result")

    assert (command["num_turns"], "/clear" in command["result"]) == (0, True)
    assert model_requests(server)[0].body["messages"][-1]["content"] == "/help\nis what I typed"


def test_an_answer_that_is_cut_off_before_its_first_word_is_no_message(tmp_path: Path) -> None:
    arguments = ("--include-partial-messages",)
    with (
        ModelServer([Stall()], "Two.").in_thread() as server,
        driven(*arguments, cwd=tmp_path, server=server) as host,
    ):
        host.prompt("go")
        while not model_requests(server):
            server.wait_for_requests_in_thread(len(server.requests) + 1)
        assert host.request("interrupt")["subtype"] == "success"
        assert host.until("result")["terminal_reason"] == "aborted_streaming"
        host.ask("again")

    told = [frame["message"]["content"] for frame in host.seen if frame["type"] == "assistant"]
    assert told == [[{"type": "text", "text": "Two."}]]


def test_hooks_for_events_of_others_are_told_of_in_one_sentence(tmp_path: Path) -> None:
    events = ("TaskCreated", "PreToolUse", "TaskCompleted")
    hooks = {event: [{"hookCallbackIds": ["hook_0"]}] for event in events}
    with ModelServer("Hello.").in_thread() as server, driven(cwd=tmp_path, server=server) as host:
        host.initialize(hooks=hooks)
        host.ask("hi")

    told = [frame["content"] for frame in host.seen if "never run" in frame.get("content", "")]
    assert told == ["Hooks for TaskCreated, TaskCompleted never run: robota does not have those events."]


@pytest.mark.parametrize(
    ("redirection", "prompts", "code", "said"),
    [
        ("<&-", "", 0, ""),
        ("> /dev/full", '{"type": "user", "message": {"content": "hi"}}\n', 1, "No space left on device"),
    ],
)
def test_a_pipe_that_is_closed_or_full_is_no_puzzle(
    tmp_path: Path, redirection: str, prompts: str, code: int, said: str
) -> None:
    words = " ".join((sys.executable, "-m", "robota", *STREAM, "--input-format", "stream-json"))
    with ModelServer("Hello.").in_thread() as server:
        done = subprocess.run(
            ["bash", "-c", f"{words} {redirection}"],
            cwd=tmp_path,
            env=environment(**place(server)),
            input=prompts,
            capture_output=True,
            text=True,
            check=False,
        )

    sentence = f"robota: The answer could not be written: {said}.\n" if said else ""
    assert (done.returncode, done.stderr) == (code, sentence)
