"""What the program tells a model between rounds. The conversation itself knows what was told: so it is right
after a resume, a fork, a rewind and a new beginning."""

from __future__ import annotations

from typing import TYPE_CHECKING

from robota.core.messages import UserMessage

if TYPE_CHECKING:
    from robota.sessions.session import Session

_OPENING, _CLOSING = "<system-reminder>\n", "\n</system-reminder>"


def remind(session: Session, words: str, *, keep: bool = False) -> None:
    """Have the model told this before its next round, or with the next prompt; with `keep`, for good."""
    session.inbox.put(f"{_OPENING}{words}{_CLOSING}", origin="reminder", keep=keep)


def find_reminders(session: Session) -> list[str]:
    """What it was told so far, and what waits to be told, in order."""
    told = [
        message.content
        for message in session.messages
        if isinstance(message, UserMessage) and message.metadata.get("origin") == "reminder"
    ]
    waiting = session.inbox.find_waiting("reminder")
    return [words.removeprefix(_OPENING).removesuffix(_CLOSING) for words in (*told, *waiting)]
