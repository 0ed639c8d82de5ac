"""`create_query`: a prompt, an answer, and nothing else to keep in mind."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.sdk.contract.heard import write

from robota import create_query
from robota.core import ConfigurationError, ProviderError
from robota.testing import Fail, ScriptedProvider, Stall, call

pytestmark = pytest.mark.anyio


@pytest.fixture(autouse=True)
def here(project: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(project)
    return project


async def test_a_query_gives_the_text_of_the_answer() -> None:
    query = create_query(provider=ScriptedProvider("Two files."))
    assert await query("How many?") == "Two files."


async def test_each_call_is_a_conversation_of_its_own() -> None:
    provider = ScriptedProvider("One.", "Two.")
    query = create_query(provider=provider)
    await query("First")
    await query("Second")
    assert [message.content for message in provider.requests[1].messages if message.role == "user"] == [
        "Second"
    ]


async def test_tools_run_without_a_question_in_the_working_directory(here: Path) -> None:
    query = create_query(provider=ScriptedProvider([call("Bash", command="touch made")], "Done."))
    assert await query("Go") == "Done."
    assert (here / "made").exists()


async def test_a_call_says_more_than_the_factory(here: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    touch: Any = [call("Bash", command="touch made")]
    query = create_query(
        provider=ScriptedProvider(touch, "No.", touch, "Yes."), permission_mode="plan", cwd=here
    )
    await query("Go")
    assert not (here / "made").exists()
    await query("Go", cwd=other, permission_mode="bypassPermissions")
    assert (other / "made").exists()
    assert not (here / "made").exists()


async def test_accept_edits_writes_and_asks_about_commands(here: Path) -> None:
    provider = ScriptedProvider(
        [call("Write", file_path="new.txt", content="x"), call("Bash", command="touch made")], "Done."
    )
    await create_query(provider=provider)("Go", permission_mode="acceptEdits")
    assert (here / "new.txt").exists()
    assert not (here / "made").exists()


async def test_a_permission_handler_is_asked(here: Path) -> None:
    asked: list[str] = []

    async def approve(question: Any) -> bool:
        asked.append(question.tool_name)
        return True

    query = create_query(provider=ScriptedProvider([call("Bash", command="touch made")], "Done."))
    await query("Go", permission_mode="default", permission_handler=approve)
    assert asked == ["Bash"]
    assert (here / "made").exists()


async def test_max_turns_ends_with_a_summary() -> None:
    read: Any = [call("Read", file_path="notes.txt")]
    provider = ScriptedProvider(read, read, "So far: milk.")
    assert await create_query(provider=provider)("Go", max_turns=2) == "So far: milk."
    assert provider.requests[2].tools == ()


async def test_deltas_come_to_the_callback_of_the_call_or_of_the_factory() -> None:
    factory, own = [], []
    query = create_query(provider=ScriptedProvider(["a", "b"], ["c", "d"]), on_text_delta=factory.append)
    await query("Go")
    await query("Go", on_text_delta=own.append)
    assert ("".join(factory), "".join(own)) == ("ab", "cd")


async def test_compaction_is_told() -> None:
    heard: list[Any] = []
    filler = "word " * 4_000
    replies = [[call("Read", file_path="notes.txt")], "A summary.", "Done.", "A summary.", "Done."]
    query = create_query(provider=ScriptedProvider(*replies), on_compact=heard.append)
    write(Path("AGENTS.md"), filler)
    write(Path(".robota/settings.json"), {"autoCompactThreshold": 0.05})
    await query(filler * 12, trust_project=True)
    assert [each.trigger for each in heard] == ["auto"]


async def test_an_answer_as_a_value() -> None:
    @dataclass
    class Version:
        major: int
        minor: int

    query = create_query(provider=ScriptedProvider('{"major": 3, "minor": 11}'))
    assert await query("Which?", output=Version) == Version(3, 11)


async def test_a_failing_model_raises() -> None:
    query = create_query(provider=ScriptedProvider([Fail(ProviderError("no such model"))], "Back."))
    with pytest.raises(ProviderError, match="no such model"):
        await query("Go")
    assert await query("Go") == "Back."


async def test_a_mistake_is_told_when_the_query_is_made(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="needs a provider"):
        create_query(provider=None)  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match="does not exist"):
        create_query(provider=ScriptedProvider("x"), cwd=tmp_path / "missing")
    with pytest.raises(TypeError, match="did you mean 'max_turns'"):
        create_query(provider=ScriptedProvider("x"), max_truns=3)  # type: ignore[call-arg]


async def test_many_at_once_from_one_factory(here: Path) -> None:
    def reply(request: Any) -> str:
        return f"answer to {request.messages[-1].content}"

    query = create_query(provider=ScriptedProvider(*[reply] * 30), permission_mode="plan")
    answers = await asyncio.gather(*(query(f"question {number}") for number in range(30)))
    assert answers == [f"answer to question {number}" for number in range(30)]


async def test_cancelling_one_leaves_the_others(here: Path) -> None:
    asked = asyncio.Event()

    def stall(request: Any) -> Any:
        asked.set()
        return [Stall()]

    query = create_query(provider=ScriptedProvider(stall, "Fine."))
    slow = asyncio.ensure_future(query("slow"))
    await asked.wait()
    assert await query("fast") == "Fine."
    slow.cancel()
    with pytest.raises(asyncio.CancelledError):
        await slow


async def test_a_timeout_from_outside_is_not_swallowed() -> None:
    query = create_query(provider=ScriptedProvider([Stall()]))
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.05):
            await query("Go")


def test_the_form_without_an_event_loop() -> None:
    query = create_query(provider=ScriptedProvider("One.", "Two.", '{"a": 1}'))
    assert query.sync("Go") == "One."
    assert query.sync("Go", permission_mode="plan") == "Two."
    assert query.sync("Go", output=dict) == {"a": 1}


async def test_the_settings_of_the_project_count_and_can_be_left_out(here: Path, home: Path) -> None:
    write(home / ".robota/settings.json", {"permissions": {"deny": ["Bash"]}})
    touch: Any = [call("Bash", command="touch made")]
    query = create_query(provider=ScriptedProvider(touch, "No.", touch, "Yes."))
    await query("Go")
    assert not (here / "made").exists()
    await query("Go", setting_sources=())
    assert (here / "made").exists()


def test_the_docstring_says_that_nobody_is_asked() -> None:
    assert "bypassPermissions" in (create_query.__doc__ or "")
