"""One call on its way to a decision, with everything that was learnt on the way."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct

from robota.core.messages import JsonObject
from robota.core.permissions.subjects import subjects
from robota.core.plain_text import clean_sentence
from robota.core.schema import check
from robota.core.tool import ToolResult
from robota.core.tool_call import INVALID_ARGUMENTS, RAN_WITH, PreparedCall
from robota.sessions.permissions.consultation import consult
from robota.sessions.permissions.judgement import DecidedBy, Judge, Judgement, Terms
from robota.sessions.permissions.live_rules import LiveRules
from robota.sessions.permissions.tool_hooks import copy_json

if TYPE_CHECKING:
    from robota.core.hooks.outcome import HookOutcome

DENIED = "denied"
FORBIDDEN = "Permission denied."
BROKEN = Judgement(
    decision="deny",
    by="fault",
    reason="The permission rules could not be evaluated; the fault is in the log.",
)


class PermissionCase(Struct, eq=False):
    """Its `call` is the one to run: whatever changes the input, changes it here and is judged again."""

    call: PreparedCall
    cwd: str
    _judge: Judge
    _live: LiveRules
    by: DecidedBy = "fault"
    judged: list[Judgement] = []
    outcomes: list[HookOutcome] = []
    """Of the hooks that may have something to say to the model."""
    rules: tuple[str, ...] = ()
    """The rules an answer for longer than once would add."""
    answer: JsonObject | None = None
    note: str = ""
    """What somebody who allowed it says to the model."""
    resolved: dict[str, str] = {}
    """Where the files of the call were when it was last judged, so before anybody was asked."""

    @property
    def terms(self) -> Terms:
        return self._live.terms(self.cwd)

    async def judge(self) -> Judgement:
        """Judge the call as it is now. A judge that breaks denies."""
        self.resolved = _resolve_files(self.call, self.cwd)
        answer = await consult("The permission judge", self._judge.judge, self.call, self.terms)
        judgement = answer if isinstance(answer, Judgement) else BROKEN
        part, reason = judgement.part, judgement.reason
        if not reason.isprintable() or not (part is None or part.isprintable()):
            part = None if part is None else clean_sentence(part)
            judgement = msgspec.structs.replace(judgement, reason=clean_sentence(reason), part=part)
        self.judged.append(judgement)
        return judgement

    async def find_rules(self) -> None:
        """The rules an answer may add: never a whole tool, unless its calls have nothing to differ in."""
        offered = await consult("The rule offer", self._judge.offer, self.call, self.terms)
        tool = self.call.tool
        exact = not self.call.arguments and tool is not None and not tool.parameters.get("properties")
        if isinstance(offered, Sequence) and all(
            isinstance(rule, str) and ("(" in rule or exact) for rule in offered
        ):
            self.rules = tuple(offered)

    def grant_rules(self) -> None:
        self._live.grant(self.rules)

    async def remember_directory(self) -> None:
        """A person let the call go where the last verdict said it goes."""
        outside = self.judged[-1].outside
        if outside is not None:
            await consult("The workspace guard", self._judge.remember, self.call, outside)

    def refuse(self, by: DecidedBy, words: str) -> ToolResult:
        self.by = by
        return ToolResult(ok=False, denied=True, error=words, error_code=DENIED)

    def forbid(self, judgement: Judgement) -> ToolResult:
        return self.refuse(judgement.by, f"{FORBIDDEN} {judgement.reason}".rstrip())

    def change_input(self, arguments: JsonObject, by: DecidedBy) -> ToolResult | None:
        """Take other arguments; the answer to the call if they cannot be used."""
        self.call = msgspec.structs.replace(self.call, arguments=copy_json(arguments))
        tool = self.call.tool
        if tool is None or getattr(tool, "validates_arguments", False):
            return None
        problems = check(self.call.arguments, tool.parameters)
        if not problems:
            return None
        self.by = by
        return ToolResult.failure(
            f"{tool.name} was not run: the {by} changed its arguments, and they do not fit: {problems[0]}.",
            INVALID_ARGUMENTS,
            errorCode=INVALID_ARGUMENTS,
        )

    def describe(self, asked: PreparedCall, result: ToolResult) -> ToolResult:
        """The result of the call that ran, with what was changed or said since the model asked for it."""
        if self.call.arguments is not asked.arguments:
            metadata = {**result.metadata, RAN_WITH: self.call.arguments}
            result = msgspec.structs.replace(result, metadata=metadata)
        if not self.note:
            return result
        said = f"[{self.note}]\n"
        if result.ok:
            return msgspec.structs.replace(result, content=said + result.content)
        return msgspec.structs.replace(result, error=said + (result.error or ""))

    def to_record(self, *, allowed: bool) -> JsonObject:
        return {
            "callId": self.call.call_id,
            "toolName": self.call.request.name,
            "decision": "allow" if allowed else "deny",
            "by": self.by,
            "judged": [msgspec.to_builtins(judgement) for judgement in self.judged],
            "answer": self.answer,
            "rules": list(self.rules),
        }


def _resolve_files(call: PreparedCall, cwd: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for subject in subjects(call.request.name, call.arguments, call.tool):
        if subject.kind in ("read", "write") and isinstance(subject.value, str):
            try:
                found[subject.value] = os.path.realpath(os.path.join(cwd, subject.value))
            except (OSError, ValueError):
                continue  # no path at all, which the tool will say
    return found
