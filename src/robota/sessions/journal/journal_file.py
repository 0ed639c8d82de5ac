"""A session's journal being written: one line per record, one `write` per line, nothing lost on the way.

What the disk refuses stays in memory, in order, and is tried again with every append and sync; the user is
told once what happened and once when it is over. A journal belongs to the thread of its event loop. In a
forked child it counts as closed, and opening it there meets the parent's lock.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from zlib import crc32

from robota.core.jsontext import encode
from robota.sessions.files import REAL_FILES, Files, close_quietly
from robota.sessions.journal.errors import JournalError, SessionLockedError, explain
from robota.sessions.journal.line_file import KEEP_UNSYNCED, LineFile

__all__ = ["JournalError", "JournalFile", "SessionLockedError"]

_SYNCED = "made safe on the disk"


class JournalFile:
    """The one writer of `{id}.jsonl`. Nothing is touched before `open` or the first `append`."""

    __slots__ = (
        "_file", "_files", "_frame", "_held", "_keep", "_kept", "_path", "_session_id", "_stamp", "_told",
        "bytes_written", "on_trouble", "seq", "synced_seq", "trouble",
    )  # fmt: skip

    def __init__(
        self,
        path: str,
        session_id: str,
        *,
        files: Files = REAL_FILES,
        now: Callable[[], float] = time.time,
        durable: bool = True,
    ) -> None:
        """Not `durable`: nobody will call `sync`, so nothing is kept in memory for it."""
        self._path = path
        self._keep = KEEP_UNSYNCED if durable else 0
        self._session_id = session_id
        self._files = files
        self._stamp = Stamp(now)
        self._frame = b'Z","sessionId":%b,' % encode(session_id)
        self._file: LineFile | None = None
        self._kept: list[tuple[bytes, bytes]] = []
        """Time and body of the records that the disk refused."""
        self._held: list[bytes] = []
        """Bodies of records that go with the next one."""
        self._told: tuple[str, ...] = ()
        self.on_trouble: Callable[[str], None] | None = None
        """Called with a sentence for each new kind of trouble, and with "" when it is over."""
        self.trouble = ""
        """What is wrong, in one sentence; "" when nothing is."""
        self.seq = 0
        """Number of the newest record, saved or not."""
        self.synced_seq = 0
        """Every record up to here survives a power cut."""
        self.bytes_written = 0

    @property
    def unsaved(self) -> int:
        """Records that are only in memory."""
        return len(self._kept)

    def open(self) -> None:
        """Take the session's lock and find the end of the file; a refusing disk is told, not raised.

        Raises `SessionLockedError` when somebody else writes to the session, `JournalError` when the file is
        another session's or a newer version's.
        """
        if self._file is not None and self._file.is_open:
            return
        try:
            self._open()
        except OSError as error:
            if not self._kept:
                self.seq = max(self.seq, self._peek_seq())
            self._tell("opened", error)

    def append(self, body: bytes) -> int:
        """Write one record; `body` is `"event":"…",…}` as JSON. Returns its number.

        Raises only what `open` raises, and only as long as nothing was appended. While the disk refuses,
        records stay in memory; they get higher numbers if the file proves to hold more than could be seen.
        """
        file = self._file
        if file is None or self._kept:
            return self._append_slowly(body)
        if self._held:
            return self._append_together(file, [*self._take_held(), body])
        # Before the write: an exception of a signal must not let it be used twice.
        self.seq = seq = self.seq + 1
        line = self._build(seq, self._stamp.now(), body)
        try:
            file.write(line)
        except OSError:
            self.seq = seq - 1
            return self._append_slowly(body)
        self.bytes_written += len(line)
        return seq

    def hold(self, body: bytes) -> None:
        """Append a record with the next one, or at `release`: for what nobody is told before."""
        if self._file is None or self._kept:
            self._append_slowly(body)
        else:
            self._held.append(body)

    def release(self) -> None:
        """Append what was held."""
        held = self._take_held()
        if held and self._file is not None and not self._kept:
            self._append_together(self._file, held)
        else:
            for body in held:
                self._append_slowly(body)

    def sync(self, *, look: bool = True) -> bool:
        """Whether everything appended so far is on the disk for good when this returns.

        `look` whether the file was removed meanwhile: once per prompt is enough.
        """
        self.release()
        if self._kept and not self._flush():
            return False
        if self._file is None or not self._file.is_open or self.synced_seq == self.seq:
            return True
        try:
            self._file.sync(look=look)
        except OSError as error:
            self._tell(_SYNCED, error)
            return False
        self.synced_seq = self.seq
        self._tell_recovery()
        return True

    def close(self) -> None:
        """Write and sync what is left, then free the session; what is still refused stays `unsaved`."""
        self.sync()
        if self._file is not None:
            self._file.close()
            self._file = None

    def _take_held(self) -> list[bytes]:
        held, self._held = self._held, []
        return held

    def _append_together(self, file: LineFile, bodies: list[bytes]) -> int:
        first, stamp = self.seq + 1, self._stamp.now()
        self.seq += len(bodies)
        lines = b"".join([self._build(first + at, stamp, body) for at, body in enumerate(bodies)])
        try:
            file.write(lines)
        except OSError:
            self.seq = first - 1
            for body in bodies:
                self._append_slowly(body)
            return self.seq
        self.bytes_written += len(lines)
        return self.seq

    def _append_slowly(self, body: bytes) -> int:
        if self._file is not None and not self._file.is_open:  # we are a forked child
            self._file = None
            self._kept = []
            self._told = ()
        if self._file is None and not self._kept and not self._told:
            self.open()
        self.seq += 1
        self._kept.append((self._stamp.now(), body))
        self._flush()
        return self.seq

    def _open(self) -> None:
        file = LineFile(self._path, self._session_id, self._files, self._stamp.source, self._keep)
        self._file = file
        self.seq = max(self.seq, file.last_seq + len(self._kept))
        if file.warning:
            self._say(file.warning)
        if file.exposed and self.on_trouble is not None:
            self.on_trouble(f"Other users could look into {' and '.join(file.exposed)}; now only you can.")

    def _peek_seq(self) -> int:
        """The last number of a file that can be read although it cannot be written."""
        from robota.sessions.journal.tail import find_end  # noqa: PLC0415 - not before the first record

        try:
            fd = self._files.open_read(self._path)
            try:
                return find_end(self._files, fd, self._path, self._session_id).seq
            finally:
                close_quietly(self._files, fd)
        except OSError:
            return 0

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
                self._open()
            except OSError as error:
                self._tell("opened", error)
                return False
            except (JournalError, SessionLockedError) as error:
                self._tell_once("refused", f"{error} {self._describe_kept()}")
                return False
            return self._flush()
        first = self.seq - len(self._kept) + 1
        done = 0
        for stamp, body in self._kept:
            line = self._build(first + done, stamp, body)
            if not self._write_kept(file, line):
                break
            self.bytes_written += len(line)
            done += 1
        del self._kept[:done]
        if self._kept:
            return False
        if _SYNCED not in self._told:
            self._tell_recovery()
        return True

    def _write_kept(self, file: LineFile, line: bytes) -> bool:
        try:
            file.write(line)
        except OSError as error:
            self._tell("written", error)
        else:
            return True
        try:
            file.repair()
        except OSError as error:
            self._tell("cut back to its last whole record", error)
        return False

    def _tell(self, what: str, error: OSError) -> None:
        reason, advice = explain(error)
        sentence = f"The journal {self._path} cannot be {what}: {reason}."
        self._tell_once(f"{what} {error.errno}", f"{sentence} {self._describe_kept()} To help, {advice}.")
        self._told += (what,)

    def _tell_once(self, kind: str, sentence: str) -> None:
        if kind not in self._told:
            self._told += (kind,)
            self._say(sentence)

    def _describe_kept(self) -> str:
        if not self._kept and self._file is not None:
            return "What was written since that last worked may still be lost."
        return "The session goes on in memory, and what is missing is written as soon as that works again."

    def _tell_recovery(self) -> None:
        if self._told:
            self._told = ()
            self._say("")
            self.trouble = self._file.warning if self._file is not None else ""

    def _say(self, sentence: str) -> None:
        self.trouble = sentence
        if self.on_trouble is not None:
            self.on_trouble(sentence)


class Stamp:
    """The time in UTC as `2026-11-16T01:27:12.123`, formatted anew only when it changed."""

    __slots__ = ("_millisecond", "_second", "_second_text", "_text", "source")

    def __init__(self, source: Callable[[], float]) -> None:
        self.source = source
        self._millisecond = self._second = -1
        self._text = self._second_text = b""

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
