"""Where commands run: here, unless somebody else has a terminal to show them in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from robota.core.process import ProcessResult


class Terminal(Protocol):
    """Runs commands in sight of a user; they were judged, saved for undo and confined before."""

    async def run(
        self, argv: Sequence[str], *, cwd: str, env: Mapping[str, str], timeout: float, call_id: str
    ) -> ProcessResult | None:
        """How the command ended; `None` if it was not begun, so that it runs here. Cancelling ends it."""
        ...
