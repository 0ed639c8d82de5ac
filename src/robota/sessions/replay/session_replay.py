"""Runs a recorded session again through the real code, without a network, and says where it differs."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Any, cast

from msgspec import Struct, convert
from msgspec.structs import replace

from robota.core.errors import RobotaError
from robota.core.events import ContextLoaded, HistoryMutation, HookExecuted, SettingsChanged, TurnEvent
from robota.core.messages import JsonObject, Message
from robota.core.provider import ModelSettings, NativeWebTools
from robota.core.robota import RunLimits
from robota.core.tool import Tool, Toolset
from robota.sessions.changes import rewind, take_back_rewind
from robota.sessions.follow import EventReader
from robota.sessions.journal import records
from robota.sessions.journal.entries import EntryFold, LogEntry, SessionLogReader
from robota.sessions.journal.records import Record
from robota.sessions.options import (
    CompactionOptions,
    HookOptions,
    JournalOptions,
    PermissionOptions,
    SessionOptions,
)
from robota.sessions.permissions.live_rules import PermissionRules
from robota.sessions.replay.comparison import Divergence, LogComparison
from robota.sessions.replay.doubles import (
    RecordedJudge,
    RecordedQuestions,
    ReplayHooks,
    ReplayJournal,
    ReplayOutput,
    ReplayProvider,
    ReplayTool,
)
from robota.sessions.replay.recorded import Action, Segment
from robota.sessions.replay.recording import BESIDE, Recording
from robota.sessions.replay.world import ReplayWorld
from robota.sessions.session import Session
from robota.sessions.start import SessionStart, restore_journal
from robota.sessions.usage.budget import Budget

_MESSAGES = frozenset((records.MessageRecord.name, records.ToolMessageRecord.name, records.MarkRecord.name))


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
    """Gets the options of the replay and returns those to use. What they change first is told, not that they
    are others."""


UNCHANGED = Changes()


async def replay_session(
    path: str | os.PathLike[str],
    *,
    until: int | None = None,
    changes: Changes = UNCHANGED,
    on_event: Callable[[TurnEvent], object] | None = None,
    on_step: Callable[[int], object] | None = None,
) -> ReplayReport:
    """Replay the journal at `path`; `until` stops as soon as so many messages are recorded.

    `on_event` sees every turn event of the replay, `on_step` how many messages there are. Nothing is written,
    started or sent. A journal that cannot be read raises.
    """
    recording = Recording(os.fspath(path))
    replay = _Replay(recording, until, changes, on_event, on_step, stopped=until == 0)
    entries: list[LogEntry] = []
    messages: tuple[Message, ...] = ()
    divergence: Divergence | None = None
    for at, segment in enumerate(recording.segments):
        if replay.stopped or divergence is not None:
            break
        part = SegmentReplay(replay, segment)
        await part.perform()
        messages = part.messages
        entries += part.entries()
        following = recording.segments[at + 1 : at + 2]
        divergence = part.compare(following[0].first_seq if following else None)
    return ReplayReport(
        messages=messages,
        entries=tuple(entries),
        divergence=divergence,
        stopped=replay.stopped,
        problems=recording.problems,
    )


class _Replay(Struct):
    """What its segments have in common."""

    recording: Recording
    until: int | None
    changes: Changes
    on_event: Callable[[TurnEvent], object] | None
    on_step: Callable[[int], object] | None
    stopped: bool


class SegmentReplay:
    """What one process did to the session, done again."""

    def __init__(self, replay: _Replay, segment: Segment) -> None:
        self.replay = replay
        self.segment = segment
        self.world = ReplayWorld(segment, self)
        self.judge = RecordedJudge(self.world)
        self.questions = RecordedQuestions(self.world)
        self.mismatch: Divergence | None = None
        session_id = segment.facts.session_id
        self.journal = ReplayJournal(session_id, segment.before, self)
        self.before = self.restore()
        self.steps = self.before.steps
        self.messages: tuple[Message, ...] = ()
        self.replayed: list[LogEntry] | None = None
        self.session = self.make_session(session_id)
        self.session.usage.book.clock = lambda: 0.0  # how long it took is another matter each time
        if not self.knows_spending:
            self.session.admission.known_refusal = self.world.known_refusal
        self.questions.follow(self.session)
        if replay.on_event is not None:
            self.session.events.subscribe(self.pass_on)  # first: the world may do more with an event
        self.world.follow(self.session)

    def restore(self) -> SessionStart:
        """The session as the segment found it."""
        earlier = self.segment.before.record
        if not earlier:
            return SessionStart()
        start = restore_journal(self.replay.recording.path, until=earlier, ports=self.world.ports())
        start.session_id = self.segment.facts.session_id
        return start

    # --- the session ------------------------------------------------------------------------------------

    def make_session(self, session_id: str) -> Session:
        facts, changes = self.segment.facts, self.replay.changes
        options = self.options()
        if changes.options is not None:
            options = changes.options(options)
        toolset = self.toolset(facts.tool_schemas or ())
        session = Session(
            provider=ReplayProvider.first(self.world),
            model=facts.model,
            tools=toolset.tools.values(),
            system_message=changes.system_message or facts.system_prompt or None,
            cwd=facts.cwd,
            session_id=session_id,
            start=self.before if self.segment.before.record else None,
            options=options,
        )
        session.agent.toolset = toolset
        return session

    def toolset(self, schemas: Sequence[JsonObject]) -> Toolset:
        """These, and those that were there without being offered."""
        facts, real = self.segment.facts, {tool.name: tool for tool in self.replay.changes.tools}
        offered = {schema["name"] for schema in schemas}
        hidden = [schema for schema in facts.hidden_tools or () if schema["name"] not in offered]
        tools = [
            ReplayTool(
                schema,
                self.world,
                validates_arguments=schema["name"] in facts.self_checking,
                real=real.get(schema["name"]),
            )
            for schema in (*schemas, *hidden)
        ]
        return Toolset.of(tools, frozenset(schema["name"] for schema in hidden))

    @property
    def knows_spending(self) -> bool:
        """Whether all requests are on record: neither subagents nor hooks made some, nor is a size unknown
        because a secret was taken out, or a price because the model was the provider's choice."""
        facts, recording = self.segment.facts, self.replay.recording
        named = facts.model or (facts.budget or {}).get("maxCostUsd") is None
        return bool(named) and not (recording.spent_more or recording.redacted or facts.hook_events)

    def options(self) -> SessionOptions:
        facts, world = self.segment.facts, self.world
        return SessionOptions(
            permissions=PermissionOptions(
                rules=convert({"mode": facts.permission_mode, **facts.permissions}, PermissionRules),
                judge=self.judge,
                save_rule=self.judge.save_rule,
            ),
            hooks=HookOptions(port=ReplayHooks(world)),
            limits=RunLimits(max_parallel_tools=self.segment.max_parallel),
            budget=convert(facts.budget, Budget) if facts.budget and self.knows_spending else None,
            max_rounds=facts.max_turns,
            settings=convert(facts.options or {}, ModelSettings),
            context_window=facts.context_window,
            native_web_tools=wanted_web_tools(facts),
            compaction=CompactionOptions(
                threshold=facts.auto_compact_threshold,
                instructions=facts.compact_instructions or "",
                sections=world.sections,
            ),
            journal=JournalOptions(journal=self.journal),
            questions=self.questions,
            name=facts.session_name,
            agent_id=facts.agent_id or "",
            ports=world.ports(),
        )

    # --- doing it again ---------------------------------------------------------------------------------

    async def perform(self) -> None:
        await self.session.log.open()
        for action in self.segment.actions:
            if self.replay.stopped:
                break
            self.prepare(action)
            self.world.begin(action)
            with suppress(RobotaError):  # how it ended is in the log
                await _do(self.session, action, self.do_aside)
            self.world.clock.end()
        if not self.replay.stopped:
            self.messages = tuple(self.session.messages)

    def prepare(self, action: Action) -> None:
        """What was changed before the action and shows only in it."""
        agent = self.session.agent
        if action.system is not None and self.replay.changes.system_message is None:
            agent.system_message = action.system
        self.offer_tools(action)

    def offer_tools(self, action: Action) -> None:
        """Those of its next request. Servers come and go while a run is at work."""
        schemas = action.replies[0].tools if action.replies else None
        if schemas is not None:
            self.session.agent.toolset = self.toolset(schemas)

    def do_aside(self, aside: Record) -> None:
        """Do to the session what was done to it in the middle of something else, or beside everything."""
        match aside:
            case records.SessionChange(change="budget", value=limits) if not (limits and self.knows_spending):
                self.session.log.note_change("budget", limits)
            case _:
                _do_aside(self.session, aside)

    def accept(self, event: str) -> bool:
        self.journal.closed_for_more = beyond = self.world.is_beyond(event)
        return not beyond

    def note_record(self, event: str) -> None:
        if event in _MESSAGES:
            self.steps += 1
            if self.replay.on_step is not None:
                self.replay.on_step(self.steps)
            if self.steps == self.replay.until:
                self.replay.stopped = self.journal.closed_for_more = True
                self.messages = tuple(self.session.messages)
                self.session.abort()
                return
        self.world.clock.tick(event)

    def end_early(self) -> None:
        """The recording ends here: what follows is no part of it."""
        log = self.session.log.event_log
        if log is not None:
            log.end_run()
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
            fold = EntryFold()
            for record in SessionLogReader(self.replay.recording.path).records():
                if record.seq >= self.segment.first_seq:
                    break
                deque(fold.take(record), maxlen=0)
            self.replayed = [entry for record in self.journal.records for entry in fold.take(record)]
        return self.replayed

    def compare(self, following: int | None) -> Divergence | None:
        comparison = LogComparison(
            step=self.before.steps,
            sizes=not self.replay.recording.redacted,
            facts=self.replay.changes.options is None,
            spending=self.knows_spending,
        )
        found = comparison.first_divergence(
            self.recorded(following), self.entries(), prefix=self.journal.closed_for_more
        )
        missed = self.mismatch
        return found if missed is None or (found is not None and found.step <= missed.step) else missed

    def recorded(self, following: int | None) -> Iterator[LogEntry]:
        for entry in SessionLogReader(self.replay.recording.path):
            if following is not None and entry["seq"] >= following:
                return
            if entry["seq"] >= self.segment.first_seq:
                yield entry


