"""Two sessions that were restored from one id: the second to run goes on from what the first has done."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.sessions.recorded_session import FREE, add, scripted
from tests.support.session_options import resume_session

from robota.core.errors import ConfigurationError, SessionBusyError
from robota.sessions.journal.port import SessionLockedError
from robota.sessions.options import SessionOptions
from robota.sessions.replay.session_replay import replay_session
from robota.sessions.session import Session
from robota.sessions.start import restore
from robota.sessions.store.session_store import SessionStore
from robota.testing import ScriptedProvider, call

pytestmark = pytest.mark.anyio

OPTIONS = SessionOptions(permissions=FREE, context_window=100_000)


async def record(home: Path) -> SessionStore:
    recorded = scripted(home, "one")
    await recorded.run("first")
    await recorded.session.shutdown()
    return SessionStore(home / "sessions")


def resume(store: SessionStore, *replies: str) -> Session:
    return resume_session(store, "s-1", provider=ScriptedProvider(*replies), tools=[add], options=OPTIONS)


async def test_the_second_to_run_goes_on_from_what_the_first_has_done(tmp_path: Path) -> None:
    store = await record(tmp_path)
    first, second = resume(store, "two"), resume(store, "three")
    await first.run("second")
    await first.shutdown()

    assert await second.run("third") == "three"
    await second.shutdown()

    said = ["You are terse.", "first", "one", "second", "two", "third", "three"]
    assert [message.content for message in second.messages] == said
    assert [message.content for message in restore(store, "s-1").messages] == said
    assert (await replay_session(store.journal_path("s-1"))).identical


async def test_what_was_put_into_the_second_before_it_ran_comes_behind_that(tmp_path: Path) -> None:
    store = await record(tmp_path)
    first, second = resume(store, "two"), resume(store, "three")
    second.inject_message("user", "a note")
    await first.run("second")
    await first.shutdown()

    await second.run("third")
    await second.shutdown()

    said = ["You are terse.", "first", "one", "second", "two", "a note", "third", "three"]
    assert [message.content for message in second.messages] == said
    assert [message.content for message in restore(store, "s-1").messages] == said


@pytest.mark.parametrize(("named_here", "name"), [(None, "theirs"), ("ours", "ours")])
async def test_a_name_that_the_first_gave_stays_unless_the_second_gives_another(
    tmp_path: Path, named_here: str | None, name: str
) -> None:
    store = await record(tmp_path)
    first, second = resume(store, "two"), resume(store, "three")
    first.name = "theirs"
    await first.run("second")
    await first.shutdown()
    if named_here is not None:
        second.name = named_here

    await second.run("third")
    await second.shutdown()

    assert (second.name, restore(store, "s-1").name, store.list()[0].name) == (name, name, name)


async def test_while_the_first_is_at_work_the_second_is_told_who_has_it(tmp_path: Path) -> None:
    store = await record(tmp_path)
    first, second = resume(store, "two"), resume(store, "three")
    await first.run("second")

    with pytest.raises(SessionLockedError):
        await second.run("third")
    await first.shutdown()
    assert await second.run("third") == "three"


async def test_a_compaction_and_a_steered_message_of_the_first_are_known(
    tmp_path: Path,
) -> None:
    store = await record(tmp_path)
    first, second = resume(store, "two", "a summary"), resume(store, "three")
    await first.run("second")
    await first.compact()
    first.steer("do not forget", id="i-1")
    await first.shutdown()

    provider = second.agent.provider
    assert isinstance(provider, ScriptedProvider)
    second.steer("nor this")
    await second.run("third")

    seen = [message.content for message in provider.requests[0].messages]
    assert "a summary" in seen[1]
    assert seen[2:] == ["third", "do not forget", "nor this"]


async def test_a_prompt_with_an_id_that_the_first_has_answered_is_not_asked_again(tmp_path: Path) -> None:
    store = await record(tmp_path)
    first, second = resume(store, "two"), resume(store)
    await first.submit("second", id="p-1")
    await first.shutdown()

    assert (await second.submit("second", id="p-1")).text == "two"


async def test_a_cut_run_that_the_first_took_to_its_end_is_over(tmp_path: Path) -> None:
    recorded = scripted(tmp_path, [call("add", "x", a=1, b=2)], "3")
    await recorded.run("go")
    await recorded.session.shutdown()
    store = SessionStore(tmp_path / "sessions")
    path = Path(store.journal_path("s-1"))
    lines = path.read_bytes().splitlines(keepends=True)
    started = next(at for at, line in enumerate(lines) if b'"tool_start"' in line)
    path.write_bytes(b"".join(lines[: started + 1]))
    Path(store.path_of("s-1")).unlink()
    first, second = resume(store, "unknown"), resume(store, "again")
    assert (await first.continue_run()).text == "unknown"
    await first.shutdown()

    with pytest.raises(ConfigurationError, match="no run to continue"):
        await second.continue_run()
    assert await second.run("and now?") == "again"


async def test_a_session_that_began_again_is_refused_when_others_went_on(
    tmp_path: Path,
) -> None:
    store = await record(tmp_path)
    first, second = resume(store, "two"), resume(store, "three")
    second.clear_history()
    await first.run("second")
    await first.shutdown()

    with pytest.raises(SessionBusyError, match="went on elsewhere since this one was restored"):
        await second.run("third")
