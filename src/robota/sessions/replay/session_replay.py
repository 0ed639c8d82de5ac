"""Runs a recorded session again through the real code, without a network, and says where it differs."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from msgspec import Struct, convert

from robota.core.errors import RobotaError
from robota.core.events import HistoryMutation, TurnEvent
from robota.core.history import HistoryEntry
from robota.core.messages import Message, Part, Prompt
from robota.core.provider import ModelSettings, NativeWebTools
from robota.sessions.conversation_restore import restore_conversation
from robota.sessions.permissions.rule_book import PermissionRules
from robota.sessions.replay.comparison import Divergence, first_divergence
from robota.sessions.replay.memory_journal import MemoryJournalFile
from robota.sessions.replay.recording import Action, Recording, Segment
from robota.sessions.replay.world import ReplayHooks, ReplayProvider, ReplayTool, ReplayWorld
from robota.sessions.session import Session
from robota.sessions.session_log import Expander, LogEntry, SessionLogReader
from robota.sessions.session_logger import FileSessionLogger
from robota.sessions.session_options import SessionOptions


class ReplayReport(Struct, frozen=True, kw_only=True):
    """What came of running a recording again."""

    messages: tuple[Message, ...]
    entries: tuple[LogEntry, ...]
    """The log that the replay wrote."""
    divergence: Divergence | None
    """The first difference to the recording."""
    stopped: bool = False
    """It was stopped at the wanted step."""

    @property
    def identical(self) -> bool:
        return self.divergence is None


async def replay_session(
    path: str | os.PathLike[str],
    *,
    until: int | None = None,
    on_event: Callable[[TurnEvent], object] | None = None,
) -> ReplayReport:
    """Replay the journal at `path`; `until` stops once the conversation has that many messages.

    `on_event` sees every turn event of the replay. A journal that cannot be read raises.
    """
    return await _Replay(os.fspath(path), until, on_event).run()


class _Replay:
    def __init__(self, path: str, until: int | None, on_event: Callable[[TurnEvent], object] | None) -> None:
        self.path = path
        self.until = until
        self.on_event = on_event
        self.recording = Recording(path)
        self.entries: list[LogEntry] = []
        self.stopped = False

    async def run(self) -> ReplayReport:
        divergence: Divergence | None = None
        messages: tuple[Message, ...] = ()
        for at, segment in enumerate(self.recording.segments):
            session, journal = self.make_session(segment)
            steps = len(session.messages)
            await self.perform(session, segment)
            messages = tuple(session.messages)
            replayed = self.expand(segment, journal)
            self.entries += replayed
            last = (
                self.recording.segments[at + 1].first_seq if at + 1 < len(self.recording.segments) else None
            )
            divergence = first_divergence(
                self.recorded(segment.first_seq, last),
                replayed,
                step=steps,
                prefix=segment.crashed,
            )
            if self.stopped or divergence is not None:
                break
        if self.stopped and divergence is not None and divergence.step >= (self.until or 0):
            divergence = None  # only that it ended
        return ReplayReport(
            messages=messages, entries=tuple(self.entries), divergence=divergence, stopped=self.stopped
        )

    # --- the session ------------------------------------------------------------------------------------

    def make_session(self, segment: Segment) -> tuple[Session, MemoryJournalFile]:
        init = segment.init
        session_id = str(init.get("sessionId") or "")
        world = ReplayWorld(init, segment.start)
        journal = MemoryJournalFile(session_id, segment.first_seq - 1)
        logger = FileSessionLogger("", session_id)
        logger.journal.file = journal  # type: ignore[assignment]  # takes records as a file does
        logger.journal.keep_inline = True
        checking = frozenset(init.get("selfChecking") or ())
        earlier = segment.first_seq - 1
        conversation = restore_conversation(self.path, until=earlier).store if earlier else None
        session = Session(
            provider=ReplayProvider(world),
            model=str(init.get("model") or ""),
            tools=[
                ReplayTool(schema, world, validates_arguments=schema["name"] in checking)
                for schema in init.get("toolSchemas") or ()
            ],
            system_message=init.get("systemPrompt"),
            cwd=str(init.get("cwd") or ""),
            permission_handler=world.approve if init.get("canAsk") else None,
            session_id=session_id,
            conversation=conversation,
            options=self.options(world, logger),
        )
        world.follow(session)
        if self.on_event is not None:
            session.events.subscribe(self.on_event)
        if self.until is not None:
            session.events.on(HistoryMutation, lambda event: self.watch(session, event))
        return session, journal

    def options(self, world: ReplayWorld, logger: FileSessionLogger) -> SessionOptions:
        init = world.init
        rules = init.get("permissions") or {}
        web = init.get("webTools") or {}
        wanted = {name: bool((web.get(name) or {}).get("enabled")) for name in ("webSearch", "webFetch")}
        return SessionOptions(
            rules=PermissionRules(
                mode=init.get("permissionMode", "default"),
                allow=tuple(rules.get("allow", ())),
                deny=tuple(rules.get("deny", ())),
                ask=tuple(rules.get("ask", ())),
            ),
            judge=world,
            save_rule=lambda _: None,
            hook_port=ReplayHooks(world),
            max_turns=int(init.get("maxTurns") or 0),
            context_window=init.get("contextWindow"),
            auto_compact_threshold=init.get("autoCompactThreshold", False),
            compact_instructions=init.get("compactInstructions") or "",
            settings=convert(init.get("options") or {}, ModelSettings),
            native_web_tools=NativeWebTools(web_search=wanted["webSearch"], web_fetch=wanted["webFetch"])
            if any(wanted.values())
            else None,
            name=init.get("name"),
            agent_id=init.get("agentId") or "",
            logger=logger,
            ports=world.ports(),
        )

    def is_stopped(self) -> bool:
        return self.stopped

    def watch(self, session: Session, event: HistoryMutation) -> None:
        if self.until is not None and event.index + 1 >= self.until:
            self.stopped = True
            session.abort()

    # --- the actions ------------------------------------------------------------------------------------

    async def perform(self, session: Session, segment: Segment) -> None:
        judge = session.options.judge
        assert isinstance(judge, ReplayWorld)
        for action in segment.actions:
            if self.is_stopped():
                return
            judge.begin(action)
            if segment.crashed and action is segment.actions[-1]:
                action.interrupted = True  # the process ended here; for the session that is a stop
            await _ACTIONS[action.event](session, action)

    def expand(self, segment: Segment, journal: MemoryJournalFile) -> list[LogEntry]:
        """The entries of what the replay wrote; earlier segments are known from the recording."""
        expander = Expander()
        for record, fields in SessionLogReader(self.path).records():
            if record.seq >= segment.first_seq:
                break
            for _ in expander.expand(record, fields):
                pass
        return [entry for record, fields in journal.records for entry in expander.expand(record, fields)]

    def recorded(self, first: int, last: int | None) -> list[LogEntry]:
        return [
            entry
            for entry in SessionLogReader(self.path)
            if entry["seq"] >= first and (last is None or entry["seq"] < last)
        ]


async def _prompt(session: Session, action: Action) -> None:
    data = action.data
    prompt: Prompt = data.get("prompt") or data.get("input") or ""
    if data.get("parts"):
        prompt = convert(data["parts"], list[Part])
    try:
        await session.run(prompt, raw_input=data.get("input"))
    except RobotaError:
        return  # how it ended is in the log


async def _compact(session: Session, action: Action) -> None:
    try:
        await session.compact(action.data.get("instructions"))
    except RobotaError:
        return  # how it ended is in the log


async def _clear(session: Session, action: Action) -> None:
    session.clear_history()


async def _add_entry(session: Session, action: Action) -> None:
    session.add_history_entry(convert(action.data["entry"], HistoryEntry))


async def _inject(session: Session, action: Action) -> None:
    assert action.message is not None
    session.life.scribe.record(action.message)


async def _mark(session: Session, action: Action) -> None:
    message: Any = action.message
    session.agent.conversation.restore_mark(message)
    session.life.scribe.announce(message, len(session.messages) - 1)


async def _change(session: Session, action: Action) -> None:
    setattr(session, _ATTRIBUTES[action.data["change"]], action.data.get("value"))


async def _shut_down(session: Session, action: Action) -> None:
    await session.shutdown(action.data.get("reason", "other"))


_ATTRIBUTES = {
    "permissionMode": "permission_mode",
    "autoCompactThreshold": "auto_compact_threshold",
    "name": "name",
    "model": "model",
}
_ACTIONS = {
    "user": _prompt,
    "compact": _compact,
    "history_cleared": _clear,
    "history_entry": _add_entry,
    "message": _inject,
    "compaction_marked": _mark,
    "session_change": _change,
    "session_shutdown": _shut_down,
}
