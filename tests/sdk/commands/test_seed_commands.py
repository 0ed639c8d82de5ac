from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from robota.core.messages import TokenUsage
from robota.sdk.commands.effects import CommandResult
from robota.sdk.interactive import InteractiveSession
from robota.sessions.permissions.live_rules import PermissionRules
from robota.sessions.session import Session
from robota.testing import ScriptedProvider, call
from robota.tools.builtins.plan import Todo

pytestmark = pytest.mark.anyio


def make(tmp_path: Path, *answers: Any) -> InteractiveSession:
    return InteractiveSession(
        cwd=tmp_path,
        provider=ScriptedProvider(*answers),
        model="m",
        environment={"HOME": str(tmp_path / "home")},
    )


async def run(session: InteractiveSession, name: str, args: str = "") -> CommandResult:
    result = await session.execute_command(name, args)
    assert result is not None
    return result


async def test_help_lists_every_command_with_its_description(tmp_path: Path) -> None:
    async with make(tmp_path) as session:
        lines = (await run(session, "help")).message.split("\n")

        assert lines[0] == "Available commands:"
        listed = {line.split()[0]: line for line in lines[1:]}
        for name, description in session.list_commands():
            assert listed[f"/{name}"].endswith(f"  {description}")


async def test_the_descriptions_of_help_stand_in_one_column(tmp_path: Path) -> None:
    async with make(tmp_path) as session:
        lines = (await run(session, "help")).message.split("\n")
        about = dict(session.list_commands())

    columns = {line.index(f"  {about[line.split()[0][1:]]}") for line in lines[1:-1]}
    assert len(columns) == 1
    assert max(map(len, lines)) < 100
    assert any(line.startswith("  /plugin … ") for line in lines)


async def test_help_explains_one_command(tmp_path: Path) -> None:
    async with make(tmp_path) as session:
        told = await run(session, "help", "/language")
        wrong = await run(session, "help", "langauge")

        assert told.message.startswith(
            "/language <code>: Set response language\n  ko: Korean\n  en: English\n"
        )
        assert wrong == CommandResult(
            "There is no command 'langauge'; did you mean 'language'?", success=False
        )


async def test_clear_empties_the_conversation_and_the_count_of_tokens(tmp_path: Path) -> None:
    async with make(tmp_path, "yes", "again") as session:
        await session.submit("hello")
        assert session.context_state.used_tokens > 0
        session.kit.todos.items = (Todo("write it", "pending"),)
        result = await run(session, "clear")

        assert session.kit.todos.items == ()
        assert (result.message, result.success, dict(result.data)) == ("Conversation cleared.", True, {})
        assert [each.role for each in session.messages] == []
        assert session.context_state.used_tokens == 0


async def test_compact_tells_how_full_the_window_was_and_is(tmp_path: Path) -> None:
    provider = ScriptedProvider("x" * 40_000, "A summary of all that matters.")
    async with InteractiveSession(
        cwd=tmp_path, provider=provider, model="m", environment={"HOME": str(tmp_path)}
    ) as session:
        await session.submit("hello")
        result = await run(session, "compact", "keep the names")

        before, after = result.data["before"], result.data["after"]
        assert result.message == f"Context compacted: {before:.0f}% -> {after:.0f}%"
        assert before > after > 0
        assert "keep the names" in str(provider.requests[-1].messages)


async def test_compact_says_when_there_is_nothing_to_summarise(tmp_path: Path) -> None:
    async with make(tmp_path) as session:
        result = await run(session, "compact")
        assert result.success
        assert result.message.startswith("There is nothing to compact")


async def test_mode_shows_and_changes_the_permission_mode(tmp_path: Path) -> None:
    async with make(tmp_path) as session:
        shown = await run(session, "mode")
        changed = await run(session, "mode", "acceptEdits")
        wrong = await run(session, "mode", "reckless")

        assert (shown.message, shown.data["mode"]) == ("Current mode: default", "default")
        assert changed.message == "Permission mode set to: acceptEdits"
        assert dict(changed.data) == {"mode": "acceptEdits"}
        assert session.permission_mode == "acceptEdits"
        assert wrong == CommandResult(
            "Invalid mode. Valid: plan | default | acceptEdits | bypassPermissions", success=False
        )


@pytest.mark.parametrize(
    ("name", "args", "data"),
    [
        ("model", "other-model", {"modelId": "other-model"}),
        ("language", "ko", {"language": "ko"}),
        ("rename", "the  big one", {"name": "the big one"}),
        ("resume", "", {"triggerResumePicker": True}),
        ("reset", "", {"resetRequested": True}),
        ("exit", "", {"exitRequested": True}),
    ],
)
async def test_what_belongs_to_the_caller_is_told_and_not_done(
    tmp_path: Path, name: str, args: str, data: dict[str, object]
) -> None:
    async with make(tmp_path) as session:
        result = await run(session, name, args)

        assert (result.success, dict(result.data)) == (True, data)
        assert (session.name, session.session.model) == (None, "m")


@pytest.mark.parametrize("name", ["model", "language", "rename"])
async def test_a_word_that_is_missing_is_asked_for(tmp_path: Path, name: str) -> None:
    async with make(tmp_path) as session:
        result = await run(session, name, "  ")

        assert not result.success
        assert f"Usage: /{name} <" in result.message


async def test_cost_says_that_it_is_unknown_where_the_price_is(tmp_path: Path) -> None:
    async with make(tmp_path, ["yes", TokenUsage(1_500, 20)]) as session:
        await session.submit("hello")
        result = await run(session, "cost")

        assert result.message.endswith("\nCost: unknown, 1,520 tokens have no known price")


