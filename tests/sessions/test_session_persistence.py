"""A session that outlives its process."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.sessions.live_session import Studio, fired, listen_to, run
from tests.support.session_options import resume_session

from robota.core.errors import ConfigurationError, PromptBlockedError, ValidationError
from robota.core.messages import AssistantMessage, HistoryEntry, ToolMessage, UserMessage
from robota.sessions.journal.port import JournalError, SessionLockedError
from robota.sessions.options import SessionOptions
from robota.sessions.permissions.live_rules import PermissionRules
from robota.sessions.replay.session_replay import replay_session
from robota.sessions.start import restore
from robota.sessions.store.session_store import SessionStore
from robota.testing import ScriptedProvider, call

pytestmark = pytest.mark.anyio

ALLOWED = PermissionRules(mode="bypassPermissions")
ADDITION = [call("add", a=1, b=2)]


def contents(studio: Studio) -> list[str]:
    return [message.content for message in studio.session.messages]


# --- resuming -----------------------------------------------------------------------------------------------


async def test_a_resumed_session_goes_on_where_it_was(tmp_path: Path) -> None:
    first = Studio(tmp_path, ["Adding.", *ADDITION], "It is 3.", rules=ALLOWED)
    await first.session.run("1+2?")
    await first.session.shutdown()

    second = first.resume("You asked for 1+2.")
    assert await second.session.run("what did I ask?") == "You asked for 1+2."
    await second.session.shutdown()

    sent = second.provider.requests[0].messages
    assert [message.role for message in sent] == ["system", "user", "assistant", "tool", "assistant", "user"]
    assert [message.id for message in sent[:5]] == [message.id for message in first.session.messages]
    second.assert_journal_is_good()
    assert second.record_names.count("session_init") == 1
    assert second.record_names.count("session_resumed") == 1


async def test_a_session_goes_on_in_another_process(tmp_path: Path) -> None:
    first = Studio(tmp_path, "one")
    await first.session.run("first")
    await first.session.shutdown()

    script = """
        import asyncio, sys
        from robota.sessions import Session, SessionStore, restore
        from robota.testing import ScriptedProvider

        async def main(directory):
            store = SessionStore(directory)
            provider = ScriptedProvider("two")
            async with Session(
                provider=provider, store=store, start=restore(store, "s-1"),
            ) as session:
                print(await session.run("second"), [m.content for m in provider.requests[0].messages])

        asyncio.run(main(sys.argv[1]))
    """
    done = run_script(script, first.kept)

    assert done == "two ['You are terse.', 'first', 'one', 'second']\n"
    third = first.resume("three")
    assert contents(third) == ["You are terse.", "first", "one", "second", "two"]
    assert await third.session.run("third") == "three"


def run_script(script: str, *arguments: object) -> str:
    command = [sys.executable, "-c", textwrap.dedent(script), *map(str, arguments)]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


@pytest.mark.parametrize(
    "options",
    [
        {"system": "Be verbose."},
        {"context_window": None},
        {"hooks": None},
        {"rules": PermissionRules(allow=("add",))},
    ],
)
async def test_a_session_that_was_resumed_with_other_options_is_repeated_with_them(
    tmp_path: Path, options: dict[str, Any]
) -> None:
    hooks = listen_to(tmp_path, "UserPromptSubmit", "Stop")
    first = Studio(tmp_path, "one", hooks=hooks, compact_instructions="keep names")
    await first.session.run("first")
    await first.session.shutdown()

    second = first.resume(ADDITION, "two", "what was said", **{"hooks": hooks, **options})
    await second.session.run("second")
    await second.session.compact()
    await second.session.shutdown()

    assert (await replay_session(second.path)).divergence is None


async def test_a_process_that_was_killed_has_lost_nothing_that_was_said(tmp_path: Path) -> None:
    script = """
        import asyncio, os, sys
        from robota.sessions import Session, SessionStore
        from robota.testing import ScriptedProvider

        def die(request):
            os.kill(os.getpid(), 9)

        async def main(directory):
            session = Session(
                provider=ScriptedProvider("one", die), store=SessionStore(directory), session_id="s-1"
            )
            await session.run("first")
            await session.run("second")

        asyncio.run(main(sys.argv[1]))
    """
    with pytest.raises(subprocess.CalledProcessError):
        run_script(script, tmp_path / "sessions")

    again = Studio(tmp_path, session_id="s-1")
    restored = again.restored()
    assert [message.content for message in restored.messages] == ["first", "one", "second"]
    record = SessionStore(again.kept).load("s-1")
    assert record is not None
    assert [message["content"] for message in record.messages] == ["first", "one", "second"]
    resumed = again.resume("three", system=None)
    assert await resumed.session.run("third") == "three"


async def test_everything_that_is_not_said_survives_too(tmp_path: Path) -> None:
    studio = Studio(tmp_path, "one", "two", name="first name")
    session = studio.session
    await session.run("first")
    session.inject_message("user", "by the way")
    session.inject_message("assistant", "noted")
    session.add_history_entry(HistoryEntry(category="event", type="tool-summary", data={"tools": 3}))
    session.name = "second name"
    session.model = "another"
    await session.run("second")
    await session.shutdown()

    restored = studio.restored()
    assert [message.content for message in restored.messages] == contents(studio)
    assert [(entry.category, entry.type) for entry in restored.history] == [
        ("chat", "system"),
        ("chat", "user"),
        ("chat", "assistant"),
        ("chat", "user"),
        ("chat", "assistant"),
        ("event", "tool-summary"),
        ("chat", "user"),
        ("chat", "assistant"),
    ]
    assert (restored.name, restored.model, restored.closed) == ("second name", "another", True)
    assert studio.provider.requests[-1].model == "another"
    record = SessionStore(studio.kept).load("s-1")
    assert record is not None
    assert (record.name, record.model, len(record.history)) == ("second name", "another", 8)


async def test_what_is_changed_on_a_resumed_session_before_it_is_used_survives(tmp_path: Path) -> None:
    first = Studio(tmp_path, "one", name="old", model="small")
    await first.session.run("first")
    await first.session.shutdown()

    second = first.resume("two", name="old", model="small")
    second.session.name = "new"
    second.session.model = "large"
    await second.session.run("second")

    assert (second.restored().name, second.restored().model) == ("new", "large")


async def test_a_name_that_a_session_is_resumed_with_needs_no_prompt(tmp_path: Path) -> None:
    first = Studio(tmp_path, "one", name="old")
    await first.session.run("first")
    await first.session.shutdown()

    store = SessionStore(first.kept)
    second = resume_session(store, "s-1", provider=ScriptedProvider(), options=SessionOptions(name="new"))
    await second.shutdown()

    assert restore(store, "s-1").name == "new"
    assert [each.name for each in store.list()] == ["new"]


async def test_a_name_can_be_taken_away(tmp_path: Path) -> None:
    studio = Studio(tmp_path, "one", name="working title")
    await studio.session.run("first")
    studio.session.name = None
    assert studio.restored().name is None


async def test_a_cleared_conversation_stays_cleared_and_the_journal_keeps_the_old_one(tmp_path: Path) -> None:
    studio = Studio(tmp_path, "one", "two")
    await studio.session.run("first")
    studio.session.clear_history()
    assert contents(studio) == ["You are terse."]
    assert studio.session.context_state.used_tokens < 100
    await studio.session.run("second")

    assert contents(studio) == ["You are terse.", "second", "two"]
    studio.assert_journal_is_good()
    assert "first" in studio.path.read_text()


async def test_a_message_that_belongs_nowhere_is_refused(tmp_path: Path) -> None:
    studio = Studio(tmp_path, "one")
    with pytest.raises(Exception, match="robot"):
        studio.session.inject_message("robot", "beep")  # type: ignore[arg-type]  # that is the point
    assert studio.session.messages == []


async def test_a_tool_result_can_be_put_in(tmp_path: Path) -> None:
    studio = Studio(tmp_path, "one")
    message = studio.session.inject_message("tool", "3", tool_call_id="c1", name="add")
    assert isinstance(message, ToolMessage)
    assert (message.tool_call_id, message.name) == ("c1", "add")


# --- forking -----------------------------------------------------------------------------------------------


async def test_a_fork_takes_everything_along_and_leaves_the_original_alone(tmp_path: Path) -> None:
    first = Studio(tmp_path, "one", "what was said", "two", rules=ALLOWED)
    await first.session.run("first")
    first.session.add_history_entry(HistoryEntry(category="event", type="skill-invocation", data={"n": 1}))
    await first.session.compact()
    await first.session.run("second")
    await first.session.shutdown()
    before = {path.name: path.read_bytes() for path in first.kept.iterdir()}

    fork = Studio(tmp_path, "another two", session_id="s-2", conversation=first.restored().conversation)
    await fork.session.run("second, differently")
    await fork.session.shutdown()

    assert {name: (first.kept / name).read_bytes() for name in before} == before
    fork.assert_journal_is_good()
    restored = fork.restored()
    assert [entry.id for entry in restored.history][:-2] == [entry.id for entry in first.session.history]
    view = restored.conversation.messages_for_api()
    assert [message.role for message in view] == [
        "system", "assistant", "user", "assistant", "user", "assistant",
    ]  # fmt: skip
    assert list(view) == list(fork.session.agent.conversation.messages_for_api())


# --- two at once --------------------------------------------------------------------------------------------


@contextmanager
def held_by_another_process(directory: Path) -> Iterator[subprocess.Popen[str]]:
    script = """
        import asyncio, sys
        from robota.sessions import Session, SessionStore
        from robota.testing import ScriptedProvider

        async def main(directory):
            session = Session(
                provider=ScriptedProvider("one"), store=SessionStore(directory), session_id="s-1"
            )
            await session.run("first")
            print("ready", flush=True)
            sys.stdin.readline()
            await session.shutdown()

        asyncio.run(main(sys.argv[1]))
    """
    command = [sys.executable, "-c", textwrap.dedent(script), str(directory)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    try:
        yield process
    finally:
        process.communicate("done\n")


async def test_two_processes_cannot_write_to_one_session(tmp_path: Path) -> None:
    with held_by_another_process(tmp_path / "sessions") as process:
        studio = Studio(tmp_path, "mine", "mine too", hooks=listen_to(tmp_path, "StopFailure", "SessionEnd"))
        before = studio.path.read_bytes()
        for _ in range(2):
            with pytest.raises(SessionLockedError, match=str(process.pid)):
                await studio.session.run("hello")
        with pytest.raises(SessionLockedError):
            await studio.session.compact()
        await studio.session.shutdown()

        assert studio.path.read_bytes() == before
        assert studio.session.messages == []
        assert studio.provider.requests == []
        assert fired(tmp_path) == []

    record = SessionStore(studio.kept).load("s-1")
    assert record is not None
    assert [message["content"] for message in record.messages] == ["first", "one"]
    again = studio.resume("two", system=None)
    assert await again.session.run("second") == "two"


async def test_a_refused_session_works_as_soon_as_it_is_free(tmp_path: Path) -> None:
    first = Studio(tmp_path, "one", system=None)
    await first.session.run("first")
    second = first.resume("two", system=None)
    with pytest.raises(SessionLockedError):
        await second.session.run("hello")
    await first.session.shutdown()

    assert await second.session.run("second") == "two"
    second.assert_journal_is_good()


async def test_a_session_is_not_gone_on_with_by_one_that_knows_nothing_of_it(tmp_path: Path) -> None:
    first = Studio(tmp_path, "one")
    await first.session.run("first")
    await first.session.shutdown()
    before = first.path.read_bytes()

    forgetful = Studio(tmp_path, "two")
    with pytest.raises(ConfigurationError, match="exists already"):
        await forgetful.session.run("second")
    await forgetful.session.shutdown()

    assert first.path.read_bytes() == before
    again = first.resume("two")
    assert await again.session.run("second") == "two"


async def test_a_session_in_which_nothing_was_said_can_be_begun_again(tmp_path: Path) -> None:
    first = Studio(tmp_path, hooks={"UserPromptSubmit": [run("exit 2")]})
    with pytest.raises(PromptBlockedError):
        await first.session.run("first")
    await first.session.shutdown()

    again = Studio(tmp_path, "two")
    assert await again.session.run("second") == "two"
    await again.session.shutdown()
    assert (await replay_session(str(again.path))).divergence is None


async def test_a_journal_of_another_session_is_not_written_to(tmp_path: Path) -> None:
    other = Studio(tmp_path, "one", session_id="s-2")
    await other.session.run("first")
    await other.session.shutdown()
    other.path.rename(other.kept / "s-1.jsonl")
    before = (other.kept / "s-1.jsonl").read_bytes()

    studio = Studio(tmp_path, "two")
    with pytest.raises(JournalError):
        await studio.session.run("hello")
    await studio.session.shutdown()

    assert studio.path.read_bytes() == before
    assert not (studio.kept / "s-1.json").exists()


@pytest.mark.parametrize("name", ["../outside", "/etc/cron", "a/b", "", ".hidden", "a\0b"])
async def test_an_id_cannot_lead_out_of_the_store(tmp_path: Path, name: str) -> None:
    with pytest.raises(ValidationError, match="cannot be a session id"):
        Studio(tmp_path, "one", session_id=name)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["project"]


# --- what a conversation is made of ------------------------------------------------------------------------


async def test_messages_and_history_are_two_views_of_one_conversation(tmp_path: Path) -> None:
    studio = Studio(tmp_path, "one")
    await studio.session.run("first")
    studio.session.add_history_entry(HistoryEntry(category="event", type="note", data={}))

    assert [type(message) for message in studio.session.messages[1:]] == [UserMessage, AssistantMessage]
    assert [entry.category for entry in studio.session.history] == ["chat", "chat", "chat", "event"]
