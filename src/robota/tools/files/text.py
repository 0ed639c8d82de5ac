"""Bytes of a file as text and back, in the encoding the file has.

A byte order mark decides; without one it is UTF-8 if it is valid, broken UTF-8 if it mostly is, else what the
file declares or its letters look like, else Latin-1, which takes every byte. Encoding what was decoded from
valid bytes gives the same bytes.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable, Iterable, Sequence

from msgspec import Struct

from robota._lazy_pattern import lazy_pattern

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


# --- what is not UTF-8: declared in the file, or guessed -------------------------------------------------

# A guess counts only if it gives the same bytes back. What fits nothing is left to the caller.

PROBE_BYTES = 256 * 1024
_DECLARED = (
    lazy_pattern(rb"""\A\s*<\?xml[^>]*?\sencoding\s*=\s*["']([\w.:-]{1,40})"""),
    lazy_pattern(rb"""(?i)<meta[^>]{0,200}?charset\s*=\s*["']?([\w.:-]{1,40})"""),
    lazy_pattern(rb"""\A(?:[^\n]*\n)?[ \t\f]*(?:#|//|--|;|%|")[^\n]*?coding[:=][ \t]*([\w.-]{1,40})"""),
)
"""XML, HTML, and what Python and editors read in the first two lines."""
_COMMON = 0.75
"""The share of letters beyond ASCII that has to be of the usual kind."""
_RARE = 0.03
"""The share of what does not belong in a text; so much is a slip of the pen."""
_ENOUGH = 60
"""Letters among which each common one would be."""
_LONELY = 2.0
"""Letters beyond ASCII in a row on average, in languages that have few of them."""


def declared_encoding(data: bytes) -> str | None:
    """What the file says of itself, if Python knows it and all of it fits."""
    for pattern in _DECLARED:
        found = pattern.search(data[:1024])
        if found is None:
            continue
        try:
            name = codecs.lookup(found[1].decode("ascii")).name
        except LookupError:
            continue
        if _fits(data, name):
            return {"iso8859-1": "latin-1", "shift_jis": "cp932"}.get(name, name)
    return None


def guess_encoding(data: bytes) -> str | None:
    """The encoding whose letters look most like a language; `None` if none does."""
    best, most = None, _COMMON
    probe = data[:PROBE_BYTES]
    runs = [len(run) for run in re.findall(rb"[\x80-\xff]+", probe)]
    in_a_row = sum(runs) / len(runs) if runs else 0.0  # in Western languages they stand alone among others
    for name, (least, weigh) in _LOOKS.items():
        text = _decode(probe, name) if in_a_row >= least else None
        letters = [] if text is None else [letter for letter in text if letter > "\x7f"]
        share = sum(map(weigh, letters)) / len(letters) if letters else 0.0
        if share > most and (weigh is not _SMALL or _is_cyrillic(letters, text or "")) and _fits(data, name):
            best, most = name, share
    if best is None and in_a_row < _LONELY and re.search(rb"[\x80-\x9f]", data) and _is_western(probe):
        return "cp1252" if _fits(data, "cp1252") else None
    return best


def _is_cyrillic(letters: Sequence[str], text: str) -> bool:
    """Greek and Hebrew read as Cyrillic have small letters too: Greek has capitals behind them then, where
    its accents are, and Hebrew no letters from the end of the alphabet.
    """
    capitals = len(re.findall("[а-яё][А-ЯЁ]", text))
    return capitals <= _RARE * len(letters) and (
        len(letters) < _ENOUGH or any(letter in "ыьэюяЫЬЭЮЯ" for letter in letters)
    )


def _is_western(probe: bytes) -> bool:
    """Central European text read as Windows-1252 has signs where its letters are, within words too."""
    text = probe.decode("cp1252", "replace")
    beyond = [letter for letter in text if letter > "\x7f"]
    inside = len(re.findall(r"[A-Za-z][¡-¿×÷](?=[A-Za-z])", text))
    return inside <= _RARE * len(beyond) and sum(map(_WESTERN, beyond)) > _COMMON * len(beyond)


def _decode(data: bytes, name: str) -> str | None:
    for cut in range(4):  # the end may go through a character
        try:
            return data[: len(data) - cut].decode(name)
        except UnicodeDecodeError:
            continue
    return None


def _fits(data: bytes, name: str) -> bool:
    try:
        return data.decode(name).encode(name) == data
    except (UnicodeError, LookupError):
        return False


Weight = Callable[[str], float]


def _within(*ranges: tuple[str, str]) -> Weight:
    return lambda letter: any(first <= letter <= last for first, last in ranges)


def _common_in(charset: str, leads: Iterable[int], usual: Weight, weight: float = 1.0) -> Weight:
    """How usual a character is: `usual` ones, and with less weight those in the first rows of a charset."""
    rows = frozenset(leads)

    def weigh(letter: str) -> float:
        if usual(letter):
            return 1.0
        try:
            return weight * (letter.encode(charset)[0] in rows)
        except UnicodeEncodeError:
            return 0.0

    return weigh


_KANA = _within(("\u3040", "\u30ff"), ("\u3000", "\u3002"), ("\u300c", "\u300d"))
_FULL = _within(("\u3000", "\u3011"), ("\uff01", "\uff5e"), ("\u2014", "\u2026"))
_WESTERN = _within(
    *(("À", "Ö"), ("Ø", "ö"), ("ø", "ÿ")), *((sign, sign) for sign in "ŠšŽžŒœŸ“”„‘’‚–—…€«»•™©®°§£·¡¿ªº\u00a0")
)
_SMALL = _within(("\u0430", "\u044f"), ("\u0451", "\u0451"))
_LOOKS: dict[str, tuple[float, Weight]] = {
    "cp932": (1.4, _common_in("shift_jis", range(0x88, 0x98), _KANA, 0.7)),
    "euc_jp": (1.4, _common_in("euc_jp", range(0xB0, 0xD0), _KANA, 0.7)),
    "euc_kr": (1.4, _within(("\uac00", "\ud7a3"))),
    "gbk": (1.4, _common_in("gb2312", range(0xB0, 0xD8), _FULL)),
    "big5": (1.4, _common_in("big5", range(0xA4, 0xC7), _FULL)),
    "koi8-r": (3.0, _SMALL),
    "cp1251": (3.0, _SMALL),
}
"""By encoding: how many bytes beyond ASCII come in a row at least, and how usual a letter is. Japanese has
kana between its ideographs; in Cyrillic most letters are small, and the other encoding has capitals there."""
