"""Functions of the program as hooks, through a session."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from tests.sessions.live_session import Studio

from robota import tool
from robota.core import ConfigurationError, Refusal, ToolMessage, hook
from robota.core.messages import JsonObject
from robota.sessions.permissions.live_rules import PermissionRules
from robota.testing import call

pytestmark = pytest.mark.anyio


@tool
async def deploy(target: str) -> str:
    """Deploy."""
    return f"deployed to {target}"


def result(studio: Studio) -> str:
    [message] = [one for one in studio.session.messages if isinstance(one, ToolMessage)]
    return message.content


def studio_with(tmp_path: Path, hooks: object, target: str = "prod") -> Studio:
    rules = PermissionRules(allow=("deploy",))
    replies = [call("deploy", target=target)], "done"
    return Studio(tmp_path, *replies, tools=[deploy], rules=rules, hooks=hooks)  # type: ignore[arg-type]


async def test_a_function_refuses_a_call(tmp_path: Path) -> None:
    seen: list[JsonObject] = []

    async def no_production(event: JsonObject) -> Refusal | None:
        seen.append(event)
        return Refusal("not on a Friday") if event["tool_input"]["target"] == "prod" else None

    studio = studio_with(tmp_path, {"PreToolUse": [hook(no_production, matcher="deploy")]})
    await studio.session.run("ship it")

    assert "not on a Friday" in result(studio)
    assert (seen[0]["hook_event_name"], seen[0]["tool_name"], seen[0]["session_id"]) == (
        "PreToolUse",
        "deploy",
        studio.session.session_id,
    )


async def test_a_function_changes_what_a_call_is_given(tmp_path: Path) -> None:
    threads: list[int] = []

    def to_staging(event: JsonObject) -> JsonObject:
        threads.append(threading.get_ident())
        changed = {**event["tool_input"], "target": "staging"}
        return {"hookSpecificOutput": {"hookEventName": "PreToolUse", "updatedInput": changed}}

    studio = studio_with(tmp_path, {"PreToolUse": [hook(to_staging)]})
    await studio.session.run("ship it")

    assert result(studio) == "deployed to staging"
    assert threads[0] != threading.get_ident()  # a plain function cannot hold the loop


async def test_functions_and_commands_stand_side_by_side(tmp_path: Path) -> None:
    def words(event: JsonObject) -> str:
        return "The user's name is Ada."

    settings = {"hooks": [{"type": "command", "command": "echo 'It is Monday.'"}]}
    studio = studio_with(tmp_path, {"UserPromptSubmit": [settings, hook(words)]}, "home")
    await studio.session.run("ship it")

    told = " ".join(message.content for message in studio.session.messages)
    assert told.index("It is Monday.") < told.index("The user's name is Ada.")


async def test_a_function_that_fails_before_a_tool_blocks_it(tmp_path: Path) -> None:
    def broken(event: JsonObject) -> None:
        raise LookupError("no such table")

    studio = studio_with(tmp_path, {"PreToolUse": [hook(broken)]})
    await studio.session.run("ship it")

    assert "LookupError: no such table" in result(studio)


async def test_an_answer_of_no_kind_is_a_failure_that_says_so(tmp_path: Path) -> None:
    studio = studio_with(tmp_path, {"PreToolUse": [hook(lambda event: 7)]})  # type: ignore[arg-type, return-value]
    await studio.session.run("ship it")

    assert "returned int; it may return None, text, a dict or Refusal" in result(studio)


def test_what_is_not_a_function_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="needs a function, not str"):
        hook("echo hello")  # type: ignore[arg-type]


async def test_settings_cannot_name_a_function(tmp_path: Path) -> None:
    entry = {"hooks": [{"type": "function", "function": "os.remove"}]}
    studio = studio_with(tmp_path, {"PreToolUse": [entry]})
    await studio.session.run("ship it")

    assert "names no function: settings can only have commands" in result(studio)
