"""The four messages of a conversation, what they are made of, and the timeline that holds them.

Messages are frozen and provider-neutral. Encoding one with msgspec gives the spelling used on disk
(`toolCallId`, `role`); how a vendor wants it is that vendor's adapter's business. Only an assistant
message can be `interrupted`: it means the user stopped it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from operator import add
from typing import Any, ClassVar, Literal, TypeAlias

from msgspec import Struct, field
from msgspec.structs import astuple

from robota.core.errors import ValidationError
from robota.core.ports import new_uuid, utc_now

Json: TypeAlias = Any
"""A JSON value; the one place where `Any` is honest."""
JsonObject: TypeAlias = dict[str, Any]
Metadata: TypeAlias = Mapping[str, Any]
MessageState: TypeAlias = Literal["complete", "interrupted"]
StopReason: TypeAlias = Literal[
    "end_turn", "tool_use", "max_tokens", "max_rounds", "refusal", "content_filter", "pause",
    "repeated_failure", "unknown_tool", "no_answer", "context_overflow", "hook", "aborted", "error", "other",
]  # fmt: skip


class TextPart(Struct, frozen=True, tag_field="type", tag="text"):
    """Words, as one part among others."""

    text: str


class ImagePart(Struct, frozen=True, tag_field="type", tag="image_inline", rename="camel"):
    """An image, as bytes in base64."""

    data: str
    """The image, base64."""
    mime_type: str = "image/png"


class ImageUriPart(Struct, frozen=True, tag_field="type", tag="image_uri", rename="camel"):
    """An image that the service fetches itself."""

    uri: str
    mime_type: str | None = None


class FilePart(Struct, frozen=True, tag_field="type", tag="file", rename="camel"):
    """A document given to the model, such as a PDF."""

    data: str
    """The file, base64."""
    mime_type: str
    name: str = ""


Part: TypeAlias = TextPart | ImagePart | ImageUriPart | FilePart
Prompt: TypeAlias = str | Sequence[Part]


class ToolCall(Struct, frozen=True):
    """One tool use as the model asked for it. `arguments` is the JSON text the model wrote, unchanged."""

    id: str
    """The provider's own id. It may repeat in later turns and is never rewritten in history."""
    name: str
    arguments: str = "{}"
    signature: str | None = None
    """An opaque token some providers attach to a call and want back with it."""


class ReasoningBlock(Struct, frozen=True):
    """A stretch of the model's thinking, with what its provider needs to accept it back."""

    text: str = ""
    signature: str | None = None
    data: Json = None
    """Provider-owned content (encrypted or redacted thinking)."""


class TokenUsage(Struct, frozen=True, rename="camel"):
    """Tokens of one model call, or the sum of a run's calls."""

    input_tokens: int = 0
    """Everything that was sent; the part read from or written to a cache is counted in it."""
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    reasoning_tokens: int = 0

    @property
    def total_tokens(self) -> int:
        return self.input_tokens + self.output_tokens

    def __add__(self, other: TokenUsage) -> TokenUsage:
        return TokenUsage(*map(add, astuple(self), astuple(other)))


class _Identity(Struct, frozen=True, kw_only=True, tag_field="role", rename="camel"):
    id: str = field(default_factory=new_uuid)
    timestamp: datetime = field(default_factory=utc_now)
    metadata: Metadata = field(default_factory=dict)


class SystemMessage(_Identity, frozen=True, tag="system"):
    """Instructions that stand above the conversation."""

    content: str
    state: Literal["complete"] = "complete"
    role: ClassVar[Literal["system"]] = "system"


def stands(message: SystemMessage | None, text: str) -> bool:
    """Whether a system message says this, alone or with what was added to it (`add_to_system`)."""
    if message is None:
        return False
    return message.content == text or (
        message.metadata.get("base") == len(text) and message.content.startswith(text)
    )


def add_to_system(
    message: SystemMessage | None, text: str | None, more: str, **identity: Any
) -> SystemMessage:
    """The system message with more words; `text` is the one in force if that before says something else."""
    base = text or ""
    before = message.content if message is not None and (text is None or stands(message, base)) else base
    content = f"{before}\n\n{more}" if before else more
    return SystemMessage(content, metadata={"base": len(base)}, **identity)


