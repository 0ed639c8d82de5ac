"""The host's side of one model call, without HTTP: a provider's reply as the bytes that a client reads.

A host decides who may ask, finds the provider, and passes these bytes on. A failure is raised: as long as
nothing was sent it is an answer with a status (`failures.http_status`), afterwards an `error` event.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing

from robota.core.jsontext import encode
from robota.core.provider import Provider
from robota.core.reply import MessageAssembly, chat, open_stream
from robota.providers.remote.wire import RemoteRequest, encode_chunk, encode_message


async def stream_reply(provider: Provider, request: RemoteRequest) -> AsyncGenerator[bytes, None]:
    """The events of a reply, the whole message last. Closing it closes the provider's stream."""
    assembly = MessageAssembly(provider.name)
    async with aclosing(open_stream(provider, request.to_chat_request())) as chunks:
        async for chunk in chunks:
            assembly.take(chunk)
            yield encode_chunk(chunk)
    yield encode_message(assembly.message())


async def whole_reply(provider: Provider, request: RemoteRequest) -> bytes:
    """The body that answers a request which is not streamed."""
    return encode({"message": await chat(provider, request.to_chat_request())})
