"""A web page as the answer of WebFetch: fetched, turned into Markdown, framed as data with its origin.

The extra `article` finds the main text and the extra `web` makes the Markdown when they are installed, else
what the page marks as its content and a plain renderer of ours. Either renderer leaves out scripts, styles
and navigation and makes links absolute. The work is bounded: what a page holds beyond `MAX_HTML` characters
of markup is cut off before.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from anyio import to_thread
from msgspec import Struct

from robota.core.messages import Json
from robota.core.tool import ToolResult
from robota.tools.web.fetch import Fetcher, FetchError, Page, UnfollowedRedirect
from robota.tools.web.render import render_markdown
from robota.tools.web.scan import Tag, scan_html
from robota.tools.web.text import decode_body, frame_page, kind_of, looks_like_html

MAX_OUTPUT_CHARACTERS = 100_000
MAX_HTML = 1_000_000
"""Characters of markup that are converted, counted without scripts, styles, comments and drawings."""
NEEDS_JAVASCRIPT = (
    "[The page is filled in by JavaScript, which is not run here, so that hardly anything can be seen. "
    "Look for an API, a feed or another page with the same content.]"
)
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


async def answer_with_page(
    fetcher: Fetcher, address: str, headers: Mapping[str, str], *, main_text: bool = False
) -> ToolResult:
    """`main_text`: without menus, side columns and footers."""
    try:
        answer = await fetcher.fetch(address, headers)
        return await _show(answer, main_text) if isinstance(answer, Page) else _describe_redirect(answer)
    except FetchError as error:
        return ToolResult.failure(str(error), error.code)


def _describe_redirect(redirect: UnfollowedRedirect) -> ToolResult:
    return ToolResult(
        content=(
            f"The page was not read: the server redirects (HTTP {redirect.status}) to\n{redirect.url}\n"
            f"and that was not followed because {redirect.reason}. "
            "If it is where you want to go, call WebFetch with that address."
        ),
        metadata={"redirect": str(redirect.url), "status": redirect.status},
    )


async def _show(page: Page, main_text: bool) -> ToolResult:
    text, notes = await to_thread.run_sync(_read_page, page, main_text, abandon_on_cancel=True)
    if len(text) > MAX_OUTPUT_CHARACTERS:
        notes = [f"[The first {MAX_OUTPUT_CHARACTERS:,} of {len(text):,} characters are shown.]"]
    framed = frame_page(text[:MAX_OUTPUT_CHARACTERS] or "(The page is empty.)", str(page.url))
    return ToolResult(
        content="\n".join([framed, *notes]),
        metadata={
            "url": str(page.url),
            "status": page.status,
            "contentType": page.content_type,
            "bytes": len(page.body),
        },
    )


def _read_page(page: Page, main_text: bool) -> tuple[str, list[str]]:
    """The text of a page, and what to say about it. Runs in a thread."""
    kind = kind_of(page.content_type)
    text = decode_body(page.body, page.content_type)
    if text is None:
        raise FetchError("binary", f"{page.url} holds binary data, and only text can be shown.")
    if kind != "html" and not (kind == "unknown" and looks_like_html(text)):
        return text, []
    whole = convert_page(text, str(page.url))
    part = _convert_main_text(text, str(page.url)) if main_text else None
    converted = part or whole
    notes = ["[The page is very long; its end was left out.]"] if converted.cut else []
    if main_text and part is None:
        notes.append("[No main text was found in the page: all of it is shown.]")
    if needs_javascript(text, whole.text):
        notes.append(NEEDS_JAVASCRIPT)
    title = f"Title: {whole.title}\n\n" if whole.title else ""
    return f"{title}{converted.text}".strip(), notes


def _convert_main_text(html: str, base: str) -> MarkdownPage | None:
    slim = _strip_invisible(html)[:MAX_HTML]
    found = find_main_text(slim, base)
    if found is not None:
        return MarkdownPage("", found, len(slim) == MAX_HTML)
    marked = find_marked_part(slim)
    return None if marked is None else convert_page(marked, base)


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


# --- what a page is about, without menus, side columns and footers ---------------------------------------

LEAST_CHARACTERS = 200
"""A main text that is shorter was probably not found."""
BARE_CHARACTERS = 300
"""A page with scripts that shows no more than this is suspected to be made by them."""
_MARKED = re.compile(r"<(main|article)\b[^>]*>(.*?)</\1\s*>", re.IGNORECASE | re.DOTALL)
_SCRIPT = re.compile(r"<script\b(?![^>]*json)", re.IGNORECASE)
_EMPTY_ROOT = re.compile(
    r"""<(?:div|main|body)\b[^>]*\bid=["']?(?:root|app|__next|__nuxt|svelte|gatsby|ember|main)[^>]*>\s*</""",
    re.IGNORECASE,
)
_EXCUSE = re.compile(r"<noscript\b.{0,2000}?\bjavascript\b", re.IGNORECASE | re.DOTALL)


def find_main_text(html: str, base: str) -> str | None:
    """Markdown of the main text by the extra; `None` without it, or if there is no such text."""
    try:
        from trafilatura import extract  # noqa: PLC0415 - an extra, loaded on use
    except ImportError:
        return None
    try:
        text: Json = extract(
            html,
            url=base,
            output_format="markdown",
            include_links=True,
            include_comments=False,
            favor_precision=True,  # else a page without a main text gives its menus
        )
    except Exception:  # noqa: BLE001 - foreign code on foreign input; the whole page can still be shown
        return None
    return text if isinstance(text, str) and len(text) >= LEAST_CHARACTERS else None


def find_marked_part(html: str) -> str | None:
    """The markup of what the page marks as its content; several articles are a list, not one text."""
    parts: dict[str, list[str]] = {"main": [], "article": []}
    for found in _MARKED.finditer(html):
        parts[found[1].lower()].append(found[2])
    return next((found[0] for found in parts.values() if len(found) == 1), None)


def needs_javascript(html: str, text: str) -> bool:
    """Whether a page shows next to nothing because scripts would have to fill it."""
    if len(text) > BARE_CHARACTERS or not _SCRIPT.search(html):
        return False
    return not text or bool(_EMPTY_ROOT.search(html) or _EXCUSE.search(html))
