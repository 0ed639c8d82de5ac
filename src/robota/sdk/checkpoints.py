"""Checkpoints: each prompt is one, and the conversation and the files go back to before it, together or not.

Nothing is kept for them alone: the conversation knows its prompts, the undo store the calls of the session
and when they were made. So they are there again when it is resumed. A rewind is an entry of the timeline,
with the undo entry that it made, by which it is taken back.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Literal, TypeAlias, TypeVar, get_args

from msgspec import Struct

from robota.core.errors import SessionBusyError, ValidationError
from robota.core.messages import HistoryEntry, JsonObject, UserMessage
from robota.sdk.timeline import DISPLAY
from robota.sessions.changes import is_prompt, rewind, take_back_rewind
from robota.sessions.session import Session

if TYPE_CHECKING:
    from robota.tools.undo.journal import Entry, KeptPath, PathPreview, Undone
    from robota.tools.undo.store import UndoStore

T = TypeVar("T")
Part: TypeAlias = Literal["code", "chat", "both"]
PARTS: tuple[Part, ...] = get_args(Part)
REWIND = "rewind"
"""The type of the timeline's entries about what was taken back, and what was done again."""


class Checkpoint(Struct, frozen=True, kw_only=True):
    """The moment before a prompt."""

    number: int
    """From 1, in the order of the conversation."""
    prompt: str
    at: datetime
    place: int
    """How many messages come before it."""
    entries: tuple[Entry, ...] = ()
    """The calls of its turn that were saved, oldest first."""

    @property
    def files(self) -> int:
        return sum(entry.files for entry in self.entries)


class RewindPreview(Struct, frozen=True, kw_only=True):
    checkpoint: Checkpoint
    messages: int
    """How many would be set aside."""
    paths: tuple[PathPreview, ...]
    """What would become of files."""


class SavedCall(Struct, frozen=True):
    entry: Entry
    undone: bool


class TakenBack(Struct, frozen=True, kw_only=True):
    """What a rewind, an undo or a redo did."""

    what: str
    """The prompt or the call that it was about."""
    messages: int = 0
    """How many were set aside, or came back."""
    restored: tuple[str, ...] = ()
    kept: tuple[KeptPath, ...] = ()
    """Files that were left as they are, because somebody else changed them."""


