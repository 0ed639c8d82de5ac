"""The decisions of a session that is over, put to another model, each with what was said before it then."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from robota.core.jsontext import decode, encode
from robota.core.messages import AssistantMessage, Json, Message, ToolCall
from robota.core.provider import ChatRequest, TextChunk, ToolSchema
from robota.sdk.kept_sessions import require_session

if TYPE_CHECKING:
    from robota.core.provider import Provider
    from robota.sessions.store.session_store import SessionStore


class Decision(Struct, frozen=True, kw_only=True):
    """What a model did in one round, and what another does in its place."""

    step: int
    """How many messages it had before it."""
    recorded: Sequence[ToolCall]
    now: Sequence[ToolCall]
    text: str
    """What the other one says."""

    @property
    def same(self) -> bool:
        """Whether both make the same calls, or both make none and answer; the words are free."""
        return _compared(self.recorded) == _compared(self.now)


async def ask_again(
    store: SessionStore, session_id: str, provider: Provider, model: str, *, until: int | None = None
) -> AsyncIterator[Decision]:
    """Every round of a session, asked of another model; what was recorded goes on, so that a difference does
    not lead to others. Tools do not run."""
    from robota.sessions.replay.recording import Recording  # noqa: PLC0415 - for those who replay
    from robota.sessions.replay.session_replay import replay_session  # noqa: PLC0415

    path = require_session(store, session_id).journal_path(session_id)
    facts = Recording(path).segments[0].facts
    tools = tuple(
        ToolSchema(each["name"], each.get("description", ""), each.get("parameters", {"type": "object"}))
        for each in facts.tool_schemas or ()
    )
    messages = (await replay_session(path, until=until)).messages
    for step, message in enumerate(messages):
        if isinstance(message, AssistantMessage) and _is_asked(messages[:step]):
            request = ChatRequest(model=model, messages=messages[:step], tools=tools)
            calls, text = await _ask(provider, request)
            yield Decision(step=step, recorded=message.tool_calls or (), now=calls, text=text)


def describe_calls(calls: Sequence[ToolCall]) -> str:
    """The calls of a round in one line; without any it is an answer."""
    return ", ".join(f"{call.name} {call.arguments}" for call in calls) or "an answer"


async def _ask(provider: Provider, request: ChatRequest) -> tuple[list[ToolCall], str]:
    calls: list[ToolCall] = []
    text: list[str] = []
    async for chunk in provider.stream(request):
        if isinstance(chunk, ToolCall):
            calls.append(chunk)
        elif isinstance(chunk, TextChunk):
            text.append(chunk.text)
    return calls, "".join(text)


def _is_asked(before: Sequence[Message]) -> bool:
    """Whether a model was asked after these messages."""
    return bool(before) and before[-1].role in ("user", "tool")


def _compared(calls: Sequence[ToolCall]) -> list[tuple[str, bytes]]:
    return [(call.name, encode(_read(call.arguments))) for call in calls]


def _read(arguments: str) -> Json:
    """The arguments, whichever order and spacing they were written in."""
    try:
        value = decode(arguments or "{}")
    except ValueError:
        return arguments
    return dict(sorted(value.items())) if isinstance(value, dict) else value
