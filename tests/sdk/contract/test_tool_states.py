"""What front ends are shown of tools: states, differences, denials, entries of the timeline."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from tests.sdk.contract.heard import Heard, entry_types, write

from robota import InteractiveSession, tool
from robota.core import ProviderError
from robota.sdk import ToolState
from robota.testing import Fail, ScriptedProvider, Stall, call

pytestmark = pytest.mark.anyio
FREE = "bypassPermissions"


async def test_a_tool_starts_running_and_ends_with_success(project: Path) -> None:
    provider = ScriptedProvider([call("Read", file_path="notes.txt")], "Milk.")
    async with InteractiveSession(cwd=project, provider=provider) as session:
        heard = Heard(session)
        await session.submit("Read")
        (start,), (end,) = heard.of("tool_start"), heard.of("tool_end")
        assert isinstance(start, ToolState)
        assert (start.tool_name, start.first_arg, start.is_running, start.result) == (
            "Read", "notes.txt", True, None,
        )  # fmt: skip
        assert (end.tool_name, end.first_arg, end.is_running, end.result) == (
            "Read", "notes.txt", False, "success",
        )  # fmt: skip


async def test_a_tool_that_fails_ends_with_error(project: Path) -> None:
    provider = ScriptedProvider([call("Read", file_path="missing.txt")], "Gone.")
    async with InteractiveSession(cwd=project, provider=provider) as session:
        heard = Heard(session)
        await session.submit("Read")
        assert [state.result for state in heard.of("tool_end")] == ["error"]


async def test_a_denied_tool_ends_as_denied_and_is_in_the_timeline(project: Path) -> None:
    provider = ScriptedProvider([call("Bash", command="touch made")], "No.")
    async with InteractiveSession(cwd=project, provider=provider) as session:
        heard = Heard(session)
        await session.submit("Go")
        (end,) = heard.of("tool_end")
        assert (end.tool_name, end.first_arg, end.is_running, end.result) == (
            "Bash", "touch made", False, "denied",
        )  # fmt: skip
        entries = [entry for entry in session.full_history if entry.type == "tool-end"]
        assert [entry.data["result"] for entry in entries] == ["denied"]
        assert not (project / "made").exists()


@pytest.mark.parametrize("length", [80, 81, 500])
async def test_a_first_argument_is_cut_behind_80_characters(project: Path, length: int) -> None:
    command = ("true " + "x" * length)[: length - 3] + "end"
    provider = ScriptedProvider([call("Bash", command=command)], "Done.")
    async with InteractiveSession(cwd=project, provider=provider, permission_mode=FREE) as session:
        heard = Heard(session)
        await session.submit("Go")
        shown = heard.of("tool_start")[0].first_arg
    if length == 80:
        assert shown == command
    else:
        assert len(shown) <= 80
        head, tail = shown.split("...")
        assert command.startswith(head)
        assert tail == command[-30:]


async def test_an_argument_that_is_no_text_is_shown_as_json(project: Path) -> None:
    @tool
    def total(numbers: list[int]) -> int:
        """Add up."""
        return sum(numbers)

    provider = ScriptedProvider([call("total", numbers=[1, 2])], "3")
    session = InteractiveSession(cwd=project, provider=provider, tools=[total], permission_mode=FREE)
    async with session:
        heard = Heard(session)
        await session.submit("Go")
        assert heard.of("tool_start")[0].first_arg.replace(" ", "") == "[1,2]"


async def test_an_edit_shows_its_lines_and_its_file(project: Path) -> None:
    provider = ScriptedProvider(
        [call("Read", file_path="notes.txt")],
        [call("Edit", file_path="notes.txt", old_string="milk", new_string="bread")],
        "Done.",
    )
    async with InteractiveSession(cwd=project, provider=provider, permission_mode=FREE) as session:
        heard = Heard(session)
        await session.submit("Go")
        end = heard.of("tool_end")[-1]
        assert end.diff_file is not None
        assert end.diff_file.endswith("notes.txt")
        texts = [line.text for line in end.diff_lines]
        assert any("milk" in text for text in texts)
        assert any("bread" in text for text in texts)
        assert {"added", "removed"} <= {line.kind for line in end.diff_lines}


async def test_start_end_and_summary_are_entries_before_the_answer(project: Path) -> None:
    provider = ScriptedProvider([call("Read", file_path="notes.txt")], "Milk.")
    async with InteractiveSession(cwd=project, provider=provider) as session:
        await session.submit("Read")
        types = entry_types(session)
        assert types[0] == "user"
        assert types[-2:] == ["tool-summary", "assistant"]
        assert types.index("tool-start") < types.index("tool-end") < types.index("tool-summary")
        categories = {entry.type: entry.category for entry in session.full_history}
        assert categories["user"] == categories["assistant"] == "chat"
        assert categories["tool-start"] == categories["tool-end"] == categories["tool-summary"] == "event"


async def test_the_entries_carry_the_data_of_the_contract(project: Path) -> None:
    provider = ScriptedProvider([call("Read", file_path="notes.txt")], "Milk.")
    async with InteractiveSession(cwd=project, provider=provider) as session:
        await session.submit("Read")
        data = {entry.type: entry.data for entry in session.full_history}
        start: dict[str, Any] = data["tool-start"]
        end: dict[str, Any] = data["tool-end"]
        assert (start["toolName"], start["firstArg"], start["isRunning"]) == ("Read", "notes.txt", True)
        assert (end["toolName"], end["firstArg"], end["isRunning"], end["result"]) == (
            "Read", "notes.txt", False, "success",
        )  # fmt: skip
        summary: dict[str, Any] = data["tool-summary"]
        assert [each["name"] for each in summary["toolSummaries"]] == ["Read"]
        assert summary["summary"] == "✓ Read(notes.txt)"
        assert summary["tools"] == [end]


async def test_a_summary_names_calls_as_the_model_made_them(project: Path) -> None:
    second_ended = asyncio.Event()

    @tool
    async def first() -> str:
        """Wait."""
        await second_ended.wait()
        return "1"

    @tool
    async def second() -> str:
        """Go on."""
        return "2"

    provider = ScriptedProvider([call("first"), call("second")], [call("second")], "Done.")
    async with InteractiveSession(
        cwd=project, provider=provider, tools=[first, second], permission_mode=FREE
    ) as session:
        session.on("tool_end", lambda state: second_ended.set())
        result = await session.submit("Go")
        (summary,) = (entry.data for entry in session.full_history if entry.type == "tool-summary")
    made = ["first", "second", "second"]
    assert [each.name for each in result.tool_summaries] == made
    assert [each["name"] for each in summary["toolSummaries"]] == made
    assert [each["toolName"] for each in summary["tools"]] == made


async def test_entries_have_ids_of_their_own_and_times(project: Path) -> None:
    provider = ScriptedProvider([call("Read", file_path="notes.txt")], "Milk.")
    async with InteractiveSession(cwd=project, provider=provider) as session:
        await session.submit("Read")
        ids = [entry.id for entry in session.full_history]
        assert len(set(ids)) == len(ids)
        assert all(entry.timestamp.year >= 2024 for entry in session.full_history)


async def test_messages_are_the_chat_entries_only(project: Path) -> None:
    provider = ScriptedProvider([call("Read", file_path="notes.txt")], "Milk.")
    async with InteractiveSession(cwd=project, provider=provider) as session:
        await session.submit("Read")
        assert [(message.role, message.content) for message in session.messages] == [
            ("user", "Read"), ("assistant", "Milk."),
        ]  # fmt: skip


async def test_the_summary_of_an_interrupted_prompt_stands_before_its_partial_answer(project: Path) -> None:
    provider = ScriptedProvider([call("Read", file_path="notes.txt")], ["Mil", Stall()])
    async with InteractiveSession(cwd=project, provider=provider) as session:
        session.on("text_delta", lambda text: session.abort() if text == "Mil" else None)
        await session.submit("Read")
        types = entry_types(session)
        assert types[-3:] == ["tool-summary", "assistant", "system"]


async def test_the_summary_of_a_failed_prompt_is_kept(project: Path) -> None:
    provider = ScriptedProvider([call("Read", file_path="notes.txt")], [Fail(ProviderError("Down."))])
    async with InteractiveSession(cwd=project, provider=provider) as session:
        await session.submit("Read")
        types = entry_types(session)
        assert "tool-summary" in types
        assert types[-1] == "system"
        assert session.messages[-1].content == "Error: Down."


async def test_active_tools_run_while_they_run(project: Path) -> None:
    seen: list[list[tuple[str, bool]]] = []

    @tool
    def look() -> str:
        """Look."""
        seen.append([(state.tool_name, state.is_running) for state in session.active_tools])
        return "seen"

    provider = ScriptedProvider([call("look")], "Done.")
    session = InteractiveSession(cwd=project, provider=provider, tools=[look], permission_mode=FREE)
    async with session:
        await session.submit("Go")
    assert seen == [[("look", True)]]


async def test_the_configuration_folders_can_be_read_in_every_mode(project: Path) -> None:
    write(project / ".agents/notes.md", "agents")
    provider = ScriptedProvider([call("Read", file_path=".agents/notes.md")], "Read.")
    async with InteractiveSession(cwd=project, provider=provider, permission_mode="plan") as session:
        heard = Heard(session)
        await session.submit("Go")
        assert [state.result for state in heard.of("tool_end")] == ["success"]
