"""Thinking on the Chat Completions wire: plain text, and the details that some gateways want back whole.

Blocks of this wire carry `data` with one of the two types below. Those of other vendors are not sent.
"""

from __future__ import annotations

from collections.abc import Iterable

from robota.core.messages import Json, JsonObject, ReasoningBlock

PLAIN = "reasoning_content"
DETAILS = "reasoning_details"
_GROWING = ("text", "summary", "data", "signature")
"""Fields of a detail that come in pieces."""


class ThoughtAssembly:
    """The thinking of one reply, put together from its pieces."""

    __slots__ = ("_details", "_pieces")

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self._details: dict[tuple[int, str], JsonObject] = {}

    def add_text(self, text: str) -> None:
        self._pieces.append(text)

    def add_details(self, details: Iterable[Json]) -> None:
        """Pieces of one index and type belong together; the last word on any other field stands."""
        for detail in details:
            if not isinstance(detail, dict):
                continue
            index = detail.get("index")
            place = index if isinstance(index, int) else len(self._details)
            key = (place, str(detail.get("type")))
            known = self._details.setdefault(key, {})
            for name, value in detail.items():
                before = known.get(name)
                if name in _GROWING and isinstance(before, str) and isinstance(value, str):
                    known[name] = before + value
                elif value is not None or name not in known:
                    known[name] = value

    def block(self) -> list[ReasoningBlock]:
        """All of it as one block; none if there was no thinking."""
        text = "".join(self._pieces)
        if self._details:
            return [ReasoningBlock(text, data={"type": DETAILS, "details": list(self._details.values())})]
        return [ReasoningBlock(text, data={"type": PLAIN})] if text else []


def thinking_of(blocks: Iterable[ReasoningBlock]) -> str:
    """The text of the blocks that this wire can take back."""
    return "".join(block.text for block in blocks if _type_of(block) in (PLAIN, DETAILS))


def details_of(blocks: Iterable[ReasoningBlock]) -> list[Json]:
    return [detail for block in blocks if _type_of(block) == DETAILS for detail in block.data["details"]]


def _type_of(block: ReasoningBlock) -> str:
    """Whose a block is; text without any mark is from a server that has no more to say, or from a script."""
    if block.data is None:
        return PLAIN if block.signature is None else ""
    return str(block.data.get("type")) if isinstance(block.data, dict) else ""
