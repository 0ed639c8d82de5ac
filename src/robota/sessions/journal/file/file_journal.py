"""A session's journal as a file: one line per record, one `write` per line, nothing lost on the way.

What the disk refuses stays in memory, in order, and is tried again with every append and sync; the user is
told once what happened and once when it is over. A journal belongs to the thread of its event loop. In a
forked child it counts as closed, and opening it there meets the parent's lock.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from zlib import crc32

from msgspec import Struct

from robota.core.jsontext import encode
from robota.sessions.files import REAL_FILES, Files, explain
from robota.sessions.journal.file.line_file import KEEP_UNSYNCED, LineFile
from robota.sessions.journal.file.payloads import PayloadStore
from robota.sessions.journal.port import JournalError, JournalProblem, Position, SessionLockedError
from robota.sessions.journal.records import Record
from robota.sessions.store.session_record import check_session_id

_SYNCED = "made safe on the disk"
IN_MEMORY = "The session goes on in memory, and what is missing is written as soon as that works again."
UNSAFE = "What was written since that last worked may still be lost."


class FileJournal:
    """The one writer of `{id}.jsonl`. Nothing is touched before `open` or the first `append`."""

    __slots__ = (
        "_closed", "_event", "_file", "_files", "_frame", "_held", "_keep", "_kept", "_payloads", "_seq",
        "_stamp", "_synced", "_trouble", "path", "session_id", "size",
    )  # fmt: skip

    def __init__(
        self,
        directory: str,
        session_id: str,
        *,
        agent_id: str = "",
        files: Files = REAL_FILES,
        now: Callable[[], float] = time.time,
        durable: bool = True,
    ) -> None:
        """With `agent_id`, the journal is that of a sub-agent of the session. Not `durable`: `sync` does not
        wait for the disk, and nothing is kept in memory for it."""
        name = self.session_id = check_session_id(session_id)
        directory = os.path.abspath(directory)  # the process may move on
        if agent_id:
            directory, name = f"{directory}/{session_id}/subagents", check_session_id(agent_id)
        self.path = f"{directory}/{name}.jsonl"
        self._keep = KEEP_UNSYNCED if durable else 0
        self._files = files
        self._payloads = PayloadStore(directory, name, files=files)
        self._stamp = Stamp(now)
        self._frame = b'Z","sessionId":%b,' % encode(session_id)
        self._file: LineFile | None = None
        self._kept: list[tuple[bytes, bytes]] = []
        """Time and body of the records that the disk refused."""
        self._held: list[bytes] = []
        """Bodies of records that go with the next one."""
        self._seq = 0
        self._synced = 0
        """Every record up to here survives a power cut."""
        self._event = 0
        self._closed = True
        self._trouble = Trouble(self.path)
        self.size = 0

    @property
    def trouble(self) -> str:
        return self._trouble.text

    @property
    def on_trouble(self) -> Callable[[str], None] | None:
        return self._trouble.listener

    @on_trouble.setter
    def on_trouble(self, listener: Callable[[str], None] | None) -> None:
        self._trouble.listener = listener

    @property
    def last(self) -> Position:
        return Position(self._seq + len(self._held), self._event, self._closed)

    @property
    def saved(self) -> int:
        return self._seq - len(self._kept)

    async def open(self) -> Position:
        if self._file is None or not self._file.is_open:
            self._try_open()
        return self.last

    def append(self, body: bytes, *, event: int, hold: bool = False) -> int:
        """Raises only what `open` raises, and only as long as nothing was appended. While the disk refuses,
        records stay in memory; they get higher numbers if the file proves to hold more than could be seen."""
        self._event, self._closed = event, False
        file = self._file
        if file is None or self._kept:
            return self._append_slowly(body)
        if hold:
            self._held.append(body)
            return self._seq + len(self._held)
        if self._held:
            return self._append_together(file, [*self._take_held(), body])
        # Before the write: an exception of a signal must not let it be used twice.
        self._seq = seq = self._seq + 1
        line = self._build(seq, self._stamp.now(), body)
        try:
            file.write(line)
        except OSError:
            self._seq = seq - 1
            return self._append_slowly(body)
        self.size += len(line)
        return seq

    def release(self) -> None:
        held = self._take_held()
        if held and self._file is not None and not self._kept:
            self._append_together(self._file, held)
        else:
            for body in held:
                self._append_slowly(body)

    async def sync(self) -> bool:
        return self.sync_now()

    def sync_now(self) -> bool:
        """`sync` for code that cannot await: nothing here waits for anything but the disk."""
        self.release()
        if self._kept and not self._flush():
            return False
        if self._file is None or not self._file.is_open or self._synced == self._seq or not self._keep:
            return True
        try:
            self._file.sync()
        except OSError as error:
            self._trouble.tell(_SYNCED, error, unsafe=not self._kept)
            return False
        self._synced = self._seq
        self._trouble.recover(self._file.warning)
        return True

    def put(self, payload: bytes) -> bytes:
        """The reference to a payload file, or the value itself when there is no room for the file."""
        try:
            return self._payloads.put(payload)
        except OSError:
            return payload

    def read(self, *, after_event: int = 0) -> Iterator[Record | JournalProblem]:
        from robota.sessions.journal.file.reader import read_journal  # noqa: PLC0415 - for those who read

        return read_journal(self.path, session_id=self.session_id, files=self._files, after_event=after_event)

    async def aclose(self) -> None:
        self.sync_now()
        if self._file is not None:
            self._file.close()
            self._file = None

    def _take_held(self) -> list[bytes]:
        held, self._held = self._held, []
        return held

    def _append_together(self, file: LineFile, bodies: list[bytes]) -> int:
        first, stamp = self._seq + 1, self._stamp.now()
        self._seq += len(bodies)
        lines = b"".join([self._build(first + at, stamp, body) for at, body in enumerate(bodies)])
        try:
            file.write(lines)
        except OSError:
            self._seq = first - 1
            for body in bodies:
                self._append_slowly(body)
            return self._seq
        self.size += len(lines)
        return self._seq

    def _append_slowly(self, body: bytes) -> int:
        if self._file is not None and not self._file.is_open:  # we are a forked child
            self._file = None
            self._kept = []
            self._trouble.told = ()
        if self._file is None and not self._kept and not self._trouble.told:
            self._try_open()
        self._seq += 1
        self._kept.append((self._stamp.now(), body))
        self._flush()
        return self._seq

    def _try_open(self) -> None:
        """A refusing disk is told, not raised."""
        try:
            file = LineFile(self.path, self.session_id, self._files, self._stamp.source, self._keep)
        except OSError as error:
            if not self._kept:
                self._take_over(self._peek())
            self._trouble.tell("opened", error)
            return
        self._file = file
        self._take_over(file.found)
        if file.warning:
            self._trouble.say(file.warning)
        if file.exposed:
            places = " and ".join(file.exposed)
            self._trouble.mention(f"Other users could look into {places}; now only you can.")

    def _take_over(self, found: Position) -> None:
        """Go on behind what the file holds."""
        if not self._kept:
            self._event, self._closed = found.event, found.closed
        self._seq = max(self._seq, found.record + len(self._kept))

    def _peek(self) -> Position:
        """The end of a file that can be read although it cannot be written."""
        from robota.sessions.journal.file.tail import find_last  # noqa: PLC0415 - not before the first record

        try:
            return find_last(self._files, self.path, self.session_id)
        except OSError:
            return Position()

    def _build(self, seq: int, stamp: bytes, body: bytes) -> bytes:
        if b"\n" in body:
            body = body.replace(b"\n", b" ")  # in valid JSON it can only be a blank between two tokens
        rest = b'"v":1,"seq":%d,"timestamp":"%b%b%b' % (seq, stamp, self._frame, body)
        return b'{"crc":"%08x",%b\n' % (crc32(rest), rest)

    def _flush(self) -> bool:
        """Write what is kept, oldest first; whether nothing is left."""
        file = self._file
        if file is None:
            try:
                self._try_open()
            except (JournalError, SessionLockedError) as error:
                self._trouble.tell_once("refused", f"{error} {IN_MEMORY}")
            return self._file is not None and self._flush()
        first = self._seq - len(self._kept) + 1
        done = 0
        for stamp, body in self._kept:
            line = self._build(first + done, stamp, body)
            if not self._write_kept(file, line):
                break
            self.size += len(line)
            done += 1
        del self._kept[:done]
        if self._kept:
            return False
        if _SYNCED not in self._trouble.told:
            self._trouble.recover(file.warning)
        return True

    def _write_kept(self, file: LineFile, line: bytes) -> bool:
        try:
            file.write(line)
        except OSError as error:
            self._trouble.tell("written", error)
        else:
            return True
        try:
            file.repair()
        except OSError as error:
            self._trouble.tell("cut back to its last whole record", error)
        return False


class Trouble(Struct, eq=False):
    """The state of a journal's disk, in words."""

    _path: str
    told: tuple[str, ...] = ()
    """What was told and is not over."""
    listener: Callable[[str], None] | None = None
    text: str = ""
    """What is wrong, in one sentence; "" when nothing is."""

    def tell(self, what: str, error: OSError, *, unsafe: bool = False) -> None:
        """The journal cannot be `what`; `unsafe`: everything was written, but may not be on the disk."""
        reason, advice = explain(error)
        sentence = f"The journal {self._path} cannot be {what}: {reason}."
        consequence = UNSAFE if unsafe else IN_MEMORY
        self.tell_once(f"{what} {error.errno}", f"{sentence} {consequence} To help, {advice}.")
        self.told += (what,)

    def tell_once(self, kind: str, sentence: str) -> None:
        if kind not in self.told:
            self.told += (kind,)
            self.say(sentence)

    def recover(self, warning: str) -> None:
        """It is over; `warning` is what remains to be said."""
        if self.told:
            self.told = ()
            self.say("")
            self.text = warning

    def say(self, sentence: str) -> None:
        self.text = sentence
        self.mention(sentence)

    def mention(self, sentence: str) -> None:
        """Something that is no trouble any more."""
        if self.listener is not None:
            try:
                self.listener(sentence)
            except Exception as error:  # noqa: BLE001 - whoever is told must not keep the journal from writing
                self.text = f"{self.text} Whoever should be told of it failed: {error!r}.".lstrip()


class Stamp(Struct, eq=False):
    """The time in UTC as `2026-11-16T01:27:12.123`, formatted anew only when it changed."""

    source: Callable[[], float]
    _millisecond: int = -1
    _second: int = -1
    _text: bytes = b""
    _second_text: bytes = b""

    def now(self) -> bytes:
        millisecond = int(self.source() * 1000)
        if millisecond != self._millisecond:
            second, rest = divmod(millisecond, 1000)
            if second != self._second:
                self._second = second
                self._second_text = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(second)).encode()
            self._millisecond = millisecond
            self._text = b"%b.%03d" % (self._second_text, rest)
        return self._text
