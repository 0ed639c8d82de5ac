"""Reads a reply of the Messages API from its bytes, as `robota.providers.chat.reply` reads the other one.

A reply is whole once its stop reason has come; `message_stop` only says that nothing follows.
"""

from __future__ import annotations

from collections.abc import Sequence

from robota.core.errors import ProviderError
from robota.core.events import PayloadKind
from robota.core.jsontext import decode, encode
from robota.core.messages import Json
from robota.core.provider import Chunk, NativePayload
from robota.providers.anthropic.content import BlockContent
from robota.providers.chat.reply import ReplyReader
from robota.providers.wire.errors import hide_secrets
from robota.providers.wire.sse import ServerSentEvent

API_SURFACE = "anthropic-messages"


class MessageReader(ReplyReader):
    def __init__(
        self,
        provider: str,
        *,
        want_raw: bool = False,
        request_id: str | None = None,
        secrets: Sequence[str] = (),
    ) -> None:
        super().__init__(provider, want_raw=want_raw, request_id=request_id, secrets=secrets)
        self._content = BlockContent()

    def _read_event(self, event: ServerSentEvent, chunks: list[Chunk], *, last: bool = False) -> None:
        data = event.data
        try:
            reply = decode(data)
        except ValueError:
            if self._is_end(data) or last:  # a last event that cannot be read was cut
                return
            if event.event == "error":
                raise self._describe(data.decode("utf-8", "replace")) from None
            reply, data = self._decode(data)
        if isinstance(reply, dict):
            self.read_object(reply, data, chunks, named_error=event.event == "error")

    def read_object(
        self, reply: dict[str, Json], data: bytes, chunks: list[Chunk], *, named_error: bool = False
    ) -> None:
        """One event, decoded, with the JSON it was decoded from."""
        kind = reply.get("type")
        if kind == "error" or named_error or kind is None:
            self._raise_error(reply, named=kind == "error" or named_error)
        if not self._want_raw:
            self._content.read(reply, None, chunks)
        else:
            self._sequence += 1
            raw = self._content.read(reply, _embeddable(data, reply), chunks)
            if raw is not None:
                chunks.append(self._native("stream_event", raw, self._sequence))
        if kind == "message_stop":
            self.done = True

    def _read_body(self, body: bytes, chunks: list[Chunk]) -> None:
        reply, body = self._decode(body)
        if self._want_raw:
            chunks.append(self._native("response", _embeddable(body, reply), None))
        if not isinstance(reply, dict):
            raise self._refuse(body)
        self._raise_error(reply, named=reply.get("type") == "error")
        if not isinstance(reply.get("content"), list):
            raise self._refuse(body)
        self._content.read({**reply, "type": "message"}, None, chunks)
        self.done = True

    def _native(self, kind: PayloadKind, payload: bytes, sequence: int | None) -> NativePayload:
        return NativePayload(kind=kind, payload=payload, api_surface=API_SURFACE, sequence=sequence)

    def _refuse(self, what: bytes | str) -> ProviderError:
        text = what if isinstance(what, str) else " ".join(what[:200].decode("utf-8", "replace").split())
        return ProviderError(
            f"{self._provider} sent something that is no Messages reply "
            f"({hide_secrets(text, self._secrets)}); check the base URL.",
            provider=self._provider,
            status=200,
            request_id=self._request_id,
        )


def _embeddable(data: bytes, value: Json) -> bytes:
    """The JSON of one value in one line."""
    return encode(value) if b"\n" in data or b"\r" in data else data
