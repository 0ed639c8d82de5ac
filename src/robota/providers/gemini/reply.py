"""Reads a Gemini reply from its bytes: a stream of events, one JSON object or a JSON array of them.

Bytes in, chunks out, as in `robota.providers.chat.reply`, with the same promises about what a cut leaves. The
protocol has no end mark: a reply is whole when a reason to stop was given and the connection ended.
"""

from __future__ import annotations

from collections.abc import Sequence

from robota.core.errors import ProviderError, RobotaError
from robota.core.jsontext import decode, encode
from robota.core.messages import Json, JsonObject
from robota.core.provider import Chunk, NativePayload
from robota.providers.chat.reply import ReplyReader
from robota.providers.gemini.content import GeminiContent
from robota.providers.gemini.errors import describe_status
from robota.providers.wire.errors import hide_secrets
from robota.providers.wire.sse import ServerSentEvent

API_SURFACE = "gemini-generate-content"
_KNOWN = ("candidates", "promptFeedback", "usageMetadata")


class GeminiReader(ReplyReader):
    def __init__(self, provider: str, *, want_raw: bool = False, secrets: Sequence[str] = ()) -> None:
        super().__init__(provider, want_raw=want_raw, secrets=secrets)
        self._content = GeminiContent()

    def _read_body(self, body: bytes, chunks: list[Chunk]) -> None:
        """A reply without event stream, as a proxy makes it or the service without `alt=sse`."""
        answer, body = self._decode(body)
        replies = answer if isinstance(answer, list) else [answer]
        if self._want_raw:
            chunks.append(
                NativePayload(kind="response", payload=_one_line(body, answer), api_surface=API_SURFACE)
            )
        for reply in replies:
            if not isinstance(reply, dict):
                raise self._refuse(body)
            self._raise_error(reply)
            if not any(name in reply for name in _KNOWN):
                raise self._refuse(body)
            self._content.read(reply, None, chunks)

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
        if "error" in reply:
            self._raise_error(reply)
        if not self._want_raw:
            self._content.read(reply, None, chunks)
            return
        self._sequence += 1
        raw = self._content.read(reply, _one_line(data, reply), chunks)
        if raw is not None:
            sequence = self._sequence
            chunks.append(
                NativePayload(kind="stream_event", payload=raw, api_surface=API_SURFACE, sequence=sequence)
            )

    # --- what is wrong with it -------------------------------------------------------------------------

    def _raise_error(self, reply: JsonObject, *, named: bool = False) -> None:
        if reply.get("error"):
            raise self._describe(reply["error"])

    def _describe(self, error: Json) -> RobotaError:
        return describe_status(error, self._provider, self._secrets) or super()._describe(error)

    def _refuse(self, what: bytes | str) -> ProviderError:
        text = what if isinstance(what, str) else " ".join(what[:200].decode("utf-8", "replace").split())
        return ProviderError(
            f"{self._provider} sent something that is no Gemini reply "
            f"({hide_secrets(text, self._secrets)}); check the base URL.",
            provider=self._provider,
            status=200,
        )


def _one_line(data: bytes, value: Json) -> bytes:
    """The JSON of one value, fit to be embedded in a line of a journal."""
    return encode(value) if b"\n" in data or b"\r" in data else data
