"""What it means that a conversation can go on."""

from __future__ import annotations

from collections.abc import Sequence

from robota.core.messages import AssistantMessage, Message, ToolMessage


def assert_valid_for_a_request(messages: Sequence[Message]) -> None:
    """Every call is answered once, at once and in order; no result is without its call; ids are unique."""
    open_calls: list[str] = []
    seen: set[str] = set()
    for message in messages:
        if isinstance(message, ToolMessage):
            assert open_calls, f"result {message.tool_call_id} without a call"
            assert message.tool_call_id == open_calls.pop(0)
            continue
        assert not open_calls, f"calls without a result: {open_calls}"
        if isinstance(message, AssistantMessage):
            open_calls = [call.id for call in message.tool_calls]
            assert not seen & set(open_calls), "a call id is used twice"
            seen |= set(open_calls)
    assert not open_calls, f"calls without a result: {open_calls}"
