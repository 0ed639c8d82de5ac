"""The twelve commands, word for word, and the registry behind them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from robota import InteractiveSession
from robota.core import TokenUsage
from robota.sdk import BuiltinCommandSource, CommandRegistry, CommandResult
from robota.sessions import Budget, BudgetExceededError
from robota.testing import ScriptedProvider

pytestmark = pytest.mark.anyio
TWELVE = [
    "help",
    "clear",
    "compact",
    "mode",
    "model",
    "language",
    "cost",
    "context",
    "permissions",
    "resume",
    "rename",
    "reset",
]
MODES = ["plan", "default", "acceptEdits", "bypassPermissions"]


@pytest.fixture
async def session(project: Path) -> AsyncIterator[InteractiveSession]:
    provider = ScriptedProvider(["Hello.", TokenUsage(5000, 10)], "They said hello.", "More.")
    async with InteractiveSession(cwd=project, provider=provider, model="any") as session:
        await session.submit("Hi")
        yield session


async def outcome(session: InteractiveSession, name: str, args: str = "") -> CommandResult:
    result = await session.execute_command(name, args)
    assert result is not None
    return result


async def test_an_unknown_command_is_none(session: InteractiveSession) -> None:
    assert await session.execute_command("no-such-command", "") is None


async def test_the_list_has_name_and_description_of_all_twelve(session: InteractiveSession) -> None:
    listed = {command.name: command.description for command in session.list_commands()}
    assert set(TWELVE) <= set(listed)
    assert all(listed.values())


async def test_help_names_every_command(session: InteractiveSession) -> None:
    result = await outcome(session, "help")
    assert result.success
    assert all(name in result.message for name in TWELVE)


async def test_clear_empties_the_conversation_and_the_count(session: InteractiveSession) -> None:
    result = await outcome(session, "clear")
    assert (result.message, result.success) == ("Conversation cleared.", True)
    assert list(session.messages) == []
    assert session.context_state.used_tokens < 5000
    context = await outcome(session, "context")
    assert context.data["usedTokens"] == session.context_state.used_tokens


async def test_compact_tells_before_and_after(session: InteractiveSession) -> None:
    result = await outcome(session, "compact", "keep names")
    before, after = result.data["before"], result.data["after"]
    assert result.message == f"Context compacted: {round(before)}% -> {round(after)}%"
    assert result.success


async def test_mode_shows_the_mode(session: InteractiveSession) -> None:
    assert (await outcome(session, "mode")).message == "Current mode: default"


@pytest.mark.parametrize("mode", MODES)
async def test_mode_sets_the_mode(session: InteractiveSession, mode: str) -> None:
    result = await outcome(session, "mode", mode)
    assert (result.message, result.success) == (f"Permission mode set to: {mode}", True)
    assert dict(result.data) == {"mode": mode}
    assert session.permission_mode == mode


async def test_an_invalid_mode_is_refused_in_these_words(session: InteractiveSession) -> None:
    result = await outcome(session, "mode", "yolo")
    assert result.message == "Invalid mode. Valid: plan | default | acceptEdits | bypassPermissions"
    assert not result.success
    assert session.permission_mode == "default"


@pytest.mark.parametrize("name", ["model", "language", "rename"])
async def test_without_an_argument_there_is_usage(session: InteractiveSession, name: str) -> None:
    result = await outcome(session, name)
    assert not result.success
    assert f"/{name}" in result.message or name in result.message
    assert "usage" in result.message.lower()


@pytest.mark.parametrize(
    ("name", "args", "data"),
    [
        ("model", "big-one", {"modelId": "big-one"}),
        ("language", "ko", {"language": "ko"}),
        ("rename", "my list", {"name": "my list"}),
        ("resume", "", {"triggerResumePicker": True}),
        ("reset", "", {"resetRequested": True}),
    ],
)
async def test_what_the_caller_does_is_told_in_data(
    session: InteractiveSession, name: str, args: str, data: dict[str, object]
) -> None:
    result = await outcome(session, name, args)
    assert result.success
    assert dict(result.data) == data


async def test_rename_by_command_leaves_the_name_to_the_caller(session: InteractiveSession) -> None:
    before = session.name
    await outcome(session, "rename", "my list")
    assert session.name == before


async def test_data_cannot_be_written(session: InteractiveSession) -> None:
    result = await outcome(session, "resume")
    with pytest.raises(TypeError):
        result.data["triggerResumePicker"] = False  # type: ignore[index]


async def test_cost_begins_with_session_and_messages(session: InteractiveSession) -> None:
    result = await outcome(session, "cost")
    count = result.data["messageCount"]
    assert result.message.startswith(f"Session: {session.session_id}\nMessages: {count}")
    assert result.data["sessionId"] == session.session_id
    assert count == 1


async def test_cost_limits_what_the_session_may_spend(project: Path) -> None:
    reply = ["Hello.", TokenUsage(100_000, 10)]
    provider = ScriptedProvider(reply, reply, reply)
    budget = Budget(max_requests=9)
    async with InteractiveSession(
        cwd=project, provider=provider, model="claude-sonnet-4-5", budget=budget
    ) as session:
        await session.submit("Hi")
        limited = await outcome(session, "cost", "budget $0.30")
        assert limited.message == "This session may cost $0.3000; $0.3001 is spent."
        assert session.session.admission.budget == Budget(max_cost_usd=0.3, max_requests=9)
        refused = await session.submit("More")
        assert isinstance(refused.error, BudgetExceededError)
        assert (await outcome(session, "cost", "budget")).message == limited.message
        lifted = await outcome(session, "cost", "budget clear")
        assert lifted.message == "The cost of this session is not limited."
        assert session.session.admission.budget == budget


@pytest.mark.parametrize("args", ["budget much", "budget -1", "budget nan", "bugdet 5"])
async def test_a_cost_that_is_not_understood_is_refused(session: InteractiveSession, args: str) -> None:
    result = await outcome(session, "cost", args)
    assert not result.success
    assert result.message.endswith("Usage: /cost [budget [AMOUNT | clear]]")
    assert session.session.admission.budget is None


async def test_a_server_that_is_not_there_is_named_also_where_there_are_none(
    session: InteractiveSession,
) -> None:
    result = await outcome(session, "mcp", "github")
    assert (result.message, result.success) == ("There is no MCP server 'github'; there are none.", False)


async def test_context_tells_the_three_figures(session: InteractiveSession) -> None:
    result = await outcome(session, "context")
    state = session.context_state
    assert result.message.startswith("Context: ")
    assert "tokens (" in result.message.splitlines()[0]
    assert result.data["usedTokens"] == state.used_tokens
    assert result.data["maxTokens"] == state.max_tokens
    assert result.data["percentage"] == pytest.approx(state.used_percentage, abs=1)


async def test_permissions_tells_the_mode_and_what_was_allowed(session: InteractiveSession) -> None:
    result = await outcome(session, "permissions")
    assert "default" in result.message
    assert (result.data["mode"], list(result.data["sessionAllowed"])) == ("default", [])


@pytest.mark.parametrize("args", ["auto 85", "auto -1", "auto 1.5"])
async def test_a_threshold_without_a_unit_is_refused_with_a_hint(
    session: InteractiveSession, args: str
) -> None:
    result = await outcome(session, "context", args)
    assert not result.success
    assert "%" in result.message


async def test_a_slash_line_runs_the_command(session: InteractiveSession) -> None:
    result = await session.submit("/mode plan")
    assert result.text == "Permission mode set to: plan"
    assert session.permission_mode == "plan"


async def test_a_line_that_names_no_command_is_text(session: InteractiveSession) -> None:
    result = await session.submit("/etc/hosts is what?")
    assert result.command is None
    assert session.messages[-2].content == "/etc/hosts is what?"


def test_the_registry_filters_by_prefix_in_any_case() -> None:
    registry = CommandRegistry()
    registry.add_source(BuiltinCommandSource())
    assert {"mode", "model"} <= {command.name for command in registry.commands("MOD")}
    assert all(command.name.startswith("mod") for command in registry.commands("mod"))


def test_the_modes_are_subcommands() -> None:
    registry = CommandRegistry(BuiltinCommandSource())
    assert [command.name for command in registry.subcommands("mode")] == MODES
    assert {"ko", "en", "ja", "zh"} == {command.name for command in registry.subcommands("language")}
    assert registry.subcommands("model")


def test_a_short_name_that_nobody_or_two_have_is_not_resolved() -> None:
    registry = CommandRegistry(BuiltinCommandSource())
    assert registry.resolve("audit") is None
