"""One call on its way to a decision, with everything that was learnt on the way."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from robota.core.messages import JsonObject
from robota.core.schema import check
from robota.core.tool import ToolResult
from robota.core.tool_call import INVALID_ARGUMENTS, PreparedCall
from robota.sessions.permissions.judgement import DecidedBy, Judgement
from robota.sessions.permissions.tool_hooks import copy_json

if TYPE_CHECKING:
    from robota.core.hooks.outcome import HookOutcome

DENIED = "denied"
FORBIDDEN = "Permission denied."


class PermissionCase:
    """Its `call` is the one to run: whatever changes the input, changes it here and is judged again."""

    __slots__ = ("answer", "by", "call", "cwd", "judged", "outcomes", "rules")

    def __init__(self, call: PreparedCall, cwd: str) -> None:
        self.call = call
        self.cwd = cwd
        self.by: DecidedBy = "fault"
        self.judged: list[Judgement] = []
        self.outcomes: list[HookOutcome] = []
        """Of the hooks that may have something to say to the model."""
        self.rules: tuple[str, ...] = ()
        """The rules an answer for longer than once would add."""
        self.answer: JsonObject | None = None

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