async def test_undo_says_which_files_it_removed_and_which_it_restored(tmp_path: Path) -> None:
    (tmp_path / "old.txt").write_text("old")
    write = [call("Write", file_path="new.txt", content="x"), call("Bash", command="echo more >> old.txt")]
    async with make(tmp_path, write, "done") as session:
        await session.ready()
        session.permission_mode = "bypassPermissions"
        await session.submit("go")

        said = [(await run(session, "undo")).message for _ in range(2)]
        again = (await run(session, "redo")).message

    assert sorted(line for text in said for line in text.splitlines()[1:]) == [
        "  removed new.txt",
        "  restored old.txt",
    ]
    assert "  restored " in again


async def test_cost_names_the_session_and_counts_its_messages(tmp_path: Path) -> None:
    async with make(tmp_path, "yes") as session:
        await session.submit("hello")
        result = await run(session, "cost")

        assert result.message == f"Session: {session.session_id}\nMessages: 1"
        assert dict(result.data) == {"sessionId": session.session_id, "messageCount": 1}


async def test_cost_adds_the_money_where_prices_are_known(tmp_path: Path) -> None:
    provider = ScriptedProvider(["yes", TokenUsage(1_000, 500)])
    async with InteractiveSession(
        cwd=tmp_path, provider=provider, model="claude-opus-4-6", environment={"HOME": str(tmp_path)}
    ) as session:
        await session.submit("hello")
        result = await run(session, "cost")

        assert result.message.split("\n")[2].startswith("Cost: $")
        assert result.data["costUsd"] == session.session.usage.total.cost_usd
        assert (await run(session, "usage")).message.startswith("Session: 1 request, ")


async def test_context_tells_what_is_used_and_what_there_is(tmp_path: Path) -> None:
    async with make(tmp_path, "yes") as session:
        await session.submit("hello")
        result = await run(session, "context")

        state = session.context_state
        assert result.message.split("\n")[0] == (
            f"Context: {state.used_tokens:,} / {state.max_tokens:,} tokens ({state.used_percentage:.0f}%)"
        )
        assert dict(result.data) == {
            "usedTokens": state.used_tokens,
            "maxTokens": state.max_tokens,
            "percentage": state.used_percentage,
        }


async def test_permissions_shows_the_mode_and_what_was_allowed(tmp_path: Path) -> None:
    async with make(tmp_path) as session:
        before = await run(session, "permissions")
        session.session.rules.grant(["Bash(ls)"])
        after = await run(session, "permissions")

        assert before.message.startswith("Permission mode: default\nAllowed for this session: nothing\n")
        assert dict(before.data) == {"mode": "default", "sessionAllowed": []}
        assert "Allowed for this session: Bash(ls)\n" in after.message
        assert dict(after.data) == {"mode": "default", "sessionAllowed": ["Bash(ls)"]}


async def test_an_unknown_command_is_none_and_raises_nothing(tmp_path: Path) -> None:
    async with make(tmp_path) as session:
        assert await session.execute_command("unknown", "") is None
        assert await session.execute_command("", "") is None


async def test_the_list_of_commands_has_names_and_descriptions(tmp_path: Path) -> None:
    session = make(tmp_path)

    pairs = session.list_commands()

    assert pairs[0] == ("help", "Show available commands")
    assert (pairs[0].name, pairs[0].description) == pairs[0]
    assert await session.shutdown() is None


async def test_the_commands_of_the_seed_work_in_a_session_that_was_given(tmp_path: Path) -> None:
    session = InteractiveSession(session=Session(provider=ScriptedProvider(), model="m", cwd=str(tmp_path)))
    async with session:
        for name in (
            "help",
            "clear",
            "compact",
            "cost",
            "context",
            "permissions",
            "resume",
            "reset",
            "usage",
        ):
            assert (await run(session, name)).success
        assert (await run(session, "mode", "plan")).success
        assert session.permission_mode == "plan"
        refused = await run(session, "todos")
        assert refused.message == "This session was given ready-made: it has no project and no kit."


async def test_the_conversation_is_written_to_a_file_that_is_new(tmp_path: Path) -> None:
    async with make(tmp_path, "the answer") as session:
        assert (await run(session, "export")).message == "There is nothing to export yet."
        await session.submit("the question")

        for args, name, part in (
            ("", f"session-{session.session_id[:8]}.md", "> the answer"),
            ("html page.html", "page.html", "<!doctype html>"),
            ("out.json", "out.json", '"the question"'),
        ):
            result = await run(session, "export", args)
            path = tmp_path / name
            assert dict(result.data) == {"path": str(path)}
            assert part in path.read_text()
        again = await run(session, "export", "html page.html")
        wrong = await run(session, "export", "pdf")
        nowhere = await run(session, "export", "json missing/out.json")

        session.session.reload(rules=PermissionRules(deny=("Write(secret/**)",)))
        denied = await run(session, "export", "html secret/page.html")

        assert denied.message.endswith("page.html may not be written: a deny rule covers it.")
        assert again.message.endswith("page.html exists already: give another path, /export html PATH.")
        assert wrong.message.startswith("'pdf' is no form to export to. Usage: /export ")
        assert nowhere.message.endswith("out.json cannot be written: No such file or directory.")
        assert [each.success for each in (again, wrong, nowhere)] == [False, False, False]


async def test_todos_shows_the_list(tmp_path: Path) -> None:
    async with make(tmp_path) as session:
        assert (await run(session, "todos")).message == "There is nothing on the list."
        session.kit.todos.items = (Todo("write it", "in_progress"), Todo("test it", "pending"))
        assert (await run(session, "todos")).message == "[>] write it\n[ ] test it"
