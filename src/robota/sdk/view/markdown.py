"""Markdown that is still being written, cut into top-level blocks as soon as each is final.

It goes line by line, so how the text was cut into deltas makes no difference. Most lines are understood
without parsing: what is inside a fence, and what can only continue a list, a table, a quote or a paragraph.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, Any, Protocol

from msgspec import Struct

if TYPE_CHECKING:
    from markdown_it import MarkdownIt

CODE_LINES = 40
"""So many lines of an open fence are shown at once."""
CODE_BEFORE = 60
"""So many lines above them tell a highlighter where it is."""
TAIL_LINES = 80
TAIL_CHARACTERS = 8_000
LONG = 200
"""A block of more lines is parsed again only when it has grown by a tenth."""

_FENCE = re.compile(r"( {0,3})(`{3,}|~{3,})(.*)$")
_MARKER = re.compile(r" {0,3}(?:[-+*]|\d{1,9}[.)])(?:[ \t]|$)")
_INTERRUPTS = re.compile(
    r" {0,3}(?:#{1,6}(?:[ \t]|$)|>|`{3}|~{3}|<|=+[ \t]*$|[-+*](?:[ \t]|$)|1[.)][ \t]|[-*_|: \t]+$)"
)
"""What may end a paragraph or make something else of it."""
_LABEL = re.compile(r"\[([^\[\]]+)\]")


class Piece(Struct, frozen=True):
    """A top-level block, or some lines of a long fence."""

    text: str
    is_code: bool = False
    language: str = ""
    before: str = ""
    """For the renderer, not to be shown: lines of code above these, or the links that the text refers to."""
    continues: bool = False
    """It is the next part of the fence of the piece above."""


class Splitter(Protocol):
    """Cuts text that is still being written into pieces that are final."""

    @property
    def tail(self) -> str: ...
    @property
    def is_empty(self) -> bool: ...
    def feed(self, text: str) -> list[Piece]: ...
    def finish(self) -> list[Piece]: ...
    def discard(self) -> None: ...


class BlockSplitter:
    """Takes text as it comes and gives blocks away that nothing can change any more."""

    __slots__ = ("_code", "_fence", "_kind", "_lines", "_links", "_parsed_at", "_partial")

    def __init__(self) -> None:
        self._lines: list[str] = []
        """Whole lines that belong to no piece yet."""
        self._partial = ""
        self._kind = ""
        """What the open block is, by the name of its token; empty when it is not known."""
        self._parsed_at = 0
        self._fence: _Fence | None = None
        self._code: list[str] = []
        """The last lines of the open fence that were given away."""
        self._links: dict[str, Any] = {}

    @property
    def tail(self) -> str:
        """The end of what was not given away yet."""
        lines = self._lines[-TAIL_LINES:]
        return "\n".join([*lines, self._partial])[-TAIL_CHARACTERS:].lstrip("\n")

    @property
    def is_empty(self) -> bool:
        return not self._partial and not any(self._lines) and self._fence is None

    def feed(self, text: str) -> list[Piece]:
        """Take text; the blocks that are final with it."""
        first, *rest = text.split("\n")
        self._partial += first
        pieces: list[Piece] = []
        for line in rest:
            pieces += self._take_line(self._partial)
            self._partial = line
        return pieces

    def finish(self) -> list[Piece]:
        """Nothing more comes: what is left, as blocks. Then it begins anew."""
        pieces = self._take_line(self._partial) if self._partial else []
        if self._fence is not None:
            pieces += self._give_code(self._fence, ends=True)
        pieces += self._cut(final=True)
        links = self._links
        self.__init__()  # type: ignore[misc]
        self._links = links
        return pieces

    def discard(self) -> None:
        """Forget what was not given away."""
        self.__init__()  # type: ignore[misc]

    def _take_line(self, line: str) -> list[Piece]:
        fence = self._fence
        if fence is not None:
            return self._take_code(fence, line)
        if not self._lines:
            if not line.strip():
                return []
            self._fence = _open_fence(line)
            if self._fence is not None:
                return []
        before = self._lines[-1] if self._lines else ""
        self._lines.append(line)
        if self._continues(line, before):
            return []
        return self._cut()

    def _continues(self, line: str, before: str) -> bool:
        """Whether the line surely belongs to the open block, whatever follows."""
        blank = not line.strip()
        match self._kind:
            case "paragraph_open":
                sure = not blank and _INTERRUPTS.match(line) is None
            case "bullet_list_open" | "ordered_list_open":
                sure = blank or line[0] in " \t" or _MARKER.match(line) is not None
            case "table_open":
                sure = line.startswith("|")
            case "blockquote_open":
                sure = line.startswith(">")
            case "code_block":
                sure = blank or line.startswith(("    ", "\t"))
            case _:
                sure = False
        if sure or len(self._lines) <= LONG:
            return sure
        unsettled = self._kind == "html_block" or (not blank and bool(before.strip()))
        return unsettled and len(self._lines) < self._parsed_at * 11 // 10

    def _take_code(self, fence: _Fence, line: str) -> list[Piece]:
        if fence.is_closed_by(line):
            pieces = self._give_code(fence, ends=True)
            self._fence = None
            return pieces
        self._lines.append(fence.unindent(line))
        return self._give_code(fence) if len(self._lines) >= CODE_LINES else []

    def _give_code(self, fence: _Fence, *, ends: bool = False) -> list[Piece]:
        given = self._lines
        self._lines = []
        continues = bool(self._code)
        if ends and continues and not given:
            self._code = []
            return []
        piece = Piece("\n".join(given), True, fence.language, "\n".join(self._code), continues)
        self._code = [] if ends else [*self._code, *given][-CODE_BEFORE:]
        return [piece]

    def _cut(self, *, final: bool = False) -> list[Piece]:
        """Parse what is open and give away what is final."""
        lines = self._lines
        if not any(lines):
            self._lines = []
            return []
        env: dict[str, Any] = {"references": self._links}
        tokens = _parser().parse("\n".join(lines), env)
        blocks = [
            (token.type, token.map[0], token.map[1]) for token in tokens if not token.level and token.map
        ]
        pieces: list[Piece] = []
        done = 0
        for at, (kind, start, end) in enumerate(blocks):
            if at == len(blocks) - 1 and not final and not _is_final(kind, lines, start, end):
                break
            pieces += self._piece(lines[done:start])  # definitions of links have no token
            pieces += self._fenced(lines[start:end]) if kind == "fence" else self._piece(lines[start:end])
            done = end
        if final or not blocks:
            ended = final or not lines[-1].strip()
            pieces += self._piece(lines[done:]) if ended else []
            done = len(lines) if ended else done
        self._keep(lines[done:], blocks[-1][0] if blocks and done < len(lines) else "")
        return pieces

    def _keep(self, lines: list[str], kind: str) -> None:
        """Go on with these lines, a block of that kind."""
        start = next((at for at, line in enumerate(lines) if line.strip()), len(lines))
        self._lines = lines[start:]
        self._kind, self._parsed_at = kind if self._lines else "", len(self._lines)
        fence = _open_fence(self._lines[0]) if self._lines else None
        if fence is not None:
            self._fence, self._kind = fence, ""
            self._lines = [fence.unindent(line) for line in self._lines[1:]]

    def _fenced(self, lines: list[str]) -> list[Piece]:
        """A fence that came to its end while something else was open, cut as if it had been open alone."""
        inner = BlockSplitter()
        return [*inner.feed("\n".join(lines)), *inner.finish()]

    def _piece(self, lines: list[str]) -> list[Piece]:
        text = "\n".join(lines).strip("\n").rstrip()
        if not text.strip():
            return []
        return [Piece(text, before=self._links_of(text) if self._links else "")]

    def _links_of(self, text: str) -> str:
        """The definitions above the text that it refers to."""
        wanted = {" ".join(label.split()).upper(): label for label in _LABEL.findall(text)}
        return "\n".join(
            f"[{label}]: <{self._links[name]['href']}>"
            for name, label in wanted.items()
            if name in self._links
        )


class _Fence(Struct, frozen=True):
    indent: int
    mark: str
    language: str

    def is_closed_by(self, line: str) -> bool:
        text = line.strip(" \t")
        return (
            text.startswith(self.mark)
            and not text.strip(self.mark[0])
            and len(line) - len(line.lstrip(" ")) < 4
        )

    def unindent(self, line: str) -> str:
        """Without as many blanks as the opening line has before its mark."""
        blanks = len(line) - len(line.lstrip(" "))
        return line[min(self.indent, blanks) :]


def _open_fence(line: str) -> _Fence | None:
    found = _FENCE.match(line)
    if found is None or (found[2][0] == "`" and "`" in found[3]):
        return None
    words = found[3].split()
    return _Fence(len(found[1]), found[2], words[0] if words else "")


def _is_final(kind: str, lines: list[str], start: int, end: int) -> bool:
    """Whether the last block that was parsed cannot become anything else."""
    if kind in ("heading_open", "hr"):
        return True
    if kind == "fence":
        fence = _open_fence(lines[start])
        return fence is not None and end > start + 1 and fence.is_closed_by(lines[end - 1])
    return kind == "paragraph_open" and end < len(lines)


@cache
def _parser() -> MarkdownIt:
    """Finds blocks, and leaves what is inside of them alone."""
    from markdown_it import MarkdownIt  # noqa: PLC0415 - 40 ms, once somebody says more than a line

    parser = MarkdownIt("commonmark").enable("table")
    parser.core.ruler.enableOnly(["normalize", "block"])
    return parser
