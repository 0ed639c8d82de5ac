"""Redaction: what goes through here may be written and sent elsewhere. Names are loaded when first used."""

from __future__ import annotations

from typing import TYPE_CHECKING

from robota._lazy import lazy_names

if TYPE_CHECKING:
    from robota.sessions.redaction.redactor import Redactor, redact
    from robota.sessions.redaction.rules import REDACTED
    from robota.sessions.redaction.scanner import StreamRedactor

__all__ = ["REDACTED", "Redactor", "StreamRedactor", "redact"]

_HOMES = {"REDACTED": "rules", "Redactor": "redactor", "StreamRedactor": "scanner", "redact": "redactor"}
__getattr__, __dir__ = lazy_names(
    __name__, {name: f"{__name__}.{module}" for name, module in _HOMES.items()}, globals()
)
