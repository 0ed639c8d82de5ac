"""A copy of the conversation in the form and the place that clients of this protocol read.

The session's own journal stays what counts; this file is for the client's functions that list, show and
mirror sessions. Each line follows the one before it.
"""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from anyio import to_thread

from robota._version import __version__
from robota.core.context import read_token_usage
from robota.core.events import HistoryMutation
from robota.core.jsontext import decode, encode
from robota.core.messages import AssistantMessage, JsonObject, Message, ToolMessage, UserMessage
from robota.core.private_directory import make_private_directories
from robota.transports.blocks import assistant_blocks, part_blocks, result_block, usage_fields

if TYPE_CHECKING:
    from robota.sdk.interactive import InteractiveSession
    from robota.transports.turn_frames import TurnFrames

KEY_LENGTH = 200
MESSAGE = "robotaMessageId"
"""The field with the id of a message whose entry has a name that the host gave it."""
BATCH = 256 * 1024
"""Bytes of entries that are told of at once."""
_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"


def project_key(cwd: str) -> str:
    """The name of the folder that the transcripts of a directory are in."""
    path = os.path.realpath(cwd)
    plain = re.sub(r"[^A-Za-z0-9]", "-", path)
    if len(plain) <= KEY_LENGTH:
        return plain
    number = 0
    for character in path:
        number = (number * 31 + ord(character)) & 0xFFFFFFFF
    signed = number - (1 << 32) if number & 0x80000000 else number
    return f"{plain[:KEY_LENGTH]}-{_base36(abs(signed))}"


def _base36(number: int) -> str:
    digits = ""
    while number:
        number, digit = divmod(number, 36)
        digits = _DIGITS[digit] + digits
    return digits or "0"


def transcript_path(claude_home: str, cwd: str, session_id: str) -> str:
    return os.path.join(claude_home, "projects", project_key(cwd), f"{session_id}.jsonl")


