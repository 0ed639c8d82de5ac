"""A reply on its way into the journal: consecutive pieces of it become one record, a *run*.

A run is closed after a moment, when it is long, and before any other record.

Secrets may be cut anywhere by a stream, so each channel (the text, the thinking, the arguments of each call,
the progress of each tool) goes through a redactor that holds pieces back until it is clear what they are part
of. A provider reports its event after the pieces that came from it, so an event never runs ahead of its text.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from msgspec import Raw, Struct

from robota.core.events import (
    ProviderNativeRawPayload,
    ReasoningDelta,
    TextDelta,
    ToolInputDelta,
    ToolProgressed,
)
from robota.core.jsontext import decode, encode, is_json
from robota.core.messages import AssistantMessage, Json
from robota.core.tool_call import place_of
from robota.sessions.journal.pieces import (
    INPUT,
    NATIVE_EVENT,
    NATIVE_REQUEST,
    NATIVE_RESPONSE,
    PROGRESS,
    TEXT,
    TEXT_WITH_BYTES,
    THOUGHT,
    Pieces,
)
from robota.sessions.redaction import Redactor, StreamRedactor

_ENVELOPES_KEPT = 8
_DIGITS = b"0123456789"


class NativeEvents(Struct, eq=False):
    """Collects the events of one record: `add` each, then `take` them all."""

    _redactor: Redactor
    _plain: list[int] = []
    """Hashes of envelopes without anything secret, their digits aside: counts and numbered ids differ."""
    _last: int = 0
    """The envelope of the last piece of text, which most likely comes again."""
    _events: list[bytes] = []
    _unknown: dict[int, bytes] = {}
    """Envelopes of collected events, by place."""

    def add(self, raw: bytes, text: str, shown: str) -> None:
        """An event that carries `text`, of which `shown` may be seen."""
        events = self._events
        if text != shown:
            whole = is_json(raw)
            known = encode(_exchange(decode(raw), text, shown) if whole else shown)
            events.append(self._redactor.json(known))
            return
        envelope = raw.replace(encode(text), b'""', 1) if text else raw
        if len(envelope) == len(raw) and text and not text.isascii():
            import json  # noqa: PLC0415 - only for services that escape what is not ASCII

            envelope = raw.replace(json.dumps(text).encode(), b'""', 1)
        if hash(envelope) != self._last and hash(envelope.translate(None, _DIGITS)) not in self._plain:
            self._unknown[len(events)] = envelope
        elif text:
            self._last = hash(envelope)
        events.append(raw)

    def __len__(self) -> int:
        return len(self._events)

    def take(self) -> bytes | None:
        """The collected events as one JSON list; `None` if there are none."""
        if not self._events:
            return None
        if self._unknown:
            self._look()
        taken, self._events = self._events, []
        return b"[%s]" % b",".join(taken)

    def _look(self) -> None:
        unknown, self._unknown = self._unknown, {}
        for at in [at for at, envelope in unknown.items() if not is_json(envelope)]:
            del unknown[at]  # it would spoil the record: it is kept as a text
            words = self._redactor.text(self._events[at].decode("utf-8", "replace"))
            self._events[at] = encode(words)
        together = b"[%s]" % b",".join(unknown.values())
        if self._redactor.json(together) is together:
            news = [hash(envelope.translate(None, _DIGITS)) for envelope in unknown.values()]
            self._plain = [*self._plain, *news][-_ENVELOPES_KEPT:]
            return
        for at in unknown:
            self._events[at] = self._redactor.json(self._events[at])


def _exchange(value: Json, text: str, shown: str) -> Json:
    """The value with the text replaced wherever it stands."""
    if isinstance(value, str):
        return shown if value == text else value
    if isinstance(value, list):
        return [_exchange(item, text, shown) for item in value]
    if isinstance(value, dict):
        return {key: _exchange(item, text, shown) for key, item in value.items()}
    return value


StreamPiece: TypeAlias = (
    TextDelta | ReasoningDelta | ToolInputDelta | ToolProgressed | ProviderNativeRawPayload
)
_TEXT_ALONE = {TextDelta}
_SIZE_ONLY = b'{"byteLength":'
_KINDS = {ReasoningDelta: THOUGHT, ToolInputDelta: INPUT, ToolProgressed: PROGRESS}
_NATIVE_KINDS = {"stream_event": NATIVE_EVENT, "response": NATIVE_RESPONSE, "request": NATIVE_REQUEST}


class NativeMarks(Struct, eq=False):
    """What native payloads say about themselves that a reader could not know from their place.

    A reader numbers the events of a stream one after the other, text with its bytes included, and any other
    payload behind the highest number so far.
    """

    redactor: Redactor
    _streamed: int = 0
    """The number of the last event of the stream before those that are being collected."""
    _highest: int = 0
    _others: int = 0
    """Payloads among those being collected that are no events of the stream."""
    _said: list[Json] = []

    def add(self, piece: ProviderNativeRawPayload, place: int) -> None:
        streamed = self._streamed + place - self._others
        is_event = piece.payload_kind == "stream_event"
        self._highest = max(self._highest, streamed)
        usual = (streamed if is_event else self._highest) + 1
        if piece.sequence != usual or piece.metadata:
            self._said.append([place, piece.sequence, decode(self.redactor.json(encode(piece.metadata)))])
        if is_event:
            self._streamed += piece.sequence - usual
        else:
            self._others += 1
        self._highest = max(self._highest, piece.sequence)

    def take(self, count: int) -> list[Json]:
        """What there is to say of so many payloads that are written now."""
        said, self._said = self._said, []
        self._streamed += count - self._others
        self._highest, self._others = max(self._highest, self._streamed), 0
        return said


class StreamRun:
    """The pieces of one reply that are not written yet."""

    __slots__ = (
        "_changed", "_channels", "_marks", "_natives", "_redactor", "_shown", "_surface", "letters_written",
        "pieces", "reached", "texts_written",
    )  # fmt: skip

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self._natives = NativeEvents(redactor)
        self._marks = NativeMarks(self._redactor)
        self._channels: dict[object, StreamRedactor | ArgumentRedactor] = {}
        self._surface: str | None = None
        self._shown: list[str | None] = []
        """What may be written of the first pieces; `None` while that is not clear."""
        self.pieces: list[StreamPiece] = []
        self.reached = 0
        """The number of the last piece that was taken."""
        self._changed = False
        self.letters_written = 0
        self.texts_written = 0
        """Text pieces of this reply that are in the journal, and their letters."""

    def begin_reply(self) -> None:
        self._channels.clear()
        self._marks = NativeMarks(self._redactor)
        self._surface = None
        self._changed = False
        self.texts_written = self.letters_written = 0

    def has_shown(self, message: AssistantMessage) -> bool:
        """Whether text and arguments of the reply were written word for word: then they hold no secret."""
        if self._changed or self.pieces or message.reasoning or self.letters_written != len(message.content):
            return False
        shown = [inputs.shown for inputs in self._channels.values() if type(inputs) is ArgumentRedactor]
        return all(not call.signature and call.arguments in shown for call in message.tool_calls)

    def take(self, *, final: bool) -> Pieces | None:
        """Everything that may be written now; `None` for nothing."""
        if not final and self._shown and type(self.pieces[0]) is ToolInputDelta:
            return None  # waits for the end of its call, and all others with it
        self._redact(final)
        count = self._shown.index(None) if None in self._shown else len(self._shown)
        if not count:
            return None
        written, self.pieces = self.pieces[:count], self.pieces[count:]
        texts, self._shown = self._shown[:count], self._shown[count:]
        self.reached = written[-1].seq
        return self._gather(written, [text or "" for text in texts])

    def tail(self) -> str:
        """The words of the answer among what is left, as far as they may be seen already."""
        if self.pieces and type(self.pieces[0]) is ToolInputDelta:
            self._redact(final=False)  # which `take` leaves for later
        known = [
            text for piece, text in zip(self.pieces, self._shown, strict=False) if type(piece) is TextDelta
        ]
        redactor = self._channels.get(TextDelta)
        rest = redactor.tail() if isinstance(redactor, StreamRedactor) else ""
        return "".join(filter(None, known)) + rest

    def _redact(self, final: bool) -> None:
        """Find out what may be written of the new pieces and of those that were held back."""
        shown = self._shown
        if set(map(type, self.pieces)) == _TEXT_ALONE:
            self._redact_text(final)
            return
        for piece in self.pieces[len(shown) :]:
            if type(piece) is ProviderNativeRawPayload:
                shown.append("")
                continue
            channel = _channel_of(piece)
            redactor = self._channels.get(channel)
            if redactor is None:
                kind = ArgumentRedactor if type(piece) is ToolInputDelta else StreamRedactor
                redactor = self._channels[channel] = kind(self._redactor)
            redactor.push(_text_of(piece))
            shown.append(None)
        waiting: dict[object, list[int]] = {}
        for at, text in enumerate(shown):
            if text is None:
                waiting.setdefault(_channel_of(self.pieces[at]), []).append(at)
        for channel, places in waiting.items():
            for at, text in zip(places, self._channels[channel].take(final=final), strict=False):
                shown[at] = text

    def _redact_text(self, final: bool) -> None:
        """The same for pieces of text alone: with one channel, what is held back is always the end."""
        redactor = self._channels.get(TextDelta)
        if redactor is None:
            redactor = self._channels[TextDelta] = StreamRedactor(self._redactor)
        push = redactor.push
        for piece in self.pieces[len(self._shown) :]:
            push(piece.text)  # type: ignore[union-attr]  # text deltas all of them
        taken: list[str | None] = [*redactor.take(final=final)]
        self._shown = taken + [None] * (len(self.pieces) - len(taken))

    def _gather(self, written: Sequence[StreamPiece], shown: Sequence[str]) -> Pieces:
        kinds: list[str] = []
        texts: list[str] = []
        inputs: list[Json] = []
        progress: list[int] = []
        surface = self._surface
        carried = ("", "")  # what the next event of the provider is about
        natives, letters, count, changed = self._natives, 0, 0, False
        for piece, text in zip(written, shown, strict=True):
            if type(piece) is TextDelta:  # first, and written out: there are hundreds of them
                texts.append(text)
                letters += len(text)
                changed = changed or text != piece.text
                if piece.raw is None:
                    kinds.append(TEXT)
                else:
                    kinds.append(TEXT_WITH_BYTES)
                    natives.add(piece.raw, piece.text, text)
                count += 1
            elif type(piece) is ProviderNativeRawPayload:
                kinds.append(_NATIVE_KINDS[piece.payload_kind])
                self._marks.add(piece, len(natives))
                natives.add(_native_bytes(piece), *carried)
                surface = piece.api_surface or surface
            else:
                texts.append(text)
                carried = (_text_of(piece), text)
                kinds.append(_KINDS[type(piece)])
                if type(piece) is ToolInputDelta:
                    inputs.append([piece.index, piece.tool_call_id, piece.tool_name])
                elif type(piece) is ToolProgressed:
                    progress.append(place_of(piece.call_id)[1])
        first = self.texts_written + 1
        self.texts_written, self.letters_written = self.texts_written + count, self.letters_written + letters
        self._changed = self._changed or changed
        pieces = Pieces(
            first=first if count else 1,
            kinds="".join(kinds) if any(kind != TEXT_WITH_BYTES for kind in kinds) else "",
            surface=surface if surface != self._surface else None,
        )
        self._surface = surface
        marks = self._marks.take(len(natives))
        for name, values in (("texts", texts), ("inputs", inputs), ("progress", progress), ("marks", marks)):
            if values:
                setattr(pieces, name, Raw(encode(values)))
        native = natives.take()
        if native is not None:
            pieces.native = Raw(native)
        return pieces


def _channel_of(piece: StreamPiece) -> object:
    if type(piece) is ToolProgressed:
        return piece.call_id
    return piece.index if type(piece) is ToolInputDelta else type(piece)


def _text_of(piece: StreamPiece) -> str:
    if isinstance(piece, ToolInputDelta):
        return piece.delta
    return "" if isinstance(piece, ProviderNativeRawPayload) else piece.text


def _native_bytes(piece: ProviderNativeRawPayload) -> bytes:
    payload = piece.payload
    if piece.payload_kind == "request":
        # It repeats the whole history. What it was made of is in the journal; only its size is news.
        encoded = payload if type(payload) is bytes else encode(payload)
        return encoded if encoded.startswith(_SIZE_ONLY) else b"%s%d}" % (_SIZE_ONLY, len(encoded))
    return payload if type(payload) is bytes else encode(payload)


class ArgumentRedactor(Struct, eq=False):
    """The arguments of one call while they stream: taken as `StreamRedactor` takes pieces, judged as a whole.

    What is secret in JSON may show only when its names are decoded, so nothing is given out before the end.
    Half a call is of no use to anybody: if the stream is cut, its arguments never run.
    """

    _redactor: Redactor
    _pieces: list[str] = []
    shown: str | None = None
    """The arguments, if they were given out and nothing in them is secret."""

    def push(self, piece: str) -> None:
        self._pieces.append(piece)

    def take(self, *, final: bool = False) -> list[str]:
        """All pieces at the end; a secret in them moves the whole text into the first."""
        if not final or not self._pieces:
            return []
        pieces, self._pieces = self._pieces, []
        whole = "".join(pieces)
        shown = self._redact(whole)
        if shown == whole:
            self.shown = whole
            return pieces
        return [shown, *[""] * (len(pieces) - 1)]

    def _redact(self, whole: str) -> str:
        if not is_json(whole):
            return self._redactor.text(whole)
        encoded = whole.encode("utf-8", "replace")
        shown = self._redactor.json(encoded)
        return whole if shown is encoded else shown.decode()
