"""The turns of a Gemini conversation, as fragments that are encoded once and joined as they are.

The API wants the first and the last turn from the user, calls right after a user's turn, and for each call
one response right after it. So a group is encoded with a look at the message before it. A fragment either
opens a turn, which closes the one before, or adds parts to it; `write` closes the last. Placeholders stand in
for what a shortened history lacks; the history itself is never changed.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from robota.core.jsontext import encode
from robota.core.messages import (
    AssistantMessage,
    JsonObject,
    Message,
    SystemMessage,
    TextPart,
    ToolMessage,
    UserMessage,
)
from robota.core.provider import ChatRequest
from robota.providers.encoding import encode_groups
from robota.providers.gemini.parts import encode_assistant, encode_media, encode_results, encode_user

BEGINNING_LOST = "[The beginning of this conversation was left out.]"
GO_ON = "[Please go on.]"
_CLOSE = b"]},"


class TurnDialect(Struct, frozen=True):
    """What the wire form of messages depends on; the key under which a history keeps it."""

    images: bool = True
    files: bool = True
    sign_calls: bool = False
    """The model refuses calls without a signature, so those of other models get the one for strangers."""


class TurnWriter:
    """Encodes the messages of one request."""

    __slots__ = ("_dialect", "_messages", "_next")

    def __init__(self, messages: Sequence[Message], dialect: TurnDialect) -> None:
        self._messages = messages
        self._dialect = dialect
        self._next = 0

    def write(self, request: ChatRequest) -> list[bytes]:
        """The contents of the request in pieces, without the brackets around them."""
        fragments = encode_groups(request, self._dialect, self.encode_group)
        pieces = [*fragments, self._ending(), b"]}"]
        first = next(at for at, piece in enumerate(pieces) if piece)
        pieces[first] = pieces[first][len(_CLOSE) :]
        return pieces

    def instructions(self) -> list[JsonObject]:
        """The system messages before the first turn."""
        parts: list[JsonObject] = []
        for message in self._messages:
            if isinstance(message, SystemMessage):
                parts += [{"text": message.content}] if message.content else []
            elif self._is_sent(message):
                break
        return parts

    def encode_group(self, group: Sequence[Message]) -> bytes:
        at = self._find(group[0])
        self._next = at + len(group)
        before = self._last_sent(at)
        first = group[0]
        if isinstance(first, ToolMessage):
            results = [message for message in group if isinstance(message, ToolMessage)]
            return self._encode_results(results, before)
        if isinstance(first, AssistantMessage):
            parts = encode_assistant(first, sign_calls=self._dialect.sign_calls)
            return _write_model(parts, before) if parts else b""
        if isinstance(first, UserMessage):
            parts = encode_user(first, images=self._dialect.images, files=self._dialect.files)
        elif before is None:
            return b""  # it is among the instructions
        else:
            parts = [{"text": f"[System message] {first.content}"}] if first.content else []
        return _write_user(parts, before) if parts else b""

    def _encode_results(self, results: Sequence[ToolMessage], before: Message | None) -> bytes:
        calls = before.tool_calls if isinstance(before, AssistantMessage) else ()
        parts = encode_results(calls, results)
        for result in results:
            others = [part for part in result.parts if not isinstance(part, TextPart)]
            media = encode_media(others, images=self._dialect.images, files=self._dialect.files)
            parts += [{"text": f"Content of the result of {result.name}:"}, *media] if media else []
        if calls:
            return _open("user", parts)
        return _write_user(parts, before)

    def _ending(self) -> bytes:
        """What has to follow a history that does not end with the user."""
        last = self._last_sent(len(self._messages))
        if last is None or (isinstance(last, AssistantMessage) and not last.tool_calls):
            return _open("user", [{"text": GO_ON}])
        return _answer_calls(last)

    # --- what was before -----------------------------------------------------------------------------

    def _find(self, message: Message) -> int:
        """Where the message is: groups come in order, and those that are new are at the end."""
        messages = self._messages
        if self._next < len(messages) and messages[self._next] is message:
            return self._next
        return next(at for at in range(len(messages) - 1, -1, -1) if messages[at] is message)

    def _last_sent(self, end: int) -> Message | None:
        """The last message before `end` that became part of a turn."""
        for at in range(end - 1, -1, -1):
            message = self._messages[at]
            if isinstance(message, SystemMessage):
                if message.content and self._last_sent(at) is not None:
                    return message
            elif self._is_sent(message):
                return message
        return None

    def _is_sent(self, message: Message) -> bool:
        if isinstance(message, AssistantMessage):
            return bool(message.content or message.tool_calls or encode_assistant(message, sign_calls=False))
        if isinstance(message, UserMessage):
            return bool(message.content or message.parts)
        return True


def _write_model(parts: list[JsonObject], before: Message | None) -> bytes:
    if before is None:
        return _open("user", [{"text": BEGINNING_LOST}]) + _open("model", parts)
    if isinstance(before, AssistantMessage) and not before.tool_calls:
        return _add(parts)
    return _answer_calls(before) + _open("model", parts)


def _write_user(parts: list[JsonObject], before: Message | None) -> bytes:
    if isinstance(before, UserMessage | SystemMessage):
        return _add(parts)
    return _answer_calls(before) + _open("user", parts)


def _answer_calls(message: Message | None) -> bytes:
    """Responses for calls that nothing answers."""
    if isinstance(message, AssistantMessage) and message.tool_calls:
        return _open("user", encode_results(message.tool_calls, ()))
    return b""


def _open(role: str, parts: list[JsonObject]) -> bytes:
    return b'%b{"role":"%b","parts":[%b' % (_CLOSE, role.encode(), encode(parts)[1:-1])


def _add(parts: list[JsonObject]) -> bytes:
    return b"," + encode(parts)[1:-1]
