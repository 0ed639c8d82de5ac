"""HTML to Markdown in linear time: headings, paragraphs, lists, quotes, code, links, emphasis, simple tables.

Every page gives something; markup that means nothing here is passed over, its text kept. Nesting, wherever it
could multiply the work or the output, counts only up to a fixed depth.
"""

from __future__ import annotations

import re
from collections import Counter

from msgspec import Struct, field

from robota.tools.web.scan import Tag, scan_html

_SKIPPED = frozenset({"script", "style", "title", "nav", "template", "noscript", "svg", "iframe", "object"})
_BLOCKS = frozenset({
    "address", "article", "aside", "body", "caption", "center", "dd", "details", "dialog", "div", "dl", "dt",
    "fieldset", "figcaption", "figure", "footer", "form", "header", "hgroup", "html", "legend", "main",
    "option", "p", "section", "summary",
})  # fmt: skip
_HEADINGS = {f"h{level}": level for level in range(1, 7)}
_LIST_DEPTH = 8
_LANGUAGE = re.compile(r"\b(?:language|lang|highlight-source|brush:)-?\s?([A-Za-z0-9+#_-]{1,20})")
EMPHASIS = {"b": "**", "strong": "**", "i": "*", "em": "*", "code": "`", "kbd": "`", "samp": "`"}
_LINK = "["
_MAX_LINK = 2_000
_BLANKS = re.compile(r"[ \t\n\r\f\v]+")


def render_markdown(html: str, base: str) -> str:
    """The page's text; links are made absolute against `base`."""
    renderer = _Renderer(Paragraph(base))
    for token in scan_html(html):
        if isinstance(token, str):
            renderer.text(token)
        else:
            renderer.tag(token)
    return renderer.finish()


class _Container(Struct):
    """A list, one of its items, or a quotation."""

    tag: str
    marker: str = ""
    count: int = 0
    fresh: bool = True
    """No line of it was written yet."""

    def prefix(self) -> str:
        if self.tag == "blockquote":
            return "> "
        return self.marker if self.fresh else " " * len(self.marker)


