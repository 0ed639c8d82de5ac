"""The arguments of one call while they stream: they are judged as a whole, because they are JSON.

What is secret in JSON may show only when its names are decoded, so nothing is given out before the end.
Half a call is of no use to anybody: if the stream is cut, its arguments never run.
"""

from __future__ import annotations

from robota.core.jsontext import decode
from robota.sessions.redaction import Redactor


class ArgumentRedactor:
    """Takes pieces as `StreamRedactor` does."""

    __slots__ = ("_pieces", "_redactor", "shown")

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self._pieces: list[str] = []
        self.shown: str | None = None
        """The arguments, if they were given out and nothing in them is secret."""

    def push(self, piece: str) -> None:
        self._pieces.append(piece)

    def take(self, *, final: bool = False) -> list[str]:
        """All pieces at the end; a secret in them moves the whole text into the first."""
        if not final or not self._pieces:
            return []
        pieces, self._pieces = self._pieces, []
        whole = "".join(pieces)
        shown = self._redact(whole)
        if shown == whole:
            self.shown = whole
            return pieces
        return [shown, *[""] * (len(pieces) - 1)]

    def _redact(self, whole: str) -> str:
        try:
            decode(whole)
        except ValueError:
            return self._redactor.text(whole)
        encoded = whole.encode("utf-8", "replace")
        shown = self._redactor.json(encoded)
        return whole if shown is encoded else shown.decode()
