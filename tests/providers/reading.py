"""Replies read from their bytes and over HTTP, for tests of what an adapter makes of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pytest

from robota.core.errors import NetworkError, RobotaError
from robota.core.messages import Message, ToolCall, UserMessage
from robota.core.provider import ChatRequest, Chunk, Provider, TextChunk
from robota.providers.wire.errors import Peer
from robota.providers.wire.reply import ReplyContent, ReplyReader


def read_reply(content: ReplyContent, *parts: bytes, want_raw: bool = False) -> list[Chunk]:
    """All chunks of a whole reply."""
    reader = ReplyReader(content, Peer("test"), want_raw=want_raw)
    chunks = [chunk for part in parts for chunk in reader.feed(part)]
    return [*chunks, *reader.end(), *reader.finish()]


def read_broken(content: ReplyContent, *parts: bytes, peer: Peer | None = None) -> tuple[str, RobotaError]:
    """The text that came before a reply failed, and the failure."""
    reader = ReplyReader(content, peer or Peer("test"))
    chunks = [chunk for part in parts for chunk in reader.feed(part)]
    chunks += reader.end()
    with pytest.raises(RobotaError) as caught:
        reader.finish()
    return text_in(chunks), caught.value


def ask(*messages: Message, **fields: Any) -> ChatRequest:
    """A request that leaves the model to the provider."""
    return ChatRequest(**{"model": "", "messages": messages or (UserMessage("hi"),), **fields})


async def listen(
    provider: Provider, request: ChatRequest | None = None, *, heard: list[Chunk] | None = None
) -> list[Chunk]:
    heard = [] if heard is None else heard
    async for chunk in provider.stream(request or ask()):
        heard.append(chunk)
    return heard


async def text_of(provider: Provider, request: ChatRequest | None = None) -> str:
    return text_in(await listen(provider, request))


def text_in(chunks: Iterable[Chunk]) -> str:
    return "".join(chunk.text for chunk in chunks if isinstance(chunk, TextChunk))


def calls_in(chunks: Iterable[Chunk]) -> list[ToolCall]:
    return [chunk for chunk in chunks if isinstance(chunk, ToolCall)]


# --- a stream that is cut, at every byte --------------------------------------------------------------------


def check_cuts(
    content: Callable[[], ReplyContent],
    stream: bytes,
    texts: Sequence[tuple[str, bytes]],
    calls: list[ToolCall],
    certain: int,
) -> None:
    """Texts whose events had come are given out; calls only from the byte on that makes them certain."""
    assert len(stream) > 3000
    ends = [(text, stream.index(event) + len(event) - len(b"\n\n")) for text, event in texts]
    for at in range(len(stream)):
        reader = ReplyReader(content(), Peer("test"))
        chunks = [*reader.feed(stream[:at]), *reader.end()]
        assert text_in(chunks) == "".join(text for text, end in ends if end <= at)
        assert calls_in(chunks) == []
        if at >= certain:
            assert calls_in(reader.finish()) == calls
        else:
            with pytest.raises(NetworkError):
                reader.finish()


def check_tears(content: Callable[[], ReplyContent], stream: bytes) -> None:
    """The reply is the same wherever its bytes are torn, and when each comes by itself."""
    whole = read_reply(content(), stream)
    for at in range(len(stream)):
        assert read_reply(content(), stream[:at], stream[at:]) == whole
    assert read_reply(content(), *(stream[at : at + 1] for at in range(len(stream)))) == whole
