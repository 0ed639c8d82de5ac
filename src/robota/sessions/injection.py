"""Messages that are put into a conversation from outside."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from robota.core.messages import Message, add_to_system, make_message
from robota.core.ports import timestamp

if TYPE_CHECKING:
    from robota.sessions.session import Session

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
