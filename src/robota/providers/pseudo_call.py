"""Tool calls that a model wrote into its text, taken out of it and made.

Only tools that were offered count, and only calls that are whole. A server that makes calls by itself needs
no second reading: as soon as one of its calls comes, what was written stays text.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from robota.core.messages import ToolCall
from robota.core.provider import Chunk, StopChunk, TextChunk, ToolInputChunk, ToolSchema
from robota.providers.local_server import count_overlap, keep_raw
from robota.providers.written_call import (
    ReadCalls,
    may_be_json_call,
    read_gemma_calls,
    read_json_calls,
    read_python_calls,
)

FENCE = "```"


class Frame(Struct, frozen=True):
    """What stands around calls, and how they are written inside."""

    begin: str
    end: str
    read: ReadCalls
    is_json: bool = True


FRAMES = (
    Frame("<tool_call>", "</tool_call>", read_json_calls),
    Frame(f"{FENCE}json", FENCE, read_json_calls),
    Frame(f"{FENCE}tool_call", FENCE, read_json_calls),
    Frame(f"{FENCE}tool_code", FENCE, read_python_calls, is_json=False),
    Frame("<|tool_call>", "<tool_call|>", read_gemma_calls, is_json=False),
)
_BEGINNINGS = tuple(frame.begin for frame in FRAMES)


class PseudoCallProjector:
    __slots__ = ("_frame", "_held", "_made", "_offered", "_searched", "_trusting")

    def __init__(self, tools: Iterable[ToolSchema]) -> None:
        self._offered = {tool.name: tool for tool in tools}
        self._trusting = bool(self._offered)
        """No call of the server's own has come."""
        self._frame: Frame | None = None
        """The frame that the held text began."""
        self._held = ""
        self._searched = 0
        """How far the held text was searched for the frame's end."""
        self._made: list[tuple[str, list[ToolCall]]] = []
        """Calls that were written, with their text."""

    def take(self, chunk: Chunk) -> list[Chunk]:
        if isinstance(chunk, TextChunk):
            return self._read(chunk) if self._trusting else [chunk]
        if isinstance(chunk, (ToolInputChunk, ToolCall)) and self._trusting:
            return [*self.release(), chunk]
        if isinstance(chunk, StopChunk):
            return self._finish(chunk)
        return [chunk]

    def release(self) -> list[Chunk]:
        """All that is held back, as text; nothing will be held any more."""
        written = "".join(text for text, _ in self._made) + self._held
        self._held, self._frame, self._trusting = "", None, False
        self._made.clear()
        return [TextChunk(written)] if written else []

    def _finish(self, stop: StopChunk) -> list[Chunk]:
        calls: list[Chunk] = [call for _, calls in self._made for call in calls]
        self._made.clear()
        if calls and stop.reason == "end_turn":
            stop = StopChunk("tool_use", stop.detail)
        return [*self.release(), *calls, stop]

    def _read(self, chunk: TextChunk) -> list[Chunk]:
        rest, self._held = self._held + chunk.text, ""
        said: list[str] = []
        while rest:
            rest = self._look(rest, said) if self._frame is None else self._collect(rest, self._frame, said)
        text = "".join(said)
        if text == chunk.text:
            return [chunk]
        return [*keep_raw(chunk), TextChunk(text)] if text else keep_raw(chunk)

    def _look(self, text: str, said: list[str]) -> str:
        """Look for the beginning of a call; it and what is behind it is returned."""
        found = [(at, frame) for frame in FRAMES if (at := text.find(frame.begin)) >= 0]
        if found:
            at, self._frame = min(found, key=lambda each: each[0])
            self._searched = len(self._frame.begin)
            said.append(text[:at])
            return text[at:]
        sure = len(text) - count_overlap(text, _BEGINNINGS)
        said.append(text[:sure])
        self._held = text[sure:]
        return ""

    def _collect(self, text: str, frame: Frame, said: list[str]) -> str:
        """Go on with what began like a call; what is behind it is returned."""
        start = len(frame.begin)
        if frame.is_json and not may_be_json_call(text[start:]):
            return self._let_go(text, start, said)
        end = text.find(frame.end, self._searched)
        while end >= 0:
            behind = end + len(frame.end)
            calls = frame.read(text[start:end], self._offered)
            if calls:
                self._made.append((text[:behind], calls))
                self._frame = None
                return text[behind:]
            if frame.end != FENCE or text[end - 1] == "\n":  # else it may stand in an argument
                return self._let_go(text, behind, said)
            self._searched = behind
            end = text.find(frame.end, behind)
        self._searched = max(self._searched, len(text) - len(frame.end) + 1)
        self._held = text
        return ""

    def _let_go(self, text: str, length: int, said: list[str]) -> str:
        """So much of the text is no call."""
        self._frame = None
        said.append(text[:length])
        return text[length:]
