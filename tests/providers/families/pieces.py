"""Texts cut into pieces in every way that could matter, and what projectors make of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from robota.core.messages import ReasoningBlock, ToolCall
from robota.core.provider import Chunk, ReasoningChunk, StopChunk, TextChunk
from robota.providers.local_server import Projector

STOP = StopChunk("end_turn", "stop")


def cuts(text: str) -> Iterator[list[str]]:
    """The text in two pieces cut at every place, in three around every place, and letter by letter."""
    for at in range(len(text) + 1):
        yield [text[:at], text[at:]]
        yield [text[:at], text[at : at + 1], text[at + 1 :]]
    yield list(text)


def play(projector: Projector, pieces: list[str], *ending: Chunk) -> list[Chunk]:
    chunks: list[Chunk] = []
    for piece in pieces:
        chunks += projector.take(TextChunk(piece))
    for chunk in ending or (STOP,):
        chunks += projector.take(chunk)
    return chunks


def joined(chunks: list[Chunk]) -> list[Chunk]:
    """The chunks with neighbouring pieces of the same kind put together."""
    whole: list[Chunk] = []
    for chunk in chunks:
        last = whole[-1] if whole else None
        if isinstance(chunk, TextChunk | ReasoningChunk) and type(last) is type(chunk):
            whole[-1] = type(chunk)(last.text + chunk.text)
        elif not (isinstance(chunk, TextChunk | ReasoningChunk) and not chunk.text):
            whole.append(chunk)
    return whole


def text_of(chunks: list[Chunk]) -> str:
    return "".join(chunk.text for chunk in chunks if isinstance(chunk, TextChunk))


def thoughts_of(chunks: list[Chunk]) -> list[str]:
    return [chunk.text for chunk in chunks if isinstance(chunk, ReasoningBlock)]


def calls_of(chunks: list[Chunk]) -> list[ToolCall]:
    return [chunk for chunk in chunks if isinstance(chunk, ToolCall)]


def assert_same_in_all_cuts(make: Callable[[], Projector], text: str, expected: list[Chunk]) -> None:
    for pieces in ([text], *cuts(text)):
        assert joined(play(make(), pieces)) == expected, pieces