def wanted_web_tools(facts: records.SessionFacts) -> NativeWebTools | None:
    web = facts.web_tools
    search, fetch = (bool((web.get(name) or {}).get("enabled")) for name in ("webSearch", "webFetch"))
    return NativeWebTools(web_search=search, web_fetch=fetch) if search or fetch else None


async def _do(session: Session, action: Action, do_aside: Callable[[Record], None]) -> None:
    """Do to the session what was done to it."""
    match action.record:
        case records.UserRecord() as record:
            prompt = record.read_prompt()
            wishes = _wishes(action, record) | {"max_rounds": record.max_rounds}
            shown, typed = record.display, record.input
            await session.submit(prompt, id=record.submit_id, display_input=shown, raw_input=typed, **wishes)
        case records.RunContinued() as record:
            await session.continue_run(**_wishes(action, record))
        case records.CompactRecord(instructions=instructions):
            await session.compact(instructions)
        case records.HistoryCleared():
            session.clear_history()
        case records.HistoryRewound(messages=messages, back=back):
            take_back_rewind(session) if back else rewind(session, messages)
        case records.SessionEnded(reason=reason):
            await session.shutdown(reason)
        case records.MarkRecord(message=message):  # it was there when the conversation was copied
            session.agent.conversation.restore_mark(message)
            session.log.announce(message, len(session.agent.conversation) - 1)
        case records.MessageRecord() | records.ToolMessageRecord() if action.message is not None:
            session.log.record(action.message)
        case aside:
            do_aside(aside)


