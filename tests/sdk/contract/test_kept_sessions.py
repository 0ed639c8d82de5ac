"""What is kept after each prompt, and what a resumed or forked session shows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.sdk.contract.heard import entry_types, hook, write

from robota import InteractiveSession, create_project_session_store
from robota.core import ProviderError, SessionNotFoundError
from robota.testing import Fail, ScriptedProvider, Stall, call

pytestmark = pytest.mark.anyio


@pytest.fixture
def store(tmp_path: Path) -> Any:
    return create_project_session_store(tmp_path / "kept")


async def keep(project: Path, store: Any, *replies: Any, **more: Any) -> InteractiveSession:
    session = InteractiveSession(
        cwd=project, provider=ScriptedProvider(*replies), session_store=store, **more
    )
    async with session:
        await session.submit("Hi")
    return session


def resume(project: Path, store: Any, session_id: str, *replies: Any, **more: Any) -> InteractiveSession:
    return InteractiveSession(
        cwd=project, provider=ScriptedProvider(*replies), session_store=store,
        resume_session_id=session_id, **more,
    )  # fmt: skip


async def test_the_record_is_there_after_each_submit(project: Path, store: Any) -> None:
    provider = ScriptedProvider("One.", "Two.")
    async with InteractiveSession(cwd=project, provider=provider, session_store=store) as session:
        for count, prompt in enumerate(("first", "second"), 1):
            await session.submit(prompt)
            record = store.load(session.session_id)
            assert record is not None
            contents = [message["content"] for message in record.messages if message["role"] != "system"]
            assert len(contents) == 2 * count
            assert len([entry for entry in record.history if entry["type"] == "user"]) == count


async def test_the_record_on_disk_has_the_fields_of_the_format(
    project: Path, store: Any, tmp_path: Path
) -> None:
    session = await keep(project, store, "Hello.")
    (path,) = tmp_path.rglob(f"{session.session_id}.json")
    record = json.loads(path.read_text())
    assert record["id"] == session.session_id
    assert Path(record["cwd"]) == project
    assert record["createdAt"] <= record["updatedAt"]
    assert isinstance(record["messages"], list)
    assert isinstance(record["history"], list)
    assert {"systemPrompt", "toolSchemas"} <= record.keys()


@pytest.mark.parametrize(
    ("reply", "said"),
    [([Fail(ProviderError("Down."))], "Error: Down."), (["Half", Stall()], "Interrupted by user.")],
)
async def test_failed_and_interrupted_prompts_are_kept_too(
    project: Path, store: Any, reply: Any, said: str
) -> None:
    provider = ScriptedProvider(reply)
    async with InteractiveSession(cwd=project, provider=provider, session_store=store) as session:
        session.on("text_delta", lambda text: session.abort())
        await session.submit("Hi")
        assert store.load(session.session_id) is not None
    again = resume(project, store, session.session_id)
    assert [message.content for message in again.messages][-1] == said
    await again.shutdown()


async def test_a_resumed_session_has_id_name_and_timeline_at_once(project: Path, store: Any) -> None:
    first = await keep(project, store, [call("Read", file_path="notes.txt")], "Milk.", session_name="list")
    types = entry_types(first)
    again = resume(project, store, first.session_id)
    assert again.session_id == first.session_id
    assert again.name == "list"
    assert [message.content for message in again.messages] == ["Hi", "Milk."]
    assert entry_types(again) == types
    await again.shutdown()


async def test_the_model_sees_the_restored_conversation_with_its_tools(project: Path, store: Any) -> None:
    first = await keep(project, store, [call("Read", file_path="notes.txt")], "Milk.")
    provider = ScriptedProvider("Bread.")
    async with InteractiveSession(
        cwd=project, provider=provider, session_store=store, resume_session_id=first.session_id
    ) as again:
        await again.submit("And now?")
    roles = [message.role for message in provider.requests[0].messages if message.role != "system"]
    assert roles == ["user", "assistant", "tool", "assistant", "user"]


async def test_a_missing_session_is_named_when_the_session_is_made(project: Path, store: Any) -> None:
    with pytest.raises(SessionNotFoundError, match="no-such-session"):
        resume(project, store, "no-such-session")


async def test_a_missing_session_is_told_with_the_nearest_one(project: Path, store: Any) -> None:
    first = await keep(project, store, "Hello.")
    with pytest.raises(SessionNotFoundError, match=first.session_id):
        resume(project, store, first.session_id[:-1] + "_")


async def test_a_fork_has_a_new_id_and_the_conversation(project: Path, store: Any) -> None:
    first = await keep(project, store, "Hello.")
    provider = ScriptedProvider("Forked.")
    async with InteractiveSession(
        cwd=project, provider=provider, session_store=store, resume_session_id=first.session_id,
        fork_session=True,
    ) as fork:  # fmt: skip
        assert fork.session_id != first.session_id
        await fork.submit("Go on")
        assert [message.content for message in fork.messages] == ["Hi", "Hello.", "Go on", "Forked."]
    said = [message.content for message in provider.requests[0].messages if message.role != "system"]
    assert said == ["Hi", "Hello.", "Go on"]


async def test_a_fork_leaves_every_file_of_the_original_alone(
    project: Path, store: Any, tmp_path: Path
) -> None:
    first = await keep(project, store, "Hello.")
    files = {path: path.read_bytes() for path in tmp_path.rglob(f"{first.session_id}.json*")}
    assert files
    async with resume(project, store, first.session_id, "Forked.", fork_session=True) as fork:
        await fork.submit("Go on")
    assert {path: path.read_bytes() for path in files} == files


async def test_a_resumed_session_goes_on_in_the_same_file(project: Path, store: Any) -> None:
    first = await keep(project, store, "Hello.")
    async with resume(project, store, first.session_id, "Again.") as again:
        await again.submit("Go on")
    assert len(store.list()) == 1
    record = store.load(first.session_id)
    assert record is not None
    said = [message["content"] for message in record.messages if message["role"] != "system"]
    assert said == ["Hi", "Hello.", "Go on", "Again."]


async def test_a_name_is_kept_with_the_record(project: Path, store: Any) -> None:
    provider = ScriptedProvider("Hello.")
    async with InteractiveSession(cwd=project, provider=provider, session_store=store) as session:
        await session.submit("Hi")
        before = store.load(session.session_id).updated_at
        session.name = "shopping"
        assert session.name == "shopping"
    record = store.load(session.session_id)
    assert record.name == "shopping"
    assert record.updated_at >= before


async def test_display_input_is_shown_and_input_is_sent(project: Path) -> None:
    provider = ScriptedProvider("Done.")
    async with InteractiveSession(cwd=project, provider=provider) as session:
        await session.submit("the long text", "/audit", "audit")
        assert [message.content for message in session.messages] == ["/audit", "Done."]
        assert provider.requests[0].messages[-1].content == "the long text"


async def test_a_resumed_screen_shows_what_was_typed(project: Path, store: Any) -> None:
    provider = ScriptedProvider("Done.")
    async with InteractiveSession(cwd=project, provider=provider, session_store=store) as session:
        await session.submit("the long text", "/audit", "audit")
    second = ScriptedProvider("More.")
    async with InteractiveSession(
        cwd=project, provider=second, session_store=store, resume_session_id=session.session_id
    ) as again:
        assert [message.content for message in again.messages] == ["/audit", "Done."]
        await again.submit("And?")
    assert "the long text" in [message.content for message in second.requests[0].messages]


async def test_hooks_match_on_the_raw_input(project: Path) -> None:
    write(project / ".robota/settings.json", hook("cat > seen.json", event="UserPromptSubmit"))
    provider = ScriptedProvider("Done.")
    async with InteractiveSession(cwd=project, provider=provider, trust_project=True) as session:
        await session.submit("the long text", "/audit", "team:audit now")
    seen = json.loads((project / "seen.json").read_text())
    assert seen["prompt"] == seen["user_message"] == "team:audit now"
    assert seen["hook_event_name"] == "UserPromptSubmit"
    assert seen["session_id"] == session.session_id


async def test_what_start_and_prompt_hooks_print_stands_before_the_prompt(project: Path) -> None:
    settings = hook("echo from the start", event="SessionStart")
    settings["hooks"].update(hook("echo from the prompt", event="UserPromptSubmit")["hooks"])
    write(project / ".robota/settings.json", settings)
    provider = ScriptedProvider("One.", "Two.")
    async with InteractiveSession(cwd=project, provider=provider, trust_project=True) as session:
        await session.submit("Hi")
        await session.submit("Again")
    first, second = (request.messages[-1].content for request in provider.requests)
    assert first.startswith("<system-reminder>\n")
    assert first.endswith("\n</system-reminder>\nHi")
    assert first.index("from the start") < first.index("from the prompt")
    assert "from the start" not in second
    assert second.endswith("from the prompt\n</system-reminder>\nAgain")
    assert [m.content for m in session.messages if m.role == "user"] == ["Hi", "Again"]


async def test_what_a_hook_added_is_not_shown_after_a_resume(project: Path, store: Any) -> None:
    write(project / ".robota/settings.json", hook("echo context", event="UserPromptSubmit"))
    first = await keep(project, store, "One.", trust_project=True)
    again = resume(project, store, first.session_id)
    assert [message.content for message in again.messages] == ["Hi", "One."]
    await again.shutdown()


async def test_a_transport_is_attached_and_not_started(project: Path) -> None:
    class Wire:
        name = "wire"

        def __init__(self) -> None:
            self.calls: list[object] = []

        def attach(self, session: object) -> None:
            self.calls.append(session)

        async def start(self) -> None:
            self.calls.append("start")

        async def stop(self) -> None:
            self.calls.append("stop")

    async with InteractiveSession(cwd=project, provider=ScriptedProvider("Hi.")) as session:
        wire = Wire()
        session.attach_transport(wire)
        assert wire.calls == [session]


async def test_session_end_fires_once(project: Path) -> None:
    write(project / ".robota/settings.json", hook("echo end >> ended", event="SessionEnd"))
    provider = ScriptedProvider("Hi.")
    session = InteractiveSession(cwd=project, provider=provider, trust_project=True)
    await session.submit("Hi")
    await session.shutdown()
    await session.shutdown()
    assert (project / "ended").read_text() == "end\n"


@pytest.mark.parametrize("fork", [False, True])
async def test_the_language_that_the_user_chose_is_kept(project: Path, tmp_path: Path, fork: bool) -> None:
    store = create_project_session_store(tmp_path / "sessions")
    first = InteractiveSession(cwd=project, provider=ScriptedProvider("One."), session_store=store)
    async with first:
        await first.submit("/language ko")
        await first.submit("Go")
    provider = ScriptedProvider("Two.", "Three.")
    again = InteractiveSession(
        cwd=project,
        provider=provider,
        session_store=store,
        resume_session_id=first.session_id,
        fork_session=fork,
    )
    async with again:
        await again.submit("On")
        project.joinpath("AGENTS.md").write_text("Be brief.\n")
        await again.submit("On")
    for request in provider.requests:
        assert "Always answer in Korean" in str(request.messages[0].content)
    assert "Be brief." in str(provider.requests[1].messages[0].content)
