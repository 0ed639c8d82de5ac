"""Reads a reply from its bytes, whatever of its format the server keeps to.

The reader does no I/O. Feed it what arrives and pass on what it returns; `over` says that nothing more is
worth reading. `finish` gives the chunks that are certain only at the end, tool calls among them, or raises:
then the reply was cut, and no unfinished call was given out. Text that came before a failure is not lost.

A dialect is a `ReplyContent`: it turns decoded events into chunks, knows what an error looks like, when a
reply is whole, and which chunks close it.

With `want_raw` each event of the stream leaves its JSON, as bytes without line breaks to be embedded in other
JSON as they are: on the text chunk it became, else in a `NativePayload` of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import ClassVar

from msgspec import structs

from robota.core.errors import NetworkError, ProviderError, RobotaError
from robota.core.events import PayloadKind
from robota.core.jsontext import decode, decode_leniently, encode
from robota.core.messages import Json, JsonObject, StopReason, TokenUsage
from robota.core.provider import Chunk, MetadataChunk, NativePayload, StopChunk
from robota.http.errors import HttpError
from robota.http.sse import EventSplitter, ServerSentEvent, is_event_stream
from robota.providers.wire.errors import Peer, describe_error_event, quote

MAX_BODY_BYTES = 64 * 1024 * 1024
MAX_REPLY_BYTES = 256 * 1024 * 1024
"""Of a whole stream. The longest answer of any model is a fraction of it; what goes on beyond never ends."""
_MAX_QUOTE = 200
_LOOK = 4096
"""Bytes among which a quote is looked for."""
_TOO_MANY = 2**53


class ReplyContent:
    """The content of one reply; what is certain only at the end is kept and told by `close`."""

    surface: ClassVar[str]
    """The API's name in native payloads; empty where the other side tells of the request it makes."""
    format: ClassVar[str]
    """The API's name in sentences."""
    plain_key: ClassVar[str]
    """What an event has that is neither an end nor an error, so that most need no second look."""
    advice: ClassVar[str] = "check the base URL"
    """What to do when something else answers."""
    advice_after_cut: ClassVar[str] = "try again"

    def __init__(self) -> None:
        self.finish_reason = ""
        """The service's own word for why it stopped; empty until it has said so."""
        self.done = False
        """The service said that this was all."""
        self.error: Json = None
        """Why the reply is worth nothing although it came to its end, if it says so."""
        self.announced = False
        self.usage: TokenUsage | None = None

    def read(self, reply: JsonObject, raw: bytes | None, chunks: list[Chunk]) -> bytes | None:
        """Add the event's chunks. The raw bytes go with its text; if it has none, they are returned."""
        raise NotImplementedError

    def read_whole(self, reply: JsonObject, chunks: list[Chunk]) -> bool:
        """A reply that was not streamed; false if this is none."""
        raise NotImplementedError

    def close(self) -> list[Chunk]:
        """The chunks of a reply that is over and whole."""
        raise NotImplementedError

    def conclude(
        self, chunks: Iterable[Chunk], facts: JsonObject, reason: StopReason, detail: str | None
    ) -> list[Chunk]:
        """These chunks, and those that are last in every reply; of the facts those that say something."""
        facts = {name: value for name, value in facts.items() if value}
        told = [MetadataChunk(facts)] if facts else []
        counted = [self.usage] if self.usage is not None else []
        return [*chunks, *told, *counted, StopChunk(reason, detail or None)]

    def find_error(self, reply: JsonObject, *, named: bool) -> Json:
        """What the event says went wrong, if it is about that; `named` events call themselves errors."""
        error = reply.get("error")
        if isinstance(error, dict) and not any(error.values()) and not named:
            return None  # some servers send every field they know, with nothing in it
        return error or (reply if named else None)  # an error may say nothing at all: `{}`

    def describe_error(self, error: Json, peer: Peer) -> RobotaError:
        return describe_error_event(error, peer)

    def announce(self, model: Json, response_id: Json, chunks: list[Chunk]) -> None:
        """Tell once who answers, as soon as an event says so."""
        values = {"model": model, "responseId": response_id}
        values = {name: value for name, value in values.items() if value and isinstance(value, str)}
        if values:
            self.announced = True
            chunks.append(MetadataChunk(values))


