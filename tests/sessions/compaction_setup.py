"""An agent with everything a compaction needs, and a record of what it did."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from typing import Any

from robota.core.events import Event, ReplayEvent, SummaryCalled, TurnEvent
from robota.core.hooks import HookOutcome, parse_hooks, run_hooks
from robota.core.messages import AssistantMessage, Json, Message, UserMessage
from robota.core.ports import REAL_WORLD, Ports
from robota.core.provider import ChatRequest, Chunk, ModelSettings, Provider, ProviderWrapper
from robota.core.robota import AgentConfig, Robota, RunLimits
from robota.sessions.compaction.compaction_orchestrator import CompactionOrchestrator
from robota.sessions.compaction.kept_state import CompactionSection
from robota.sessions.context_window_tracker import ContextWindowTracker
from robota.sessions.options import CompactionOptions
from robota.testing import ScriptedProvider

SYSTEM = "You are a careful shipwright."


class CommandHooks:
    """Real command hooks, and what each was fired with."""

    def __init__(self, **commands: str) -> None:
        self.config = parse_hooks(
            {event: [{"hooks": [{"type": "command", "command": line}]}] for event, line in commands.items()}
        )
        self.fired: list[tuple[str, Mapping[str, Json]]] = []

    def has(self, event: str) -> bool:
        return event in self.config

    async def fire(
        self, event: str, hook_input: Mapping[str, Json], *, call_id: str = "", matches_rule: Any = None
    ) -> HookOutcome:
        self.fired.append((event, hook_input))
        return await run_hooks(self.config, event, hook_input)


class Watched(ProviderWrapper):
    def __init__(self, inner: Provider, requests: list[ChatRequest]) -> None:
        super().__init__(inner)
        self._requests = requests

    async def stream(self, request: ChatRequest) -> AsyncGenerator[Chunk, None]:
        self._requests.append(request)
        async with aclosing(self.inner.stream(request)) as chunks:
            async for chunk in chunks:
                yield chunk


class Workshop:
    def __init__(
        self,
        *replies: Any,
        provider: Any = None,
        window: int = 20_000,
        threshold: Any = 0.835,
        sections: Sequence[CompactionSection] = (),
        repeat: bool = False,
        idle_timeout: float | None = None,
        settings: ModelSettings | None = None,
        instructions: str = "",
        ports: Ports = REAL_WORLD,
        **options: Any,
    ) -> None:
        self.provider = provider or ScriptedProvider(*replies, repeat=repeat)
        self.agent = Robota(
            self.provider,
            model="m",
            system_message=SYSTEM,
            context_window=window,
            settings=settings or ModelSettings(),
            limits=RunLimits(idle_timeout=idle_timeout),
            config=AgentConfig(ports=ports),
        )
        self.store = self.agent.conversation
        self.tracker = ContextWindowTracker(self.store, window, threshold)
        self.sections = list(sections)
        self.requests: list[ChatRequest] = []
        """For summaries."""
        self.calls: list[SummaryCalled] = []
        self.agent.events.on(SummaryCalled, self.calls.append)
        self.compaction = CompactionOrchestrator(
            self.agent,
            self.tracker,
            CompactionOptions(instructions=instructions, sections=lambda: self.sections),
            admit=lambda provider: Watched(provider, self.requests),
            **options,
        )
        self.events: list[Event] = []
        self.agent.events.on(TurnEvent, self.events.append)
        self.agent.events.on(
            ReplayEvent, lambda event: None if event in self.calls else self.events.append(event)
        )

    def say(self, *texts: str) -> None:
        """A conversation that took place: user and assistant in turn."""
        for at, text in enumerate(texts):
            self.store.append(AssistantMessage(text) if at % 2 else UserMessage(text))

    @property
    def view(self) -> list[Message]:
        """What the model sees."""
        return list(self.store.messages_for_api())

    @property
    def prompts(self) -> list[str]:
        """The text of each request for a summary."""
        return [request.messages[0].content for request in self.requests]

    def told(self, kind: type[Event]) -> list[Any]:
        return [event for event in self.events if isinstance(event, kind)]
