"""A run as an async iterator over its turn events."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping
from typing import TYPE_CHECKING, Any

from robota.core.events import TurnEvent

if TYPE_CHECKING:
    from robota.core.messages import Prompt
    from robota.core.robota import Robota
    from robota.core.turn import RunResult

CLOSING_TURNS = 3
"""A stream that is dropped is closed by a task that the loop starts: one turn to make it, one to run it."""
LEAVE_SECONDS = 5.0
"""How long a reader who leaves a stream waits for the run to put its things away."""


async def stream_run(
    agent: Robota, prompt: Prompt, options: Mapping[str, Any]
) -> AsyncGenerator[TurnEvent, None]:
    agent.require_idle()  # before listening: the events of another run are not ours
    events = agent.events.open(TurnEvent)
    task = asyncio.create_task(agent.run(prompt, **options))
    task.add_done_callback(lambda _: events.close())
    agent.streaming = True
    try:
        async for event in events:
            yield event
        await task
    finally:
        events.close()
        await _leave(agent, task)
        agent.streaming = False


async def let_go(agent: Robota) -> None:
    """Wait for a run whose stream was left by `break`.

    Python closes such a stream only some turns of the loop later; a run that follows must not trip over it.
    """
    for _ in range(CLOSING_TURNS):
        await asyncio.sleep(0)
    await agent.wait_for_abort()


async def _leave(agent: Robota, task: asyncio.Task[RunResult]) -> None:
    """End a run whose audience has gone, in good order if it has begun; its result interests nobody."""
    if not task.done():
        from anyio import move_on_after  # noqa: PLC0415 - loaded by the run

        if agent.is_running:
            agent.abort()
        else:
            task.cancel()
        try:
            # Shielded: the reader may itself be cancelled, and must not leave a run behind.
            with move_on_after(LEAVE_SECONDS, shield=True):
                await asyncio.wait((task,))
        finally:
            task.cancel()
    if task.done() and not task.cancelled():
        task.exception()
