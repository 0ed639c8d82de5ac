"""The parts of a session, each made of what the options say about it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, Any

from robota.core.conversation import ConversationStore
from robota.core.errors import ConfigurationError
from robota.core.provider import Provider
from robota.core.questions import (
    ChoiceQuestion,
    FormQuestion,
    PermissionQuestion,
    PlanQuestion,
    Question,
)
from robota.core.robota import AgentConfig, Robota
from robota.core.tool import Tool
from robota.sessions.description import describe_session, describe_to_hooks
from robota.sessions.hooks import HookPort, LiveHooks
from robota.sessions.journal.event_log import EventLog
from robota.sessions.journal.port import LoggedJournal
from robota.sessions.log import SessionLog
from robota.sessions.options import SessionOptions
from robota.sessions.questions import PermissionHandler, QuestionHandler, Questions
from robota.sessions.secrets import SessionSecrets, guard_log_records
from robota.sessions.store.session_record import check_session_id

if TYPE_CHECKING:
    from robota.core.run import RunResult
    from robota.sessions.compaction.compaction_orchestrator import CompactionOrchestrator
    from robota.sessions.session import Session
    from robota.sessions.start import SessionStart


def make_agent(
    provider: Provider,
    model: str,
    tools: Iterable[Tool],
    system_message: str | None,
    conversation: ConversationStore | None,
    options: SessionOptions,
) -> Robota:
    """The agent alone; what the session puts between it and the world is its `config`."""
    agent = Robota(
        provider,
        model=model,
        tools=tools,
        system_message=system_message,
        plugins=options.plugins,
        max_rounds=options.max_rounds,
        settings=options.settings,
        context_window=options.context_window,
        conversation=ConversationStore(options.ports) if conversation is None else conversation,
        limits=options.limits,
    )
    if options.events is not None:
        agent.events = options.events
    return agent


def make_config(session: Session) -> AgentConfig:
    """What the agent of a session finds around it."""
    return AgentConfig(
        session_id=session.session_id,
        agent_id=session.options.agent_id,
        cwd=session.cwd,
        deps=session.options.deps,
        ask=session.questions.ask,
        run_tool=session.enforcer.run_tool,
        admit=session.admission.admit,
        steps=session.steps,
        delegate=partial(delegate, session),
        redact=session.log.secrets.redact,
        notice=session.log.notice,
        ports=session.options.ports,
    )


def check_store(store: object) -> None:
    """Refuse what is not a store, such as the path of one."""
    if store is not None and not callable(getattr(store, "open_journal", None)):
        raise ConfigurationError(
            f"{store!r} is not a session store: create_project_session_store(path) opens one in a directory."
        )


def make_log(session: Session, known: SessionStart | None) -> SessionLog:
    """`known` is what the journal has of the session already."""
    check_store(session.store)
    if session.store is not None:
        check_session_id(session.session_id)
    secrets = SessionSecrets(session.options.journal.redactor)
    secrets.learn(session.agent.provider)
    guard_log_records(secrets)
    conversation = session.agent.conversation
    return SessionLog(
        session.session_id,
        partial(make_event_log, session, secrets),
        session.agent.events,
        conversation,
        partial(describe_session, session),
        len(conversation.entries),
        secrets,
        seen=None if known is None or known.position is None else known.position.record,
        begins_again=known is not None and known.mended,
    )


def make_event_log(session: Session, secrets: SessionSecrets) -> EventLog | None:
    session_id, options, wanted = session.session_id, session.options, session.options.journal
    journal = wanted.journal
    if journal is None and session.store is not None:
        journal = session.store.open_journal(
            session_id, agent_id=options.agent_id, durable=wanted.durable, now=options.ports.now
        )
    if wanted.logger is not None:
        whose = f"{session_id}/{options.agent_id}" if options.agent_id else session_id
        journal = LoggedJournal(whose, wanted.logger, journal)
    return None if journal is None else EventLog(journal, secrets.redactor)


def make_questions(
    session: Session, approve: PermissionHandler | None, known: SessionStart | None
) -> Questions:
    """`approve` is asked about calls, and the `ask` of the options about everything else; what was answered
    to the run that was cut is `known`."""
    questions = session.options.questions
    if questions is None:
        questions = Questions(session.agent.events)
        attach_handlers(questions, approve, session.options.ask)
    if known is not None and known.cut is not None:
        questions.known.update(known.answers)
    return questions


def attach_handlers(
    questions: Questions, approve: PermissionHandler | None, ask: QuestionHandler | None
) -> None:
    for handler in (approve, ask):
        if handler is not None and not callable(handler):
            raise ConfigurationError(f"A handler is a function that takes a question, not {handler!r}.")
    if approve is not None:
        questions.attach(_only(PermissionQuestion, approve))
    if ask is not None:
        questions.attach(_only((ChoiceQuestion, PlanQuestion, FormQuestion), ask))


def _only(kinds: type | tuple[type, ...], handler: Callable[[Any], object]) -> QuestionHandler:
    async def ask(question: Question) -> object:
        answer = handler(question) if isinstance(question, kinds) else None
        return await answer if isinstance(answer, Awaitable) else answer

    return ask


def make_hooks(session: Session) -> HookPort:
    wanted, log = session.options.hook_options(), session.log
    if wanted.port is not None:
        return wanted.port
    return LiveHooks(
        wanted.config,
        common=partial(describe_to_hooks, session),
        report=log.record_hooks,
        notice=log.notice,
        executors=wanted.executors,
        keep_variables=wanted.keep_variables,
        tools=session.agent.tool_names,
    )


def make_compaction(session: Session) -> CompactionOrchestrator:
    """What summarises the conversation, made when it is time to."""
    from robota.sessions.compaction.compaction_orchestrator import (  # noqa: PLC0415 - few get that long
        CompactionOrchestrator,
    )

    return CompactionOrchestrator(
        session.agent,
        session.tracker,
        session.options.compaction,
        hooks=session.hooks,
        admit=partial(session.admission.admit_for, "compaction"),
    )


async def delegate(session: Session, worker: Robota, agent_id: str, task: str) -> RunResult:
    """Let another agent do something in this session."""
    from robota.sessions.child import run_child  # noqa: PLC0415 - for those who have agents as tools

    return await run_child(session, worker, agent_id, task)
