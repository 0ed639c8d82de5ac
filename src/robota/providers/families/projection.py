"""Replies read once more: what a model wrote into its text and its server did not notice is taken out.

A projector holds text back only while it cannot know what it is. Nothing is lost: what turns out to be plain
is given out as it was written, also when the reply breaks off.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable, Sequence
from contextlib import aclosing
from typing import Protocol

from robota.core.errors import RobotaError
from robota.core.provider import Chunk, NativePayload, TextChunk
from robota.providers.chat.content import ChatContent


class Projector(Protocol):
    """Sees the chunks of one reply, in their order."""

    def take(self, chunk: Chunk) -> Iterable[Chunk]:
        """What to pass on for this chunk. The `StopChunk` ends the reply: nothing is held back any longer."""
        ...

    def release(self) -> Iterable[Chunk]:
        """The reply was cut: what was held back, as it was written."""
        ...


async def project(chunks: AsyncGenerator[Chunk, None], *projectors: Projector) -> AsyncGenerator[Chunk, None]:
    """The chunks of a reply as these projectors see it, one after the other."""
    failure: RobotaError | None = None
    async with aclosing(chunks):
        try:
            async for chunk in chunks:
                for seen in _pass_on([chunk], projectors):
                    yield seen
        except RobotaError as error:
            failure = error
    if failure is not None:
        for at, projector in enumerate(projectors):
            for seen in _pass_on(projector.release(), projectors[at + 1 :]):
                yield seen
        raise failure


def _pass_on(chunks: Iterable[Chunk], projectors: Sequence[Projector]) -> Iterable[Chunk]:
    for projector in projectors:
        chunks = [seen for chunk in chunks for seen in projector.take(chunk)]
    return chunks


def keep_raw(chunk: TextChunk) -> list[Chunk]:
    """The native event of a text that is about to be taken apart, by itself."""
    if chunk.raw is None:
        return []
    return [NativePayload(kind="stream_event", payload=chunk.raw, api_surface=ChatContent.surface)]


def count_overlap(text: str, marks: Iterable[str]) -> int:
    """How many characters at the end of the text could be the beginning of one of the marks."""
    longest = 0
    for mark in marks:
        for length in range(min(len(mark) - 1, len(text)), longest, -1):
            if text.endswith(mark[:length]):
                longest = length
                break
    return longest
