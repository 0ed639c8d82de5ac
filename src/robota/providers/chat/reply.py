"""Reads a Chat Completions reply from its bytes, whatever of the format its server keeps to.

The reader does no I/O. Feed it what arrives and pass on what it returns; `over` says that nothing more is
worth reading. `finish` gives the chunks that are certain only at the end, tool calls among them, or raises:
then the reply was cut, and no unfinished call was given out. Text that came before a failure is not lost.

With `want_raw` each event of the stream leaves its JSON, as bytes without line breaks to be embedded in other
JSON as they are: on the text chunk it became, else in a `NativePayload` of its own.
"""

from __future__ import annotations

from collections.abc import Sequence

from robota.core.errors import NetworkError, ProviderError, RobotaError
from robota.core.jsontext import decode, decode_leniently, encode
from robota.core.messages import Json, JsonObject
from robota.core.provider import Chunk, NativePayload
from robota.providers.chat.content import ReplyContent
from robota.providers.wire.errors import describe_error_event, hide_secrets
from robota.providers.wire.sse import EventSplitter, ServerSentEvent

API_SURFACE = "openai-chat-completions"
MAX_BODY_BYTES = 64 * 1024 * 1024


class ReplyReader:
    def __init__(
        self,
        provider: str,
        *,
        want_raw: bool = False,
        request_id: str | None = None,
        secrets: Sequence[str] = (),
    ) -> None:
        self.done = False
        """The server said that this was all."""
        self.failure: RobotaError | None = None
        """What is wrong with the reply; `finish` will raise it."""
        self.cut: RobotaError | None = None
        """Why the connection ended, to be set from outside; of interest only if the reply is not complete."""
        self._provider = provider
        self._want_raw = want_raw
        self._request_id = request_id
        self._secrets = secrets
        self._splitter: EventSplitter | None = None
        self._body = bytearray()
        """What came before it was clear which kind of reply this is; all of it when it is plain JSON."""
        self._first = b""
        """The first character of the reply, once it has come."""
        self._content = ReplyContent()
        self._sequence = 0

    @property
    def over(self) -> bool:
        return self.done or self.failure is not None

    @property
    def complete(self) -> bool:
        """Whether the reply is whole, even if the connection should break now."""
        return self.failure is None and (self.done or bool(self._content.finish_reason))

    # --- bytes in, chunks out ----------------------------------------------------------------------------

    def feed(self, raw: bytes) -> list[Chunk]:
        chunks: list[Chunk] = []
        try:
            if self._splitter is None:
                raw = self._recognise(raw)
            if self._splitter is not None:
                for event in self._splitter.feed(raw):
                    self._read_event(event, chunks)
                    if self.done:
                        break
        except RobotaError as error:
            self.failure = error
        return chunks

    def end(self) -> list[Chunk]:
        """No more bytes will come: what the last of them meant."""
        chunks: list[Chunk] = []
        if self.over:
            return chunks
        try:
            if self._splitter is not None:
                for event in self._splitter.flush():
                    self._read_event(event, chunks, last=True)
            elif self._body:
                self._read_body(bytes(self._body), chunks)
        except RobotaError as error:
            self.failure = self.cut or error  # half a body reads like nonsense
        return chunks

    def finish(self) -> list[Chunk]:
        """The chunks that close a whole reply; raises what went wrong with any other."""
        if self.failure is not None:
            raise self.failure
        if not self.complete:
            raise self.cut or NetworkError(
                f"{self._provider} closed the connection before its reply was complete; try again.",
                provider=self._provider,
                request_id=self._request_id,
            )
        return self._content.close()

    # --- which kind of reply ---------------------------------------------------------------------------

    def _recognise(self, raw: bytes) -> bytes:
        """Tell an event stream from plain JSON and from a web page by the first character: headers lie.

        Returns what has come so far.
        """
        self._body += raw
        if not self._first:
            self._body = self._body.removeprefix(
                b"\xef\xbb\xbf"
            ).lstrip()  # blanks keep some connections alive
            self._first = bytes(self._body[:1])
        first = self._first
        if first == b"<":
            raise ProviderError(
                f"{self._provider} answered with a web page instead of a model's reply; check the base URL.",
                provider=self._provider,
                status=200,
                request_id=self._request_id,
            )
        if first and first not in b"{[":
            self._splitter = EventSplitter(provider=self._provider)
        elif len(self._body) > MAX_BODY_BYTES:
            raise self._refuse(f"more than {MAX_BODY_BYTES} bytes")
        return bytes(self._body) if self._splitter is not None else b""

    def _read_body(self, body: bytes, chunks: list[Chunk]) -> None:
        """A whole reply in one JSON object, from a server that does not stream."""
        reply, body = self._decode(body)
        if self._want_raw:
            payload = _embeddable(body, reply)
            chunks.append(NativePayload(kind="response", payload=payload, api_surface=API_SURFACE))
        if not isinstance(reply, dict):
            raise self._refuse(body)
        self._raise_error(reply)
        if not isinstance(reply.get("choices"), list):
            raise self._refuse(body)
        self._content.read(reply, None, chunks)
        self.done = True

    # --- one event -----------------------------------------------------------------------------------

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
        if not isinstance(reply, dict):
            return
        if event.event == "error" or "choices" not in reply or "error" in reply:
            self._raise_error(reply, named=event.event == "error")
        if not self._want_raw:
            self._content.read(reply, None, chunks)
            return
        self._sequence += 1
        raw = self._content.read(reply, _embeddable(data, reply), chunks)
        if raw is not None:
            sequence = self._sequence
            chunks.append(
                NativePayload(kind="stream_event", payload=raw, api_surface=API_SURFACE, sequence=sequence)
            )

    # --- what is wrong with it -------------------------------------------------------------------------

    def _is_end(self, data: bytes) -> bool:
        word = data.strip()
        self.done = self.done or word == b"[DONE]"
        return self.done or not word

    def _decode(self, data: bytes) -> tuple[Json, bytes]:
        """The value, and bytes that are valid JSON for it."""
        try:
            return decode(data), data
        except ValueError:
            try:
                value = decode_leniently(data)
            except ValueError:
                raise self._refuse(data) from None
        return value, encode(value)

    def _raise_error(self, reply: JsonObject, *, named: bool = False) -> None:
        error = reply.get("error")
        if error or named or reply.get("object") == "error":
            raise self._describe(error or reply)

    def _describe(self, error: Json) -> RobotaError:
        return describe_error_event(error, self._provider, request_id=self._request_id, secrets=self._secrets)

    def _refuse(self, what: bytes | str) -> ProviderError:
        text = what if isinstance(what, str) else " ".join(what[:200].decode("utf-8", "replace").split())
        return ProviderError(
            f"{self._provider} sent something that is no Chat Completions reply "
            f"({hide_secrets(text, self._secrets)}); check the base URL.",
            provider=self._provider,
            status=200,
            request_id=self._request_id,
        )


def _embeddable(data: bytes, value: Json) -> bytes:
    """The JSON of one value in one line."""
    return encode(value) if b"\n" in data or b"\r" in data else data
