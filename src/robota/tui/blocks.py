"""`Block` -> the lines of a terminal of some width: no padding, no positions, only text and its colours.

Each block is drawn alone; nothing that follows can change it. A line that turns out too wide, because the
terminal counts a character otherwise, merely wraps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache
from io import StringIO
from typing import Any, ClassVar

from markdown_it import MarkdownIt
from markdown_it.token import Token
from rich.color import ColorSystem
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.markdown import CodeBlock, Heading, HorizontalRule, Markdown, MarkdownElement
from rich.segment import Segment
from rich.style import Style
from rich.syntax import ANSI_DARK, ANSI_LIGHT, ANSISyntaxTheme, Syntax
from rich.text import Text
from rich.theme import Theme as Styles

from robota.sdk.view.model import Block
from robota.sdk.view.tool_view import show_seconds
from robota.tui.cells import wrap_line
from robota.tui.theme import Theme

RULE_WIDTH = 40
TAB = 8
NARROW = 20
"""Below this, a row has no room for an indent."""
_MARKS = {"success": "✓", "error": "✗", "denied": "⊘", None: "⟳"}
_TODO_STYLES = {"[x]": "dim strike", "[>]": "bold", "[ ]": ""}


def render_block(block: Block, width: int, theme: Theme, *, expanded: bool = False) -> list[str]:
    """The block as lines without their ends, a blank one first where it stands apart from the one above.
    `expanded` shows what was left out."""
    text = block.full if expanded and block.full else block.text
    lines = _draw(_DRAWN[block.kind](block, text, theme), width, theme)
    return ["", *lines] if block.gap and lines else lines


def render_text(text: str, style: str, width: int, theme: Theme) -> list[str]:
    """Plain text in one style, wrapped."""
    return _draw(Text(text, style), width, theme)


# --- what each kind of block looks like -----------------------------------------------------------------


class _Hanging:
    """Lines whose wrapped rows stand below their beginning: nobody takes them for lines of their own."""

    def __init__(
        self, text: str, style: str | Callable[[str], str], first: str, other: str = "", more: int = 0
    ) -> None:
        """`first` stands before the first line, `other` before the others; wrapped rows stand `more` in."""
        self.text, self.style = text, style
        self.first, self.other, self.more = first, other or " " * len(first), more

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        indent = len(self.first) + self.more
        width = options.max_width
        room = width - indent if width >= NARROW else width
        drawn, mark = Text(no_wrap=width >= NARROW), self.first
        for line in self.text.split("\n"):
            style = self.style if isinstance(self.style, str) else self.style(line)
            if "\t" in line:
                line = f"{mark}{line}".expandtabs(TAB)[len(mark) :]
            rows = wrap_line(line, room) if width >= NARROW else [line]
            drawn.append("".join((mark, f"\n{'':{indent}}".join(rows), "\n")), style)
            mark = self.other
        drawn.right_crop(1)
        yield drawn


def _answer(block: Block, text: str, theme: Theme) -> RenderableType:
    if block.format == "code":
        return highlight(text, block.language, theme.code, before=block.before)
    if block.format == "markdown":
        return _Markdown(f"{block.before}\n\n{text}" if block.before else text, theme)
    return Text(text)


def _user(block: Block, text: str, theme: Theme) -> RenderableType:
    return _Hanging(text, theme.user, "> ", "> ")


def _tool(block: Block, text: str, theme: Theme) -> RenderableType:
    style = {"success": theme.success, "error": theme.failed, "denied": theme.denied}.get(
        block.state or "", theme.busy
    )
    row = Text.assemble(
        (_MARKS[block.state], style.removeprefix("strike ")),
        " ",
        (block.title, f"{style} bold" if style.startswith("strike") else "bold"),
        f"({block.about})" if block.about else "",
    )
    if block.seconds is not None and block.seconds >= 0.1:
        row.append(f"  {show_seconds(block.seconds)}", theme.dim)
    if not text:
        return row
    style = theme.error if block.state == "error" else theme.dim
    return Group(row, _Hanging(text, style, "  "))


def _diff(block: Block, text: str, theme: Theme) -> RenderableType:
    styles = {"+": theme.added, "-": theme.removed}
    return _Hanging(text, lambda line: styles.get(line[:1], theme.dim), "  ", more=2)


def _todo(block: Block, text: str, theme: Theme) -> RenderableType:
    return _Hanging(text, lambda line: _TODO_STYLES.get(line[:3], ""), "", more=4)


def _remark(mark: str, style: Callable[[Theme], str]) -> Callable[[Block, str, Theme], RenderableType]:
    def draw(block: Block, text: str, theme: Theme) -> RenderableType:
        named = f"[{block.agent}] " if block.agent else ""
        return _Hanging(f"{named}{text}", style(theme), mark)

    return draw


_DRAWN: dict[str, Callable[[Block, str, Theme], RenderableType]] = {
    "user": _user,
    "answer": _answer,
    "thinking": _remark("✻ ", lambda theme: theme.thinking),
    "tool": _tool,
    "diff": _diff,
    "notice": _remark("· ", lambda theme: theme.notice),
    "error": _remark("✗ ", lambda theme: theme.error),
    "command": _remark("", lambda theme: ""),
    "todo": _todo,
}


# --- Markdown and code ------------------------------------------------------------------------------------


def highlight(code: str, language: str, colours: str, *, before: str = "") -> Text:
    """Code in colours; `before` is code above it, which says where in a text or a comment it begins."""
    syntax = Syntax("", _lexer(language), theme=_colours(colours), word_wrap=True)
    drawn = syntax.highlight(f"{before}\n{code}" if before else code)
    lines = drawn.split("\n", allow_blank=True)
    start = before.count("\n") + 1 if before else 0
    return Text("\n").join(lines[start : start + code.count("\n") + 1])


@cache
def _lexer(language: str) -> Any:
    """Looked for once; a language that nobody knows is text."""
    return Syntax("", language or "text").lexer or "text"


@cache
def _colours(name: str) -> ANSISyntaxTheme:
    """One of rich's palettes of sixteen colours, without the lines it draws under names."""
    palette = ANSI_LIGHT if name == "ansi_light" else ANSI_DARK
    return ANSISyntaxTheme({token: style + Style(underline=False) for token, style in palette.items()})


