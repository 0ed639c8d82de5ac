"""What a session needs from its first use to its end: journal, hooks, permissions, compaction, usage."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from robota.core.context import read_token_usage
from robota.core.events import SessionShutdown
from robota.core.messages import AssistantMessage, JsonObject, TokenUsage
from robota.sessions.abort_switch import AbortSwitch
from robota.sessions.permissions.permission_enforcer import PermissionEnforcer
from robota.sessions.session_hooks import NO_HOOKS, HookPort, SessionHooks
from robota.sessions.session_scribe import SessionScribe
from robota.sessions.snapshots import Snapshots
from robota.sessions.usage.ledger import UsageLedger

if TYPE_CHECKING:
    from anyio import Lock

    from robota.core.errors import RobotaError
    from robota.core.hooks import HookOutcome
    from robota.core.provider import ChatRequest, NativeWebTools, Provider
    from robota.sessions.compaction.compaction_orchestrator import CompactionOrchestrator
    from robota.sessions.compaction.summarizer import SummaryModel
    from robota.sessions.session import Session
    from robota.sessions.swap_notes import Authors
    from robota.sessions.usage.budget import Budget, BudgetedProvider


class SessionLife:
    __slots__ = (
        "_compaction", "_ending", "_guarded", "_resumed", "_session", "_snapshots", "_started", "authors",
        "enforcer", "hooks", "name", "scribe", "start_context", "switch", "usage",
    )  # fmt: skip

    def __init__(self, session: Session) -> None:
        options = session.options
        self._session = session
        self._started = False
        self._resumed = len(session.agent.conversation) > 0
        self._ending: Lock | None = None
        self._compaction: CompactionOrchestrator | None = None
        self._snapshots = Snapshots(session)
        self.name = options.name
        self.start_context: HookOutcome | None = None
        """What SessionStart hooks have to say to the model; the first prompt takes it along."""
        self.switch = AbortSwitch(session.agent)
        self.scribe = SessionScribe(session)
        self.hooks: HookPort = NO_HOOKS if options.hook_port is None else options.hook_port
        if options.hooks and options.hook_port is None:
            self.hooks = SessionHooks(
                options.hooks,
                common=self.hook_input,
                report=self.scribe.report_hooks,
                executors=options.hook_executors,
            )
        self.authors: Authors | None = None
        """Who wrote what, since the model was exchanged."""
        given: Any = session.agent.provider
        self._guarded: BudgetedProvider | None = given if hasattr(given, "gate") else None
        self.usage = UsageLedger() if options.ledger is None else options.ledger
        self.usage.attach(session.events)
        if options.budget is not None:
            self.limit(options.budget)
        self.enforcer = PermissionEnforcer(
            options.rules,
            cwd=session.cwd,
            handler=session.permission_handler,
            hooks=None if self.hooks is NO_HOOKS else self.hooks,
            guard=options.guard,
            judge=options.judge,
            save_rule=options.save_rule,
            notice=self.scribe.notice,
            record=self.scribe.record_decision,
            record_original=self.scribe.record_original,
            before_effects=self.scribe.before_effects,
            run_tool=options.run_tool,
            home=options.home,
            additional_dirs=options.additional_dirs,
            agent_id=options.agent_id,
        )

    def limit(self, budget: Budget) -> None:
        """Check a budget before each request. Without one, events alone tell what was used."""
        from robota.sessions.usage.budget import BudgetedProvider  # noqa: PLC0415 - for sessions with a budget

        agent = self._session.agent
        if self._guarded is None:
            notice = self.scribe.notice
            self._guarded = BudgetedProvider(agent.provider, self.usage, budget, on_notice=notice)
        else:
            self._guarded.budget = budget
        agent.provider = self.guard(agent.provider)

    def guard(self, provider: Provider) -> Provider:
        """The provider as this session may ask it: behind the budget, whoever has put it into the agent."""
        known = self._guarded
        if known is None:
            return provider
        given: Any = provider
        if getattr(given, "gate", None) is known.gate:
            self._guarded = given
        elif provider is not known.inner:
            self._guarded = known.share(known.ledger, provider)
        return self._guarded or provider

    @property
    def web_tools(self) -> NativeWebTools | None:
        """The web tools of the model's service that are asked for: wanted, and restricted by no rule. A
        provider that came later may lack them; the first one may not."""
        wanted = self._session.options.native_web_tools
        if wanted is None:
            return None
        from robota.sessions.permissions import hosted_tools  # noqa: PLC0415 - few want them

        asked = hosted_tools.permit_web_tools(wanted, self.enforcer.rules)
        if asked is None or self.authors is None:
            return asked
        return hosted_tools.find_offered(asked, self._session.agent.provider)

    async def begin(self) -> None:
        """Open the journal and, the first time, fire `SessionStart`."""
        self.scribe.open()
        if self._started:
            return
        self._started = True
        source = "resume" if self._resumed else "startup"
        model = self._session.agent.model
        self.start_context = await self.hooks.fire("SessionStart", {"source": source, "model": model})

    def hook_input(self) -> JsonObject:
        """What every hook is told."""
        session = self._session
        common: JsonObject = {
            "session_id": session.session_id,
            "transcript_path": self.scribe.path,
            "cwd": session.cwd,
            "permission_mode": session.permission_mode,
        }
        if session.options.agent_id:
            common["agent_id"] = session.options.agent_id
        return common

    # --- compaction -------------------------------------------------------------------------------------

    @property
    def compaction(self) -> CompactionOrchestrator:
        if self._compaction is None:
            from robota.sessions.compaction.compaction_orchestrator import (  # noqa: PLC0415 - for long ones
                CompactionOrchestrator,
                no_sections,
            )

            session, options = self._session, self._session.options
            self._compaction = CompactionOrchestrator(
                conversation=session.agent.conversation,
                tracker=session.tracker,
                model=self._summary_model,
                events=session.events,
                hooks=self.hooks,
                instructions=options.compact_instructions,
                sections=options.compaction_sections or no_sections,
                on_call=self._note_summary_call,
                ports=options.ports,
            )
        return self._compaction

    def _summary_model(self) -> SummaryModel:
        """The model of the conversation, on a page of its own in the ledger."""
        from robota.sessions.compaction.summarizer import SummaryModel  # noqa: PLC0415 - loaded by now

        agent, options = self._session.agent, self._session.options
        provider = self.guard(agent.provider)
        share = getattr(provider, "share", None)
        if share is not None:
            provider = share(self.usage.for_purpose("compaction"))
        return SummaryModel(
            provider=provider, model=agent.model, settings=agent.settings, idle_timeout=options.idle_timeout
        )

    def _note_summary_call(self, request: ChatRequest, outcome: AssistantMessage | RobotaError) -> None:
        self.scribe.record_summary_call(request, outcome)
        if isinstance(outcome, AssistantMessage) and not self.usage.root.metered:
            usage = read_token_usage(outcome) or TokenUsage()
            self.usage.for_purpose("compaction").record(request.model, usage)

    # --- saving and ending ------------------------------------------------------------------------------

    @property
    def trouble(self) -> str:
        return self.scribe.trouble or self._snapshots.trouble

    def save(self) -> None:
        """Bring the snapshot in the store up to date, if that is due."""
        self._snapshots.save_if_due()

    async def end(self, reason: str) -> None:
        """Say that it is over, save, fire `SessionEnd`. A session that was never used leaves no trace.

        Whoever comes second waits for the first.
        """
        from anyio import Lock  # noqa: PLC0415 - loaded by now, if the session was used

        if self._ending is None:
            self._ending = Lock()
        async with self._ending:
            if self.scribe.closed:
                return
            try:
                if self.scribe.opened:
                    self.scribe.report(SessionShutdown, reason=reason)
                    self.scribe.sync()
                    self._snapshots.save()
                    await self.hooks.fire("SessionEnd", {"reason": reason})
            finally:
                self.scribe.close()
