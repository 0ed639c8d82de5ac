"""Images and PDFs by their first bytes, and whether a model service would take them.

One that is cut off is none: in a conversation it would spoil every later request.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec import Struct

MAX_IMAGE_BYTES = 5 * 1024 * 1024
MAX_IMAGE_SIDE = 8_000
MAX_PDF_BYTES = 10 * 1024 * 1024

Kind: TypeAlias = Literal["PNG", "JPEG", "GIF", "WebP", "PDF"]
_STARTS: tuple[tuple[bytes, Kind], ...] = (
    (b"\x89PNG\r\n\x1a\n", "PNG"),
    (b"\xff\xd8\xff", "JPEG"),
    (b"GIF87a", "GIF"),
    (b"GIF89a", "GIF"),
    (b"%PDF-", "PDF"),
)


class Medium(Struct, frozen=True):
    kind: Kind
    width: int = 0
    height: int = 0
    problem: str = ""
    """Why it cannot be shown, and what to do about it."""

    @property
    def mime_type(self) -> str:
        return "application/pdf" if self.kind == "PDF" else f"image/{self.kind.lower()}"


def recognise(data: bytes, size: int) -> Medium | None:
    """What begins with `data` and has `size` bytes; `None` when it is no sound file of these kinds."""
    kind = next((kind for start, kind in _STARTS if data.startswith(start)), None)
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        kind = "WebP"
    if kind is None:
        return None
    limit = MAX_PDF_BYTES if kind == "PDF" else MAX_IMAGE_BYTES
    if size > limit:
        advice = "use a shell command such as pdftotext" if kind == "PDF" else "make it smaller first"
        return Medium(kind, problem=f"{size:,} bytes are too many, the limit is {limit:,}; {advice}")
    return _inspect_pdf(data) if kind == "PDF" else _inspect_image(kind, data)


def _inspect_pdf(data: bytes) -> Medium | None:
    if b"%%EOF" not in data[-1_024:]:
        return None
    return Medium("PDF", problem="it is encrypted; decrypt it first" if b"/Encrypt" in data else "")


def _inspect_image(kind: Kind, data: bytes) -> Medium | None:
    width, height = _MEASURES[kind](data)
    if not width or not height:
        return None
    if max(width, height) <= MAX_IMAGE_SIDE:
        return Medium(kind, width, height)
    problem = f"{width}x{height} is too large, the limit is {MAX_IMAGE_SIDE} a side; make it smaller first"
    return Medium(kind, problem=problem)


def _measure_png(data: bytes) -> tuple[int, int]:
    sound = data[12:16] == b"IHDR" and b"IEND" in data[24:]
    return (_big(data[16:20]), _big(data[20:24])) if sound else (0, 0)


def _measure_gif(data: bytes) -> tuple[int, int]:
    sound = len(data) > 13 and data.rstrip(b"\0").endswith(b";")
    return (_little(data[6:8]), _little(data[8:10])) if sound else (0, 0)


def _measure_webp(data: bytes) -> tuple[int, int]:
    if _little(data[4:8]) + 8 > len(data):
        return 0, 0
    if data[12:16] == b"VP8X":
        return _little(data[24:27]) + 1, _little(data[27:30]) + 1
    if data[12:16] == b"VP8L":
        bits = _little(data[21:25])
        return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    return _little(data[26:28]) & 0x3FFF, _little(data[28:30]) & 0x3FFF


def _measure_jpeg(data: bytes) -> tuple[int, int]:
    """From the frame header, found by hopping over the segments before it."""
    at = 2
    while at + 9 < len(data) and data[at] == 0xFF:
        marker = data[at + 1]
        if 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC):
            sound = data.find(b"\xff\xd9", at) > 0
            return (_big(data[at + 7 : at + 9]), _big(data[at + 5 : at + 7])) if sound else (0, 0)
        # a fill byte stands alone, every other segment names its length
        at += 1 if marker == 0xFF else 2 + _big(data[at + 2 : at + 4])
    return 0, 0


_MEASURES = {"PNG": _measure_png, "JPEG": _measure_jpeg, "GIF": _measure_gif, "WebP": _measure_webp}


def _big(data: bytes) -> int:
    return int.from_bytes(data, "big")


def _little(data: bytes) -> int:
    return int.from_bytes(data, "little")
