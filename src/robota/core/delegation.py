"""An agent that works for another one, without a session: its events go through the other's, one level in."""

from __future__ import annotations

from typing import TYPE_CHECKING

from robota.core.event_names import is_only_shown
from robota.core.events import SubagentEvent, TurnEvent
from robota.core.plugin import plugins_for_child

if TYPE_CHECKING:
    from robota.core.robota import Robota
    from robota.core.run import RunResult


async def run_worker(agent: Robota, worker: Robota, agent_id: str, task: str) -> RunResult:
    """Let the worker do its task as a part of the agent's run, and close it."""
    events, state = agent.events, agent.run_state
    execution = "" if state is None else state.execution_id

    def pass_on(event: TurnEvent) -> None:
        seq = events.seq if is_only_shown(event) else events.next_seq()
        inner: object = event
        events.emit(SubagentEvent(agent_id=agent_id, inner=inner, execution_id=execution, seq=seq))  # type: ignore[arg-type]

    own, stop = worker.plugins, worker.events.on(TurnEvent, pass_on)
    worker.plugins = (*own, *plugins_for_child(agent.plugins, agent_id))
    try:
        async with worker:
            return await worker.run(task)
    finally:
        stop()
        worker.plugins = own
