"""Server-Sent Events split from bytes as they arrive, without waiting for whole lines or whole characters.

The whole grammar is understood: LF, CR and CRLF in any mixture and cut anywhere, several data lines,
comments, named events, ids, a byte order mark. A chunk that is exactly one plain event takes a path without a
loop.
"""

from __future__ import annotations

from msgspec import Struct

from robota.http.errors import HttpError

MAX_EVENT_BYTES = 32 * 1024 * 1024
_BOM = b"\xef\xbb\xbf"
_FIELDS = (b"data", b"event", b"id", b"retry", b"error")
"""`error` is no field of the standard: llama.cpp and its relatives tell with it why a stream ends early."""


class ServerSentEvent(Struct, frozen=True, gc=False):
    data: bytes
    """The data lines joined by LF, not decoded."""
    event: str = ""
    """The event's name; empty means `message`."""
    id: str = ""
    """The last id the stream has set."""


def is_event_stream(beginning: bytes | bytearray) -> bool:
    """Whether these first bytes can begin a stream of events; a comment is enough."""
    line = beginning[:64].lstrip().partition(b"\n")[0].rstrip(b"\r")
    name, colon, _ = line.partition(b":")
    if colon:
        return not name or name in _FIELDS
    return any(field.startswith(name) for field in _FIELDS)  # cut there, or a field without a value


class EventSplitter:
    """Feed it bytes, it gives back the events they complete."""

    __slots__ = ("_after_cr", "_at_start", "_id", "_limit", "_pending")

    def __init__(self, *, limit: int = MAX_EVENT_BYTES) -> None:
        self._limit = limit
        self._pending = bytearray()
        self._at_start = True
        self._after_cr = False
        """The last byte was a CR, so an LF that follows belongs to it."""
        self._id = ""

    def feed(self, raw: bytes) -> list[ServerSentEvent]:
        event = None
        if self._pending:
            pass
        elif b"\r" in raw:
            if raw.endswith(b"\r\n\r\n") and raw.find(b"\r") == len(raw) - 4:
                event = self._parse_plain(raw, len(raw) - 4)
        elif raw.startswith(b"data: ") and raw.find(b"\n") == len(raw) - 2 and raw.endswith(b"\n"):
            event = ServerSentEvent(raw[6:-2], "", self._id)
        elif raw.endswith(b"\n\n"):
            event = self._parse_plain(raw, len(raw) - 2)
        if event is None:
            return self._feed_any(raw)
        self._at_start = False
        return [event]

    def flush(self) -> list[ServerSentEvent]:
        """The event that was still open when the stream ended; its last line may be cut."""
        rest = bytes(self._pending)
        self._pending.clear()
        return self._parse([rest])

    def _feed_any(self, raw: bytes) -> list[ServerSentEvent]:
        raw = self._normalise(raw)
        pending = self._pending
        known = len(pending)
        pending += raw
        if self._at_start and not self._skip_mark():
            return []
        if pending.find(b"\n\n", max(known - 1, 0)) < 0:
            if len(pending) > self._limit:
                raise HttpError("protocol", f"an event of more than {self._limit} bytes was sent")
            return []
        *blocks, rest = bytes(pending).split(b"\n\n")
        self._pending = bytearray(rest)
        return self._parse(blocks)

    def _normalise(self, raw: bytes) -> bytes:
        """The same text with LF as the only line end."""
        if self._after_cr and raw:
            self._after_cr = False
            if raw.startswith(b"\n"):
                raw = raw[1:]
        if b"\r" not in raw:
            return raw
        self._after_cr = raw.endswith(b"\r")
        return raw.replace(b"\r\n", b"\n").replace(b"\r", b"\n")

    def _skip_mark(self) -> bool:
        """Drop a byte order mark; false while it is not clear yet whether there is one."""
        pending = self._pending
        if len(pending) < len(_BOM) and _BOM.startswith(pending):
            return False
        self._at_start = False
        if pending.startswith(_BOM):
            del pending[: len(_BOM)]
        return True

    def _parse(self, blocks: list[bytes]) -> list[ServerSentEvent]:
        events = []
        for block in blocks:
            event = self._parse_plain(block, len(block)) or self._parse_lines(block)
            if event is not None:
                events.append(event)
        return events

    def _parse_plain(self, block: bytes, end: int) -> ServerSentEvent | None:
        """An event that is one data line, or a name and one data line; nothing else and no loop."""
        line_end = block.find(b"\n", 0, end)
        if line_end < 0:
            return ServerSentEvent(block[6:end], "", self._id) if block.startswith(b"data: ") else None
        data = line_end + 7
        if (
            block.startswith(b"event: ")
            and block.startswith(b"data: ", line_end + 1)
            and block.find(b"\n", data, end) < 0
        ):
            return ServerSentEvent(block[data:end], block[7:line_end].decode("utf-8", "replace"), self._id)
        return None

    def _parse_lines(self, block: bytes) -> ServerSentEvent | None:
        data: list[bytes] = []
        name = ""
        for line in block.split(b"\n"):
            field, _, value = line.partition(b":")
            value = value.removeprefix(b" ")
            if field == b"data":
                data.append(value)
            elif field == b"event":
                name = value.decode("utf-8", "replace")
            elif field == b"error":
                data, name = [value], "error"
            elif field == b"id" and b"\0" not in value:
                self._id = value.decode("utf-8", "replace")
        return ServerSentEvent(b"\n".join(data), name, self._id) if data else None
