"""Tool calls that a model wrote into its text, taken out of it and made.

They stand in tags, in fences or by themselves on a line; `written_calls` reads what is inside. A server that
makes calls by itself needs no second reading: as soon as one of its calls comes, what was written stays text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from msgspec import Struct

from robota._lazy_pattern import lazy_pattern
from robota.core.messages import ToolCall
from robota.core.provider import Chunk, StopChunk, TextChunk, ToolInputChunk, ToolSchema
from robota.providers.local.reply import ValueScanner
from robota.providers.local_server import count_overlap, keep_raw
from robota.providers.written_calls import (
    FUNCTION_TAG,
    ReadCalls,
    may_be_json_call,
    may_be_marked_call,
    read_function_calls,
    read_gemma_calls,
    read_json_calls,
    read_marked_calls,
    read_named_calls,
    read_python_calls,
)

FENCE = "```"


class Frame(Struct, frozen=True):
    """What stands around calls, and how they are written inside."""

    begin: str
    end: str
    """Empty where the call ends with its JSON."""
    read: ReadCalls = read_json_calls
    may_be: Callable[[str], bool] = may_be_json_call
    """Whether this beginning of the inside can still become calls."""


def _anything(_: str) -> bool:
    return True


MISTRAL = Frame("[TOOL_CALLS]", "")
MISTRAL_BY_NAME = Frame(MISTRAL.begin, "</s>", read_named_calls, _anything)
_WORDS = (
    "tool_call", "tool_calls", "function_calls", "minimax:tool_call", "seed:tool_call", "longcat_tool_call",
    "TOOLCALL",
)  # fmt: skip
_MARKS = {
    "<|tool_call|>": "<|/tool_call|>",
    "<|tool_call_start|>": "<|tool_call_end|>",
    "<|tool_calls_section_begin|>": "<|tool_calls_section_end|>",
    "<|python_start|>": "<|python_end|>",
    "<|action_start|>": "<|action_end|>",
    "<|START_ACTION|>": "<|END_ACTION|>",
    "<|tools_prefix|>": "<|tools_suffix|>",
    "<|function_call|>": "<|/function_call|>",
    "<|channel|>commentary to=": "<|call|>",
    "<|channel|>analysis to=": "<|call|>",
    "<|start|>assistant to=": "<|call|>",
    "]<]minimax[>[<tool_call>": "]<]minimax[>[</tool_call>",
    "<｜tool▁calls▁begin｜>": "<｜tool▁calls▁end｜>",
    "<｜DSML｜function_calls>": "</｜DSML｜function_calls>",
    "<｜DSML｜tool_calls>": "</｜DSML｜tool_calls>",
}
"""Which no prose has."""
FRAMES = (
    *(Frame(f"<{word}>", f"</{word}>", read_marked_calls, may_be_marked_call) for word in _WORDS),
    *(Frame(begin, end, read_marked_calls, _anything) for begin, end in _MARKS.items()),
    Frame("<tools>", "</tools>"),
    Frame("<function_call>", "</function_call>"),
    Frame(FUNCTION_TAG, "</function>", read_function_calls, _anything),
    Frame(f"{FENCE}json", FENCE),
    Frame(f"{FENCE}JSON", FENCE),
    Frame(f"{FENCE}tool\n", FENCE),
    Frame(f"{FENCE}tool_call", FENCE),
    Frame(f"{FENCE}tool_code", FENCE, read_python_calls, _anything),
    Frame(f"{FENCE}\n", FENCE),
    MISTRAL,
    Frame("functools", ""),
    Frame("<|python_tag|>", "", read_marked_calls, _anything),
    Frame("<|tool_call>", "<tool_call|>", read_gemma_calls, _anything),
    Frame("<start_function_call>", "<end_function_call>", read_gemma_calls, _anything),
)
BARE = Frame("", "", may_be=lambda text: may_be_json_call(text) or MISTRAL.begin.startswith(text))
"""JSON at the beginning of a line, or what begins like it."""
_LIST_OF_PYTHON = lazy_pattern(r"\[\s*(?:[\w.]*\Z|[\w.]+\()")
FIRST = Frame(
    "",
    "",
    read=lambda text, offered: read_json_calls(text, offered) or read_python_calls(text, offered),
    may_be=lambda text: BARE.may_be(text) or _LIST_OF_PYTHON.match(text) is not None,
)
"""A reply that begins with a list may be one of calls in Python, too."""
_BEGINNINGS = tuple(frame.begin for frame in FRAMES)
_BY_BEGINNING = {frame.begin: frame for frame in FRAMES}
_BEGINNING = lazy_pattern("|".join(map(re.escape, _BEGINNINGS)))
_LINE_OF_JSON = lazy_pattern(r"(?:^|(?<=\n))[ \t;]*(?=[\[{])")


class PseudoCallProjector:
    __slots__ = (
        "_at_line",
        "_begun",
        "_frame",
        "_held",
        "_made",
        "_offered",
        "_scanner",
        "_searched",
        "_trusting",
    )

    def __init__(self, tools: Iterable[ToolSchema]) -> None:
        self._offered = {tool.name: tool for tool in tools}
        self._trusting = bool(self._offered)
        """No call of the server's own has come."""
        self._frame: Frame | None = None
        """The frame that the held text began."""
        self._held = ""
        self._searched = 0
        """How far the held text was searched for the frame's end."""
        self._scanner = ValueScanner()
        """Finds the end of JSON that has no other."""
        self._at_line = True
        """What was given out ends with a line, or nothing was."""
        self._begun = False
        """Something was given out, or a call was found."""
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
        if self._frame is not None and stop.reason == "end_turn":  # many forget the end of the frame
            unclosed = self._frame.read(self._held[len(self._frame.begin) :], self._offered)
            if unclosed:
                self._made.append((self._held, unclosed))
                self._held = ""
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
        mark = _BEGINNING.search(text)
        lines = _LINE_OF_JSON.finditer(text, 0, mark.start() + 1 if mark else len(text))
        line = next((line for line in lines if line.start() or self._at_line), None)
        if mark is not None and (line is None or mark.start() <= line.end()):
            return self._enter(text, mark.start(), _BY_BEGINNING[mark[0]], said)
        if line is not None:
            begun = self._begun or bool(text[: line.end()].strip())
            return self._enter(text, line.end(), BARE if begun else FIRST, said)
        sure = len(text) - count_overlap(text, _BEGINNINGS)
        self._say(text[:sure], said)
        self._held = text[sure:]
        return ""

    def _enter(self, text: str, at: int, frame: Frame, said: list[str]) -> str:
        self._frame = frame
        self._searched = len(frame.begin)
        self._scanner = ValueScanner()
        self._say(text[:at], said)
        return text[at:]

    def _say(self, text: str, said: list[str]) -> None:
        said.append(text)
        last = text.rpartition("\n")
        if text.strip(" \t;"):  # which some put between calls
            self._begun = True
            self._at_line = bool(last[1]) and not last[2].strip(" \t")

    def _collect(self, text: str, frame: Frame, said: list[str]) -> str:
        """Go on with what began like a call; what is behind it is returned."""
        if not frame.begin and text.startswith(MISTRAL.begin):
            frame = self._frame = MISTRAL
            self._searched, self._scanner = len(frame.begin), ValueScanner()
        start = len(frame.begin)
        if frame is MISTRAL and text[start:].lstrip()[:1] not in ("", "[", "{"):
            frame = self._frame = MISTRAL_BY_NAME
        if not frame.may_be(text[start:]):
            return self._let_go(text, start or 1, said)
        if not frame.end:
            return self._collect_json(text, frame, said)
        end = text.find(frame.end, self._searched)
        while end >= 0:
            behind = end + len(frame.end)
            calls = frame.read(text[start:end], self._offered)
            if calls:
                return self._make(text, behind, calls)
            if frame.end != FENCE or text[end - 1] == "\n":  # else it may stand in an argument
                return self._let_go(text, behind, said)
            self._searched = behind
            end = text.find(frame.end, behind)
        self._searched = max(self._searched, len(text) - len(frame.end) + 1)
        self._held = text
        return ""

    def _collect_json(self, text: str, frame: Frame, said: list[str]) -> str:
        self._searched += len(self._scanner.feed(text[self._searched :]))
        if not self._scanner.over:
            self._held = text
            return ""
        calls = frame.read(text[len(frame.begin) : self._searched], self._offered)
        if calls:
            return self._make(text, self._searched, calls)
        return self._let_go(text, self._searched, said)

    def _make(self, text: str, length: int, calls: list[ToolCall]) -> str:
        """So much of the text is these calls."""
        self._made.append((text[:length], calls))
        self._frame, self._at_line, self._begun = None, True, True
        return text[length:]

    def _let_go(self, text: str, length: int, said: list[str]) -> str:
        """So much of the text is no call."""
        self._frame = None
        self._say(text[:length], said)
        return text[length:]