class _Code(CodeBlock):
    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield highlight(str(self.text).rstrip(), self.lexer_name, self.theme)


class _Heading(Heading):
    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield self.text


class _Rule(HorizontalRule):
    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield Text("─" * min(RULE_WIDTH, options.max_width), "dim")


class _Markdown(Markdown):
    elements: ClassVar[dict[str, type[MarkdownElement]]] = {
        **Markdown.elements,
        "fence": _Code,
        "code_block": _Code,
        "heading_open": _Heading,
        "hr": _Rule,
    }

    def __init__(self, text: str, theme: Theme) -> None:
        """Not its parent's, which makes a parser of its own for every text: that took a third of the time."""
        self.markup = text
        self.parsed = _parser().parse(text)
        self.code_theme = self.inline_code_theme = theme.code
        self.justify = self.inline_code_lexer = None
        self.style = "none"
        self.hyperlinks = False
        for token in self.parsed:
            if token.children:
                token.children = _without_autolinks(token.children)


def _without_autolinks(tokens: list[Token]) -> list[Token]:
    """An address that stands for itself is not followed by the same address."""
    return [token for token in tokens if not (token.markup == "autolink" and token.type.startswith("link_"))]


@cache
def _parser() -> MarkdownIt:
    """HTML is text like any other here, and so is an image: else they would not be seen at all."""
    parser = MarkdownIt("commonmark", {"html": False})
    return parser.enable(["strikethrough", "table"]).disable("image")


# --- from rich to the terminal ------------------------------------------------------------------------------


def _draw(drawn: RenderableType, width: int, theme: Theme) -> list[str]:
    console = _console(theme)
    options = console.options.update_width(max(1, width))
    lines = [_line(segments, theme.colour) for segments in console.render_lines(drawn, options, pad=False)]
    while lines and not lines[-1]:
        lines.pop()
    start = next((at for at, line in enumerate(lines) if line), 0)
    return lines[start:]


def _line(segments: Iterable[Segment], colour: bool) -> str:
    """One line with as few escape sequences as it needs, and nothing behind its last character."""
    runs: list[tuple[str, Style | None]] = []
    for text, style, control in segments:
        if control or not text:
            continue
        seen = _seen(style, text, colour)
        before = runs[-1][1] if runs else None
        if runs and (before == seen or (not seen and not text.strip() and not _marks_blanks(before))):
            runs[-1] = (runs[-1][0] + text, before)
        else:
            runs.append((text, seen))
    while runs and not _marks_blanks(runs[-1][1]):
        text, style = runs.pop()
        if stripped := text.rstrip():
            runs.append((stripped, style))
            break
    return "".join(
        text if style is None else style.render(text, color_system=ColorSystem.STANDARD)
        for text, style in runs
    )


def _seen(style: Style | None, text: str, colour: bool) -> Style | None:
    """What of a style can be seen in this text."""
    plain = None if style is None else _plain(style, colour)
    return plain if text.strip() or _marks_blanks(plain) else None


@cache
def _plain(style: Style, colour: bool) -> Style | None:
    """A style on the terminal's own background, so that equal ones are the same."""
    shown = Style(
        color=style.color if colour and style.color and not style.color.is_default else None,
        bold=style.bold or None,
        dim=style.dim or None,
        italic=style.italic or None,
        underline=style.underline or None,
        reverse=style.reverse or None,
        strike=style.strike or None,
    )
    return shown or None


def _marks_blanks(style: Style | None) -> bool:
    """Whether blanks in this style can be seen."""
    return style is not None and bool(style.underline or style.reverse or style.strike)


@cache
def _console(theme: Theme) -> Console:
    """Draws into values only; what it is told of a terminal is ours, not what the environment says."""
    plain = ("list", "item", "paragraph", "text", "block", "code_block", "hr")
    headings = {f"markdown.h{level}": theme.heading for level in range(1, 7)}
    styles = {f"markdown.{name}": "none" for name in plain} | headings
    styles |= {
        "markdown.h1": f"{theme.heading} underline",
        "markdown.code": theme.inline_code,
        "markdown.link": "none",
        "markdown.link_url": theme.link,
        "markdown.block_quote": theme.quote,
        "markdown.item.bullet": "none",
        "markdown.item.number": "none",
        "markdown.table.border": theme.dim,
        "markdown.table.header": theme.table,
    }
    return Console(
        file=StringIO(),
        force_terminal=True,
        color_system="standard",
        theme=Styles(styles),
        markup=False,
        emoji=False,
        highlight=False,
        legacy_windows=False,
        _environ={},
    )
