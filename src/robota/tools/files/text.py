"""Bytes of a file as text and back, in the encoding the file has.

A byte order mark decides; without one it is UTF-8 if it is valid, broken UTF-8 if it mostly is, else what the
file declares or its letters look like, else Latin-1, which takes every byte. Encoding what was decoded from
valid bytes gives the same bytes.
"""

from __future__ import annotations

from msgspec import Struct

BINARY_PROBE = 8_192
"""A NUL among so many first bytes makes a file binary."""
_MARKS = (
    (b"\xef\xbb\xbf", "utf-8"),
    (b"\xff\xfe", "utf-16-le"),
    (b"\xfe\xff", "utf-16-be"),
)
_NAMES = {
    "utf-8": "UTF-8", "utf-16-le": "UTF-16", "utf-16-be": "UTF-16", "latin-1": "Latin-1",
    "cp1252": "Windows-1252", "cp932": "Shift-JIS", "gbk": "GBK", "euc_jp": "EUC-JP", "euc_kr": "EUC-KR",
    "big5": "Big5", "koi8-r": "KOI8-R", "cp1251": "Windows-1251",
}  # fmt: skip


class TextFormat(Struct, frozen=True):
    encoding: str = "utf-8"
    mark: bytes = b""
    """The byte order mark at the beginning."""

    @property
    def name(self) -> str:
        return _NAMES.get(self.encoding, self.encoding)

    def encode(self, text: str) -> bytes:
        return self.mark + text.encode(self.encoding)


UTF_8 = TextFormat()


class DecodedText(Struct, frozen=True):
    text: str
    """Without the mark; what is not valid is shown as U+FFFD."""
    format: TextFormat
    invalid_at: int | None = None
    """The first byte that does not fit the encoding."""

    @property
    def has_crlf(self) -> bool:
        """Whether every line ends in CRLF."""
        endings = self.text.count("\n")
        return endings > 0 and endings == self.text.count("\r\n")


def decode(data: bytes, *, cut: bool = False) -> DecodedText | None:
    """The text, or `None` for a binary file. `cut`: the end may go through a character."""
    format = next((TextFormat(name, mark) for mark, name in _MARKS if data.startswith(mark)), None)
    format = format or TextFormat(_find_wide(data[:BINARY_PROBE]) or "utf-8")
    body = data[len(format.mark) :]
    wide = format.encoding.startswith("utf-16")
    if not wide and b"\0" in data[:BINARY_PROBE]:
        return None
    decoded = _decode_as(format, body, cut)
    if wide and "\0" in decoded.text[:BINARY_PROBE]:
        return None
    if decoded.invalid_at is not None and format == UTF_8 and not _is_mostly_utf_8(decoded.text):
        return _decode_as(TextFormat(_recognise(data, cut) or "latin-1"), data, cut)
    return decoded


def _find_wide(data: bytes) -> str:
    """UTF-16 without its mark, of a language that needs one byte of two."""
    half, even, odd = len(data) // 2, data[::2].count(0), data[1::2].count(0)
    if half < 4 or (even and odd):
        return ""
    return "utf-16-le" if odd > 0.8 * half else "utf-16-be" if even > 0.8 * half else ""


def _recognise(data: bytes, cut: bool) -> str | None:
    from robota.tools.files.encoding import declared_encoding, guess_encoding  # noqa: PLC0415 - few files ask

    whole_lines = data[: data.rfind(b"\n") + 1] if cut else data
    return declared_encoding(whole_lines) or guess_encoding(whole_lines)


def _decode_as(format: TextFormat, body: bytes, cut: bool) -> DecodedText:
    try:
        return DecodedText(body.decode(format.encoding), format)
    except UnicodeDecodeError as error:
        if cut and error.start > len(body) - 4:
            return DecodedText(body[: error.start].decode(format.encoding), format)
        return DecodedText(body.decode(format.encoding, "replace"), format, len(format.mark) + error.start)


def _is_mostly_utf_8(text: str) -> bool:
    """In another encoding hardly any pair of bytes happens to be a character of UTF-8."""
    beyond_ascii = len(text) - len(text.encode("ascii", "ignore"))
    invalid = text.count("\ufffd")
    return beyond_ascii - invalid > invalid