class Checkpoints:
    """`on_rewound` is called when the conversation is another one."""

    def __init__(
        self,
        session: Session,
        find_store: Callable[[], UndoStore | None],
        on_rewound: Callable[[], None] = lambda: None,
    ) -> None:
        self._session = session
        self._find_store = find_store
        self._on_rewound = on_rewound

    # --- looking ------------------------------------------------------------------------------------------

    async def all(self) -> list[Checkpoint]:
        return self._find(await self._entries())

    async def inspect(self, number: int) -> RewindPreview:
        """What going back to before that prompt would change."""
        entries = await self._entries()
        checkpoint = self._choose(number, entries)
        ids = _since(checkpoint, entries)
        paths = (await self._work(self._require_store().preview, *ids)).paths if ids else ()
        messages = len(self._session.messages) - checkpoint.place
        return RewindPreview(checkpoint=checkpoint, messages=messages, paths=paths)

    async def calls(self) -> Sequence[SavedCall]:
        """The calls of the session that changed files, the latest first."""
        entries = await self._entries()
        undone: set[str] = set()
        for entry in reversed(entries):
            if entry.id not in undone:
                undone.update(entry.undoes)
        return [
            SavedCall(entry, entry.id in undone)
            for entry in reversed(entries)
            if not entry.undoes and (entry.files or not entry.ended)
        ]

    # --- going back and forth -----------------------------------------------------------------------------

    async def restore(self, number: int, part: Part = "both", *, overwrite: bool = False) -> TakenBack:
        """Go back to before a prompt. What somebody else did to files since is kept, unless `overwrite`."""
        await self._require_idle()
        if part == "code":
            self._require_store()
        entries = await self._entries()
        checkpoint = self._choose(number, entries)
        ids = _since(checkpoint, entries) if part != "chat" else []
        undone = await self._undo(*ids, overwrite=overwrite) if ids else None
        before = len(self._session.messages)
        if part != "code":
            rewind(self._session, checkpoint.place)
            self._on_rewound()
        data: JsonObject = {"part": part, "checkpoint": number, "prompt": checkpoint.prompt}
        return self._note(data, checkpoint.prompt, undone, before)

    async def keep_until(self, message_id: str, drops: str | None = None) -> None:
        """Let the conversation end with that message. What comes behind it has to be turns; with `drops`, the
        one turn of that prompt."""
        await self._require_idle()
        messages = self._session.messages
        place = 1 + next((at for at, each in enumerate(messages) if each.id == message_id), -1)
        if not place:
            raise ValidationError(f"There is no message {message_id!r} in this session to go back to.")
        dropped = [each.id for each in messages[place:] if is_prompt(each)]
        if drops is not None and dropped != [drops]:
            raise ValidationError(
                f"Resume rejected by --resume-drops-turn: it names the prompt {drops!r}, and behind "
                f"{message_id!r} come {', '.join(map(repr, dropped)) or 'no prompts'}."
            )
        if place < len(messages):
            rewind(self._session, place)
            self._on_rewound()

    async def undo(self, number: int | None = None, *, overwrite: bool = False) -> TakenBack:
        """Take a call back, by its place in `calls` from 1; by default the last that was not."""
        await self._require_idle()
        calls = await self.calls()
        if number is None:
            number = next((at for at, each in enumerate(calls, 1) if not each.undone), 0)
        if not 0 < number <= len(calls):
            known = f"{len(calls)} of its calls changed files" if calls else "no call of it changed a file"
            raise ValidationError(f"There is nothing to undo there: in this session, {known}.")
        call = calls[number - 1]
        if call.undone:
            raise ValidationError(f"“{call.entry.label}” was taken back already: /redo brings it back.")
        undone = await self._undo(call.entry.id, overwrite=overwrite)
        return self._note({"part": "code", "call": call.entry.label}, call.entry.label, undone)

    async def redo(self) -> TakenBack:
        """Take the last rewind or undo back."""
        await self._require_idle()
        last = self._last_rewind()
        if last is None:
            raise ValidationError("There is nothing to redo.")
        entry, data = last
        if data["part"] != "code" and not self._session.agent.conversation.aside:
            raise ValidationError(
                "The conversation went on since it was rewound, so that cannot be taken back. What was set "
                "aside is in the journal of the session."
            )
        undone = await self._undo(data["entry"]) if data.get("entry") else None
        before = len(self._session.messages)
        if data["part"] != "code":
            take_back_rewind(self._session)
            self._on_rewound()
        what = str(data.get("prompt") or data.get("call") or "")
        return self._note({"part": data["part"], "redo": entry.id}, what, undone, before)

    # --- inside -------------------------------------------------------------------------------------------

    def _find(self, entries: Sequence[Entry]) -> list[Checkpoint]:
        found = [(at, each) for at, each in enumerate(self._session.messages) if is_prompt(each)]
        ends = [prompt.timestamp.timestamp() for _, prompt in found[1:]] + [float("inf")]
        return [
            Checkpoint(
                number=number,
                prompt=_shown(prompt),
                at=prompt.timestamp,
                place=place,
                entries=tuple(each for each in entries if prompt.timestamp.timestamp() <= each.at < end),
            )
            for number, ((place, prompt), end) in enumerate(zip(found, ends, strict=False), 1)
        ]

    def _choose(self, number: int, entries: Sequence[Entry]) -> Checkpoint:
        checkpoints = self._find(entries)
        if not 0 < number <= len(checkpoints):
            known = f"there are 1 to {len(checkpoints)}" if checkpoints else "there is none yet"
            raise ValidationError(f"There is no checkpoint {number}: {known}.")
        return checkpoints[number - 1]

    def _last_rewind(self) -> tuple[HistoryEntry, JsonObject] | None:
        """The last one that was not taken back itself."""
        found: dict[str, tuple[HistoryEntry, JsonObject]] = {}
        for entry in self._session.history:
            if entry.type == REWIND and isinstance(entry.data, dict):
                if "redo" in entry.data:
                    found.pop(str(entry.data["redo"]), None)
                else:
                    found[entry.id] = entry, entry.data
        return next(reversed(found.values()), None)

    def _note(
        self, data: JsonObject, what: str, undone: Undone | None = None, before: int | None = None
    ) -> TakenBack:
        entry_id = None if undone is None else undone.entry_id
        if entry_id is not None:
            data = {**data, "entry": entry_id}
        self._session.add_history_entry(HistoryEntry(category="event", type=REWIND, data=data))
        messages = 0 if before is None else abs(len(self._session.messages) - before)
        if undone is None:
            return TakenBack(what=what, messages=messages)
        return TakenBack(what=what, messages=messages, restored=undone.restored, kept=undone.kept)

    async def _require_idle(self) -> None:
        session = self._session
        children = session.resources.children.values()
        if session.is_running or any(isinstance(each, Session) and each.is_running for each in children):
            raise SessionBusyError("Nothing is taken back while a prompt or an agent runs: stop it first.")
        await session.open()

    async def _entries(self) -> Sequence[Entry]:
        store = self._find_store()
        if store is None:
            return ()
        own = self._session.session_id
        return [entry for entry in await self._work(store.entries) if entry.session_id == own]

    async def _undo(self, *entry_ids: str, overwrite: bool = False) -> Undone:
        undo = self._require_store().undo
        return await self._work(partial(undo, *entry_ids, overwrite=lambda path: overwrite))

    def _require_store(self) -> UndoStore:
        store = self._find_store()
        if store is None:
            raise ValidationError("Files cannot be saved on this system, so there is nothing to go back to.")
        return store

    async def _work(self, function: Callable[..., T], *arguments: str) -> T:
        from anyio import to_thread  # noqa: PLC0415 - for those who go back

        return await to_thread.run_sync(function, *arguments)


def _since(checkpoint: Checkpoint, entries: Sequence[Entry]) -> list[str]:
    """What was saved from that prompt on, undos among it, also in turns that were set aside since."""
    return [entry.id for entry in entries if entry.at >= checkpoint.at.timestamp()]


def _shown(prompt: UserMessage) -> str:
    display = prompt.metadata.get(DISPLAY)
    return display if isinstance(display, str) else prompt.content
