"""Which recorded request a request is, and how to say that it is none of them.

Method, address and body must be equal; the order of JSON fields does not count, and `[REDACTED]` in a
recording stands for whatever was secret there. Requests match in the order of the recording, except those
that were under way at the same time.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from difflib import SequenceMatcher, unified_diff

import msgspec
from msgspec import Struct

from robota.core.messages import Json
from robota.sessions.redaction import REDACTED
from robota.testing.cassette_file import Exchange, SentRequest, to_yaml

DIFF_WIDTH = 100
DIFF_LINES = 120


class Asked(Struct, frozen=True):
    """A request to be matched: as it may be shown, and as it was sent.

    Which texts are secret depends on the machine, so that either may be the recorded one.
    """

    shown: SentRequest
    plain: SentRequest

    def is_like(self, recorded: SentRequest) -> bool:
        return _equal(recorded, self.shown) or _equal(recorded, self.plain)


class Matcher:
    """Hands out each recorded exchange once."""

    def __init__(self, exchanges: Sequence[Exchange]) -> None:
        self._exchanges = tuple(exchanges)
        self._used = [False] * len(exchanges)

    def take(self, asked: Asked) -> Exchange | None:
        """The exchange this request is, if there is one that nobody had and whose turn it is."""
        for at, exchange in enumerate(self._exchanges):
            if not self._used[at] and self._is_due(at) and asked.is_like(exchange.request):
                self._used[at] = True
                return exchange
        return None

    def unused(self) -> list[tuple[int, SentRequest]]:
        """Recorded requests that were not sent, with their numbers from 1."""
        pairs = enumerate(self._exchanges, 1)
        return [(at, exchange.request) for at, exchange in pairs if not self._used[at - 1]]

    def explain(self, asked: Asked) -> str:
        """Why a request has no recording, with what it differs in from the nearest."""
        sent = asked.shown
        told = f"{sent.method} {sent.url}"
        same = [at for at, known in enumerate(self._exchanges) if asked.is_like(known.request)]
        waiting = [at for at in same if not self._used[at]]
        if waiting:
            first = next(at for at, used in enumerate(self._used) if not used)
            return (
                f"{told} is request {waiting[0] + 1} of the recording and was sent too early: "
                f"request {first + 1} has not been sent yet.\n{self._diff(first, sent)}"
            )
        if same:
            return f"{told} was sent once more than it was recorded ({len(same)} times)."
        if not self._exchanges:
            return f"{told} was sent, and the recording is empty."
        nearest = self._nearest(sent)
        used = ", which was sent before" if self._used[nearest] else ""
        return (
            f"{told} is none of the {len(self._exchanges)} recorded requests. "
            f"The nearest is request {nearest + 1}{used}:\n{self._diff(nearest, sent)}"
        )

    def _is_due(self, at: int) -> bool:
        after = self._exchanges[at].after
        return all(self._used[: at if after is None else after])

    def _nearest(self, sent: SentRequest) -> int:
        """The likeliest request; among equals the first that is still waited for."""
        text = _render(sent).splitlines()
        matcher = SequenceMatcher(autojunk=False)
        matcher.set_seq2(text)

        def likeness(at: int) -> tuple[float, bool, int]:
            matcher.set_seq1(_render(self._exchanges[at].request).splitlines())
            return matcher.ratio(), not self._used[at], -at

        return max(range(len(self._exchanges)), key=likeness)

    def _diff(self, at: int, sent: SentRequest) -> str:
        recorded = _render(self._exchanges[at].request).splitlines()
        lines = unified_diff(
            recorded, _render(sent).splitlines(), f"recorded request {at + 1}", "sent now", lineterm=""
        )
        shown = list(lines)
        if len(shown) > DIFF_LINES:
            left = len(shown) - DIFF_LINES
            shown = [*shown[:DIFF_LINES], f"… and {left} lines more"]
        return "\n".join(shown)


def _render(request: SentRequest) -> str:
    """A request as text for a diff; long lines are folded so that a difference can be seen."""
    return to_yaml(_sorted(msgspec.to_builtins(request)), width=DIFF_WIDTH)


def _sorted(value: Json) -> Json:
    if isinstance(value, dict):
        return {key: _sorted(value[key]) for key in sorted(value)}
    return [_sorted(item) for item in value] if isinstance(value, list) else value


def _equal(recorded: SentRequest, sent: SentRequest) -> bool:
    return (
        recorded.method == sent.method and _same(recorded.url, sent.url) and _same(recorded.body, sent.body)
    )


def _same(recorded: Json, sent: Json) -> bool:
    """Equality in which a redacted place is equal to anything."""
    if recorded == REDACTED:
        return True
    if isinstance(recorded, str):
        return isinstance(sent, str) and (recorded == sent or _fits(recorded, sent))
    if isinstance(recorded, dict):
        return (
            isinstance(sent, dict)
            and recorded.keys() == sent.keys()
            and all(_same(value, sent[key]) for key, value in recorded.items())
        )
    if isinstance(recorded, list):
        return (
            isinstance(sent, list)
            and len(recorded) == len(sent)
            and all(_same(one, other) for one, other in zip(recorded, sent, strict=True))
        )
    return type(recorded) is type(sent) and bool(recorded == sent)


def _fits(recorded: str, sent: str) -> bool:
    if REDACTED not in recorded:
        return False
    return re.fullmatch(".+".join(map(re.escape, recorded.split(REDACTED))), sent, re.DOTALL) is not None
