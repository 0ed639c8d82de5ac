"""A web page as Markdown: through the extra `web` when it is installed, else by a plain renderer of ours.

Both leave out scripts, styles and navigation and make links absolute. Their work is bounded: what a page
holds beyond `MAX_HTML` characters of markup is cut off before.
"""

from __future__ import annotations

import re

from msgspec import Struct

from robota.tools.web.render import render_markdown
from robota.tools.web.scan import Tag, scan_html

MAX_HTML = 1_000_000
"""Characters of markup that are converted, counted without scripts, styles, comments and drawings."""
_MAX_DEPTH = 256
"""Levels of nesting the extra follows; its time grows with them."""
_CLOSING = {
    "!--": re.compile("-->"),
    **{
        name: re.compile(rf"</{name}\s*>", re.IGNORECASE)
        for name in ("script", "style", "svg", "template", "noscript", "iframe")
    },
}
_OPENING = re.compile(rf"<(!--|(?:{'|'.join(list(_CLOSING)[1:])})(?=[\s>]))", re.IGNORECASE)


class MarkdownPage(Struct, frozen=True):
    title: str
    text: str
    cut: bool
    """The page was longer than what is here."""


def convert_page(html: str, base: str, *, plainly: bool = False) -> MarkdownPage:
    """The page at address `base`; `plainly` by our own renderer. Takes time: call it in a thread."""
    slim = html if len(html) <= MAX_HTML else _strip_invisible(html)
    cut = len(slim) > MAX_HTML
    slim = slim[:MAX_HTML]
    text = None if plainly else _convert_with_extra(slim, base)
    if text is None:
        text = render_markdown(slim, base)
    return MarkdownPage(_find_title(slim), text, cut)


def _convert_with_extra(html: str, base: str) -> str | None:
    try:
        from html_to_markdown import ConversionOptions, convert  # noqa: PLC0415 - an extra, loaded on use
    except ImportError:
        return None
    options = ConversionOptions(
        base_url=base, extract_metadata=False, inline_data_media="alt_text_only", max_depth=_MAX_DEPTH
    )
    try:
        text = convert(html, options).content
    except Exception:  # noqa: BLE001 - foreign code on foreign input; our own renderer takes any page
        return None
    return text.strip() if text and text.strip() else None


def _find_title(html: str) -> str:
    titled = False
    for token in scan_html(html):
        if isinstance(token, Tag):
            titled = token.name == "title" and not token.closing
            if token.name == "body":
                break
        elif titled:
            return " ".join(token.split())[:300]
    return ""


def _strip_invisible(html: str) -> str:
    """The page without what no reader sees, cut out of the text as it stands."""
    pieces: list[str] = []
    position = 0
    unclosed: set[str] = set()  # of these no end follows; looking for it each time would take for ever
    while found := _OPENING.search(html, position):
        pieces.append(html[position : found.start()])
        name = found[1].lower()
        until = None if name in unclosed else _CLOSING[name].search(html, found.end())
        if until is None:
            unclosed.add(name)
            pieces.append(found[0])
        position = found.end() if until is None else until.end()
    return "".join([*pieces, html[position:]])
