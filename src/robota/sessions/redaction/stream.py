"""A text that arrives in pieces, redacted while it arrives."""

from __future__ import annotations

from collections.abc import Sequence

from robota.sessions.redaction.scan import AHEAD, BEHIND, RuleSet, Scanner, Span

_STRIDE = 96
"""How much new text is worth a scan; with `AHEAD` it makes the 256 characters that may be held back."""
_CONTEXT = 2 * BEHIND + AHEAD


class TextStream:
    """Takes pieces, gives them back redacted as soon as nothing that follows can change them."""

    __slots__ = (
        "_begin",
        "_buffer",
        "_covered",
        "_pieces",
        "_scanned",
        "_scanner",
        "_settled",
        "_spans",
        "_waiting",
    )

    def __init__(self, rules: RuleSet) -> None:
        self._scanner = Scanner(rules)
        self._pieces: list[str] = []
        self._waiting = 0  # characters that were pushed and not scanned
        self._buffer = ""
        self._begin = 0  # where in the buffer the first held piece begins
        self._scanned = 0  # the number of held pieces that are in the buffer
        self._settled = 0
        self._covered = -1  # where the last replacement that was written ends
        self._spans: list[Span] = []

    @property
    def held(self) -> int:
        """Pieces held back now."""
        return len(self._pieces)

    def push(self, piece: str) -> None:
        self._pieces.append(piece)
        self._waiting += len(piece)

    def take(self, *, final: bool = False) -> list[str]:
        """The pieces that are safe to write."""
        if not self._pieces or (not final and self._waiting < _STRIDE):
            return []
        self._buffer += "".join(self._pieces[self._scanned :])
        self._waiting = 0
        self._merge(self._scanner.scan(self._buffer, settled=self._settled, final=final))
        self._settled = len(self._buffer) if final else max(self._settled, len(self._buffer) - AHEAD)
        taken = self._release()
        self._scanned = len(self._pieces)
        self._forget()
        return taken

    def _merge(self, spans: Sequence[Span]) -> None:
        for start, end, replacement in spans:
            if self._spans and start <= self._spans[-1][1]:
                first, last, text = self._spans[-1]
                self._spans[-1] = (first, max(last, end), text)
            elif start <= self._covered:
                self._covered = max(self._covered, end)
            else:
                self._spans.append((start, end, replacement))

    def _release(self) -> list[str]:
        taken: list[str] = []
        begin, settled = self._begin, self._settled
        plain = not self._spans and self._covered <= begin  # nothing to replace: the pieces as they came
        for piece in self._pieces:
            end = begin + len(piece)
            if end > settled:
                break
            taken.append(piece if plain else self._write(begin, end))
            begin = end
        self._begin = begin
        del self._pieces[: len(taken)]
        return taken

    def _write(self, begin: int, end: int) -> str:
        """One piece of the buffer; a replacement stands in the piece where its secret began."""
        parts: list[str] = []
        position = min(max(begin, self._covered), end)
        while self._spans and self._spans[0][0] < end:
            start, stop, replacement = self._spans.pop(0)
            parts += (self._buffer[position:start], replacement)
            self._covered = stop
            position = min(stop, end)
        parts.append(self._buffer[position:end])
        return "".join(parts)

    def _forget(self) -> None:
        """Drop text that no decision can look back to."""
        length = self._begin - _CONTEXT
        if length <= _CONTEXT:
            return
        self._buffer = self._buffer[length:]
        self._begin -= length
        self._settled -= length
        self._covered = max(-1, self._covered - length)
        self._spans = [(start - length, end - length, text) for start, end, text in self._spans]
        self._scanner.cut(length)
