"""What a session needs from its first use to its end: journal, hooks, compaction, usage, snapshots."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from msgspec import to_builtins

from robota.core.events import (
    CompactionMarked,
    HistoryMutation,
    HookExecuted,
    Noticed,
    PermissionDecided,
    SessionInit,
    SessionShutdown,
    UserAnswered,
)
from robota.core.hooks.definition import HOOK_EVENTS
from robota.core.messages import AssistantMessage, Json, JsonObject, Message
from robota.core.ports import timestamp
from robota.core.provider import get_provider_capabilities
from robota.core.tool import tool_schema
from robota.sessions.permissions.permission_enforcer import PermissionEnforcer
from robota.sessions.session_hooks import NO_HOOKS, HookPort
from robota.sessions.session_logger import FileSessionLogger
from robota.sessions.snapshots import Snapshots

if TYPE_CHECKING:
    from anyio import CancelScope

    from robota.core.errors import RobotaError
    from robota.core.hooks import HookOutcome
    from robota.core.provider import ChatRequest
    from robota.core.tool import ToolResult
    from robota.core.tool_batch import PreparedCall
    from robota.sessions.compaction.compaction_orchestrator import CompactionOrchestrator
    from robota.sessions.session import Session
    from robota.sessions.usage.ledger import UsageLedger


class SessionLife:
    __slots__ = (
        "_compaction", "_loop", "_opened", "_scope", "_session", "_snapshots", "_started", "enforcer",
        "hooks", "ledger", "logger", "name", "start_context",
    )  # fmt: skip

    def __init__(self, session: Session) -> None:
        options = session.options
        self._session = session
        self.name = options.name
        self.start_context: HookOutcome | None = None
        """What SessionStart hooks have to say to the model; the first prompt takes it along."""
        self.hooks: HookPort = NO_HOOKS if options.hook_port is None else options.hook_port
        if options.hooks and options.hook_port is None:
            from robota.sessions.session_hooks import SessionHooks  # noqa: PLC0415 - for sessions with hooks

            self.hooks = SessionHooks(
                options.hooks,
                common=self.hook_input,
                report=self.report_hooks,
                executors=options.hook_executors,
            )
        self.ledger: UsageLedger | None = options.ledger
        self.logger = options.logger or self._make_logger()
        self._snapshots = Snapshots(session)
        self._compaction: CompactionOrchestrator | None = None
        self._opened = False
        self._started = False
        self._scope: CancelScope | None = None
        self._loop: Any = None
        self.enforcer = PermissionEnforcer(
            options.rules,
            cwd=session.cwd,
            handler=session.permission_handler,
            hooks=None if self.hooks is NO_HOOKS else self.hooks,
            guard=options.guard,
            judge=options.judge,
            save_rule=options.save_rule,
            notice=self.notice,
            record=self.record_decision,
            record_original=self.record_original,
            before_effects=self.before_effects,
            run_tool=options.run_tool,
            home=options.home,
            additional_dirs=options.additional_dirs,
            agent_id=options.agent_id,
        )

    def _make_logger(self) -> FileSessionLogger | None:
        session = self._session
        directory = getattr(session.store, "base_dir", None)
        if directory is None:
            return None
        options = session.options
        return FileSessionLogger(
            str(directory), session.session_id, redactor=options.redactor, durable=options.durable
        )

    # --- the beginning --------------------------------------------------------------------------------

    async def begin(self) -> None:
        """Open the journal and, the first time, fire `SessionStart`."""
        self.open()
        if self._started:
            return
        self._started = True
        source = "resume" if self._session.agent.conversation.messages else "startup"
        model = self._session.agent.model
        self.start_context = await self.hooks.fire("SessionStart", {"source": source, "model": model})

    def open(self) -> None:
        """Have the journal ready: a new one begins with what the session is made of."""
        if self._opened:
            return
        self._opened = True
        session, logger = self._session, self.logger
        self.usage.attach(session.events)
        if logger is None:
            return
        logger.journal.file.on_trouble = self.notice
        logger.journal.file.open()
        logger.attach(session.events)
        if logger.journal.file.seq:
            logger.log("session_resumed", self.describe(with_schemas=False))
            return
        session.report(SessionInit, data=self.describe(with_schemas=True))
        for at, message in enumerate(session.agent.conversation.messages):
            self.announce(message, at)  # a copy of another conversation

    def describe(self, *, with_schemas: bool) -> JsonObject:
        """The fields of `session_init`."""
        session, options = self._session, self._session.options
        agent, rules = session.agent, session.options.rules
        prompt = agent.system_message or ""
        return {
            "systemPrompt": prompt if with_schemas else None,
            "systemPromptLength": len(prompt),
            "provider": agent.provider.name,
            "model": agent.model,
            "cwd": session.cwd,
            "toolSchemas": tuple(map(tool_schema, agent.tools)) if with_schemas else None,
            "name": self.name,
            "permissionMode": session.permission_mode,
            "permissions": {"allow": rules.allow, "deny": rules.deny, "ask": rules.ask},
            "contextWindow": options.context_window,
            "autoCompactThreshold": session.tracker.threshold,
            "compactInstructions": options.compact_instructions or None,
            "maxTurns": options.max_turns,
            "options": None if options.settings == type(options.settings)() else options.settings,
            "webTools": self.describe_web_tools(),
            "selfChecking": [
                tool.name for tool in agent.tools if getattr(tool, "validates_arguments", False)
            ],
            "hookEvents": [event for event in HOOK_EVENTS if self.hooks.has(event)] or None,
            "canAsk": session.permission_handler is not None,
            "agentId": options.agent_id or None,
        }

    def describe_web_tools(self) -> JsonObject:
        session = self._session
        offered = get_provider_capabilities(session.agent.provider)
        wanted = session.options.native_web_tools
        return {
            "webSearch": {
                "supported": offered.web_search.supported,
                "enabled": bool(wanted and wanted.web_search),
            },
            "webFetch": {
                "supported": offered.web_fetch.supported,
                "enabled": bool(wanted and wanted.web_fetch),
            },
        }

    # --- aborting -------------------------------------------------------------------------------------

    @contextmanager
    def abortable(self) -> Iterator[CancelScope]:
        """A stretch that `abort` ends. The agent's own run inside it ends in its own, orderly way."""
        import asyncio  # noqa: PLC0415 - a loop is running, so this is a look-up

        from anyio import CancelScope  # noqa: PLC0415 - 15 ms that a session which never runs does not need

        self._loop = asyncio.get_running_loop()
        with CancelScope() as self._scope:
            try:
                yield self._scope
            finally:
                self._loop = None

    def abort(self) -> None:
        loop = self._loop
        if loop is None:
            return
        try:
            loop.call_soon_threadsafe(self._stop)
        except RuntimeError:
            return  # the loop is closed, so nothing runs

    def _stop(self) -> None:
        if self._session.agent.is_running:
            self._session.agent.abort()
        elif self._loop is not None and self._scope is not None:
            self._scope.cancel()

    # --- parts ----------------------------------------------------------------------------------------

    @property
    def usage(self) -> UsageLedger:
        if self.ledger is None:
            from robota.sessions.usage.ledger import UsageLedger  # noqa: PLC0415 - comes with the first use

            self.ledger = UsageLedger()
        return self.ledger

    @property
    def compaction(self) -> CompactionOrchestrator:
        if self._compaction is None:
            from robota.sessions.compaction.compaction_orchestrator import (  # noqa: PLC0415 - for long conversations
                CompactionOrchestrator,
                no_sections,
            )
            from robota.sessions.compaction.summarizer import SummaryModel  # noqa: PLC0415

            session, options = self._session, self._session.options

            def model() -> SummaryModel:
                agent = session.agent
                return SummaryModel(
                    provider=agent.provider, model=agent.model, idle_timeout=options.idle_timeout
                )

            self._compaction = CompactionOrchestrator(
                conversation=session.agent.conversation,
                tracker=session.tracker,
                model=model,
                events=session.events,
                hooks=self.hooks,
                instructions=options.compact_instructions,
                sections=options.compaction_sections or no_sections,
                on_call=self.record_summary_call,
                ports=options.ports,
            )
        return self._compaction

    # --- what is written down ---------------------------------------------------------------------------

    def log(self, event: str, data: Mapping[str, Json]) -> None:
        self.open()
        if self.logger is not None:
            self.logger.log(event, data)

    def note_change(self, what: str, value: Json) -> None:
        """Something about the session was changed from outside; said once there is a journal to say it in."""
        if self._opened:
            self.log("session_change", {"change": what, "value": value})

    def record(self, message: Message) -> None:
        """Append a message that comes from outside a run."""
        self.open()
        self.announce(message, self._session.agent.conversation.append(message))

    def announce(self, message: Message, index: int) -> None:
        if isinstance(message, AssistantMessage) and message.metadata.get("compaction"):
            epoch = self._session.agent.conversation.epoch
            self._session.report(CompactionMarked, message=message, epoch=epoch)
            return
        self._session.report(HistoryMutation, message=message, index=index)

    def record_decision(self, decision: JsonObject) -> None:
        self._session.report(PermissionDecided, data=decision)

    def record_original(self, call: PreparedCall, result: ToolResult) -> None:
        """What a tool gave before hooks changed it."""
        self.log("tool_original", {"callId": call.call_id, "result": result})

    def record_answer(self, question: Json, answer: Json) -> None:
        self._session.report(UserAnswered, data={"question": question, "answer": answer})

    def record_summary_call(self, request: ChatRequest, outcome: AssistantMessage | RobotaError) -> None:
        if self.logger is None:
            return
        if isinstance(outcome, AssistantMessage):
            data: JsonObject = {"message": outcome}
        else:
            data = {"error": {"code": outcome.code, "message": str(outcome)}}
        self.logger.log(
            "summary_call", {"model": request.model, "messageCount": len(request.messages), **data}
        )

    def before_effects(self, call: PreparedCall) -> None:
        if self.logger is not None:
            self.logger.before_effects()

    def report_hooks(self, outcome: HookOutcome, call_id: str) -> None:
        data = {"hook": outcome.event, "callId": call_id or None, "outcome": to_builtins(outcome)}
        self._session.report(HookExecuted, data=data)
        for text in (*outcome.warnings, *outcome.system_messages):
            self._session.tell(Noticed, message=text)

    def hook_input(self) -> JsonObject:
        """What every hook is told."""
        session, logger = self._session, self.logger
        common: JsonObject = {
            "session_id": session.session_id,
            "transcript_path": "" if logger is None else logger.journal.path,
            "cwd": session.cwd,
            "permission_mode": session.permission_mode,
        }
        if session.options.agent_id:
            common["agent_id"] = session.options.agent_id
        return common

    def identity(self) -> dict[str, Any]:
        ports = self._session.options.ports
        return {"id": ports.new_id(), "timestamp": timestamp(ports.now())}

    def notice(self, sentence: str) -> None:
        """Something the user should know."""
        if sentence:
            self._session.tell(Noticed, message=sentence)

    @property
    def trouble(self) -> str:
        from_journal = "" if self.logger is None else self.logger.journal.file.trouble
        return from_journal or self._snapshots.trouble

    def sync(self) -> None:
        if self.logger is not None:
            self.logger.sync()

    def save(self, *, force: bool = False) -> None:
        """Bring the snapshot in the store up to date, if that is due."""
        self._snapshots.save(force=force)

    # --- the end --------------------------------------------------------------------------------------

    async def end(self, reason: str) -> None:
        """Say that it is over, save, fire `SessionEnd`. Each step is tried whatever became of the others."""
        try:
            if self._opened:
                self._session.report(SessionShutdown, reason=reason)
                if self.logger is not None:
                    self.logger.sync()
                self.save(force=True)
                await self.hooks.fire("SessionEnd", {"reason": reason})
        finally:
            if self.logger is not None:
                self.logger.close()
