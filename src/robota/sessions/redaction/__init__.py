"""Redaction: what goes through here may be written and sent elsewhere. Names are loaded when first used."""

from __future__ import annotations

from typing import TYPE_CHECKING

from robota._lazy import lazy_names

if TYPE_CHECKING:
    from robota.sessions.redaction.redactor import REDACTED, Redactor, StreamRedactor, redact

__all__ = ["REDACTED", "Redactor", "StreamRedactor", "redact"]

__getattr__, __dir__ = lazy_names(__name__, dict.fromkeys(__all__, f"{__name__}.redactor"), globals())