class _Renderer(Struct, eq=False):
    _paragraph: Paragraph
    _lines: list[str] = []
    _apart: bool = False
    """The next block is set off by an empty line."""
    _containers: list[_Container] = []
    _open: Counter[str] = field(default_factory=Counter)
    _heading: int = 0
    _code: list[str] | None = None
    _language: str = ""
    _skipping: str = ""
    _skip_depth: int = 0
    _rows: list[list[str]] = []
    _in_cell: bool = False

    # --- what comes in ---------------------------------------------------------------------------------

    def text(self, text: str) -> None:
        if self._skipping:
            return
        if self._code is not None:
            self._code.append(text)
        else:
            self._paragraph.add(text)

    def tag(self, tag: Tag) -> None:
        if self._skipping:
            self._skip(tag)
        elif tag.name in _SKIPPED:
            if not tag.closing and not tag.empty:
                self._skipping, self._skip_depth = tag.name, 1
        elif self._code is not None:
            self._inside_code(tag)
        elif tag.name in EMPHASIS:
            self._paragraph.emphasis(tag)
        elif tag.name == "a":
            self._paragraph.link(tag)
        elif tag.name in ("table", "tr", "td", "th"):
            self._table(tag)
        elif tag.name == "img":
            self._paragraph.image(tag)
        elif tag.name == "br":
            self._paragraph.end_line()
        else:
            self._block(tag)

    def finish(self) -> str:
        if self._code is not None:
            self._end_code()
        self._flush()
        self._end_table()
        return "\n".join(self._lines).strip("\n")

    # --- blocks ----------------------------------------------------------------------------------------

    def _block(self, tag: Tag) -> None:
        name = tag.name
        if name in _HEADINGS:
            self._break()
            self._heading = 0 if tag.closing or self._in_cell else _HEADINGS[name]
        elif name == "pre" and not tag.closing and not self._in_cell:
            self._break()
            self._code, self._language = [], _language_of(tag)
        elif name in ("ul", "ol", "li", "blockquote", "menu"):
            self._contain(tag)
        elif name == "hr" and not self._in_cell:
            self._break()
            self._write(["---"])
        elif name in _BLOCKS:
            self._break()

    def _break(self) -> None:
        """End the paragraph under way; in a table cell it is only a blank."""
        if self._in_cell:
            self.text(" ")
            return
        self._flush()
        begins_item = self._containers and self._containers[-1].tag == "li" and self._containers[-1].fresh
        self._apart = self._apart or not begins_item

    def _flush(self) -> None:
        text = self._paragraph.take()
        if not text:
            return
        if self._heading:
            text = f"{'#' * self._heading} {join_blanks(text)}"
        self._write([line.strip() for line in text.split("\n")])

    def _write(self, lines: list[str]) -> None:
        if self._apart and self._lines:
            self._lines.append("")
        self._apart = False
        shown = [one for one in self._containers[-2 * _LIST_DEPTH :] if one.tag in ("li", "blockquote")]
        for line in lines:
            prefix = "".join(one.prefix() for one in shown[-_LIST_DEPTH:])
            self._lines.append(f"{prefix}{line}".rstrip())
            for one in shown:
                one.fresh = False

    def _contain(self, tag: Tag) -> None:
        if self._in_cell:
            self.text(" ")
            return
        self._flush()
        name = tag.name
        if tag.closing:
            if self._open[name]:
                self._leave(name)
            self._apart = self._apart or not self._open["li"]
        elif name == "li":
            if self._containers and self._containers[-1].tag == "li":
                self._leave("li")
            self._enter(_Container("li", self._next_marker()))
        else:
            self._apart = self._apart or not self._open["li"]
            self._enter(_Container(name))

    def _next_marker(self) -> str:
        around = self._containers[-1] if self._containers else None
        if around is None:
            return "- "
        around.count += 1
        if around.count > 1:
            self._apart = False
        return f"{around.count}. " if around.tag == "ol" else "- "

    def _enter(self, container: _Container) -> None:
        self._containers.append(container)
        self._open[container.tag] += 1

    def _leave(self, name: str) -> None:
        while self._containers:
            gone = self._containers.pop().tag
            self._open[gone] -= 1
            if gone == name:
                return

    # --- code ------------------------------------------------------------------------------------------

    def _inside_code(self, tag: Tag) -> None:
        if tag.name == "pre" and tag.closing:
            self._end_code()
        elif tag.name == "br" and self._code is not None:
            self._code.append("\n")
        elif tag.name == "code" and not self._language:
            self._language = _language_of(tag)

    def _end_code(self) -> None:
        text = "".join(self._code or ()).replace("\r\n", "\n").strip("\n")
        self._code = None
        if text.strip():
            fence = "````" if "```" in text else "```"
            self._write([f"{fence}{self._language}", *text.split("\n"), fence])
        self._apart = True

    # --- tables ----------------------------------------------------------------------------------------

    def _table(self, tag: Tag) -> None:
        """Cells of the outermost table; one within a cell gives only its words."""
        if tag.name == "table":
            self._open["table"] += -1 if tag.closing and self._open["table"] else not tag.closing
            if self._open["table"] > 1 or (self._open["table"] and tag.closing):
                self.text(" ")
                return
            self._end_cell()
            self._break()
            self._end_table()
        elif self._open["table"] > 1:
            self.text(" ")
        elif tag.name == "tr":
            self._end_cell()
            if not tag.closing:
                self._rows.append([])
        else:
            self._end_cell()
            if not tag.closing:
                self._flush()
                self._in_cell = True

    def _end_cell(self) -> None:
        if not self._in_cell:
            return
        words = join_blanks(self._paragraph.take(last=True)).replace("|", "\\|")
        self._in_cell = False
        if not self._rows:
            self._rows.append([])
        self._rows[-1].append(words)

    def _end_table(self) -> None:
        self._end_cell()
        rows = [row for row in self._rows if any(row)]
        self._rows = []
        if not rows:
            return
        lines = [f"| {' | '.join(row)} |" for row in rows]
        lines.insert(1, f"|{' --- |' * len(rows[0])}")
        self._apart = True
        self._write(lines)
        self._apart = True

    # --- what is left out ------------------------------------------------------------------------------

    def _skip(self, tag: Tag) -> None:
        if tag.name == self._skipping and not tag.empty:
            self._skip_depth += -1 if tag.closing else 1
            if not self._skip_depth:
                self._skipping = ""


def _language_of(tag: Tag) -> str:
    found = _LANGUAGE.search(tag.attributes.get("class", ""))
    return found[1] if found else ""


def join_blanks(text: str) -> str:
    """The text with every run of blanks and line ends as one blank."""
    return _BLANKS.sub(" ", text)


class Paragraph(Struct, eq=False):
    """The words of one paragraph on their way to Markdown: blanks, emphasis, links and images.

    Each kind of emphasis is open at most once, so that nesting costs nothing.
    """

    _base: str
    _words: list[str] = []
    _open: list[tuple[str, str, int]] = []
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
