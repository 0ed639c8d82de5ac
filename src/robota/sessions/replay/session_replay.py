"""Runs a recorded session again through the real code, without a network, and says where it differs."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import Any

from msgspec import Struct, convert
from msgspec.structs import replace

from robota.core.errors import RobotaError
from robota.core.events import TurnEvent
from robota.core.history import HistoryEntry
from robota.core.messages import JsonObject, Message, Part, Prompt
from robota.core.provider import ModelSettings, NativeWebTools
from robota.core.robota import RunLimits
from robota.core.tool import Tool
from robota.sessions.journal.session_logger import FileSessionLogger
from robota.sessions.log.conversation_restore import RestoredConversation, restore_conversation
from robota.sessions.log.session_log import Expander, LogEntry, SessionLogReader
from robota.sessions.options import (
    CompactionOptions,
    HookOptions,
    JournalOptions,
    PermissionOptions,
    SessionOptions,
)
from robota.sessions.permissions.rule_book import PermissionRules
from robota.sessions.replay.action import Action, Aside, Segment
from robota.sessions.replay.comparison import Divergence, LogComparison
from robota.sessions.replay.doubles import ReplayHooks, ReplayProvider, ReplayTool
from robota.sessions.replay.memory_journal import MemoryJournalFile, PromptCallWriter
from robota.sessions.replay.recorded_judge import RecordedJudge
from robota.sessions.replay.recording import Recording
from robota.sessions.replay.world import ReplayWorld
from robota.sessions.session import Session

_MESSAGES = frozenset(("message", "compaction_marked"))


class ReplayReport(Struct, frozen=True, kw_only=True):
    """What came of running a recording again."""

    messages: tuple[Message, ...]
    entries: tuple[LogEntry, ...]
    """The log that the replay wrote."""
    divergence: Divergence | None
    """The first difference to the recording."""
    stopped: bool = False
    """It was stopped at the wanted step."""
    problems: tuple[str, ...] = ()
    """What was wrong with the journal."""

    @property
    def identical(self) -> bool:
        return self.divergence is None


class Changes(Struct, frozen=True, kw_only=True):
    """What is not to be as it was recorded, to see where that leads."""

    system_message: str | None = None
    tools: tuple[Tool, ...] = ()
    """These run in the place of the recorded results of the tools of the same names."""
    options: Callable[[SessionOptions], SessionOptions] | None = None
    """Gets the options of the replay and returns those to use."""


UNCHANGED = Changes()


async def replay_session(
    path: str | os.PathLike[str],
    *,
    until: int | None = None,
    changes: Changes = UNCHANGED,
    on_event: Callable[[TurnEvent], object] | None = None,
) -> ReplayReport:
    """Replay the journal at `path`; `until` stops as soon as so many messages are recorded.

    `on_event` sees every turn event of the replay. Nothing is written, started or sent. A journal that
    cannot be read raises.
    """
    return await _Replay(os.fspath(path), until, changes, on_event).run()


class _Replay:
    def __init__(
        self,
        path: str,
        until: int | None,
        changes: Changes,
        on_event: Callable[[TurnEvent], object] | None,
    ) -> None:
        self.path = path
        self.until = until
        self.changes = changes
        self.on_event = on_event
        self.recording = Recording(path)
        self.entries: list[LogEntry] = []
        self.messages: tuple[Message, ...] = ()
        self.stopped = self.until == 0

    async def run(self) -> ReplayReport:
        divergence: Divergence | None = None
        for at, segment in enumerate(self.recording.segments):
            if self.stopped or divergence is not None:
                break
            part = _SegmentReplay(self, segment)
            await part.perform()
            self.messages = part.messages
            self.entries += part.entries()
            following = self.recording.segments[at + 1 : at + 2]
            divergence = part.compare(following[0].first_seq if following else None)
        return ReplayReport(
            messages=self.messages,
            entries=tuple(self.entries),
            divergence=divergence,
            stopped=self.stopped,
            problems=self.recording.problems,
        )


class _SegmentReplay:
    """What one process did to the session, done again."""

    def __init__(self, replay: _Replay, segment: Segment) -> None:
        self.replay = replay
        self.segment = segment
        self.world = ReplayWorld(segment, _do_aside, on_cut=self.end_early, on_mismatch=self.note_mismatch)
        self.judge = RecordedJudge(self.world)
        self.mismatch: Divergence | None = None
        session_id = str(segment.init.get("sessionId") or "")
        self.journal = MemoryJournalFile(session_id, segment.first_seq - 1, self.accept, self.note_record)
        self.logger = FileSessionLogger("", session_id)
        self.logger.journal.file = self.journal  # type: ignore[assignment]  # takes records as a file does
        self.logger.journal.keep_inline = True
        self.logger.calls = PromptCallWriter(self.logger.journal)
        self.before = self.restore()
        self.steps = self.before.steps
        self.messages: tuple[Message, ...] = ()
        self.replayed: list[LogEntry] | None = None
        self.session = self.make_session(session_id)
        if replay.on_event is not None:
            self.session.events.subscribe(self.pass_on)  # first: the world may do more with an event
        self.world.follow(self.session)

    def restore(self) -> RestoredConversation:
        """The conversation as the segment found it."""
        earlier = self.segment.first_seq - 1
        if not earlier:
            return RestoredConversation()
        return restore_conversation(self.replay.path, until=earlier, ports=self.world.ports())

    # --- the session ------------------------------------------------------------------------------------

    def make_session(self, session_id: str) -> Session:
        init, world, changes = self.segment.init, self.world, self.replay.changes
        options = self.options()
        if changes.options is not None:
            options = changes.options(options)
        return Session(
            provider=ReplayProvider.first(world),
            model=str(init.get("model") or ""),
            tools=self.tools(init.get("toolSchemas") or ()),
            system_message=changes.system_message or init.get("systemPrompt") or None,
            cwd=str(init.get("cwd") or ""),
            permission_handler=self.judge.approve if init.get("canAsk") else None,
            session_id=session_id,
            conversation=self.before.store if self.segment.first_seq > 1 else None,
            options=options,
        )

    def tools(self, schemas: Iterable[JsonObject]) -> list[Tool]:
        checking = frozenset(self.segment.init.get("selfChecking") or ())
        real = {tool.name: tool for tool in self.replay.changes.tools}
        return [
            ReplayTool(
                schema,
                self.world,
                validates_arguments=schema["name"] in checking,
                real=real.get(schema["name"]),
            )
            for schema in schemas
        ]

    def options(self) -> SessionOptions:
        init, world = self.segment.init, self.world
        rules = init.get("permissions") or {}
        web = init.get("webTools") or {}
        wanted = [bool((web.get(name) or {}).get("enabled")) for name in ("webSearch", "webFetch")]
        options = SessionOptions(
            permissions=PermissionOptions(
                rules=PermissionRules(
                    mode=init.get("permissionMode", "default"),
                    allow=tuple(rules.get("allow", ())),
                    deny=tuple(rules.get("deny", ())),
                    ask=tuple(rules.get("ask", ())),
                ),
                judge=self.judge,
                save_rule=self.judge.save_rule,
            ),
            hooks=HookOptions(port=ReplayHooks(world)),
            limits=RunLimits(max_parallel_tools=self.segment.max_parallel),
            max_rounds=int(init.get("maxTurns") or 0),
            settings=convert(init.get("options") or {}, ModelSettings),
            context_window=init.get("contextWindow"),
            compaction=CompactionOptions(
                threshold=init.get("autoCompactThreshold", False),
                instructions=init.get("compactInstructions") or "",
                sections=world.sections,
            ),
            journal=JournalOptions(logger=self.logger),
            ask=world.answer,
            name=init.get("name"),
            agent_id=init.get("agentId") or "",
            ports=world.ports(),
        )
        if not any(wanted):
            return options
        return replace(options, native_web_tools=NativeWebTools(web_search=wanted[0], web_fetch=wanted[1]))

    # --- doing it again ---------------------------------------------------------------------------------

    async def perform(self) -> None:
        self.session.log.open()
        for action in self.segment.actions:
            if self.replay.stopped:
                break
            self.prepare(action)
            self.world.begin(action)
            with suppress(RobotaError):  # how it ended is in the log
                await _ACTIONS[action.event](self.session, action)
            self.world.clock.end()
        if not self.replay.stopped:
            self.messages = tuple(self.session.messages)

    def prepare(self, action: Action) -> None:
        """What was changed before the action and shows only in it."""
        agent = self.session.agent
        if action.system is not None and self.replay.changes.system_message is None:
            agent.system_message = action.system
        if action.tools is not None:
            agent.tools = self.tools(action.tools)

    def accept(self, event: str) -> bool:
        self.journal.closed_for_more = beyond = self.world.is_beyond(event)
        return not beyond

    def note_record(self, event: str) -> None:
        if event in _MESSAGES:
            self.steps += 1
            if self.steps == self.replay.until:
                self.replay.stopped = self.journal.closed_for_more = True
                self.messages = tuple(self.session.messages)
                self.session.abort()
                return
        self.world.clock.tick(event)

    def end_early(self) -> None:
        """The recording ends here: what follows is no part of it."""
        self.logger.sync()
        self.journal.closed_for_more = True

    def note_mismatch(self, what: str) -> None:
        """The session wants something that is not on record: it may go on without it and say nothing."""
        if self.mismatch is None:
            self.mismatch = Divergence(
                step=self.steps, seq=0, event="", field="", recorded="nothing", replayed=what
            )

    def pass_on(self, event: TurnEvent) -> None:
        assert self.replay.on_event is not None
        if not self.journal.closed_for_more:
            self.replay.on_event(event)

    # --- comparing --------------------------------------------------------------------------------------

    def entries(self) -> list[LogEntry]:
        """The log of what the replay wrote; what came before the segment is known from the recording."""
        if self.replayed is None:
            expander = Expander()
            for record, fields in self.records_before():
                for _ in expander.expand(record, fields):
                    pass
            self.replayed = [entry for record in self.journal.records for entry in expander.expand(*record)]
        return self.replayed

    def records_before(self) -> Iterator[tuple[Any, Any]]:
        for record, fields in SessionLogReader(self.replay.path).records():
            if record.seq >= self.segment.first_seq:
                return
            yield record, fields

    def compare(self, following: int | None) -> Divergence | None:
        comparison = LogComparison(step=self.before.steps, sizes=not self.replay.recording.redacted)
        found = comparison.first_divergence(
            self.recorded(following), self.entries(), prefix=self.journal.closed_for_more
        )
        missed = self.mismatch
        return found if missed is None or (found is not None and found.step <= missed.step) else missed

    def recorded(self, following: int | None) -> Iterator[LogEntry]:
        for entry in SessionLogReader(self.replay.path):
            if following is not None and entry["seq"] >= following:
                return
            if entry["seq"] >= self.segment.first_seq:
                yield entry


async def _prompt(session: Session, action: Action) -> None:
    data = action.data
    prompt: Prompt = data["input"] if data.get("prompt") is None else data["prompt"]
    if data.get("parts") is not None:
        prompt = convert(data["parts"], list[Part])
    await session.run(prompt, raw_input=data.get("input"))


async def _compact(session: Session, action: Action) -> None:
    await session.compact(action.data.get("instructions"))


async def _clear(session: Session, action: Action) -> None:
    session.clear_history()


async def _inject(session: Session, action: Action) -> None:
    assert action.message is not None
    session.log.record(action.message)


async def _mark(session: Session, action: Action) -> None:
    """A mark that was there when the conversation was copied."""
    message: Any = action.message
    session.log.open()
    session.agent.conversation.restore_mark(message)
    session.log.announce(message, len(session.agent.conversation) - 1)


async def _change(session: Session, action: Action) -> None:
    _do_aside(session, (action.event, action.data))


async def _shut_down(session: Session, action: Action) -> None:
    await session.shutdown(action.data.get("reason", "other"))


def _do_aside(session: Session, aside: Aside) -> None:
    event, fields = aside
    if event == "history_entry":
        session.add_history_entry(convert(fields["entry"], HistoryEntry))
    elif "provider" in fields:
        before: Any = session.agent.provider
        session.set_provider(getattr(before, "inner", before).next(fields), str(fields["value"]))
    else:
        setattr(session, _ATTRIBUTES[str(fields["change"])], fields.get("value"))


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
    "history_entry": _change,
    "message": _inject,
    "compaction_marked": _mark,
    "session_change": _change,
    "session_shutdown": _shut_down,
}
