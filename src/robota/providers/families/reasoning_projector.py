"""Thinking that a server left in the text, taken out of it.

A thought counts at the beginning of a reply or right behind another one, so that an answer may write about
the marks. White space behind a mark belongs to it.
"""

from __future__ import annotations

from robota.core.messages import ReasoningBlock, ToolCall
from robota.core.provider import Chunk, ReasoningChunk, StopChunk, TextChunk
from robota.providers.families.projection import count_overlap, keep_raw

MARKS = {"<think>": "</think>", "<|channel>thought": "<channel|>"}
"""How thoughts begin and end: in the words of most open models, and of Gemma."""


class ReasoningProjector:
    __slots__ = ("_held", "_may_think", "_thoughts", "_trim", "_until")

    def __init__(self) -> None:
        self._may_think = True
        """Nothing but white space and thoughts has come so far."""
        self._until = ""
        """The mark that ends the thought we are in; empty outside."""
        self._trim = False
        """The last thing that came was a mark."""
        self._held = ""
        self._thoughts: list[str] = []

    def take(self, chunk: Chunk) -> list[Chunk]:
        if isinstance(chunk, TextChunk):
            return self._read(chunk) if self._may_think else [chunk]
        if isinstance(chunk, (ReasoningBlock, ToolCall, StopChunk)):  # no text follows these
            return [*self.release(), *self._conclude(), chunk]
        return [chunk]

    def release(self) -> list[Chunk]:
        said: list[Chunk] = []
        self._say(self._held, said)
        self._held = ""
        return said

    def _conclude(self) -> list[Chunk]:
        thought = "".join(self._thoughts)
        self._thoughts.clear()
        return [ReasoningBlock(thought)] if thought else []

    def _read(self, chunk: TextChunk) -> list[Chunk]:
        said: list[Chunk] = []
        rest, self._held = self._held + chunk.text, ""
        while rest:
            if self._trim:
                rest = rest.lstrip()
                self._trim = not rest
            elif self._until:
                rest = self._think(rest, said)
            elif self._may_think:
                rest = self._look(rest, said)
            else:
                self._say(rest, said)
                rest = ""
        return [chunk] if said == [TextChunk(chunk.text)] else [*keep_raw(chunk), *said]

    def _think(self, text: str, said: list[Chunk]) -> str:
        """Go on with a thought; what is behind its end is returned."""
        thought, mark, rest = text.partition(self._until)
        if mark:
            self._say(thought, said)
            self._until, self._trim = "", True
            return rest
        sure = len(text) - count_overlap(text, (self._until,))
        self._say(text[:sure], said)
        self._held = text[sure:]
        return ""

    def _look(self, text: str, said: list[Chunk]) -> str:
        """Look for the beginning of a thought; what is behind it, or no thought, is returned."""
        rest = text.lstrip()
        self._say(text[: len(text) - len(rest)], said)
        for mark, end in MARKS.items():
            if rest.startswith(mark):
                self._until, self._trim = end, True
                return rest[len(mark) :]
        if any(mark.startswith(rest) for mark in MARKS):
            self._held = rest
            return ""
        self._may_think = False
        return rest

    def _say(self, text: str, said: list[Chunk]) -> None:
        if text and self._until:
            self._thoughts.append(text)
            said.append(ReasoningChunk(text))
        elif text:
            said.append(TextChunk(text))
