"""The Chat Completions wire: requests encoded, replies read. Either is loaded with the first provider."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypedDict, Unpack

from robota.core.provider import Capabilities, ChatRequest

if TYPE_CHECKING:
    from robota.providers.chat.request import ChatEncoder
    from robota.providers.wire.reply import ReplyContent

API_SURFACE = "openai-chat-completions"
"""The API's name in native payloads."""
PLAIN, DETAILS = "reasoning_content", "reasoning_details"
"""Types of this wire's thinking: plain text, or details that some gateways want back whole."""


class ChatHabits(TypedDict, total=False):
    """What endpoints of this wire differ in, besides what their models can do."""

    reasoning_field: str | None
    """Where past thinking is sent back; `None` leaves it out, which most endpoints expect."""
    reasoning_placeholder: str | None
    """Stands there for answers without thinking of this wire, for endpoints that insist on some."""
    reasoning_details: bool
    """Whether the endpoint wants back the details of its thinking."""
    max_tokens_field: str


def chat_codec(
    able: Capabilities, **habits: Unpack[ChatHabits]
) -> tuple[ChatEncoder, Callable[[ChatRequest], ReplyContent]]:
    """What encodes requests for such an endpoint, and what opens the reading of a reply."""
    from robota.providers.chat.reply import ChatContent  # noqa: PLC0415 - definitions load neither
    from robota.providers.chat.request import ChatDialect, ChatEncoder  # noqa: PLC0415

    dialect = ChatDialect(images=able.vision, files=able.files, output_schema=able.output_schema, **habits)
    return ChatEncoder(dialect), lambda _: ChatContent()
