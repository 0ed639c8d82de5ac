"""What a model wrote under the choice schema, as chunks: an answer's text, or a call.

The text may be cut anywhere, inside an escape or between the halves of a character too. A string that is the
answer is given out decoded, any other answer as JSON text; a call is given out once its arguments are whole.
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct, field

from robota._lazy_pattern import lazy_pattern
from robota.core.messages import JsonObject, ToolCall
from robota.core.ports import REAL_WORLD
from robota.core.provider import Chunk, StopChunk, TextChunk, ToolInputChunk
from robota.providers.chat.reply import ChatContent

_ANSWER = lazy_pattern(r'\s*\{\s*"answer"\s*:\s*(?=\S)')
_CALL = lazy_pattern(r'\s*\{\s*"name"\s*:\s*"([^"\\]*)"\s*,\s*"arguments"\s*:\s*(?=\S)')
_PLAIN = lazy_pattern(r'[^"\\]+')
_STRUCTURE = lazy_pattern(r'["\\{}\[\]]')
_HIGH_HALF = lazy_pattern(r"\\u[dD][89abAB][0-9a-fA-F]{2}")
_LOW_HALF = lazy_pattern(r"\\(u([dD]([c-fC-F]([0-9a-fA-F]([0-9a-fA-F])?)?)?)?)?|$")
"""The other half of a character, or as much of it as has come."""
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}


class ChoiceContent(ChatContent):
    """A reply whose text is JSON that becomes an answer or a call."""

    def __init__(self) -> None:
        super().__init__()
        self._choice = ChoiceReader()

    def read(self, reply: JsonObject, raw: bytes | None, chunks: list[Chunk]) -> bytes | None:
        said: list[Chunk] = []
        super().read(reply, None, said)
        for chunk in said:
            chunks += self._choice.feed(chunk.text) if isinstance(chunk, TextChunk) else [chunk]
        return raw  # what the model wrote is not what is told

    def close(self) -> list[Chunk]:
        chunks, call = super().close(), self._choice.call()
        if call is not None:
            return [*chunks[:-1], call, StopChunk("tool_use", self.finish_reason)]
        return [*self._choice.unread(), *chunks]


class TextDecoder(Struct, eq=False):
    """The inside of a JSON string, decoded piece by piece."""

    _held: str = ""
    over: bool = False
    """The closing quote has come; what follows it is not looked at."""

    def feed(self, piece: str) -> str:
        text, at, found = self._held + piece, 0, []
        while at < len(text) and not self.over:
            plain = _PLAIN.match(text, at)
            if plain:
                found.append(plain.group())
                at = plain.end()
            elif text[at] == '"':
                self.over = True
            else:
                length = _escape_length(text, at)
                if at + length > len(text):
                    break
                found.append(_unescape(text[at : at + length]))
                at += length
        self._held = text[at:]
        return "".join(found)


class ValueScanner(Struct, eq=False):
    """Finds the end of a JSON value inside an object."""

    _depth: int = 0
    _quoted: bool = False
    _escaped: bool = False
    over: bool = False

    def feed(self, piece: str) -> str:
        """As much of the piece as belongs to the value."""
        at = 0
        while mark := _STRUCTURE.search(piece, at):
            escaped = self._escaped and mark.start() == at
            self._escaped = False
            if not escaped and self._see(mark.group()):
                return piece[: mark.end() if self._depth == 0 else mark.start()]
            at = mark.end()
        self._escaped = self._escaped and at == len(piece)
        return piece

    def _see(self, mark: str) -> bool:
        """Whether the value ends with this character, or, at a depth below 0, before it."""
        if self._quoted:
            self._escaped = mark == "\\"
            self._quoted = mark != '"'
        elif mark == '"':
            self._quoted = True
        elif mark in "{[":
            self._depth += 1
        elif mark in "}]":
            self._depth -= 1
            self.over = self._depth <= 0
        return self.over


class ChoiceReader(Struct, eq=False):
    """Takes pieces of the model's JSON, gives chunks."""

    _head: str = ""
    _kind: Literal["", "text", "value", "call"] = ""
    _text: TextDecoder = field(default_factory=TextDecoder)
    _scanner: ValueScanner = field(default_factory=ValueScanner)
    _id: str = ""
    _name: str = ""
    _arguments: list[str] = []

    def feed(self, piece: str) -> list[Chunk]:
        if not self._kind:
            self._head += piece
            piece = self._begin()
        if not piece:
            return []
        if self._kind == "text":
            text = self._text.feed(piece)
            return [TextChunk(text)] if text else []
        part = "" if self._scanner.over else self._scanner.feed(piece)
        if not part:
            return []
        if self._kind == "value":
            return [TextChunk(part)]
        self._arguments.append(part)
        return [ToolInputChunk(0, part, self._id, self._name)]

    def call(self) -> ToolCall | None:
        """The call, if the reply was one and nothing of it is missing."""
        if self._kind != "call" or not self._scanner.over:
            return None
        return ToolCall(self._id, self._name, "".join(self._arguments))

    def unread(self) -> list[Chunk]:
        """What was written in neither form, by a model that its server does not hold to them."""
        head = self._head if not self._kind else ""
        return [TextChunk(head)] if head.strip() and not head.lstrip().startswith("{") else []

    def _begin(self) -> str:
        """Find out what this will be; returns what already belongs to it."""
        head = self._head
        if found := _CALL.match(head):
            self._kind = "call"
            self._id, self._name = f"call_{REAL_WORLD.new_id()}", found.group(1)
            return head[found.end() :]
        if found := _ANSWER.match(head):
            quoted = head[found.end()] == '"'
            self._kind = "text" if quoted else "value"
            return head[found.end() + quoted :]
        return ""


def _escape_length(text: str, at: int) -> int:
    """Characters of the escape at this place; two escapes when they are the halves of one character."""
    if text[at + 1 : at + 2] != "u":
        return 2
    high = _HIGH_HALF.match(text, at)
    return 12 if high and _LOW_HALF.fullmatch(text, high.end(), at + 12) else 6


def _unescape(escape: str) -> str:
    if escape[1] != "u":
        return _ESCAPES.get(escape[1], escape[1])
    codes = [int(code, 16) for code in escape.split("\\u")[1:]]
    return b"".join(code.to_bytes(2, "big") for code in codes).decode("utf-16-be", "replace")
