"""How a prompt or a session ended, for whoever started it: an exit code, and a word to the user."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any

from robota.core.events import PermissionDecided
from robota.core.messages import StopReason
from robota.core.run import ENDINGS

if TYPE_CHECKING:
    from robota.sdk.execution import ExecutionResult
    from robota.sdk.interactive import InteractiveSession

FAILED = 1
DENIED = 3
"""The answer is complete, but something was not allowed on the way."""
INCOMPLETE = 4
ROUNDS_USED_UP = 5
BUDGET_USED_UP = 6
INTERRUPTED = 130
_UNDONE: frozenset[StopReason] = frozenset((*ENDINGS, "context_overflow", "hook"))


def exit_code(result: ExecutionResult[Any]) -> int:
    """What a program that ran this prompt should end with."""
    if result.interrupted:
        return INTERRUPTED
    if result.error is not None:
        return BUDGET_USED_UP if getattr(result.error, "code", "") == "BUDGET_EXCEEDED" else FAILED
    if result.stop_reason == "max_rounds":
        return ROUNDS_USED_UP
    return INCOMPLETE if result.stop_reason in _UNDONE else 0


class Denials:
    """What a session was not allowed to do, and the options that would have let it."""

    __slots__ = ("_close", "options", "tools")

    def __init__(self, session: InteractiveSession) -> None:
        self.tools: list[str] = []
        """The names, one for each call."""
        self.options: list[str] = []
        self._close = session.events.on(PermissionDecided, self._note)

    def _note(self, event: PermissionDecided) -> None:
        data = event.data
        broken = data.get("by") == "fault" and not data.get("judged")  # nobody could tell what it wants
        if data.get("decision") == "deny" and not broken:
            self.tools.append(str(data.get("toolName")))
            found = [f"--allow {shlex.quote(rule)}" for rule in data.get("rules") or ()]
            last = list(data.get("judged") or ())[-1:]
            away = [judged.get("outside") for judged in last if judged.get("by") == "guard"]
            found += [f"--add-dir {shlex.quote(directory)}" for directory in away if directory]
            self.options += [option for option in found if option not in self.options]

    def close(self) -> None:
        """Listen no longer."""
        self._close()

    def describe(self) -> str:
        """One sentence, with the options that would have let it where there are some."""
        names = ", ".join(dict.fromkeys(self.tools))
        if not self.options:
            return f"Not allowed: {names}."
        return f"Not allowed: {names}. To allow it: {' '.join(self.options)}"


def describe_end(session: InteractiveSession) -> str:
    """The last line of a session: what it cost, and how to go on with it."""
    from robota.sessions.usage.report import format_usd  # noqa: PLC0415 - at the end

    spent = session.session.usage.total
    more = " or more" if spent.unpriced_tokens else ""
    cost = f"Cost: {format_usd(spent.cost_usd)}{more}. " if spent.cost_usd else ""
    return f"{cost}Continue this session: robota -r {session.session_id}"
