"""A conversation that was had before, as the updates by which it would have been told."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from acp.schema import (
    AgentMessageChunk,
    AgentThoughtChunk,
    ToolCallProgress,
    ToolCallStart,
    UserMessageChunk,
)

from robota.core.messages import AssistantMessage, HistoryEntry, TextPart, ToolMessage, UserMessage
from robota.sdk.timeline import show_message
from robota.transports.acp.client import Update
from robota.transports.acp.content import part_block, text_block
from robota.transports.acp.tool_calls import (
    Content,
    find_diff,
    find_locations,
    kind_of_call,
    say,
    title_of_call,
)
from robota.transports.acp.updates import describe_output, show_output
from robota.transports.blocks import read_arguments


def tell_history(entries: Sequence[HistoryEntry], cwd: str) -> Iterator[Update]:
    """Prompts as they were typed, thoughts, answers and calls, in their order."""
    calls: dict[str, tuple[str, str]] = {}
    for entry in entries:
        match entry.data:
            case UserMessage() as message:
                yield from _tell_prompt(message)
            case AssistantMessage() as message:
                yield from _tell_answer(message, calls, cwd)
            case ToolMessage() as message:
                yield _tell_result(message, calls, cwd)


def _tell_prompt(message: UserMessage) -> Iterator[Update]:
    shown = show_message(message)
    if not isinstance(shown, UserMessage):
        return
    yield UserMessageChunk(session_update="user_message_chunk", content=text_block(shown.content))
    for part in message.parts:
        if not isinstance(part, TextPart):
            yield UserMessageChunk(session_update="user_message_chunk", content=part_block(part))


def _tell_answer(message: AssistantMessage, calls: dict[str, tuple[str, str]], cwd: str) -> Iterator[Update]:
    for block in message.reasoning:
        if block.text:
            yield AgentThoughtChunk(session_update="agent_thought_chunk", content=text_block(block.text))
    if message.content.strip():
        yield AgentMessageChunk(session_update="agent_message_chunk", content=text_block(message.content))
    for call in message.tool_calls:
        # The provider's id may repeat in later turns; with the message it does not.
        calls[call.id] = (f"{message.id}/{call.id}", call.arguments)
        arguments = read_arguments(call.arguments)
        yield ToolCallStart(
            session_update="tool_call",
            tool_call_id=f"{message.id}/{call.id}",
            title=title_of_call(call.name, arguments),
            kind=kind_of_call(call.name),
            status="pending",
            locations=find_locations(call.name, arguments, cwd),
            raw_input=arguments,
        )


def _tell_result(message: ToolMessage, calls: dict[str, tuple[str, str]], cwd: str) -> Update:
    id, text = calls.get(message.tool_call_id, (message.tool_call_id, "{}"))
    failed = message.metadata.get("success") is False
    content: list[Content] = show_output(message.name, message.content)
    diff = None if failed else find_diff(message.name, read_arguments(text), cwd, None)
    return ToolCallProgress(
        session_update="tool_call_update",
        tool_call_id=id,
        status="failed" if failed else "completed",
        content=[say(message.content)] if failed else content if diff is None else [diff],
        raw_output=describe_output(message.content, None, {}),
    )
