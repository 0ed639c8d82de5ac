"""Text of others as HTML: everything is escaped, and only a written-out http(s) address becomes a link.

A link's text is its own target, so none can pretend to lead elsewhere. Every function is linear.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from robota.sessions.export.call_view import is_difference
from robota.sessions.export.visible import on_one_line, show_hidden

_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})[ \t]*([^\s`]*)")
_HEADING = re.compile(r" {0,3}#{1,6} ")
_INLINE = re.compile(
    r"`(?P<code>[^`\n]+)`|\*\*(?P<strong>[^*\n]+)\*\*"
    r"|(?P<link>https?://[A-Za-z0-9\-._~:/?#@!$&'()*+,;=%]+)"
)
_LINK_END = ".,;:!?'*)"
_ESCAPES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;"})


def escape(text: str) -> str:
    """Safe as the content of an element and as a quoted attribute's value."""
    return show_hidden(text).translate(_ESCAPES)


def escape_line(text: str) -> str:
    return on_one_line(text).translate(_ESCAPES)


def prose(text: str) -> str:
    """What people and models write: paragraphs as they are, code blocks, headings, addresses."""
    return "".join(_blocks(show_hidden(text).split("\n")))


def block(text: str, language: str = "") -> str:
    """Code or output, line for line; a difference in colours."""
    shown = show_hidden(text).removesuffix("\n")
    if language == "diff" or is_difference(shown):
        return f'<pre class="diff">\n{"".join(_coloured(shown))}</pre>'
    return f"<pre>\n{shown.translate(_ESCAPES)}</pre>"  # a newline right after the tag is not shown


def _coloured(text: str) -> Iterator[str]:
    kinds = {"+": "ins", "-": "del", "@": "hunk"}
    for line in text.split("\n"):
        kind = kinds.get(line[:1])
        escaped = line.translate(_ESCAPES)
        yield f'<span class="{kind}">{escaped}\n</span>' if kind else f"{escaped}\n"


def _blocks(lines: list[str]) -> Iterator[str]:
    start = place = 0
    while place < len(lines):
        opened = _FENCE.match(lines[place])
        if opened is None:
            place += 1
            continue
        yield _paragraphs(lines[start:place])
        end = place + 1
        while end < len(lines) and not _closes(lines[end], opened[1]):
            end += 1
        yield block("\n".join(lines[place + 1 : end]), opened[2])
        start = place = end + 1
    yield _paragraphs(lines[start:])


def _closes(line: str, opening: str) -> bool:
    run = line.strip()
    return len(run) >= len(opening) and not run.strip(opening[0])


def _paragraphs(lines: list[str]) -> str:
    text = "\n".join(f"**{line.strip()}**" if _is_heading(line) else line for line in lines).strip("\n")
    return f'<div class="prose">{"".join(_inline(text))}</div>' if text else ""


def _is_heading(line: str) -> bool:
    return "*" not in line and _HEADING.match(line) is not None


def _inline(text: str) -> Iterator[str]:
    place = 0
    for found in _INLINE.finditer(text):
        yield text[place : found.start()].translate(_ESCAPES)
        place = found.end()
        if found["code"] is not None:
            yield f"<code>{found['code'].translate(_ESCAPES)}</code>"
        elif found["strong"] is not None:
            yield f"<strong>{found['strong'].translate(_ESCAPES)}</strong>"
        else:
            address = found["link"].rstrip(_LINK_END)
            yield link(address) + found["link"][len(address) :].translate(_ESCAPES)
    yield text[place:].translate(_ESCAPES)


def link(address: str) -> str:
    """A link that shows where it leads; anything but http and https stays text."""
    shown = escape_line(address)
    if not address.startswith(("http://", "https://")):
        return shown
    return f'<a href="{shown}" rel="noopener noreferrer nofollow" target="_blank">{shown}</a>'
