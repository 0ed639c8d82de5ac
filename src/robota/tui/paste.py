"""Long pastes, folded to one word in the input and unfolded when it is sent."""

from __future__ import annotations

from robota.tui.words import Words

FOLDED_LINES, FOLDED_CHARACTERS = 10, 1000


class Pastes:
    """What the folded words of the input stand for."""

    def __init__(self, words: Words) -> None:
        self._words = words
        self._texts: dict[str, str] = {}
        """Of the whole session: a prompt comes back from the queue, from the history, or refused."""

    def fold(self, text: str) -> str:
        """What goes into the input: the text itself unless it is long."""
        text = text.replace("\r\n", "\n").replace("\r", "\n")
        lines = text.count("\n") + 1
        if lines < FOLDED_LINES and len(text) <= FOLDED_CHARACTERS:
            return text
        mark = self._words("paste.folded", number=len(self._texts) + 1, count=lines)
        self._texts[mark] = text
        return mark

    def unfold(self, text: str) -> str:
        for mark, pasted in self._texts.items():
            text = pasted.join(text.split(mark))
        return text
