"""Models and providers exchanged at random, anywhere in sessions put together at random."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from tests.sessions.recorded_session import RecordedSession, assert_replays
from tests.sessions.test_replay_anything import INTERRUPTING, Chance, do_something, make_session
from tests.support.forms import some_of

from robota.core.events import ModelChanged, ProviderRequest, QuestionAsked, QuestionClosed
from robota.core.provider import Capabilities
from robota.sessions.replay.session_replay import replay_session
from robota.sessions.start import restore_journal
from robota.testing import ScriptedProvider

pytestmark = pytest.mark.anyio


def swap_anywhere(recorded: RecordedSession, chance: Chance) -> None:
    """Exchange the model at some of the events, for one of three providers with models of their own."""
    session = recorded.session
    providers = [
        ScriptedProvider(
            *[chance.reply() for _ in range(60)], name=name, capabilities=Capabilities(vision=chance(0.5))
        )
        for name in ("red", "green", "blue")
    ]

    def swap() -> None:
        if session.log.closed:
            return
        if chance(0.15):
            chosen = chance.random.choice(providers)
            session.set_provider(chosen, f"{chosen.name}-{chance.random.randrange(3)}")
        elif chance(0.05):
            session.set_model(f"{session.agent.provider.name}-{chance.random.randrange(3)}")

    for kind in INTERRUPTING:
        session.events.on(kind, lambda event: asyncio.get_running_loop().call_soon(swap))


@pytest.mark.parametrize("seed", some_of(range(40)))
async def test_a_session_with_swaps_anywhere_replays_identically(tmp_path: Path, seed: int) -> None:
    chance = Chance(seed)
    recorded = make_session(tmp_path, chance)
    swap_anywhere(recorded, chance)
    for _ in range(10):
        await do_something(recorded, chance)
    session = recorded.session
    await asyncio.sleep(0)
    now = (session.agent.provider.name, session.model)
    await session.shutdown()

    for request in recorded.told(ProviderRequest):
        assert request.model == "scripted" or request.model.startswith(request.provider)
    restored = restore_journal(str(recorded.path))
    assert (restored.provider, restored.model) == now
    await assert_replays(recorded)


@pytest.mark.parametrize("seed", some_of(range(10)))
async def test_a_recording_with_swaps_may_end_anywhere(tmp_path: Path, seed: int) -> None:
    chance = Chance(seed)
    recorded = make_session(tmp_path, chance)
    swap_anywhere(recorded, chance)
    for _ in range(6):
        await do_something(recorded, chance)
    await recorded.session.shutdown()
    lines = recorded.path.read_bytes().splitlines(keepends=True)
    for end in chance.random.sample(range(1, len(lines)), min(12, len(lines) - 1)):
        recorded.path.write_bytes(b"".join(lines[:end]))
        cut = await replay_session(recorded.path)
        assert cut.divergence is None, f"{end}: {cut.divergence}"


@pytest.mark.parametrize("seed", some_of([8, 3, 13], 3))
async def test_a_recording_may_end_anywhere_around_a_swap_during_a_question(
    tmp_path: Path, seed: int
) -> None:
    chance = Chance(seed)
    recorded = make_session(tmp_path, chance)
    session, other = recorded.session, ScriptedProvider(*[chance.reply() for _ in range(60)], name="red")

    def swap() -> None:
        if chance(0.5):
            session.set_provider(other, "red-1")
        else:
            session.set_model(f"{session.agent.provider.name}-2")

    def hear(event: QuestionAsked) -> None:
        if chance(0.5):
            swap()
        else:
            asyncio.get_running_loop().call_soon(swap)

    session.events.on(QuestionAsked, hear)
    for _ in range(5):
        await do_something(recorded, chance)
    await session.shutdown()
    kinds = [type(event) for event in recorded.events]
    assert any(kinds[at : at + 2] == [QuestionAsked, ModelChanged] for at in range(len(kinds)))
    assert QuestionClosed in kinds
    lines = recorded.path.read_bytes().splitlines(keepends=True)
    for end in range(1, len(lines) + 1):
        recorded.path.write_bytes(b"".join(lines[:end]))
        cut = await replay_session(recorded.path)
        assert cut.divergence is None, f"{end}: {cut.divergence}"
