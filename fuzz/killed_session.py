"""A whole session as the victim of `kills.py`: prompts, streamed answers and tools, resumed after each kill.

A number is acknowledged when the event of its tool result was told, which is after the journal has it.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncGenerator, Callable
from pathlib import Path

from robota import Session, SessionOptions, tool
from robota.core.events import ToolEnded
from robota.core.messages import Message, ToolCall, ToolMessage, UserMessage
from robota.core.provider import ChatRequest, Chunk, TextChunk
from robota.sessions import PermissionRules, SessionStore
from robota.sessions.session_resume import resume_session

OPTIONS = SessionOptions(permissions=PermissionRules(allow=("count",)), context_window=10**9)


@tool
async def count(number: int, size: int) -> str:
    """Give a number back, with some text to make the result large."""
    return f"<{number}>" + "x" * size


class Counting:
    """A model that calls `count` with the next number, a few times per prompt, and talks in between."""

    name = "counting"

    def __init__(self, first: int, rng: random.Random) -> None:
        self.next = first
        self.rng = rng

    async def stream(self, request: ChatRequest) -> AsyncGenerator[Chunk, None]:
        for _ in range(self.rng.choice((1, 5, 40))):
            yield TextChunk("some words ")
        if isinstance(request.messages[-1], UserMessage) or self.rng.random() < 0.7:
            for _ in range(self.rng.choice((1, 1, 3))):
                size = self.rng.choice((0, 100, 20_000))
                yield ToolCall(f"call_{self.next}", "count", f'{{"number":{self.next},"size":{size}}}')
                self.next += 1


def write_session(
    directory: Path, session_id: str, first: int, rng: random.Random, acknowledge: Callable[[int], None]
) -> None:
    """Go on with the session, prompt after prompt."""
    store = SessionStore(str(directory))
    journal = Path(store.journal_path(session_id))
    is_new = not journal.exists() or b"\n" not in journal.read_bytes()  # nor one that was killed at once

    async def go_on() -> None:
        provider = Counting(first, rng)
        if not is_new:
            session = resume_session(store, session_id, provider=provider, tools=[count], options=OPTIONS)
        else:
            session = Session(
                provider=provider,
                model="any",
                tools=[count],
                store=store,
                session_id=session_id,
                options=OPTIONS,
            )
        session.events.on(ToolEnded, lambda event: acknowledge(number_of(event.content)))
        while True:
            await session.run("Go on.")

    asyncio.run(go_on())


def number_of(text: str) -> int:
    return int(text[1 : text.index(">")])


def find_numbers(messages: list[Message]) -> list[int]:
    """The numbers whose results are in a conversation."""
    results = [message.content for message in messages if isinstance(message, ToolMessage)]
    return [number_of(text) for text in results if text.startswith("<")]


def find_unanswered(messages: list[Message]) -> list[str]:
    """Calls that have no result: there must not be any."""
    asked = [call.id for message in messages for call in getattr(message, "tool_calls", ())]
    answered = [message.tool_call_id for message in messages if isinstance(message, ToolMessage)]
    return [f"the call {each} has no result" for each in asked if each not in answered]
