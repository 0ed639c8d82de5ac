"""One lost or damaged payload or record: it costs itself, is named, and everything else still serves."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.sessions.recorded_session import FREE, scripted
from tests.support.history import assert_valid_for_a_request
from tests.support.session_options import resume_session

from robota.core.jsontext import decode
from robota.core.messages import AssistantMessage, ToolMessage
from robota.sessions.journal.reconstruction import LOST_ANSWER, LOST_MESSAGE, LOST_RESULT
from robota.sessions.options import SessionOptions
from robota.sessions.replay.session_replay import replay_session
from robota.sessions.start import restore
from robota.sessions.store.session_store import SessionStore
from robota.testing import ScriptedProvider, call
from robota.tools.function_tool import tool

pytestmark = pytest.mark.anyio

LARGE = 40_000
OPTIONS = SessionOptions(permissions=FREE, context_window=10_000_000)


@tool
async def echo(text: str, times: int = 1) -> str:
    """Say it again."""
    return text * times


async def record(home: Path) -> SessionStore:
    """Two rounds of calls; the words, the result and the arguments of the first round are payloads."""
    recorded = scripted(
        home,
        [
            "x" * LARGE,
            call("echo", "call_0", text="가", times=20_000),
            call("echo", "call_1", text="b"),
        ],
        ["then", call("echo", "call_0", text="c"), call("echo", "call_1", text="d")],
        "done",
        tools=[echo],
        context_window=10_000_000,
    )
    await recorded.run("p" * LARGE)
    await recorded.session.shutdown()
    return SessionStore(home / "sessions")


def find_line(store: SessionStore, event: str, at: int) -> tuple[Path, list[bytes], int]:
    path = Path(store.journal_path("s-1"))
    lines = path.read_bytes().splitlines(keepends=True)
    places = [number for number, line in enumerate(lines) if b'"event":"%b"' % event.encode() in line]
    return path, lines, places[at]


def lose_payload(store: SessionStore, event: str, at: int, field: str) -> None:
    path, lines, place = find_line(store, event, at)
    reference = decode(lines[place])[field]
    (path.parent / reference["relativePath"]).unlink()


def lose_line(store: SessionStore, event: str, at: int) -> None:
    path, lines, place = find_line(store, event, at)
    path.write_bytes(b"".join(lines[:place] + lines[place + 1 :]))


def without_snapshot(store: SessionStore) -> None:
    Path(store.path_of("s-1")).unlink()


async def go_on(store: SessionStore) -> None:
    provider = ScriptedProvider("going on")
    session = resume_session(store, "s-1", provider=provider, tools=[echo], options=OPTIONS)
    assert await session.run("more") == "going on"
    assert_valid_for_a_request(provider.requests[0].messages)
    await session.shutdown()
    assert restore(store, "s-1").messages == session.messages


async def test_a_lost_result_is_named_and_costs_no_other(tmp_path: Path) -> None:
    store = await record(tmp_path)
    before = restore(store, "s-1").messages
    without_snapshot(store)
    lose_payload(store, "tool_result", 0, "content")

    start = restore(store, "s-1")

    assert [message.id for message in start.messages] == [message.id for message in before]
    assert [message.content for message in start.messages if message.role == "tool"] == [
        LOST_RESULT, "b", "c", "d",
    ]  # fmt: skip
    assert any("payload that cannot be used" in problem for problem in start.problems)
    await go_on(store)


async def test_a_lost_answer_leaves_the_results_with_their_own_calls(tmp_path: Path) -> None:
    store = await record(tmp_path)
    without_snapshot(store)
    path, lines, place = find_line(store, "message", 3)  # the second answer, whose calls have the same ids
    assert b'"then"' in lines[place]
    path.write_bytes(b"".join(lines[:place] + lines[place + 1 :]))

    start = restore(store, "s-1")

    answers = [message for message in start.messages if isinstance(message, AssistantMessage)]
    results = [message for message in start.messages if isinstance(message, ToolMessage)]
    assert [message.content for message in results] == ["가" * 20_000, "b", "c", "d"]
    assert answers[1].content in ("then", LOST_ANSWER)
    assert [result.tool_call_id for result in results[2:]] == [each.id for each in answers[1].tool_calls]
    assert any("answer" in problem and "lost" in problem for problem in start.problems)
    await go_on(store)


@pytest.mark.parametrize(("event", "at"), [("tool_start", 0), ("tool_result", 1), ("tool_result", 3)])
async def test_a_result_that_stands_before_its_call_is_that_of_its_call(
    tmp_path: Path, event: str, at: int
) -> None:
    store = await record(tmp_path)
    before = restore(store, "s-1").messages
    without_snapshot(store)
    path, lines, place = find_line(store, event, at)
    early = lines.pop(place)
    answers = [number for number, line in enumerate(lines) if b'"reply":true' in line]
    lines.insert(answers[at > 1], early)
    path.write_bytes(b"".join(lines))

    start = restore(store, "s-1")

    assert start.messages == before
    assert any("stands behind record" in problem for problem in start.problems)
    await go_on(store)


async def test_a_foreign_result_does_not_take_the_place_of_the_first(tmp_path: Path) -> None:
    store = await record(tmp_path / "own")
    without_snapshot(store)
    before = restore(store, "s-1").messages
    calls = [call("echo", "call_0", text="other"), call("echo", "call_1", text="other")]
    other = scripted(tmp_path / "other", calls, "done", tools=[echo])
    await other.run("p")
    await other.session.shutdown()
    _, foreign, at = find_line(SessionStore(tmp_path / "other" / "sessions"), "tool_result", 1)
    path, lines, place = find_line(store, "tool_result", 1)
    lines.insert(place + 1, foreign[at])
    path.write_bytes(b"".join(lines))

    start = restore(store, "s-1")

    assert start.messages == before
    assert any("A second result of echo" in problem for problem in start.problems)
    await go_on(store)


async def test_the_words_of_a_lost_answer_come_from_its_stream(tmp_path: Path) -> None:
    store = await record(tmp_path)
    without_snapshot(store)
    lose_payload(store, "message", 2, "message")

    start = restore(store, "s-1")

    answer = next(message for message in start.messages if isinstance(message, AssistantMessage))
    assert answer.content == "x" * LARGE
    assert [message.content for message in start.messages if message.role == "tool"][1:] == ["b", "c", "d"]
    await go_on(store)


async def test_a_lost_prompt_comes_from_the_record_of_what_the_user_typed(tmp_path: Path) -> None:
    store = await record(tmp_path)
    without_snapshot(store)
    lose_payload(store, "message", 1, "message")

    start = restore(store, "s-1")

    assert [message.role for message in start.messages[:3]] == ["system", "user", "assistant"]
    assert start.messages[1].content == "p" * LARGE
    await go_on(store)


async def test_what_cannot_be_found_again_is_said_in_its_place(tmp_path: Path) -> None:
    store = await record(tmp_path)
    without_snapshot(store)
    lose_payload(store, "message", 1, "message")
    lose_payload(store, "user", 0, "input")

    start = restore(store, "s-1")

    assert start.messages[1].content == LOST_MESSAGE
    assert "Message 2 was lost; the model is told so." in start.problems
    await go_on(store)


@pytest.mark.parametrize(
    ("event", "at"), [("message", 1), ("message", 2), ("message", 3), ("tool_result", 2)]
)
async def test_the_snapshot_has_what_the_journal_lost(tmp_path: Path, event: str, at: int) -> None:
    store = await record(tmp_path)
    before = restore(store, "s-1").messages
    lose_line(store, event, at)

    start = restore(store, "s-1")

    assert start.messages == before
    assert any("taken from there" in problem for problem in start.problems)
    record_ = store.load("s-1")
    assert record_ is not None
    assert record_.parse_messages() == before
    await go_on(store)
    without_snapshot(store)  # from here on the journal has all of it again
    assert restore(store, "s-1").messages[: len(before)] == before
    assert (await replay_session(store.journal_path("s-1"))).problems


async def test_a_journal_that_lost_its_end_goes_on_from_the_snapshot(tmp_path: Path) -> None:
    store = await record(tmp_path)
    before = restore(store, "s-1").messages
    path, lines, place = find_line(store, "message", 3)
    path.write_bytes(b"".join(lines[:place]))

    assert restore(store, "s-1").messages == before
    await go_on(store)


async def test_a_changed_snapshot_is_not_believed(tmp_path: Path) -> None:
    store = await record(tmp_path)
    lose_line(store, "message", 3)
    snapshot = Path(store.path_of("s-1"))
    snapshot.write_bytes(snapshot.read_bytes().replace(b'"then"', b'"them"'))

    start = restore(store, "s-1")

    assert not any(message.content == "them" for message in start.messages)
    assert any("not as it was written" in problem for problem in start.problems)
    await go_on(store)


async def test_a_lost_list_of_tools_does_not_cost_the_facts_of_the_session(tmp_path: Path) -> None:
    recorded = scripted(tmp_path, "one", system="s" * LARGE, name="large")
    await recorded.run("first")
    await recorded.session.shutdown()
    store = SessionStore(tmp_path / "sessions")
    without_snapshot(store)
    lose_payload(store, "session_init", 0, "systemPrompt")

    start = restore(store, "s-1")

    assert (start.cwd, start.model, start.name) == (str(tmp_path), "scripted", "large")


async def test_one_flipped_bit_in_a_version_does_not_make_a_journal_one_of_the_future(tmp_path: Path) -> None:
    store = await record(tmp_path)
    path = Path(store.journal_path("s-1"))
    path.write_bytes(path.read_bytes().replace(b'"v":1', b'"v":5', 1))

    await go_on(store)
