"""Going back in a conversation: what the model sees, what the journal keeps, what a resumed session knows."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.sessions.live_session import Studio
from tests.sessions.recorded_session import assert_replays, scripted
from tests.sessions.test_replay_anything import Chance, do_something, make_session
from tests.support.forms import some_of

from robota.core.errors import SessionBusyError, ValidationError
from robota.core.events import TextDelta
from robota.core.messages import HistoryEntry, Message
from robota.sessions.changes import is_prompt, rewind, take_back_rewind
from robota.sessions.replay.log_entries import replay_session_log_entries
from robota.sessions.session import Session
from robota.sessions.start import restore
from robota.sessions.store.session_store import SessionStore

pytestmark = pytest.mark.anyio


def prompts(session: Session) -> list[int]:
    return [at for at, message in enumerate(session.messages) if is_prompt(message)]


def words(messages: list[Message]) -> list[str]:
    return [message.content for message in messages if message.role != "system"]


async def talk(studio: Studio, *texts: str) -> None:
    for text in texts:
        await studio.session.run(text)


async def test_the_conversation_goes_on_from_an_earlier_prompt(tmp_path: Path) -> None:
    studio = Studio(tmp_path, "one", "two", "another two")
    await talk(studio, "first", "second")

    rewind(studio.session, prompts(studio.session)[1])
    assert words(studio.session.messages) == ["first", "one"]
    await talk(studio, "second again")

    assert words(studio.session.messages) == ["first", "one", "second again", "another two"]
    sent = studio.provider.requests[-1].messages
    assert [message.content for message in sent if message.role == "user"] == ["first", "second again"]


async def test_a_resumed_session_is_rewound_and_its_journal_has_everything(tmp_path: Path) -> None:
    studio = Studio(tmp_path, "one", "two")
    await talk(studio, "first", "second")
    rewind(studio.session, prompts(studio.session)[1])
    await studio.session.shutdown()

    restored = studio.restored()
    assert words(restored.messages) == ["first", "one"]
    assert restored.problems == ()
    assert b"two" in studio.path.read_bytes()
    assert words(list(replay_session_log_entries(studio.log()).messages)) == ["first", "one"]


async def test_a_rewind_can_be_taken_back_also_by_a_later_process(tmp_path: Path) -> None:
    studio = Studio(tmp_path, "one", "two", "three")
    await talk(studio, "first", "second", "third")
    whole = studio.session.messages
    rewind(studio.session, prompts(studio.session)[2])
    rewind(studio.session, prompts(studio.session)[1])
    await studio.session.shutdown()

    later = studio.resume()
    await later.session.open()
    assert take_back_rewind(later.session)
    assert words(later.session.messages) == ["first", "one", "second", "two"]
    assert take_back_rewind(later.session)
    assert later.session.messages == whole
    assert not take_back_rewind(later.session)
    await later.session.shutdown()

    assert later.restored().messages == whole


async def test_what_was_set_aside_stays_there_once_something_else_is_said(tmp_path: Path) -> None:
    studio = Studio(tmp_path, "one", "other")
    await talk(studio, "first")
    rewind(studio.session, prompts(studio.session)[0])
    await talk(studio, "something else")

    assert not take_back_rewind(studio.session)
    assert words(studio.session.messages) == ["something else", "other"]


async def test_going_back_over_a_compaction_brings_the_messages_before_it_back_to_the_model(
    tmp_path: Path,
) -> None:
    studio = Studio(tmp_path, "one", "two", "a summary", "three")
    await talk(studio, "first", "second")
    await studio.session.compact()
    await talk(studio, "third")

    rewind(studio.session, prompts(studio.session)[1])

    view = studio.session.agent.conversation.messages_for_api()
    assert words(list(view)) == ["first", "one"]
    assert words(studio.restored().messages) == ["first", "one"]


async def test_events_before_the_prompt_stay_and_those_behind_it_come_back_with_it(tmp_path: Path) -> None:
    studio = Studio(tmp_path, "one", "two")
    await talk(studio, "first")
    studio.session.add_history_entry(HistoryEntry(category="event", type="before"))
    await talk(studio, "second")
    studio.session.add_history_entry(HistoryEntry(category="event", type="behind"))

    def kinds() -> list[str]:
        return [entry.type for entry in studio.session.history if entry.category == "event"]

    rewind(studio.session, prompts(studio.session)[1])
    assert kinds() == ["before"]
    take_back_rewind(studio.session)
    assert kinds() == ["before", "behind"]


async def test_the_system_message_in_force_stays_in_force(tmp_path: Path) -> None:
    studio = Studio(tmp_path, "one", "two", "three")
    await talk(studio, "first", "second")
    studio.session.inject_message("system", "New rules.")
    rewind(studio.session, prompts(studio.session)[1])
    await talk(studio, "third")

    assert "New rules." in studio.provider.requests[-1].messages[0].content
    assert studio.restored().messages == studio.session.messages


async def test_nothing_is_rewound_while_a_prompt_runs(tmp_path: Path) -> None:
    studio = Studio(tmp_path, "one", "two")
    await talk(studio, "first")
    refused: list[str] = []

    def try_it(event: TextDelta) -> None:
        with pytest.raises(SessionBusyError, match="abort it first") as caught:
            rewind(studio.session, prompts(studio.session)[0])
        refused.append(str(caught.value))

    studio.session.events.on(TextDelta, try_it)
    await talk(studio, "second")
    assert refused
    assert words(studio.session.messages) == ["first", "one", "second", "two"]


@pytest.mark.parametrize("place", [-1, 0, 2, 99])
async def test_only_a_prompt_can_be_gone_back_to(tmp_path: Path, place: int) -> None:
    studio = Studio(tmp_path, "one")
    await talk(studio, "first")
    with pytest.raises(ValidationError, match="is not a prompt"):
        rewind(studio.session, place)


async def test_a_fork_of_a_rewound_session_is_rewound_for_good(tmp_path: Path) -> None:
    studio = Studio(tmp_path, "one", "two")
    await talk(studio, "first", "second")
    rewind(studio.session, prompts(studio.session)[1])
    await studio.session.shutdown()

    start = restore(SessionStore(studio.kept), "s-1", fork=True)
    assert words(start.messages) == ["first", "one"]
    assert not start.conversation.aside


async def test_a_rewind_before_the_journal_is_open_is_on_record(tmp_path: Path) -> None:
    studio = Studio(tmp_path, "one", "two")
    await talk(studio, "first", "second")
    await studio.session.shutdown()
    later = studio.resume("three")

    rewind(later.session, prompts(later.session)[1])
    await talk(later, "third")

    assert words(later.session.messages) == ["first", "one", "third", "three"]
    assert later.restored().messages == later.session.messages


async def test_a_replay_goes_back_and_forth_as_the_session_did(tmp_path: Path) -> None:
    recorded = scripted(tmp_path, "one", "two", "three")
    await recorded.run("first")
    await recorded.run("second")
    rewind(recorded.session, prompts(recorded.session)[1])
    take_back_rewind(recorded.session)
    rewind(recorded.session, prompts(recorded.session)[0])
    await recorded.run("third")
    await assert_replays(recorded)


@pytest.mark.parametrize("seed", some_of(range(20)))
async def test_a_random_session_with_rewinds_replays_identically(tmp_path: Path, seed: int) -> None:
    chance = Chance(seed)
    recorded = make_session(tmp_path, chance)
    session = recorded.session
    for _ in range(10):
        await do_something(recorded, chance)
        if chance(0.4) and (places := prompts(session)):
            rewind(session, chance.random.choice(places))
        if chance(0.3):
            take_back_rewind(session)
    await session.shutdown()
    await assert_replays(recorded)


async def test_a_run_that_was_cut_is_given_up_by_clearing_or_rewinding(tmp_path: Path) -> None:
    for number, give_up in enumerate((lambda s: s.clear_history(), lambda s: rewind(s, prompts(s)[0]))):
        home = tmp_path / str(number)
        home.mkdir()
        studio = Studio(home, "one")
        await talk(studio, "first")
        await studio.session.shutdown()
        lines = studio.path.read_bytes().splitlines(keepends=True)
        end = next(at for at, line in enumerate(lines) if b'"event":"run_end"' in line)
        studio.path.write_bytes(b"".join(lines[:end]))
        start = studio.restored()
        assert start.cut is not None
        later = Session(
            provider=studio.provider,
            store=SessionStore(studio.kept),
            start=start,
            options=studio.session.options,
        )
        await later.open()

        give_up(later)
        await later.shutdown()

        assert studio.restored().cut is None


async def test_lists_and_search_know_how_the_conversation_reads_now(tmp_path: Path) -> None:
    studio = Studio(tmp_path, "one", "two")
    await talk(studio, "first", "second")
    rewind(studio.session, prompts(studio.session)[1])
    await studio.session.shutdown()

    store = SessionStore(studio.kept)
    assert [(each.id, each.message_count) for each in store.list()] == [("s-1", 3)]
    assert [hit.snippet for hit in store.search("first")] == ["first"]
