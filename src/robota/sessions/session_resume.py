"""Going on with a session that is on disk: the session itself, or a copy of it from any point.

What the journal tells is what counts; a session without one is taken from its snapshot. Nothing is changed by
reading, so a session that is forked stays as it is.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

import msgspec

from robota.core.conversation import ConversationStore
from robota.core.errors import StorageError, ValidationError
from robota.core.messages import AssistantMessage, ToolMessage
from robota.core.ports import Ports
from robota.core.provider import Provider
from robota.core.tool import Tool
from robota.sessions.log.conversation_builder import UNKNOWN_EFFECTS
from robota.sessions.log.conversation_restore import RestoredConversation, restore_conversation
from robota.sessions.options import DEFAULT_OPTIONS, SessionOptions
from robota.sessions.session import Session

if TYPE_CHECKING:
    from robota.sessions.permissions.approval import PermissionHandler
    from robota.sessions.store.session_store import SessionStore

LEFT_OUT = "Error: not known here. The conversation goes on from a point before the result of this call."
"""What the model is told about calls whose results a fork leaves behind."""
OnProblem = Callable[[str], None]
"""Told, in sentences for people, what was damaged or cut and what was kept."""


def resume_session(
    store: SessionStore,
    session_id: str,
    *,
    provider: Provider,
    model: str | None = None,
    tools: Iterable[Tool] = (),
    system_message: str | None = None,
    cwd: str | None = None,
    permission_handler: PermissionHandler | None = None,
    options: SessionOptions = DEFAULT_OPTIONS,
    on_problem: OnProblem | None = None,
) -> Session:
    """The session as it was left; what is not given is as it was.

    A session that does not exist, or of which nothing can be read, raises `StorageError`.
    """
    restored = _restore(store, session_id, None, UNKNOWN_EFFECTS, options.ports)
    _tell(restored, on_problem)
    return Session(
        provider=provider,
        model=model or restored.model or "",
        tools=tools,
        system_message=restored.system_prompt if system_message is None else system_message,
        cwd=cwd or restored.cwd or None,
        store=store,
        permission_handler=permission_handler,
        session_id=session_id,
        conversation=restored.store,
        options=_named(options, restored),
    )


def fork_session(
    store: SessionStore,
    session_id: str,
    *,
    step: int | None = None,
    provider: Provider,
    model: str | None = None,
    tools: Iterable[Tool] = (),
    system_message: str | None = None,
    cwd: str | None = None,
    permission_handler: PermissionHandler | None = None,
    options: SessionOptions = DEFAULT_OPTIONS,
    on_problem: OnProblem | None = None,
) -> Session:
    """A new session that begins with the first `step` messages of another one, or with all of them.

    Messages are counted as they were recorded, those of a conversation that was cleared included. The other
    session is only read.
    """
    restored = _restore(store, session_id, None if step is None else max(step, 0), LEFT_OUT, options.ports)
    if step is not None and not 0 <= step <= restored.steps:
        raise ValidationError(
            f"There is no step {step} in session {session_id}: steps are counted from 0 to its last message.",
            field="step",
        )
    _tell(restored, on_problem)
    return Session(
        provider=provider,
        model=model or restored.model or "",
        tools=tools,
        system_message=restored.system_prompt if system_message is None else system_message,
        cwd=cwd or restored.cwd or None,
        store=store,
        permission_handler=permission_handler,
        conversation=restored.store,
        options=_named(options, restored),
    )


def _restore(
    store: SessionStore, session_id: str, step: int | None, unanswered: str, ports: Ports
) -> RestoredConversation:
    journal = store.journal_path(session_id)
    if not os.path.lexists(journal):
        return _restore_snapshot(store, session_id, step, unanswered, ports)
    restored = restore_conversation(
        journal, session_id=session_id, step=step, unanswered=unanswered, ports=ports
    )
    if not restored.last_seq and not restored.messages and step != 0:
        reasons = " ".join(restored.problems) or "It is empty."
        raise StorageError(f"The journal {journal} holds nothing readable. {reasons} It was left as it is.")
    return restored


def _restore_snapshot(
    store: SessionStore, session_id: str, step: int | None, unanswered: str, ports: Ports
) -> RestoredConversation:
    record = store.load(session_id)
    if record is None:
        raise StorageError(f"There is no session {session_id} in {store.base_dir}.")
    restored = RestoredConversation()
    restored.store = conversation = ConversationStore(ports)
    for message in record.parse_messages()[:step]:
        if isinstance(message, AssistantMessage) and message.metadata.get("compaction"):
            conversation.restore_mark(message)
        else:
            conversation.append(message)
    for call in conversation.open_calls:
        conversation.append(ToolMessage(unanswered, call.id, call.name, metadata={"success": False}))
    restored.steps = len(conversation)
    restored.init = {"cwd": record.cwd, "systemPrompt": record.system_prompt, "model": record.model}
    restored.changes = {"name": record.name}
    restored.problems = tuple(record.problems)
    return restored


def _named(options: SessionOptions, restored: RestoredConversation) -> SessionOptions:
    if options.name is not None or restored.name is None:
        return options
    return msgspec.structs.replace(options, name=restored.name)


def _tell(restored: RestoredConversation, on_problem: OnProblem | None) -> None:
    if on_problem is not None:
        for problem in restored.problems:
            on_problem(problem)