def image_of(data: Json, mime_type: Json = None, signature: str = "") -> JsonObject | None:
    """A picture that the model made, as it is kept with the message under `images`."""
    if not data or not isinstance(data, str):
        return None
    head, comma, inline = data.partition(";base64,")
    if data.startswith("data:") and comma:
        data, mime_type = inline, head.removeprefix("data:")
    elif "://" in data[:12]:
        return {"type": "image_uri", "uri": data}
    image = {"type": "image_inline", "data": data, "mimeType": str(mime_type or "image/png")}
    return {**image, "signature": signature} if signature else image


def count_of(record: Json, name: str) -> int:
    """A count of tokens, if it can be one."""
    value = record.get(name) if isinstance(record, dict) else None
    return value if type(value) is int and 0 < value < _TOO_MANY else 0


def text_of(record: JsonObject, name: str) -> str:
    value = record.get(name)
    return value if isinstance(value, str) else ""


class ReplyReader:
    def __init__(self, content: ReplyContent, peer: Peer, *, want_raw: bool = False) -> None:
        self.failure: RobotaError | None = None
        """What is wrong with the reply; `finish` will raise it."""
        self.cut: RobotaError | None = None
        """Why the connection ended, to be set from outside; of interest only if the reply is not complete."""
        self._content = content
        self._peer = peer
        self._want_raw = want_raw
        self._splitter: EventSplitter | None = None
        self._body = bytearray()
        """What came before it was clear which kind of reply this is; all of it when it is plain JSON."""
        self._first = b""
        """The first character of the reply, once it has come."""
        self._sequence = 0
        self._size = 0

    @property
    def done(self) -> bool:
        """The server said that this was all."""
        return self._content.done

    @property
    def over(self) -> bool:
        return self._content.done or self.failure is not None

    @property
    def complete(self) -> bool:
        """Whether the reply is whole, even if the connection should break now."""
        return self.failure is None and (self._content.done or bool(self._content.finish_reason))

    # --- bytes in, chunks out ----------------------------------------------------------------------------

    def feed(self, raw: bytes | JsonObject) -> list[Chunk]:
        """What arrived: bytes, or an event that a vendor's client has decoded."""
        chunks: list[Chunk] = []
        self._size += len(str(raw)) if isinstance(raw, dict) else len(raw)
        try:
            if self._size > MAX_REPLY_BYTES:
                size = f"{MAX_REPLY_BYTES >> 20} MiB"
                raise self._refusal(f"sent more than {size} in one reply, so the rest was dropped.")
            if isinstance(raw, dict):
                self._read_event(raw, chunks)
                return chunks
            if self._splitter is None:
                raw = self._recognise(raw)
            if self._splitter is not None:
                for event in self._splitter.feed(raw):
                    self._read_event(event, chunks)
                    if self._content.done:
                        break
        except HttpError as error:
            self.failure = self._refusal(f"went on without an end ({error}), so the reply was dropped.")
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
                if self.cut is None and not is_event_stream(self._body):
                    raise self._refuse(bytes(self._body))
            elif self._body:
                self._read_body(bytes(self._body), chunks)
        except RobotaError as error:
            self.failure = self.cut or error  # half a body reads like nonsense
        return chunks

    def conclude(self) -> Iterator[Chunk]:
        """No more bytes will come: all that is left to say, or what went wrong."""
        yield from self.end()
        yield from self.finish()

    def finish(self) -> list[Chunk]:
        """The chunks that close a whole reply; raises what went wrong with any other."""
        if self.failure is not None:
            raise self.failure
        if not self.complete:
            raise self.cut or NetworkError(
                f"{self._peer.provider} closed the connection before its reply was complete; "
                f"{self._content.advice_after_cut}.",
                provider=self._peer.provider,
                request_id=self._peer.request_id,
            )
        if self._content.error is not None:
            raise self._describe(self._content.error)
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
            raise self._refusal(
                f"answered with a web page instead of a model's reply; {self._content.advice}."
            )
        if first and first not in b"{[":
            self._splitter = EventSplitter()
        elif len(self._body) > MAX_BODY_BYTES:
            raise self._refuse(f"more than {MAX_BODY_BYTES} bytes")
        return bytes(self._body) if self._splitter is not None else b""

    def _read_body(self, body: bytes, chunks: list[Chunk]) -> None:
        """A whole reply as JSON, from a server or proxy that does not stream: an object or a list of them."""
        answer, body = self._decode(body)
        if self._want_raw:
            chunks.append(self._native("response", body, answer))
        for reply in answer if answer and isinstance(answer, list) else [answer]:
            if not isinstance(reply, dict):
                raise self._refuse(body)
            self._raise_error(reply, begun=False)
            if not self._content.read_whole(reply, chunks):
                raise self._refuse(body)

    # --- one event -----------------------------------------------------------------------------------

    def _read_event(
        self, event: ServerSentEvent | JsonObject, chunks: list[Chunk], *, last: bool = False
    ) -> None:
        if isinstance(event, dict):
            reply, named = event, False
            data = encode(reply) if self._want_raw else b""
        else:
            data, named = event.data, event.event == "error"
            try:
                reply = decode(data)
            except ValueError:
                if self._is_end(data) or last:  # a last event that cannot be read was cut
                    return
                if named:
                    raise self._describe(data.decode("utf-8", "replace")) from None
                reply, data = self._decode(data)
            if not isinstance(reply, dict):
                return
        content = self._content
        if not self._want_raw:
            content.read(reply, None, chunks)
        else:
            self._sequence += 1
            raw = content.read(reply, _one_line(data, reply), chunks)
            if raw is not None:
                chunks.append(self._native("stream_event", raw, reply, self._sequence))
        if content.plain_key not in reply or "error" in reply or named:
            self._raise_error(reply, named=named)

    def _is_end(self, data: bytes) -> bool:
        word = data.strip()
        if word == b"[DONE]":
            self._content.done = True
        return self._content.done or not word

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

    def _native(
        self, kind: PayloadKind, data: bytes, value: Json, sequence: int | None = None
    ) -> NativePayload:
        payload, surface = _one_line(data, value), self._content.surface
        return NativePayload(kind=kind, payload=payload, api_surface=surface, sequence=sequence)

    # --- what is wrong with it -------------------------------------------------------------------------

    def _raise_error(self, reply: JsonObject, *, named: bool = False, begun: bool = True) -> None:
        error = self._content.find_error(reply, named=named)
        if error is not None:
            raise self._content.describe_error(error, structs.replace(self._peer, begun=begun))

    def _describe(self, error: Json) -> RobotaError:
        return self._content.describe_error(error, self._peer)

    def _refuse(self, what: bytes | str) -> ProviderError:
        text = what if isinstance(what, str) else what[:_LOOK].decode("utf-8", "replace")
        said = quote(text, self._peer.secrets, _MAX_QUOTE)
        content = self._content
        return self._refusal(
            f"sent something that is not a {content.format} reply ({said}); {content.advice}."
        )

    def _refusal(self, what: str) -> ProviderError:
        provider = self._peer.provider
        return ProviderError(
            f"{provider} {what}", provider=provider, status=200, request_id=self._peer.request_id
        )


def _one_line(data: bytes, value: Json) -> bytes:
    """The JSON of one value, fit to be embedded in a line of a journal."""
    return encode(value) if b"\n" in data or b"\r" in data else data
