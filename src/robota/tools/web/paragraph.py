"""The words of one paragraph on their way from HTML to Markdown: blanks, emphasis, links and images."""

from __future__ import annotations

import re

from robota.tools.web.scan import Tag

EMPHASIS = {"b": "**", "strong": "**", "i": "*", "em": "*", "code": "`", "kbd": "`", "samp": "`"}
_LINK = "["
_MAX_LINK = 2_000
_BLANKS = re.compile(r"[ \t\n\r\f\v]+")


def join_blanks(text: str) -> str:
    """The text with every run of blanks and line ends as one blank."""
    return _BLANKS.sub(" ", text)


class Paragraph:
    """Collects words. Each kind of emphasis is open at most once, so that nesting costs nothing."""

    __slots__ = ("_base", "_open", "_words")

    def __init__(self, base: str) -> None:
        self._base = base
        self._words: list[str] = []
        self._open: list[tuple[str, str, int]] = []
        """Emphasis and links: their mark, a link's target, and where in the words they begin."""

    def add(self, text: str) -> None:
        text = join_blanks(text)
        if not self._words or self._words[-1].endswith((" ", "\n")):
            text = text.lstrip(" ")
        if text:
            self._words.append(text)

    def end_line(self) -> None:
        self._words.append("\n")

    def take(self, *, last: bool = False) -> str:
        """What was collected. What is open goes on in the next paragraph, unless this is the last."""
        waiting = [] if last else [(mark, target, 0) for mark, target, _ in self._open]
        while self._open:
            self._close()
        text = "".join(self._words).strip()
        self._words.clear()
        self._open = waiting
        return text

    def emphasis(self, tag: Tag) -> None:
        mark = EMPHASIS[tag.name]
        is_open = self._is_open(mark)
        if tag.closing and is_open:
            self._close_until(mark)
        elif not tag.closing and not is_open:
            self._open.append((mark, "", len(self._words)))

    def link(self, tag: Tag) -> None:
        if self._is_open(_LINK):
            self._close_until(_LINK)
        target = "" if tag.closing else self._absolute(tag.attributes.get("href", ""))
        if target:
            self._open.append((_LINK, target, len(self._words)))

    def image(self, tag: Tag) -> None:
        words = join_blanks(tag.attributes.get("alt", "")).strip()
        target = self._absolute(tag.attributes.get("src", ""))
        if words:
            self._words.append(f"![{words}]({target})" if target else words)

    def _is_open(self, mark: str) -> bool:
        return any(mark == one for one, _, _ in self._open)

    def _close_until(self, mark: str) -> None:
        while self._close() != mark:
            pass

    def _close(self) -> str:
        mark, target, start = self._open.pop()
        inside = "".join(self._words[start:])
        words = inside.strip()
        if words:
            place = inside.index(words)
            marked = f"[{words}]({target})" if mark == _LINK else f"{mark}{words}{mark}"
            self._words[start:] = [f"{inside[:place]}{marked}{inside[place + len(words) :]}"]
        return mark

    def _absolute(self, address: str) -> str:
        """A link's target as Markdown wants it; empty for one that leads nowhere."""
        from urllib.parse import urljoin  # noqa: PLC0415 - only pages with links need it

        address = address.strip()
        if not address or address.startswith("#") or len(address) > _MAX_LINK:
            return ""
        try:
            target = urljoin(self._base, address)
        except ValueError:
            return ""
        if not target.startswith(("http://", "https://", "mailto:", "ftp://")):
            return ""
        return _BLANKS.sub("%20", target).replace(")", "%29")
