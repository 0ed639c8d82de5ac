"""HTML cut into tags and text in one pass, as browsers cut it and never in more than linear time.

`html.parser` of the standard library is no choice here: 60 kB of `<a <a <a` keep it busy for half a minute.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from msgspec import Struct

_TAG = re.compile(r"<(/?)([A-Za-z][^\s/>]*+)")
_ATTRIBUTE = re.compile(r"[\s/]*+([^\s/>][^\s/>=]*+)(?:\s*+=\s*+(?:\"([^\"]*+)\"|'([^']*+)'|([^\s>]*+)))?")
_TAG_END = re.compile(r"[\s/]*+>")
_RAW = {
    name: re.compile(rf"</{name}(?=[\s/>])", re.IGNORECASE)
    for name in ("iframe", "noembed", "noframes", "script", "style", "textarea", "title", "xmp")
}
"""Elements whose content is text up to their end tag, whatever it looks like."""
_REFERENCE = re.compile(
    r"&(?:#[0-9]{1,7}(?![0-9])|#[xX][0-9a-fA-F]{1,6}(?![0-9a-fA-F])|[A-Za-z][A-Za-z0-9]{1,31});?"
)
_MAX_ATTRIBUTES = 64
_MAX_NAME = 40


class Tag(Struct, frozen=True):
    name: str
    """In lower case."""
    closing: bool = False
    empty: bool = False
    """Written `<name/>`."""
    attributes: Mapping[str, str] = {}


def scan_html(html: str) -> Iterator[Tag | str]:
    """Tags and the texts between them; comments, declarations and whatever is unfinished are left out."""
    position, end = 0, len(html)
    while position < end:
        start = html.find("<", position)
        if start != position:
            start = end if start < 0 else start
            yield decode_references(html[position:start])
            position = start
            continue
        found = _TAG.match(html, position)
        if found is None:
            position, text = _skip_other(html, position)
            if text:
                yield text
            continue
        tag, position = _read_tag(html, found)
        if tag is None:
            return
        yield tag
        if tag.name in _RAW and not tag.closing:
            until = _RAW[tag.name].search(html, position)
            stop = until.start() if until else end
            yield (
                decode_references(html[position:stop])
                if tag.name in ("title", "textarea")
                else html[position:stop]
            )
            position = stop


def decode_references(text: str) -> str:
    """The text with `&amp;` and its kind replaced."""
    if "&" not in text:
        return text
    from html import unescape  # noqa: PLC0415 - its table of names takes a millisecond to load

    return _REFERENCE.sub(lambda found: unescape(found[0]), text)


def strip_tags(html: str) -> str:
    """The words of a short piece of HTML, such as the snippet of a search service."""
    return "".join(token for token in scan_html(html) if isinstance(token, str))


def _skip_other(html: str, position: int) -> tuple[int, str]:
    """Past a comment or declaration, or a `<` that is only text."""
    if html.startswith("<!--", position):
        if html.startswith((">", "->"), position + 4):
            return html.index(">", position) + 1, ""
        stop = html.find("-->", position + 4)
        return (len(html) if stop < 0 else stop + 3), ""
    if html.startswith(("<!", "<?", "</"), position):
        stop = html.find(">", position)
        return (len(html) if stop < 0 else stop + 1), ""
    return position + 1, "<"


def _read_tag(html: str, found: re.Match[str]) -> tuple[Tag | None, int]:
    """The tag and where it ends; `None` if the text ends first."""
    attributes: dict[str, str] = {}
    position = found.end()
    while True:
        if finish := _TAG_END.match(html, position):
            empty = html[finish.end() - 2] == "/"
            name = found[2][:_MAX_NAME].lower()
            return Tag(name, bool(found[1]), empty, attributes), finish.end()
        piece = _ATTRIBUTE.match(html, position)
        if piece is None:
            return None, len(html)
        position = piece.end()
        if len(attributes) < _MAX_ATTRIBUTES:
            value = piece[2] or piece[3] or piece[4] or ""
            attributes.setdefault(piece[1][:_MAX_NAME].lower(), decode_references(value))
