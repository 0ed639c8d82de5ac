"""The words in which a decision is explained."""

from __future__ import annotations

from msgspec import Struct

from robota.core.permissions.calls import Call, Gap
from robota.core.permissions.modes import PermissionDecision
from robota.core.permissions.rules import Rule, RuleProblem


class PermissionExplanation(Struct, frozen=True):
    """A decision and what it rests on."""

    decision: PermissionDecision
    rule: str | None = None
    """The rule that decided, as written."""
    part: str | None = None
    """The part of the command, the path or the argument that decided."""
    reason: str = ""
    """One sentence for people."""


_SUBJECTS = {
    "inspect": "tools that only look",
    "modify": "tools that change files",
    "execute": "tools that run programs",
    None: "tools of no known class",
}
_VERBS = {"auto": "runs", "approve": "asks before it runs", "deny": "refuses"}


def explain_mode(call: Call, decision: PermissionDecision) -> str:
    return f"No rule decided, and the mode {call.mode} {_VERBS[decision]} {_SUBJECTS[call.tool_class]}."


def explain_match(rule: Rule, part: str | None, *, denied: bool) -> str:
    return f"The rule {rule.text} {'denies' if denied else 'asks about'} {part or 'every call'}."


def explain_doubt(rule: Rule, reason: str) -> str:
    return f"The rule {rule.text} cannot be evaluated: {reason}."


def explain_problem(problem: RuleProblem) -> str:
    return f"The rule {problem.text} cannot be used: {problem.reason}."


def explain_gap(gap: Gap) -> str:
    text = gap.reason if gap.part is None else f"{gap.reason}: {gap.part}"
    return text[:1].upper() + text[1:] + "."