class Transcript:
    """Written at the end of each turn, before its result is told, and before somebody is pointed to it."""

    def __init__(
        self,
        session: InteractiveSession,
        frames: TurnFrames,
        tell: Callable[[JsonObject], None] | None = None,
    ) -> None:
        """`tell` hears of what is written."""
        self._session = session
        self._frames = frames
        self._tell = tell
        places = session.project.places
        self.path = transcript_path(places.claude_home, session.cwd, session.session_id)
        self._waiting: list[JsonObject] = []
        self._unwritten: list[JsonObject] = []
        """What the file has not taken; it is tried again with the next entries."""
        self._is_behind = False
        self._writing = asyncio.Lock()
        self._last: str | None = None
        self._is_new = True
        self.ids: dict[str, str] = {}
        """Entries that a host has named -> the messages of the session."""
        self._noted: set[str] = set()
        """Messages that were taken, by id: a session that goes on from another tells of its past as well."""

    async def open(self) -> None:
        """Find out what is there."""
        try:
            known = await to_thread.run_sync(read_known, self.path)
        except OSError as error:
            known = None
            self._tell_trouble("read", error)
        self._is_new = known is None
        if known is not None:
            self._last, self.ids = known

    def begin(self, after: str = "") -> None:
        """Go on behind the last entry, or behind that one. A session that comes from another, or from
        elsewhere, is copied first."""
        if not self._is_new:
            self._last = after or self._last
        for message in self._session.session.messages:
            if self._is_new:
                self._note(message)
            else:
                self._noted.add(message.id)
        self._session.events.on(HistoryMutation, lambda event: self._note(event.message))

    def _note(self, message: Message) -> None:
        if message.id in self._noted:
            return
        self._noted.add(message.id)
        match message:
            case UserMessage() as message:
                content = part_blocks(message.parts) if message.parts else message.content
                own = "origin" not in message.metadata
                given = self._frames.prompt_uuid if own and self._frames.is_open else ""
                uuid = given or message.id
                self._add("user", {"role": "user", "content": content}, message, uuid)
            case AssistantMessage() as message:
                told: JsonObject = {"id": f"msg_{message.id}", "type": "message", "role": "assistant"}
                told |= {"model": message.metadata.get("model") or self._session.session.model}
                told |= {"content": assistant_blocks(message), "stop_reason": None}
                if (usage := read_token_usage(message)) is not None:
                    told["usage"] = usage_fields(usage)
                self._add("assistant", told, message, message.id)
            case ToolMessage() as message:
                self._add("user", {"role": "user", "content": [result_block(message)]}, message, message.id)

    def _add(
        self, kind: str, told: JsonObject, message: UserMessage | AssistantMessage | ToolMessage, uuid: str
    ) -> None:
        self._waiting.append(
            {
                "parentUuid": None,
                "isSidechain": False,
                "userType": "external",
                "cwd": self._session.cwd,
                "sessionId": self._session.session_id,
                "version": __version__,
                "gitBranch": "",
                "type": kind,
                "message": told,
                "uuid": uuid,
                "timestamp": _time(message.timestamp),
                **({} if uuid == message.id else {MESSAGE: message.id}),
            }
        )

    async def flush(self) -> None:
        """Write what was said since the last time. A file that takes nothing costs the session nothing: this
        is a copy, and the mirror hears of all the same."""
        async with self._writing:
            entries, self._waiting = self._waiting, []
            redactor = self._session.session.log.secrets.redactor
            entries = [redactor.value(entry) for entry in entries]
            for entry in entries:
                entry["parentUuid"], self._last = self._last, entry["uuid"]
            self._unwritten += entries
            if self._unwritten:
                await self._write_unwritten()
            if self._tell is None:
                return
            for batch in _batches(entries):
                self._tell({"type": "transcript_mirror", "filePath": self.path, "entries": batch})

    async def _write_unwritten(self) -> None:
        try:
            await to_thread.run_sync(append_entries, self.path, self._unwritten)
        except OSError as error:
            self._tell_trouble("written", error)
        else:
            self._unwritten, self._is_behind = [], False

    def _tell_trouble(self, what: str, error: OSError) -> None:
        if not self._is_behind:
            self._is_behind = True
            self._frames.tell(
                f"The transcript {self.path} cannot be {what}: {error.strerror or error}. The session goes "
                "on and is kept by robota itself; what is missing is added as soon as that works again."
            )


def append_entries(path: str, entries: Sequence[JsonObject]) -> None:
    """All of them, or none: a part of a line would spoil the next one."""
    make_private_directories(os.path.dirname(path))
    left = memoryview(b"".join(encode(entry) + b"\n" for entry in entries))
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW, 0o600)
    try:
        before = os.fstat(fd).st_size
        try:
            while left:
                left = left[os.write(fd, left) :]
        except OSError:
            os.ftruncate(fd, before)
            raise
    finally:
        os.close(fd)


def _batches(entries: list[JsonObject]) -> Iterator[list[JsonObject]]:
    """The entries in portions that fit into lines."""
    batch: list[JsonObject] = []
    size = 0
    for entry in entries:
        length = len(encode(entry))
        if batch and size + length > BATCH:
            yield batch
            batch, size = [], 0
        batch.append(entry)
        size += length
    if batch:
        yield batch


def read_known(path: str) -> tuple[str | None, dict[str, str]] | None:
    """The id of the last entry of a transcript that is part of its conversation, and the messages of entries
    that have a name of their own; `None` without a file."""
    last: str | None = None
    ids: dict[str, str] = {}
    try:
        with open(path, "rb") as file:
            for line in file:
                try:
                    entry = decode(line)
                except ValueError:
                    continue  # torn, or of somebody else: it stays as it is
                match entry:
                    case {"isSidechain": True}:
                        continue
                    case {"uuid": str(uuid)}:
                        last = uuid
                        if isinstance(message := entry.get(MESSAGE), str):
                            ids[uuid] = message
    except FileNotFoundError:
        return None
    return last, ids


def _time(when: datetime) -> str:
    return when.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
