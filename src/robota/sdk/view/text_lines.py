"""Text that is shown as it is, line by line: the splitter of front ends that draw no Markdown."""

from __future__ import annotations

from robota.sdk.view.markdown import Piece


class LineSplitter:
    """Gives every line away when it ends; the tail is the one that has not."""

    __slots__ = ("_began", "tail")

    def __init__(self) -> None:
        self.tail = ""
        self._began = False

    @property
    def is_empty(self) -> bool:
        return not self._began and not self.tail

    def feed(self, text: str) -> list[Piece]:
        *lines, self.tail = (self.tail + text).split("\n")
        return [self._piece(line) for line in lines if line or self._began]

    def finish(self) -> list[Piece]:
        pieces = [self._piece(self.tail)] if self.tail else []
        self.discard()
        return pieces

    def discard(self) -> None:
        self.tail, self._began = "", False

    def _piece(self, line: str) -> Piece:
        piece = Piece(line, continues=self._began)
        self._began = True
        return piece
