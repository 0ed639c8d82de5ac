"""Bytes from a web server as text for a model: which types are text, in which character set, framed as data.

Names of character sets come from strangers, so only those that browsers know are used: Python has codecs
whose cost grows with the square of their input.
"""

from __future__ import annotations

import codecs
import re
from typing import Literal, TypeAlias

from robota.core.plain_text import looks_binary, strip_controls

Kind: TypeAlias = Literal["html", "text", "unknown", "binary"]

_TEXT_SUBTYPES = frozenset({
    "ecmascript", "graphql", "javascript", "json", "jsonlines", "ndjson", "sql", "toml", "typescript",
    "x-httpd-php", "x-javascript", "x-ndjson", "x-sh", "x-shellscript", "x-tex", "x-toml", "x-yaml", "xml",
    "yaml",
})  # fmt: skip
"""Of `application`."""
_UNKNOWN_TYPES = frozenset({"", "application/octet-stream", "binary/octet-stream", "application/unknown"})
_CHARSET = re.compile(r"charset\s*=\s*[\"']?\s*([A-Za-z0-9_.:-]{1,40})", re.IGNORECASE)
_META = re.compile(rb"<meta[^>]{0,200}?charset\s*=\s*[\"']?\s*([A-Za-z0-9_.:-]{1,40})", re.IGNORECASE)
_META_REACH = 2048
_KNOWN_CODEC = re.compile(
    r"utf-(?:8|16|16-le|16-be|32)|cp\d+|iso8859-\d+|gb\w+|big5\w*|shift_jis\w*|euc_\w+|iso2022_jp\w*"
    r"|koi8-\w|mac-\w+|tis-620"
)
_BOMS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_NOISE = re.compile(r"[\x00-\x08\x0e-\x1a\x1c-\x1f]")
_SAMPLE = 4096
_HTML_START = re.compile(r"\s*<(?:!doctype\s+html|html|head|body)\b", re.IGNORECASE)
_MARKS = re.compile(r"<(?=[\s/]*(?:web_content|system-reminder))", re.IGNORECASE)
"""Where a text imitates a mark that only robota sets."""


def media_type(content_type: str) -> str:
    """`text/html` of `Text/HTML; charset=utf-8`."""
    return content_type.partition(";")[0].strip().lower()


def kind_of(content_type: str) -> Kind:
    """What a body of this type is, as far as the header tells."""
    media = media_type(content_type)
    if "html" in media:
        return "html"
    if media in _UNKNOWN_TYPES:
        return "unknown"
    if media.startswith("text/") or media.endswith(("+json", "+xml", "+yaml")):
        return "text"
    if media.startswith("application/") and media.removeprefix("application/") in _TEXT_SUBTYPES:
        return "text"
    return "binary"


def looks_like_html(text: str) -> bool:
    return _HTML_START.match(text) is not None


def decode_body(body: bytes, content_type: str) -> str | None:
    """The text without control characters; `None` if these bytes are none."""
    codec = next((codec for mark, codec in _BOMS if body.startswith(mark)), None)
    if codec is None and (found := _CHARSET.search(content_type)):
        codec = _codec_by_name(found[1])
    if codec is None and (meta := _META.search(body[:_META_REACH])):
        codec = _codec_by_name(meta[1].decode("ascii"))
        if codec is not None and not body.isascii() and _is_utf8(body):
            codec = "utf-8"  # pages are converted, and what they say of themselves is forgotten
    if codec is None:
        if kind_of(content_type) == "unknown" and looks_binary(body):
            return None
        codec = "utf-8" if _is_utf8(body) else "cp1252"
    text = body.decode(codec, "replace")
    return None if _is_noise(text) else strip_controls(text)


def _codec_by_name(name: str) -> str | None:
    """The codec to use for a declared character set, `None` if it is unknown."""
    try:
        codec = codecs.lookup(name).name
    except (LookupError, ValueError):
        return None
    if codec in ("ascii", "iso8859-1"):  # as every browser reads them
        return "cp1252"
    return codec if _KNOWN_CODEC.fullmatch(codec) else None


def _is_noise(text: str) -> bool:
    sample = text[:_SAMPLE]
    return len(_NOISE.findall(sample)) > max(32, len(sample) // 20)


def _is_utf8(body: bytes) -> bool:
    try:
        body.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def defuse_marks(text: str) -> str:
    """The text with imitated marks made plain."""
    return _MARKS.sub("&lt;", text)


def frame_page(text: str, url: str) -> str:
    """What a page says, between marks that name where it comes from; `url` is in canonical form.

    No text can end its frame or open another.
    """
    return f'<web_content url="{url}">\n{defuse_marks(text)}\n</web_content>'
