"""How a call is judged: by the rules in force, the directories of the workspace and the sandbox.

Everything a decision depends on outside the session comes through a `Judge`, so a replay can put the recorded
one in its place.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, Literal, Protocol, TypeAlias

import msgspec
from msgspec import Struct

from robota.core.messages import JsonObject
from robota.core.permissions.modes import PermissionDecision
from robota.core.permissions.subjects import declared_touches
from robota.core.tool import tool_class
from robota.core.tool_call import PreparedCall

DecidedBy: TypeAlias = Literal["rule", "mode", "guard", "sandbox", "hook", "user", "nobody", "fault"]
"""Who had the last word. `nobody`: a question that nobody could answer; `fault`: something broke."""


LEAVE_SANDBOX = "dangerouslyDisableSandbox"
"""The argument of a command that asks to run outside the sandbox."""
_STRICTNESS: dict[PermissionDecision, int] = {"auto": 0, "approve": 1, "deny": 2}


class Terms(Struct, frozen=True, kw_only=True):
    """What a call is judged by at this moment."""

    mode: str
    allow: tuple[str, ...]
    """Rules of the settings, and those that users allowed for the session."""
    deny: tuple[str, ...]
    ask: tuple[str, ...]
    cwd: str
    home: str | None = None
    additional_dirs: tuple[str, ...] = ()
    above: Terms | None = None
    """By which it is judged too: the stricter verdict counts."""

    def as_arguments(self) -> dict[str, Any]:
        """For the evaluator, which knows of one level."""
        arguments = msgspec.structs.asdict(self)
        del arguments["above"]
        return arguments


class Judgement(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The answer of a judge. It goes into the journal as it is."""

    decision: PermissionDecision
    by: DecidedBy = "mode"
    rule: str | None = None
    part: str | None = None
    reason: str = ""
    outside: str | None = None
    """The directory outside the workspace that the call would touch."""


class Judge(Protocol):
    async def judge(self, call: PreparedCall, terms: Terms) -> Judgement: ...

    def offer(self, call: PreparedCall, terms: Terms) -> Sequence[str]:
        """The narrowest rules that would make the question unnecessary; none if there are no safe ones."""
        ...

    def remember(self, call: PreparedCall, directory: str) -> None:
        """A person let the call touch this directory outside the workspace."""
        ...


class WorkspaceGuard(Protocol):
    """Knows which directories the session works in."""

    def outside(self, call: PreparedCall) -> str | None: ...
    def remember(self, call: PreparedCall, directory: str) -> None: ...


class RuleJudge(Struct, eq=False):
    """Judges by the permission evaluator and, where there is one, the guard of the workspace."""

    _guard: WorkspaceGuard | None = None

    async def judge(self, call: PreparedCall, terms: Terms) -> Judgement:
        from robota.core.permissions.evaluate import explain_permission  # noqa: PLC0415 - with the first call

        name = call.request.name
        verdict = explain_permission(name, call.arguments, **_as_arguments(call, terms))
        outside = None if self._guard is None else self._guard.outside(call)
        judgement = Judgement(
            decision=verdict.decision,
            by="mode" if verdict.rule is None else "rule",
            rule=verdict.rule,
            part=verdict.part,
            reason=verdict.reason,
            outside=outside,
        )
        if verdict.rule is None:  # else a rule of the user's own goes before
            judgement = await _weigh(judgement, call, terms)
        wants_out = judgement.decision != "deny" and call.arguments.get(LEAVE_SANDBOX)
        if wants_out and await _has_sandbox(call):
            judgement = _ask_to_leave(judgement, terms)
        if terms.above is None or judgement.decision == "deny":
            return judgement
        above = await self.judge(call, terms.above)
        return above if _STRICTNESS[above.decision] > _STRICTNESS[judgement.decision] else judgement

    def offer(self, call: PreparedCall, terms: Terms) -> Sequence[str]:
        from robota.core.permissions import explain_permission, narrowest_rules  # noqa: PLC0415 - see above

        if call.arguments.get(LEAVE_SANDBOX):
            return ()
        name, offered, level = call.request.name, list[str](), terms
        while True:  # a rule for one level does not help where another one asks
            arguments = _as_arguments(call, level)
            if explain_permission(name, call.arguments, **arguments).decision == "approve":
                rules = narrowest_rules(name, call.arguments, **arguments)
                if not rules:
                    return ()
                offered += rules
            if level.above is None:
                return tuple(dict.fromkeys(offered))
            level = level.above

    def remember(self, call: PreparedCall, directory: str) -> None:
        if self._guard is not None:
            self._guard.remember(call, directory)


