"""A reply on its way into the journal: consecutive pieces of it become one record, a *run*.

The record lists the pieces in the order they came. `kinds` has one letter per piece (left out when all are
text that came with the provider's own bytes), `texts` the text of those that have one, `native` the
provider's events. A run is closed after a moment, when it is long, and before any other record.

Secrets may be cut anywhere by a stream, so each channel (the text, the thinking, the arguments of each call)
goes through a redactor that holds pieces back until it is clear what they are part of. A provider
reports its event after the pieces that came from it, so an event never runs ahead of its text.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from robota.core.events import ProviderNativeRawPayload, ReasoningDelta, TextDelta, ToolInputDelta
from robota.core.jsontext import encode
from robota.core.messages import AssistantMessage, Json
from robota.sessions.journal.argument_redactor import ArgumentRedactor
from robota.sessions.journal.native_events import NativeEvents
from robota.sessions.redaction import Redactor, StreamRedactor

TEXT_WITH_BYTES, TEXT, THOUGHT, INPUT, NATIVE_EVENT, NATIVE_RESPONSE, NATIVE_REQUEST = "tTrinNq"
StreamPiece: TypeAlias = TextDelta | ReasoningDelta | ToolInputDelta | ProviderNativeRawPayload

_TEXT_ALONE = {TextDelta}
_SIZE_ONLY = b'{"byteLength":'
_NATIVE_KINDS = {"stream_event": NATIVE_EVENT, "response": NATIVE_RESPONSE, "request": NATIVE_REQUEST}


class StreamRun:
    """The pieces of one reply that are not written yet."""

    __slots__ = (
        "_changed", "_channels", "_natives", "_redactor", "_shown", "_surface", "letters_written", "pieces",
        "texts_written",
    )  # fmt: skip

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self._natives = NativeEvents(redactor)
        self._channels: dict[object, StreamRedactor | ArgumentRedactor] = {}
        self._surface: str | None = None
        self._shown: list[str | None] = []
        """What may be written of the first pieces; `None` while that is not clear."""
        self.pieces: list[StreamPiece] = []
        self._changed = False
        self.letters_written = 0
        self.texts_written = 0
        """Text pieces of this reply that are in the journal, and their letters."""

    def begin_reply(self) -> None:
        self._channels.clear()
        self._surface = None
        self._changed = False
        self.texts_written = self.letters_written = 0

    def has_shown(self, message: AssistantMessage) -> bool:
        """Whether text and arguments of the reply were written word for word: then they hold no secret."""
        if self._changed or self.pieces or message.reasoning or self.letters_written != len(message.content):
            return False
        shown = [inputs.shown for inputs in self._channels.values() if type(inputs) is ArgumentRedactor]
        return all(not call.signature and call.arguments in shown for call in message.tool_calls)

    def take(self, *, final: bool) -> dict[str, Json] | None:
        """The fields of the next record, with everything that may be written now; `None` for nothing."""
        if not final and self._shown and type(self.pieces[0]) is ToolInputDelta:
            return None  # waits for the end of its call, and all others with it
        self._redact(final)
        count = self._shown.index(None) if None in self._shown else len(self._shown)
        if not count:
            return None
        written, self.pieces = self.pieces[:count], self.pieces[count:]
        texts, self._shown = self._shown[:count], self._shown[count:]
        return self._fields(written, [text or "" for text in texts])

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
            push(_text_of(piece))
        taken: list[str | None] = [*redactor.take(final=final)]
        self._shown = taken + [None] * (len(self.pieces) - len(taken))

    def _fields(self, written: Sequence[StreamPiece], shown: Sequence[str]) -> dict[str, Json]:
        first = self.texts_written + 1
        kinds: list[str] = []
        texts: list[str] = []
        inputs: list[Json] = []
        surface = self._surface
        carried = ("", "")  # what the next event of the provider is about
        natives = self._natives
        for piece, text in zip(written, shown, strict=True):
            if type(piece) is TextDelta:
                texts.append(text)
                self.texts_written += 1
                self.letters_written += len(text)
                if text != piece.text:
                    self._changed = True
                if piece.raw is None:
                    kinds.append(TEXT)
                else:
                    kinds.append(TEXT_WITH_BYTES)
                    natives.add(piece.raw, piece.text, text)
            elif type(piece) is ProviderNativeRawPayload:
                kinds.append(_NATIVE_KINDS[piece.payload_kind])
                natives.add(_native_bytes(piece), *carried)
                surface = piece.api_surface or surface
            else:
                kinds.append(THOUGHT)
                texts.append(text)
                carried = (_text_of(piece), text)
                if type(piece) is ToolInputDelta:
                    kinds[-1] = INPUT
                    inputs.append([piece.index, piece.tool_call_id, piece.tool_name])
        news = surface if surface != self._surface else None
        self._surface = surface
        return {
            "first": first if self.texts_written >= first > 1 else None,
            "kinds": "".join(kinds) if any(kind != TEXT_WITH_BYTES for kind in kinds) else None,
            "texts": texts or None,
            "inputs": inputs or None,
            "surface": news,
            "native": natives.take(),
        }


def _channel_of(piece: StreamPiece) -> object:
    return piece.index if type(piece) is ToolInputDelta else type(piece)


def _text_of(piece: StreamPiece) -> str:
    if type(piece) is ToolInputDelta:
        return piece.delta
    return piece.text if isinstance(piece, TextDelta | ReasoningDelta) else ""


def _native_bytes(piece: ProviderNativeRawPayload) -> bytes:
    payload = piece.payload
    if piece.payload_kind == "request":
        # It repeats the whole history. What it was made of is in the journal; only its size is news.
        encoded = payload if type(payload) is bytes else encode(payload)
        return encoded if encoded.startswith(_SIZE_ONLY) else b"%s%d}" % (_SIZE_ONLY, len(encoded))
    return payload if type(payload) is bytes else encode(payload)
