"""What is measured: robota, used as its documentation says."""

from __future__ import annotations

from workload import FUNCTIONS, MODEL, PROMPT, SYSTEM

from providers import open_provider
from robota import Robota, tool
from robota.core import TextDelta

TOOLS = [tool(function) for function in FUNCTIONS.values()]
WINDOW = 100_000_000
"""No model has such a window; a thousand rounds must fit."""


class Subject:
    """`via`: `stream` iterates over the events, `listen` counts deltas in a listener, `run` only waits."""

    def __init__(self, base_url: str, via: str = "stream", wire: str = "chat") -> None:
        self.provider = open_provider(wire, base_url)
        self.via = via

    def new_agent(self) -> Robota:
        return Robota(
            self.provider,
            model=MODEL,
            tools=TOOLS,
            system_message=SYSTEM,
            max_rounds=0,
            context_window=WINDOW,
        )

    async def run(self, agent: Robota) -> tuple[int, int]:
        pieces: list[str] = []
        if self.via == "stream":
            async for event in agent.stream(PROMPT):
                if type(event) is TextDelta and event.sequence:
                    pieces.append(event.text)  # noqa: PERF401 - written as people write it
            return len(pieces), sum(map(len, pieces))
        if self.via == "listen":
            agent.events.on(TextDelta, lambda event: pieces.append(event.text) if event.sequence else None)
        result = await agent.run(PROMPT)
        if not result.success:
            raise RuntimeError(f"The run failed: {result.error}")
        return (len(pieces), sum(map(len, pieces))) if pieces else (1, len(result.text))

    async def close(self) -> None:
        await self.provider.aclose()
