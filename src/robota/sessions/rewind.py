"""Going back in a conversation. Nothing is deleted; it can be taken back until something else is said.

The journal keeps what was set aside and a record of the rewind, so that a session that is resumed or replayed
goes the same way.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeGuard

from robota.core.errors import SessionBusyError, ValidationError
from robota.core.messages import Message, UserMessage
from robota.sessions.journal.records import HistoryRewound

if TYPE_CHECKING:
    from robota.core.conversation import ConversationStore
    from robota.sessions.session import Session


def is_prompt(message: object) -> TypeGuard[UserMessage]:
    """Whether a user said it, not robota in the middle of a run."""
    return isinstance(message, UserMessage) and "origin" not in message.metadata


def rewind(session: Session, messages: int) -> None:
    """Let the conversation go on from its first `messages`, which end before a prompt."""
    conversation = _require_idle(session)
    said: list[Message] = conversation.messages
    if not 0 <= messages < len(said) or not isinstance(said[messages], UserMessage):
        raise ValidationError(f"Message {messages + 1} is not a prompt to go back to.", field="messages")
    conversation.rewind(messages)
    _go_on(session, messages, back=False)


def take_back_rewind(session: Session) -> bool:
    """Have the conversation as it was before the last rewind; false when it went on since."""
    conversation = _require_idle(session)
    if not conversation.take_back_rewind():
        return False
    _go_on(session, len(conversation), back=True)
    return True


def _require_idle(session: Session) -> ConversationStore:
    session.log.require_open()
    if session.is_running or session.agent.is_running:
        raise SessionBusyError("The conversation cannot be rewound while a prompt runs: abort it first.")
    return session.agent.conversation


def _go_on(session: Session, messages: int, *, back: bool) -> None:
    session.past.cut = None
    session.log.record_restart(HistoryRewound(messages=messages, back=back))
    session.steps.tell_context()
