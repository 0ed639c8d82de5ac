"""`Session`: one agent with permissions, hooks, a bounded context and a memory that outlives the process.

Construction does nothing but put the parts together. The journal is opened, and `SessionStart` fires, when
the session is first used. What happens to a prompt on its way is told in `turn_steps`.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator, Iterable
from contextlib import AbstractAsyncContextManager
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar, Unpack

from msgspec.structs import replace

from robota.core.bus import EventBus
from robota.core.closing import Closing
from robota.core.context import ContextWindowState
from robota.core.conversation import ConversationStore
from robota.core.errors import SessionBusyError
from robota.core.events import PromptQueued, SessionShutdown, TurnEvent
from robota.core.given import require_kind
from robota.core.messages import HistoryEntry, Message, Prompt, prompt_text
from robota.core.permissions import PermissionMode
from robota.core.provider import ModelSettings, Provider
from robota.core.robota import check_prompt
from robota.core.run import OutputKind, OutputT, RunResult, read_output, want_output
from robota.core.run_task import stream_run, wait_for_readers
from robota.core.tool import Tool
from robota.sessions.background import BackgroundWork
from robota.sessions.changes import (
    Authors,
    Changes,
    InjectedRole,
    inject,
    make_injected,
    reload,
    swap_model,
)
from robota.sessions.context_window_tracker import AutoCompactThreshold, ContextWindowTracker
from robota.sessions.description import (
    describe_budget,
    describe_snapshot,
    describe_wishes,
    update_web_tools,
)
from robota.sessions.inbox import Inbox
from robota.sessions.journal.records import HistoryCleared, UserRecord
from robota.sessions.log import KeptFields
from robota.sessions.options import DEFAULT_OPTIONS, SessionOptions, SubmitOptions
from robota.sessions.parts import make_agent, make_config, make_hooks, make_log, make_questions
from robota.sessions.past import look_back, recall_usage, take_up
from robota.sessions.permissions.permission_enforcer import PermissionEnforcer
from robota.sessions.resources import Resources
from robota.sessions.snapshots import Snapshots
from robota.sessions.turn_steps import TurnSteps
from robota.sessions.usage.budget import Admission
from robota.sessions.usage.ledger import UsageLedger

if TYPE_CHECKING:
    from robota.core.events import ModelChanged
    from robota.sessions.child import ChildOptions
    from robota.sessions.questions import PermissionHandler
    from robota.sessions.start import SessionStart
    from robota.sessions.store.session_store import SessionStorePort
    from robota.sessions.usage.budget import Budget

T = TypeVar("T")


class Session(Closing):
    """A conversation that is permitted, measured and kept.

    `run` takes one prompt to its answer. Everything that happens in between comes through `events`.
    """

    __slots__ = (
        "__weakref__", "_ended", "_ending", "_name", "_shutdown", "_snapshots", "admission", "agent",
        "authors", "background", "cwd", "enforcer", "hooks", "inbox", "kept", "log", "message_count",
        "options", "past", "questions", "resources", "rules", "session_id", "steps", "store", "tracker",
        "usage",
    )  # fmt: skip

    def __init__(
        self,
        *,
        provider: Provider,
        model: str = "",
        tools: Iterable[Tool] = (),
        system_message: str | None = None,
        cwd: str | None = None,
        store: SessionStorePort | None = None,
        permission_handler: PermissionHandler | None = None,
        session_id: str | None = None,
        conversation: ConversationStore | None = None,
        start: SessionStart | None = None,
        options: SessionOptions = DEFAULT_OPTIONS,
    ) -> None:
        """`start` is an earlier session to go on with, as `restore` finds it: what is not given is as it was.
        With another `session_id` this one is a fork of it."""
        require_kind("Session(options=…)", options, SessionOptions)
        if start is not None:
            model, cwd = model or start.model, cwd or start.cwd or None
            system_message = start.system_prompt if system_message is None else system_message
            conversation = start.conversation
            session_id = session_id or start.session_id or None
        self.options = options
        self.session_id = options.ports.new_id() if session_id is None else session_id
        self.cwd = os.getcwd() if cwd is None else cwd
        self.store = store
        self._name = start.name if start is not None and options.name is None else options.name
        self.message_count = 0
        """Prompts that were answered."""
        self.authors: Authors | None = None
        """Who wrote what, since the model was exchanged."""
        self._ended: asyncio.Event | None = None
        self._shutdown = False
        self._ending: asyncio.Lock | None = None
        self.agent = agent = make_agent(provider, model, tools, system_message, conversation, options)
        self.tracker = ContextWindowTracker(
            agent.conversation, agent.using.window, options.compaction.threshold
        )
        known = start if start is not None and start.session_id == self.session_id else None
        self.log = make_log(self, known)
        kept = None if options.agent_id else store  # the one snapshot of a session is its own agent's
        self._snapshots = Snapshots(kept, self.log, partial(describe_snapshot, self))
        notice = self.log.notice
        self.resources = Resources(notice)
        self.inbox = Inbox(self.log, options.ports)
        self.background = BackgroundWork() if known is None else known.background
        self.past = look_back(known)
        self.kept = KeptFields(self.log)
        if known is not None:
            take_up(self, known)
        self.usage = UsageLedger() if options.ledger is None else options.ledger
        self.admission = Admission(self.usage, provider, notice)
        self.usage.attach(agent.events, self.admission.is_metering)
        recall_usage(self, known)
        if options.budget is not None:
            self.admission.limit(options.budget, provider)
        self.questions = make_questions(self, permission_handler, known)
        self.hooks = make_hooks(self)
        self._connect_agent(is_fork=start is not None and known is None)

    def _connect_agent(self, *, is_fork: bool) -> None:
        """Put the session between the agent and the world."""
        options, agent = self.options, self.agent
        self.enforcer = PermissionEnforcer(
            options.permissions,
            cwd=self.cwd,
            questions=self.questions,
            hooks=self.hooks,
            log=self.log,
            agent_id=options.agent_id,
            admit_call=self.admission.admit_call,
        )
        self.rules = self.enforcer.rules
        self.rules.meet(agent.tool_names())
        self.steps = TurnSteps(self)
        if is_fork:
            self.steps.source = "fork"
        agent.config = make_config(self)

    # --- what it is -----------------------------------------------------------------------------------

    @property
    def events(self) -> EventBus:
        return self.agent.events

    @property
    def messages(self) -> list[Message]:
        return self.agent.messages

    @property
    def history(self) -> list[HistoryEntry]:
        """The whole timeline: messages and events."""
        return self.agent.history

    @property
    def is_running(self) -> bool:
        return self._ended is not None

    @property
    def permission_mode(self) -> PermissionMode:
        return self.rules.rules.mode

    @permission_mode.setter
    def permission_mode(self, mode: PermissionMode) -> None:
        self.rules.rules = replace(self.rules.rules, mode=mode)
        self.log.note_change("permissionMode", mode)

    @property
    def session_allowed_tools(self) -> tuple[str, ...]:
        """The rules the user allowed for this session."""
        return self.rules.granted

    def clear_session_allowed_tools(self) -> None:
        self.rules.granted = ()

    def reload(self, **changes: Unpack[Changes]) -> None:
        """Take other rules, hooks or directories. They count from the next call on, also in mid-run; what is
        not given stays."""
        reload(self, **changes)
        update_web_tools(self)

    @property
    def context_state(self) -> ContextWindowState:
        return self.tracker.state

    @property
    def auto_compact_threshold(self) -> AutoCompactThreshold:
        return self.tracker.threshold

    @auto_compact_threshold.setter
    def auto_compact_threshold(self, threshold: AutoCompactThreshold) -> None:
        self.tracker.threshold = threshold
        self.log.note_change("autoCompactThreshold", threshold)

    @property
    def model(self) -> str:
        return self.agent.model

    @model.setter
    def model(self, model: str) -> None:
        self.set_model(model)

    def set_model(self, model: str) -> ModelChanged:
        """Let another model of the same provider answer from the next round on, also in mid-run."""
        return self.set_provider(self.agent.provider, model)

    def set_provider(self, provider: Provider, model: str | None = None) -> ModelChanged:
        """The same with another provider, by default with its own model; tells what that means."""
        return swap_model(self, provider, model)

    def limit(self, budget: Budget) -> None:
        """Check a budget before each request, in the place of the one that there may be."""
        self.admission.limit(budget, self.agent.provider)
        self.log.note_change("budget", describe_budget(self))

    @property
    def name(self) -> str | None:
        return self._name

    @name.setter
    def name(self, name: str | None) -> None:
        self._name = name
        self.log.note_change("name", name)
        if self.log.catch_up is not None:  # it is one of earlier, which has its name without a prompt too
            self.log.used = True

    @property
    def trouble(self) -> str:
        """Why not everything is on the disk, in one sentence; empty when all is well."""
        return self.log.trouble or self._snapshots.trouble

    def __repr__(self) -> str:
        known = f"{self.agent.model!r} of {self.agent.provider.name}, {len(self.messages)} messages"
        return f"<Session {self.session_id}, {known}>"

    async def open(self) -> None:
        """Have the journal ready. The first prompt does it; what is put into a conversation before that is
        written down then, or at the latest when the session is shut down."""
        await self.log.open()

    # --- running --------------------------------------------------------------------------------------

    async def submit(
        self,
        prompt: Prompt,
        *,
        output: OutputKind[OutputT] | None = None,
        id: str = "",
        display_input: str | None = None,
        raw_input: str | None = None,
        max_rounds: int | None = None,
        settings: ModelSettings | None = None,
    ) -> RunResult[OutputT]:
        """Take one prompt to its end. An abort or a failing model is a result, not an exception. `raw_input`
        is what the user typed, when the prompt was made from it, `display_input` what front ends show."""
        aborts = self.steps.aborts
        if not isinstance(prompt, str):
            check_prompt(prompt)
        if id and self.past.cut is not None and self.past.cut.submit_id == id:
            return await self.continue_run(output=output, settings=settings)
        if id in self.past.results:
            return read_output(self.past.results[id], output)
        wanted: Any = want_output(output)
        text = prompt if isinstance(prompt, str) else prompt_text(prompt)
        if self.agent.streaming:  # a run whose stream was left may still be ending
            await wait_for_readers(self.agent)
            if self._ended is not None and not self.agent.is_running:
                await self._ended.wait()
        self._enter(aborts)
        try:
            self.steps.words = words = text if raw_input is None else raw_input
            self.steps.shown = text if display_input is None else display_input
            await self.log.open()
            if id in self.past.results:  # somebody else has submitted it meanwhile
                return read_output(self.past.results[id], output)
            told = describe_wishes(wanted, settings)
            record = UserRecord(
                input=words, display=display_input, submit_id=id, max_rounds=max_rounds, **told
            )
            await self.log.accept(prompt, record)
            update_web_tools(self)
            result = await self.agent.run(prompt, max_rounds=max_rounds, output=wanted, settings=settings)
        finally:
            await self._leave()
        self.message_count += result.success
        if id:
            self.past.results[id] = result
        return result

    async def continue_run(
        self, *, output: OutputKind[OutputT] | None = None, settings: ModelSettings | None = None
    ) -> RunResult[OutputT]:
        """Go on with the run that the end of an earlier process cut. Results on record stay, calls that only
        look are made again; of the others the model is told that their effects are unknown."""
        self.past.require_cut(self.session_id)
        wanted: Any = want_output(output)
        self._enter(self.steps.aborts)
        try:
            await self.log.open()
            cut = self.past.require_cut(self.session_id)  # others may have gone on with it
            self.log.continue_run(cut.run, self.agent.tools, **describe_wishes(wanted, settings))
            cut.reopen(self.agent.conversation)
            update_web_tools(self)
            result = await self.agent.run("", cut=cut.run, output=wanted, settings=settings)
        finally:
            await self._leave()
        self.message_count += result.success
        if cut.submit_id:
            self.past.results[cut.submit_id] = result
        return result

    async def run(self, prompt: Prompt, *, raw_input: str | None = None) -> str:
        """The answer to a prompt. An abort raises `AbortError`, a failing model its error; history stays."""
        return (await self.submit(prompt, raw_input=raw_input)).raise_for_error().text

    def run_sync(self, prompt: Prompt, *, raw_input: str | None = None) -> str:
        """`run` for code without an event loop; also in notebooks, any number of times."""
        from robota.core.sync import run_sync  # noqa: PLC0415 - starts a thread, for those who ask for it

        return run_sync(self.run(prompt, raw_input=raw_input))

    def stream(
        self, prompt: Prompt, *, output: OutputKind[Any] | None = None, **options: Unpack[SubmitOptions]
    ) -> AsyncGenerator[TurnEvent, None]:
        """`submit`, as the events of the run; the last says how it ended. Leaving early stops the run."""
        return stream_run(self.agent, partial(self.submit, prompt, output=output, **options))

    def steer(self, prompt: Prompt, *, id: str = "") -> str:
        """Tell the model something while it works: it hears it before its next round, or with the next
        prompt when nothing runs. Returns the id of the message, under which it is delivered once."""
        check_prompt(prompt)
        self.log.require_open()
        self.events.emit(PromptQueued(prompt_text(prompt), seq=self.events.seq))
        return self.inbox.put(prompt, id=id)

    async def own(self, manager: AbstractAsyncContextManager[T]) -> T:
        """Enter something that lives as long as the session, such as a table of processes."""
        return await self.resources.own(manager)

    def child(self, agent_id: str, **differences: Unpack[ChildOptions]) -> Session:
        """A session below this one, with at most its rights, out of its budget, and with a journal of its
        own. What it does comes through `events` as `SubagentEvent`; it ends with this one at the latest."""
        from robota.sessions.child import make_child  # noqa: PLC0415 - for those who have some

        return make_child(self, agent_id, **differences)

    def follow(self, after: int = 0) -> AsyncGenerator[TurnEvent, None]:
        """The events behind number `after`, whenever they happened: those of the journal, then live ones.
        Each number comes once. Leaving it leaves the session alone."""
        from robota.sessions.follow import follow  # noqa: PLC0415 - for front ends that are not the only one

        return follow(self.log, self.events, after)

    async def compact(self, instructions: str | None = None) -> str | None:
        """Replace what the model sees of the conversation by a summary; the summary, `None` for no need."""
        self._enter(self.steps.aborts)
        try:
            return await self.steps.compact(instructions)
        finally:
            await self._leave()

    def abort(self) -> None:
        """Stop what is under way, if something is. Safe from any thread and from signal handlers."""
        self.steps.aborts += 1  # the journal may still be opening, and the agent not know of the prompt
        self.agent.abort()

    def _enter(self, aborts: int) -> None:
        if self._shutdown:
            raise SessionBusyError(f"Session {self.session_id} was shut down: resume it or start a new one.")
        if self._ended is not None:
            raise SessionBusyError("This session works on another prompt: wait for it, or abort() it first.")
        self._ended = asyncio.Event()
        self.steps.aborts_before = aborts

    async def _leave(self) -> None:
        try:
            await self.log.sync()
            self.log.end_round()  # however it ended
            self.past.cut = None  # what was done has given it up, or taken it to its end
            self._snapshots.save_if_due()
        finally:  # a store that fails must not leave anybody waiting
            ended, self._ended = self._ended, None
            if ended is not None:
                ended.set()

    # --- the conversation -----------------------------------------------------------------------------

    def clear_history(self) -> None:
        """Begin an empty conversation; the journal keeps the old one."""
        self.log.require_open()
        self.agent.clear()
        self.past.cut = None
        self.log.record_restart(HistoryCleared())
        self.steps.tell_context()

    def add_history_entry(self, entry: HistoryEntry) -> None:
        self.log.record_entry(entry)

    def inject_message(
        self, role: InjectedRole, content: str, *, tool_call_id: str = "", name: str = ""
    ) -> Message:
        """Put a message into the conversation without asking the model, in mid-run at the end of the round;
        words of the system are added to those that it has."""
        return inject(self, make_injected(self, role, content, tool_call_id=tool_call_id, name=name))

    # --- the end --------------------------------------------------------------------------------------

    async def shutdown(self, reason: str = "other") -> None:
        """Stop what runs, save, fire `SessionEnd` once; calling it again waits for the same end."""
        self._shutdown = True
        self.abort()
        if self.agent.is_in_own_task:
            raise SessionBusyError(
                "A session cannot wait for the end of its own run inside it: abort() it there, and shut it "
                "down outside."
            )
        if self._ended is not None:
            await self._ended.wait()
        self._ending = self._ending or asyncio.Lock()
        try:
            async with self._ending:  # whoever comes second waits for the first
                await self._end(reason)
        finally:
            await self.agent.aclose()

    async def _end(self, reason: str) -> None:
        """Say that it is over, save, fire `SessionEnd`. A session that was never used leaves no trace."""
        log = self.log
        if log.closed:
            return
        try:
            await self.resources.aclose()
            if log.used:
                await log.open()
                log.report(SessionShutdown, reason=reason)
                await log.sync()
                await self._snapshots.finish()
                await self.hooks.fire("SessionEnd", {"reason": reason})
        finally:
            await log.aclose()

    async def aclose(self) -> None:
        await self.shutdown()