def _wishes(action: Action, record: records.UserRecord | records.RunContinued) -> dict[str, Any]:
    """The form that the answer was to have, and settings of the prompt's own."""
    return {
        "output": None if record.wanted is None else ReplayOutput(record.wanted, action),
        "settings": None if record.settings is None else convert(record.settings, ModelSettings),
    }


def _do_aside(session: Session, aside: Record) -> None:
    match aside:
        case records.EntryRecord(entry=entry):
            session.add_history_entry(entry)
        case records.MessageRecord(message=message):
            _append(session, message)
        case records.InboxRecord(origin=origin):
            session.inbox.put(aside.read_prompt(), origin=cast("Any", origin), id=aside.id, keep=aside.keep)
        case records.SettingsRecord(values=values):
            changed = values.get("permissions")
            session.rules.replace(None if changed is None else convert(changed, PermissionRules))
            session.log.tell(SettingsChanged, keys=aside.keys, values=values)
        case records.LoadedRecord(data=data):
            session.log.report(ContextLoaded, data=data)
        case records.HookRecord(hook=hook, call_id=call_id, outcome=outcome):
            session.log.report(HookExecuted, data={"hook": hook, "callId": call_id, "outcome": outcome})
        case records.SessionChange():
            _change(session, aside)
        case _ if isinstance(aside, BESIDE):
            aside.ev = 1  # its number is another one here
            for event in EventReader().take(aside):
                session.events.emit(replace(event, seq=session.events.next_seq()))


def _append(session: Session, message: Message) -> None:
    index = session.agent.conversation.append(message)
    if session.log.event_log is not None:  # at once: what is emitted now would come behind what follows
        mutation = HistoryMutation(message=message, index=index, seq=session.events.seq)
        session.log.event_log.take_message(mutation)


def _change(session: Session, change: records.SessionChange) -> None:
    if change.provider is not None:
        before: Any = session.agent.provider
        session.set_provider(getattr(before, "inner", before).next(change), str(change.value))
    elif change.change == "budget":
        session.limit(convert(change.value, Budget))
    elif change.change in records.KEPT_FIELDS:
        session.kept.put(change.change, change.value)
    else:
        setattr(session, _ATTRIBUTES[change.change], change.value)


_ATTRIBUTES = {
    "permissionMode": "permission_mode",
    "autoCompactThreshold": "auto_compact_threshold",
    "name": "name",
    "model": "model",
}
