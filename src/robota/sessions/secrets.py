"""What must not leave a session: its redactor, which also knows the keys of its providers, and a door in the
standard log that records of `robota.*` go through.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING
from weakref import WeakSet

from robota.core.messages import Json
from robota.core.provider import Provider, get_provider_secrets

if TYPE_CHECKING:
    from robota.sessions.redaction import Redactor


class SessionSecrets:
    """Makes the redactor when something is to be written; its tables are loaded then."""

    __slots__ = ("__weakref__", "_redactor", "_waiting")

    def __init__(self, redactor: Redactor | None = None) -> None:
        self._redactor = redactor
        self._waiting: tuple[str, ...] = ()

    def learn(self, provider: Provider) -> None:
        """From now on the keys of this provider are secrets of the session."""
        self._waiting += get_provider_secrets(provider)
        if self._redactor is not None:
            self._tell(self._redactor)

    @property
    def redactor(self) -> Redactor:
        if self._redactor is None:
            from robota.sessions.redaction import Redactor  # noqa: PLC0415 - see above

            self._redactor = Redactor()
            self._tell(self._redactor)
        return self._redactor

    def redact(self, value: Json) -> Json:
        """The value without secrets."""
        return self.redactor.value(value)

    def _tell(self, redactor: Redactor) -> None:
        waiting, self._waiting = self._waiting, ()
        for secret in waiting:
            redactor.add_secret(secret)


class _Door(logging.Handler):
    """Takes the secrets out of a record before the handlers of the program, which come later, see it."""

    def __init__(self) -> None:
        super().__init__()
        self.sessions: WeakSet[SessionSecrets] = WeakSet()

    def handle(self, record: logging.LogRecord) -> bool:
        message, trace = record.getMessage(), record.exc_text or ""
        if record.exc_info and not trace:
            trace = _FORMAT.formatException(record.exc_info)
        for secrets in list(self.sessions) or [SessionSecrets()]:
            message, trace = secrets.redactor.text(message), secrets.redactor.text(trace)
        record.msg, record.args, record.exc_text = message, (), trace or None
        if logging.lastResort is not None and not self._is_heard():
            logging.lastResort.handle(record)  # as if this handler were not there
        return True

    @staticmethod
    def _is_heard() -> bool:
        return len(_LOGGER.handlers) > 1 or (_LOGGER.propagate and bool(logging.getLogger().handlers))


_LOGGER = logging.getLogger("robota")
_FORMAT = logging.Formatter()
_DOOR = _Door()


def guard_log_records(secrets: SessionSecrets) -> None:
    """Have records of `robota.*` without these secrets, as long as the session lives."""
    if _DOOR not in _LOGGER.handlers:  # a program that configures its log may have thrown it out
        _LOGGER.handlers.insert(0, _DOOR)  # before those that show or keep records
    _DOOR.sessions.add(secrets)
