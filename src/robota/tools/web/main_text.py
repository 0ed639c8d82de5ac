"""What a page is about: its main text without menus, side columns and footers; and whether it has any at all.

The extra `article` finds the main text when it is installed, else what the page itself marks as such.
"""

from __future__ import annotations

import re

from robota.core.messages import Json

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