class UserMessage(_Identity, frozen=True, tag="user"):
    """What the user said, or what the engine said in the user's place (see `metadata`)."""

    content: str
    parts: tuple[Part, ...] = ()
    """Set when the prompt was more than text; `content` then holds its text alone."""
    state: Literal["complete"] = "complete"
    role: ClassVar[Literal["user"]] = "user"


class AssistantMessage(_Identity, frozen=True, tag="assistant"):
    """What the model said: words, thinking, tool calls."""

    content: str
    tool_calls: tuple[ToolCall, ...] = ()
    state: MessageState = "complete"
    reasoning: tuple[ReasoningBlock, ...] = ()
    role: ClassVar[Literal["assistant"]] = "assistant"


class ToolMessage(_Identity, frozen=True, tag="tool"):
    """The result of one tool call."""

    content: str
    tool_call_id: str
    name: str
    parts: tuple[Part, ...] = ()
    state: Literal["complete"] = "complete"
    role: ClassVar[Literal["tool"]] = "tool"


Message: TypeAlias = SystemMessage | UserMessage | AssistantMessage | ToolMessage


def user_message(
    prompt: Prompt, *, id: str, timestamp: datetime, metadata: Metadata | None = None
) -> UserMessage:
    """The user message for a prompt given as text or as parts."""
    extra = {} if metadata is None else metadata
    if isinstance(prompt, str):
        return UserMessage(prompt, id=id, timestamp=timestamp, metadata=extra)
    parts, text = tuple(prompt), prompt_text(prompt)
    if all(isinstance(part, TextPart) for part in parts):
        parts = ()
    return UserMessage(text, parts, id=id, timestamp=timestamp, metadata=extra)


def prompt_text(prompt: Prompt) -> str:
    """The words of a prompt."""
    if isinstance(prompt, str):
        return prompt
    return "\n".join(part.text for part in prompt if isinstance(part, TextPart))


def add_words(prompt: Prompt, words: str) -> Prompt:
    """The prompt with a paragraph behind it."""
    return f"{prompt}\n\n{words}" if isinstance(prompt, str) else (*prompt, TextPart(words))


def make_message(
    role: str, content: str, *, id: str, timestamp: datetime, tool_call_id: str = "", name: str = ""
) -> Message:
    """A message of one of the four roles; a result of a tool needs to know of which call."""
    match role:
        case "user":
            return UserMessage(content, id=id, timestamp=timestamp)
        case "assistant":
            return AssistantMessage(content, id=id, timestamp=timestamp)
        case "system":
            return SystemMessage(content, id=id, timestamp=timestamp)
        case "tool":
            return ToolMessage(content, tool_call_id, name, id=id, timestamp=timestamp)
    raise ValidationError(
        f"A message has the role user, assistant, system or tool, not {role!r}.", field="role"
    )


class HistoryEntry(Struct, frozen=True, kw_only=True):
    """One entry of a timeline: a message, with its role as `type`, or an event with whatever it holds."""

    category: Literal["chat", "event"]
    type: str
    data: Message | Json = None
    id: str = field(default_factory=new_uuid)
    timestamp: datetime = field(default_factory=utc_now)


def is_chat_entry(entry: HistoryEntry) -> bool:
    """Whether an entry is a message."""
    return entry.category == "chat"


def message_to_history_entry(message: Message) -> HistoryEntry:
    """The entry that holds a message."""
    return HistoryEntry(
        category="chat", type=message.role, data=message, id=message.id, timestamp=message.timestamp
    )


def chat_entry_to_message(entry: HistoryEntry) -> Message:
    """The message of a chat entry; an event entry or an empty one is refused by name."""
    data = entry.data
    if entry.category == "chat" and isinstance(
        data, SystemMessage | UserMessage | AssistantMessage | ToolMessage
    ):
        return data
    raise ValidationError(
        f"History entry {entry.id} ({entry.category}/{entry.type}) holds no message; only chat entries do.",
        field="data",
    )


def get_messages_for_api(history: Iterable[HistoryEntry]) -> list[Message]:
    """The messages among the entries, in order."""
    return [chat_entry_to_message(entry) for entry in history if entry.category == "chat"]
