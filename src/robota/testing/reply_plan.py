"""From a scripted reply to the bytes of an HTTP response, with the places where the server waits.

Everything is encoded before the first byte leaves, one event per HTTP chunk; stretches without a wait become
one write. The per-event path of a long stream is therefore a concatenation here and nothing at send time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import TypeAlias

import msgspec
from msgspec import Struct, structs

from robota.core.errors import ConfigurationError
from robota.core.messages import ToolCall
from robota.core.provider import ToolInputChunk
from robota.providers.scripted import Delay, Stall
from robota.testing.dialect import Dialect, ReplyEncoder, Said, ServerSentEvent
from robota.testing.http_server import response
from robota.testing.model_script import (
    CallIds,
    ContentType,
    Crlf,
    Cut,
    Drip,
    ErrorEvent,
    Forever,
    Gate,
    HttpError,
    KeepAlive,
    Malformed,
    ModelStep,
    NoEndMark,
    RawBytes,
    Tap,
    UnknownEvent,
)


class Endless(Struct, frozen=True):
    """The same bytes at an interval, until the gate opens or the client gives up."""

    data: bytes
    every: float
    until: Gate | None = None


Wait: TypeAlias = Delay | Stall | Gate | Tap | Endless
Operation: TypeAlias = bytes | Wait
EVENT_STREAM = "text/event-stream; charset=utf-8"


class Plan(Struct, frozen=True):
    """What a connection does to answer one request."""

    operations: tuple[Operation, ...]
    size: int = 0
    """Bytes of the body as scripted, before any cut."""
    hang_up: bool = False
    """The connection is closed at the end."""
    status: int = 200
    """0 when nothing is answered."""
    problem: str = ""
    """Why the script had no say: the request was refused, or the script is wrong."""


class _Shape(Struct):
    """The steps that concern a reply as a whole."""

    content_type: str | None = None
    drip: Drip | None = None
    newline: bytes = b"\n"
    end_mark: bool = True
    cut_at: int | None = None
    clean: bool = False
    call_id: str | None = None

    def take(self, step: ModelStep) -> bool:
        """Note the step if it is one of these."""
        match step:
            case ContentType():
                self.content_type = step.value
            case Drip():
                self.drip = step
            case Crlf():
                self.newline = b"\r\n"
            case NoEndMark():
                self.end_mark = False
            case CallIds():
                self.call_id = step.id
            case Cut(after_bytes=int()):
                self.cut_at, self.clean = step.after_bytes, step.clean
            case _:
                return False
        return True

    def rename(self, said: Said) -> Said:
        """What is said, with the id that the script gives to every call."""
        if self.call_id is None:
            return said
        if isinstance(said, ToolCall) or (isinstance(said, ToolInputChunk) and said.name):
            return structs.replace(said, id=self.call_id)
        return said


def make_plan(
    reply: tuple[ModelStep, ...] | str | HttpError | Cut,
    dialect: Dialect,
    encoder: ReplyEncoder,
    *,
    stream: bool,
) -> Plan:
    if isinstance(reply, Cut):
        return Plan((), hang_up=True, status=0)
    steps = reply if isinstance(reply, tuple) else (reply,)
    shape = _Shape()
    played = [step for step in steps if not shape.take(step)]
    error = next((step for step in played if isinstance(step, HttpError)), None)
    if error is not None:
        return _error_plan(error, played, dialect)
    if stream:
        return _stream_plan(played, shape, dialect, encoder)
    return _document_plan(played, shape, dialect, encoder)


def plan_error(error: HttpError, dialect: Dialect | None, problem: str = "") -> Plan:
    """An error as the answer to a request, whatever the script says."""
    body, kind = _error_body(error, dialect)
    headers = {"content-type": kind, **_waiting_time(error.retry_after), **error.headers}
    reply = response(error.status, headers, body)
    return Plan((reply,), len(body), status=error.status, problem=problem)


def _waiting_time(after: float | datetime | None) -> dict[str, str]:
    if after is None:
        return {}
    if isinstance(after, datetime):
        from email.utils import format_datetime  # noqa: PLC0415 - dates are rarely asked for

        return {"retry-after": format_datetime(after.astimezone(UTC), usegmt=True)}
    return {"retry-after": f"{after:g}"}


def _error_plan(error: HttpError, played: Sequence[ModelStep], dialect: Dialect) -> Plan:
    before = [step for step in played if step is not error]
    waits = tuple(step for step in before if isinstance(step, (Delay, Stall, Gate)))
    if len(waits) < len(before):
        raise ConfigurationError("Only Delay, Stall and Gate can stand in a reply beside an HttpError.")
    plan = plan_error(error, dialect)
    return structs.replace(plan, operations=(*waits, *plan.operations))


def _error_body(error: HttpError, dialect: Dialect | None) -> tuple[bytes, str]:
    body = error.body
    if isinstance(body, str):
        return body.encode(), "text/html" if body.startswith("<") else "text/plain"
    if body is None:
        message = f"Scripted failure with status {error.status}."
        body = (
            {"error": {"message": message}} if dialect is None else dialect.error_body(error.status, message)
        )
    return msgspec.json.encode(body), "application/json"


# --- streams -----------------------------------------------------------------------------------------


def _stream_plan(played: list[ModelStep], shape: _Shape, dialect: Dialect, encoder: ReplyEncoder) -> Plan:
    pieces, broken = _Narrator(dialect, encoder, shape).tell(played)
    size = sum(len(piece) for piece in pieces if isinstance(piece, bytes))
    if shape.cut_at is not None and shape.cut_at < size:
        pieces, broken = list(_first_bytes(pieces, shape.cut_at)), not shape.clean
    head = response(
        200, {"content-type": shape.content_type or EVENT_STREAM, "cache-control": "no-cache"}, None
    )
    framed = [_frame(piece) if isinstance(piece, bytes) else piece for piece in _drip(pieces, shape.drip)]
    tail = [] if broken else [b"0\r\n\r\n"]
    return Plan(tuple(_join([head, *framed, *tail])), size, hang_up=broken)


class _Narrator(Struct, eq=False):
    """Puts the steps of a reply in order between the beginning and the end that its protocol needs."""

    dialect: Dialect
    encoder: ReplyEncoder
    shape: _Shape
    _pieces: list[Operation] = []
    _begun: bool = False

    def tell(self, played: list[ModelStep]) -> tuple[list[Operation], bool]:
        """The pieces of the body, and whether the connection breaks after them."""
        raw = False
        for step in played:
            if isinstance(step, Cut):
                return self._pieces, not step.clean
            if isinstance(step, ErrorEvent):
                self._write([self.dialect.error_event(step.message, step.kind)])
                return self._pieces, False
            raw = self._add(step) or raw
        if self._begun or not raw:
            self._begin(None)
            self._write(self.encoder.end())
            if self.shape.end_mark and self.encoder.end_mark is not None:
                self._write([self.encoder.end_mark])
        return self._pieces, False

    def _add(self, step: ModelStep) -> bool:
        """Add one step; true for one that takes the reply's wording out of the protocol's hands."""
        match step:
            case RawBytes():
                self._pieces.append(step.data)
                return True
            case Malformed():
                self._write([(self.dialect.delta_name, step.data.encode())])
                return True
            case UnknownEvent():
                self._write([self.dialect.unknown_event(step.kind, dict(step.fields))])
            case Forever():
                self._say(step.text)
                data = self._pieces.pop()
                assert isinstance(data, bytes)
                self._pieces.append(Endless(_frame(data), step.every, step.until))
            case KeepAlive():
                comment = b": %b%b" % (step.text.encode(), self.shape.newline * 2)
                self._pieces.append(comment if step.every is None else Endless(_frame(comment), step.every))
            case Delay() | Stall() | Gate():
                self._pieces.append(step)
            case _:
                self._say(self.shape.rename(_said(step)))
        return False

    def _say(self, said: Said) -> None:
        self._begin(said)
        self._write(self.encoder.say(said))

    def _begin(self, first: Said | None) -> None:
        if not self._begun:
            self._begun = True
            self._write(self.encoder.begin(first))

    def _write(self, events: Iterable[ServerSentEvent]) -> None:
        newline = self.shape.newline
        for name, data in events:
            line = b"data: %b%b%b" % (data, newline, newline)
            self._pieces.append(b"event: %b%b%b" % (name.encode(), newline, line) if name else line)


def _said(step: ModelStep) -> Said:
    if isinstance(step, (HttpError, Cut, ErrorEvent, ContentType, Drip, Crlf, NoEndMark, Gate, CallIds)):
        raise ConfigurationError(f"{type(step).__name__} cannot stand here in a reply.")
    return step  # type: ignore[return-value]  # what is left of the union are texts and chunks


# --- documents ---------------------------------------------------------------------------------------


def _document_plan(played: list[ModelStep], shape: _Shape, dialect: Dialect, encoder: ReplyEncoder) -> Plan:
    waits = [wait for step in played for wait in _waits(step)]
    content = _document(played, shape, dialect, encoder)
    cut = next((0 for step in played if isinstance(step, Cut)), shape.cut_at)
    broken = cut is not None and cut < len(content)
    head = response(200, {"content-type": shape.content_type or "application/json"}, content)
    head = head[: len(head) - len(content)]
    pieces = _drip([content[:cut] if broken else content], shape.drip)
    return Plan(tuple(_join([*waits, head, *pieces])), len(content), hang_up=broken)


def _document(played: list[ModelStep], shape: _Shape, dialect: Dialect, encoder: ReplyEncoder) -> bytes:
    raw = [step for step in played if isinstance(step, (RawBytes, Malformed))]
    failed = next((step for step in played if isinstance(step, ErrorEvent)), None)
    if raw:
        return b"".join(step.data if isinstance(step, RawBytes) else step.data.encode() for step in raw)
    if failed is not None:
        return dialect.error_event(failed.message, failed.kind)[1]
    silent = (Delay, Stall, Gate, KeepAlive, Cut, UnknownEvent, Forever)
    said = [shape.rename(_said(step)) for step in played if not isinstance(step, silent)]
    novelties = {step.kind: dict(step.fields) for step in played if isinstance(step, UnknownEvent)}
    return msgspec.json.encode({**encoder.whole(said), **novelties})


def _waits(step: ModelStep) -> Iterator[Wait]:
    """Where a document waits; a stream that never ends is a document that never comes."""
    if isinstance(step, (Delay, Stall, Gate)):
        yield step
    elif isinstance(step, Forever):
        yield step.until or Stall()


# --- bytes -------------------------------------------------------------------------------------------


def _frame(piece: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(piece), piece) if piece else b""


def _first_bytes(pieces: Iterable[Operation], limit: int) -> Iterator[Operation]:
    for piece in pieces:
        if isinstance(piece, bytes):
            if len(piece) >= limit:
                yield piece[:limit]
                return
            limit -= len(piece)
        yield piece


def _drip(pieces: Iterable[Operation], drip: Drip | None) -> Iterator[Operation]:
    if drip is None:
        yield from pieces
        return
    for piece in _join(pieces):
        if not isinstance(piece, bytes):
            yield piece
            continue
        for at in range(0, len(piece), drip.bytes_per_chunk):
            if drip.tap is not None:
                yield drip.tap
            yield piece[at : at + drip.bytes_per_chunk]
            yield Delay(drip.delay)


def _join(pieces: Iterable[Operation]) -> Iterator[Operation]:
    """Neighbouring bytes become one write."""
    run: list[bytes] = []
    for piece in pieces:
        if isinstance(piece, bytes):
            run.append(piece)
            continue
        if run:
            yield b"".join(run)
            run.clear()
        yield piece
    if run:
        yield b"".join(run)
