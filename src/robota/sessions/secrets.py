"""What must not leave a session: its redactor, which also knows the keys of its providers, and a door in the
standard log that records of `robota.*` go through.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any
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


class _Door:
    """Takes the secrets out of records as they are made: a handler may hang anywhere below `robota`."""

    def __init__(self) -> None:
        self.sessions: WeakSet[SessionSecrets] = WeakSet()
        self._passed = 0
        self.factory: Callable[..., logging.LogRecord] | None = None

    def stand_before(self, factory: Callable[..., logging.LogRecord]) -> None:
        """Be in the way of all records."""
        passed = self._passed
        factory("", 0, "", 0, "", (), None)
        if self._passed == passed:  # it does not call ours
            self.factory = partial(self._make, factory)
            logging.setLogRecordFactory(self.factory)

    def _make(self, factory: Callable[..., logging.LogRecord], *args: Any, **more: Any) -> logging.LogRecord:
        record = factory(*args, **more)
        self._passed += 1
        if record.name == "robota" or record.name.startswith("robota."):
            self._clean(record)
        return record

    def _clean(self, record: logging.LogRecord) -> None:
        try:
            message = record.getMessage()
        except Exception:  # noqa: BLE001 - arguments that do not fit: handlers say so, and show the call
            return
        trace = _FORMAT.formatException(record.exc_info) if record.exc_info else ""
        shown, told = trace, record.stack_info or ""
        for secrets in list(self.sessions) or [SessionSecrets()]:
            redactor = secrets.redactor
            message, shown, told = redactor.text(message), redactor.text(shown), redactor.text(told)
        record.msg, record.args, record.stack_info = message, (), told or None
        record.exc_text = shown or None
        if shown != trace:  # some handlers format the exception themselves
            record.exc_info = None


_FORMAT = logging.Formatter()
_DOOR = _Door()


def guard_log_records(secrets: SessionSecrets) -> None:
    """Have records of `robota.*` without these secrets, as long as the session lives."""
    factory = logging.getLogRecordFactory()
    if factory is not _DOOR.factory:  # a program may have set its own meanwhile
        _DOOR.stand_before(factory)
    _DOOR.sessions.add(secrets)
