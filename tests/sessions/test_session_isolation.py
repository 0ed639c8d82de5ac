"""Many sessions on one provider: none hears anything of another."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import anyio
import pytest
from tests.sessions.live_session import Studio

from robota.core.errors import AbortError
from robota.core.events import TextDelta
from robota.core.provider import ChatRequest, StopChunk, TextChunk
from robota.sessions.journal.port import SessionLockedError
from robota.testing import ScriptedProvider

pytestmark = pytest.mark.anyio


class Echo:
    """Says each word of the prompt after letting everybody else go first."""

    name = "echo"

    async def stream(self, request: ChatRequest) -> Any:
        for word in request.messages[-1].content.split():
            await asyncio.sleep(0)
            yield TextChunk(word)
        yield StopChunk("end_turn")


async def test_sessions_that_share_a_provider_keep_their_words_apart(tmp_path: Path) -> None:
    provider = Echo()
    studios = [Studio(tmp_path, provider=provider, session_id=f"s-{number}") for number in range(8)]
    heard: dict[int, list[str]] = {number: [] for number in range(8)}
    for number, studio in enumerate(studios):
        studio.session.events.on(TextDelta, lambda event, number=number: heard[number].append(event.text))

    async with asyncio.TaskGroup() as tasks:
        for number, studio in enumerate(studios):
            tasks.create_task(studio.session.run(" ".join([f"w{number}"] * 20)))

    for number, studio in enumerate(studios):
        assert heard[number] == [f"w{number}"] * 20
        assert studio.session.messages[-1].content == f"w{number}" * 20
        studio.assert_journal_is_good()
        others = {f'"w{other}"' for other in range(8) if other != number}
        assert not any(word in studio.path.read_text() for word in others)
    assert studios[0].session.agent.provider is provider


async def test_aborting_one_session_leaves_the_other_alone(tmp_path: Path) -> None:
    provider = Echo()
    one, two = (Studio(tmp_path, provider=provider, session_id=f"s-{number}") for number in range(2))
    one.session.events.on(TextDelta, lambda _: one.session.abort())

    answers: list[str] = []

    async def run(studio: Studio) -> None:
        try:
            answers.append(await studio.session.run("a b c d e f"))
        except AbortError:
            answers.append("aborted")

    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(run(one))
        tasks.create_task(run(two))

    assert answers == ["aborted", "abcdef"]


async def test_two_sessions_in_one_process_cannot_share_an_id(tmp_path: Path) -> None:
    one = Studio(tmp_path, "one")
    await one.session.run("first")

    with pytest.raises(SessionLockedError):
        await Studio(tmp_path, "two").session.run("second")

    assert one.record_names.count("session_init") == 1


async def test_a_session_can_be_used_from_one_loop_after_another(tmp_path: Path) -> None:
    studio = Studio(tmp_path, "one", "two", "three", "four")

    def elsewhere(prompt: str) -> str:
        return asyncio.run(studio.session.run(prompt))

    answers = [await anyio.to_thread.run_sync(elsewhere, prompt) for prompt in ("1", "2", "3")]

    assert answers == ["one", "two", "three"]
    assert await studio.session.run("4") == "four"
    with anyio.fail_after(20):
        while len(studio.saved_messages) < 9:  # noqa: ASYNC110 - nobody tells when a snapshot is written
            await anyio.sleep(0.01)
    await studio.session.shutdown()
    studio.assert_journal_is_good()


async def test_a_script_that_runs_out_fails_only_its_own_session(tmp_path: Path) -> None:
    provider = ScriptedProvider("one")
    one = Studio(tmp_path, provider=provider, session_id="a")
    two = Studio(tmp_path, provider=provider, session_id="b")
    assert await one.session.run("x") == "one"
    with pytest.raises(Exception, match="script"):
        await two.session.run("y")
    assert [message.content for message in one.session.messages][-1] == "one"
