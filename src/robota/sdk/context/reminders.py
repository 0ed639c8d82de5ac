"""What the program tells a model between rounds. The conversation itself knows what was told: so it is right
after a resume, a fork, a rewind and a new beginning."""

from __future__ import annotations

from typing import TYPE_CHECKING

from robota.core.messages import Message, UserMessage

if TYPE_CHECKING:
    from robota.sessions.session import Session

_OPENING, _CLOSING = "<system-reminder>\n", "\n</system-reminder>"


def remind(session: Session, words: str, *, keep: bool = False) -> None:
    """Have the model told this before its next round, or with the next prompt; with `keep`, for good."""
    session.inbox.put(f"{_OPENING}{words}{_CLOSING}", origin="reminder", keep=keep)


class Reminders:
    """What a session's model was told so far, and what waits to be told, in order. Each message is looked at
    once, however long the conversation is."""

    __slots__ = ("_last", "_seen", "_session", "_told", "_waiting")

    def __init__(self, session: Session) -> None:
        self._session = session
        self._seen = 0
        self._last: Message | None = None
        self._told: list[str] = []
        self._waiting: list[str] = []

    @property
    def words(self) -> list[str]:
        return [
            words.removeprefix(_OPENING).removesuffix(_CLOSING) for words in (*self._told, *self._waiting)
        ]

    def look(self) -> bool:
        """Whether there is anything new, or the conversation began anew."""
        messages = self._session.agent.conversation.timeline
        anew = self._seen > len(messages) or (self._seen > 0 and messages[self._seen - 1] is not self._last)
        if anew:
            self._seen, self._told = 0, []
        told = len(self._told)
        for index in range(self._seen, len(messages)):
            message = messages[index]
            if isinstance(message, UserMessage) and message.metadata.get("origin") == "reminder":
                self._told.append(message.content)
        self._seen = len(messages)
        self._last = messages[-1] if messages else None
        waiting, self._waiting = self._waiting, self._session.inbox.find_waiting("reminder")
        return anew or len(self._told) > told or self._waiting != waiting
