from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from robota.core.hooks import parse_hooks
from robota.core.hooks.definition import claude_timeout
from robota.core.messages import ToolMessage
from robota.sdk.hook_executors import model_executors
from robota.sessions.options import HookOptions, SessionOptions
from robota.sessions.session import Session
from robota.testing import ScriptedProvider, call
from robota.tools.builtins.files import read_tool, write_tool

pytestmark = pytest.mark.anyio


def make(
    tmp_path: Path, hooks: dict[str, Any], *replies: Any, source: str = ".robota/settings.json"
) -> Session:
    made: list[Session] = []
    timeout = claude_timeout if ".claude" in source else 10.0
    config = parse_hooks(hooks, source=source, default_timeout=timeout)
    options = SessionOptions(hooks=HookOptions(config=config, executors=model_executors(lambda: made[0])))
    session = Session(
        provider=ScriptedProvider(*replies),
        tools=[read_tool(), write_tool()],
        cwd=str(tmp_path),
        options=options,
    )
    made.append(session)
    return session


def on(event: str, **handler: Any) -> dict[str, Any]:
    return {event: [{"hooks": [handler]}]}


def results(session: Session) -> list[str]:
    return [message.content for message in session.messages if isinstance(message, ToolMessage)]


async def test_a_prompt_hook_that_says_no_denies_the_tool(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("secret")
    hooks = on("PreToolUse", type="prompt", prompt="Is this safe? $ARGUMENTS")
    session = make(
        tmp_path,
        hooks,
        [call("Read", file_path="a.txt")],
        '```json\n{"ok": false, "reason": "not today"}\n```',
        "I could not.",
    )

    assert await session.run("read it") == "I could not."

    assert "not today" in results(session)[0]
    asked = session.agent.provider.requests[1]  # type: ignore[attr-defined]
    question = asked.messages[-1].content
    assert question.startswith("Is this safe? {")
    assert json.loads(question.removeprefix("Is this safe? "))["tool_input"] == {
        "file_path": str(tmp_path / "a.txt")
    }
    assert session.usage.snapshot().total.requests == 3


async def test_in_a_claude_file_a_no_ends_the_turn_unless_the_hook_goes_on(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("text")
    reply = [[call("Read", file_path="a.txt")], '{"ok": false, "reason": "no"}', "went on"]
    ended = make(
        tmp_path, on("PreToolUse", type="prompt", prompt="?"), *reply, source="/p/.claude/settings.json"
    )
    assert (await ended.submit("go")).stop_reason == "hook"

    goes_on = on("PreToolUse", type="prompt", prompt="?", continueOnBlock=True)
    session = make(tmp_path, goes_on, *reply, source="/p/.claude/settings.json")
    assert await session.run("go") == "went on"


async def test_a_yes_lets_the_tool_run(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("text")
    session = make(
        tmp_path,
        on("PreToolUse", type="prompt", prompt="?"),
        [call("Read", file_path="a.txt")],
        '{"ok": true}',
        "done",
    )

    await session.run("go")

    assert "text" in results(session)[0]


async def test_words_for_the_model_are_context_before_a_prompt(tmp_path: Path) -> None:
    session = make(tmp_path, on("UserPromptSubmit", type="prompt", prompt="?"), "Mind the tests.", "done")

    await session.run("go")

    provider: Any = session.agent.provider
    assert "Mind the tests." in provider.requests[-1].messages[-1].content


async def test_an_answer_that_is_no_verdict_blocks_before_a_tool(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("text")
    session = make(
        tmp_path,
        on("PreToolUse", type="prompt", prompt="?"),
        [call("Read", file_path="a.txt")],
        "well, maybe",
        "done",
    )

    await session.run("go")

    assert "well, maybe" in results(session)[0]


async def test_an_agent_hook_may_look_but_not_touch(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("the evidence")
    session = make(
        tmp_path,
        on("Stop", type="agent", agent="Check the work."),
        "finished",
        [call("Read", file_path="a.txt"), call("Write", file_path="b.txt", content="x")],
        '{"ok": false, "reason": "the evidence is missing"}',
        "finished again",
        '{"ok": true}',
    )

    assert await session.run("go") == "finished again"

    provider: Any = session.agent.provider
    looked = provider.requests[2].messages
    assert any("the evidence" in message.content for message in looked)
    assert not (tmp_path / "b.txt").exists()
    assert "the evidence is missing" in provider.requests[3].messages[-1].content


async def test_hooks_about_an_end_are_told_what_was_used(tmp_path: Path) -> None:
    told = tmp_path / "told.json"
    session = make(tmp_path, on("Stop", type="command", command=f"cat > {told}"), "done")

    await session.run("go")

    assert json.loads(told.read_text())["usage"]["requests"] == 1
