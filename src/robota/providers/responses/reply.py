"""Reads a Responses reply from its bytes: a stream of typed events, or one JSON object.

Bytes in, chunks out, as in `robota.providers.chat.reply`, with the same promises about what a cut leaves.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from robota.core.errors import ProviderError, RobotaError
from robota.core.events import PayloadKind
from robota.core.jsontext import decode, encode
from robota.core.messages import Json, JsonObject
from robota.core.provider import Chunk, NativePayload
from robota.providers.chat.reply import ReplyReader
from robota.providers.responses.content import ResponseContent
from robota.providers.wire.errors import hide_secrets
from robota.providers.wire.sse import ServerSentEvent

API_SURFACE = "openai-responses"


class ResponsesReader(ReplyReader):
    def __init__(
        self,
        provider: str,
        *,
        want_raw: bool = False,
        request_id: str | None = None,
        secrets: Sequence[str] = (),
        schemas: Mapping[str, JsonObject] | None = None,
    ) -> None:
        super().__init__(provider, want_raw=want_raw, request_id=request_id, secrets=secrets)
        self._response = ResponseContent(schemas)
        self._content = self._response

    def _read_body(self, body: bytes, chunks: list[Chunk]) -> None:
        """A whole reply in one JSON object, from a server that does not stream."""
        reply, body = self._decode(body)
        if self._want_raw:
            chunks.append(_native("response", _one_line(body, reply)))
        if not isinstance(reply, dict):
            raise self._refuse(body)
        self._raise_error(reply)
        if not isinstance(reply.get("output"), list):
            raise self._refuse(body)
        self._response.read_response(reply, chunks)
        self.done = True

    def _read_event(self, event: ServerSentEvent, chunks: list[Chunk], *, last: bool = False) -> None:
        data = event.data
        try:
            reply = decode(data)
        except ValueError:
            if last or self._is_end(data):  # a last event that cannot be read was cut
                return
            reply, data = self._decode(data)
        if not isinstance(reply, dict):
            return
        if self._want_raw:
            self._sequence += 1
            raw = self._content.read(reply, _one_line(data, reply), chunks)
            if raw is not None:
                chunks.append(_native("stream_event", raw, self._sequence))
        else:
            self._content.read(reply, None, chunks)
        if event.event == "error" or "delta" not in reply:
            self._raise_error(reply, named=event.event == "error")
            self.done = bool(self._content.finish_reason)

    # --- what is wrong with it -------------------------------------------------------------------------

    def _raise_error(self, reply: JsonObject, *, named: bool = False) -> None:
        kind, response = reply.get("type"), reply.get("response")
        failed = kind == "response.failed" or reply.get("status") == "failed"
        if isinstance(response, dict) and failed:
            reply = response
        error = reply.get("error")
        if error or named or failed or kind == "error":
            raise self._describe(
                error or {name: reply[name] for name in ("code", "message") if name in reply}
            )

    def _describe(self, error: Json) -> RobotaError:
        code = str(error.get("code") or "") if isinstance(error, dict) else ""
        if code == "context_length_exceeded":
            said = hide_secrets(str(error.get("message") or code), self._secrets).rstrip(".")
            return ProviderError(
                f"{self._provider} cannot take a conversation this long ({said}); "
                "compact it or use a model with a larger window.",
                provider=self._provider,
                status=400,
                request_id=self._request_id,
            )
        if "overloaded" in code:
            error = {**error, "status": "529"}
        return super()._describe(error)

    def _refuse(self, what: bytes | str) -> ProviderError:
        text = what if isinstance(what, str) else " ".join(what[:200].decode("utf-8", "replace").split())
        return ProviderError(
            f"{self._provider} sent something that is no Responses reply "
            f"({hide_secrets(text, self._secrets)}); check the base URL, or pass api='chat'.",
            provider=self._provider,
            status=200,
            request_id=self._request_id,
        )


def _native(kind: PayloadKind, payload: bytes, sequence: int | None = None) -> NativePayload:
    return NativePayload(kind=kind, payload=payload, api_surface=API_SURFACE, sequence=sequence)


def _one_line(data: bytes, value: Json) -> bytes:
    return encode(value) if b"\n" in data or b"\r" in data else data
