"""Which encoding bytes that are not UTF-8 probably have: declared in the file, or guessed from its letters.

A guess counts only if it gives the same bytes back. What fits nothing is left to the caller.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable, Iterable

PROBE_BYTES = 256 * 1024
_DECLARED = (
    re.compile(rb"""\A\s*<\?xml[^>]*?\sencoding\s*=\s*["']([\w.:-]{1,40})"""),
    re.compile(rb"""(?i)<meta[^>]{0,200}?charset\s*=\s*["']?([\w.:-]{1,40})"""),
    re.compile(rb"""\A(?:[^\n]*\n)?[ \t\f]*(?:#|//|--|;|%|")[^\n]*?coding[:=][ \t]*([\w.-]{1,40})"""),
)
"""XML, HTML, and what Python and editors read in the first two lines."""
_COMMON = 0.75
"""The share of letters beyond ASCII that has to be of the usual kind."""


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
        if share > most and _fits(data, name):
            best, most = name, share
    if best is None and re.search(rb"[\x80-\x9f]", data) and _fits(data, "cp1252"):
        return "cp1252"
    return best


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