async def _weigh(judgement: Judgement, call: PreparedCall, terms: Terms) -> Judgement:
    """What the mode decided, with what is known of subagents, the workspace and the sandbox."""
    weigh = getattr(call.tool, "weigh", None) if call.request.name == "Agent" else None
    if weigh is not None and (said := weigh(call.arguments, terms.mode)) is not None:
        return msgspec.structs.replace(judgement, decision=said[0], reason=said[1])
    outside = judgement.outside
    if judgement.decision == "auto" and outside is not None and terms.mode != "bypassPermissions":
        reason = describe_outside(outside)
        return msgspec.structs.replace(judgement, decision="approve", by="guard", reason=reason)
    if judgement.decision == "approve" and await _runs_confined(call, terms):
        reason = "The sandbox confines the command, and the settings let it run there without a question."
        return msgspec.structs.replace(judgement, decision="auto", by="sandbox", reason=reason)
    return judgement


def describe_outside(directory: str) -> str:
    return f"{directory} is outside the working directory."


def _sandbox_of(call: PreparedCall) -> Any:
    sandbox = getattr(call.tool, "sandbox", None)
    return None if sandbox is None or sandbox.mode == "off" else sandbox


async def _has_sandbox(call: PreparedCall) -> bool:
    sandbox = _sandbox_of(call)
    return sandbox is not None and (await sandbox.find_backend())[0] is not None


def _ask_to_leave(judgement: Judgement, terms: Terms) -> Judgement:
    """No rule and no mode answers for the user here: they speak of commands, and the sandbox is the wall."""
    reason = f"{judgement.reason} It asks to run outside the sandbox.".strip()
    decision: PermissionDecision = "deny" if terms.mode == "plan" else "approve"
    if judgement.decision == "approve" and judgement.rule is not None:
        return msgspec.structs.replace(judgement, reason=reason)
    return msgspec.structs.replace(judgement, decision=decision, by="sandbox", rule=None, reason=reason)


def _as_arguments(call: PreparedCall, terms: Terms) -> dict[str, Any]:
    arguments = terms.as_arguments()
    arguments["tool_class"] = None if call.tool is None else tool_class(call.tool)
    arguments["touches"] = declared_touches(call.tool)
    return arguments


async def _runs_confined(call: PreparedCall, terms: Terms) -> bool:
    """Whether a sandbox holds this command in the workspace and the user said that this is enough."""
    wished = call.request.name == "Bash" and getattr(call.tool, "auto_allow_bash_if_sandboxed", False)
    sandbox = _sandbox_of(call) if wished else None
    if sandbox is None or not _starts_inside(call.arguments, terms):
        return False
    holds: bool = await sandbox.holds_protected()
    return holds


def _starts_inside(arguments: JsonObject, terms: Terms) -> bool:
    """Where a command starts, its sandbox lets it write."""
    roots = [os.path.realpath(root) for root in (terms.cwd, *terms.additional_dirs)]
    for name in ("working_directory", "workingDirectory"):
        given = arguments.get(name)
        if given is not None and not isinstance(given, str):
            return False
        start = os.path.realpath(os.path.join(terms.cwd, given or ""))
        if not any(start == root or start.startswith(os.path.join(root, "")) for root in roots):
            return False
    return True
