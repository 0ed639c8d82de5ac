"""Foreign text for the model, marked as data with its origin. No text can end its frame or open another."""

from __future__ import annotations

import re

_MARKS = re.compile(r"<(?=[\s/]*(?:web_content|system-reminder))", re.IGNORECASE)
"""Where a text imitates a mark that only robota sets."""


def defuse_marks(text: str) -> str:
    """The text with imitated marks made plain."""
    return _MARKS.sub("&lt;", text)


def frame_page(text: str, url: str) -> str:
    """What a page says, between marks that name where it comes from; `url` is in canonical form."""
    return f'<web_content url="{url}">\n{defuse_marks(text)}\n</web_content>'
