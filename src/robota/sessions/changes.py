"""What is done to a session from outside: going back in its conversation, messages put into it, other rules.

Going back deletes nothing; it can be taken back until something else is said. The journal keeps what was set
aside and a record of the rewind, so that a session that is resumed or replayed goes the same way.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Literal, TypedDict, TypeGuard

from msgspec import to_builtins

from robota.core.errors import ConfigurationError, SessionBusyError, ValidationError
from robota.core.events import SettingsChanged
from robota.core.messages import Json, Message, UserMessage, add_to_system, make_message
from robota.core.ports import timestamp
from robota.sessions.hooks import GivenHooks, LiveHooks
from robota.sessions.journal.records import HistoryRewound
from robota.sessions.permissions.live_rules import PermissionRules

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


InjectedRole = Literal["user", "assistant", "system", "tool"]


def make_injected(
    session: Session, role: InjectedRole, content: str, *, tool_call_id: str = "", name: str = ""
) -> Message:
    """The message; words of the system stand behind those that the model has from it already."""
    ports, agent = session.options.ports, session.agent
    identity: Any = {"id": ports.new_id(), "timestamp": timestamp(ports.now())}
    if role == "system":
        return add_to_system(agent.conversation.system, agent.system_message, content, **identity)
    return make_message(role, content, tool_call_id=tool_call_id, name=name, **identity)


def inject(session: Session, message: Message) -> Message:
    """Put it at the end of the conversation, in mid-run at the end of the round."""
    session.past.cut = None
    return session.log.record(message, in_run=session.agent.is_running)


class Changes(TypedDict, total=False):
    """What may be given to `Session.reload`."""

    rules: PermissionRules
    hooks: GivenHooks
    additional_dirs: Iterable[str]


def reload(
    session: Session,
    *,
    rules: PermissionRules | None = None,
    hooks: GivenHooks = None,
    additional_dirs: Iterable[str] | None = None,
) -> None:
    changed: dict[str, Json] = {}
    if rules is not None:
        session.rules.check(rules)  # before anything has changed
    if hooks is not None:
        if not isinstance(session.hooks, LiveHooks):
            raise ConfigurationError("This session was given somebody who runs its hooks; ask them.")
        session.hooks.replace(hooks)
        changed["hooks"] = sorted(hooks)
    session.rules.replace(rules, additional_dirs=additional_dirs)
    if rules is not None:
        changed["permissions"] = to_builtins(rules)
    if additional_dirs is not None:
        changed["directories"] = list(session.rules.additional_dirs)
    if session.log.opened:  # before that its first record says so, and no number may be given
        session.log.tell(SettingsChanged, keys=tuple(changed), values=changed)
