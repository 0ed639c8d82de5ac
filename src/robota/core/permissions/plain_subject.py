"""Every other call: agents, skills, searches, MCP tools and tools nobody knows."""

from __future__ import annotations

from robota.core.permissions.calls import Call, Cover, Gap, Hit, parameter_hit, text_argument
from robota.core.permissions.rules import PRIMARY_FIELDS, Rule, split_parameter, text_glob


class PlainSubject:
    def __init__(self, call: Call) -> None:
        self._call = call
        self.fields = PRIMARY_FIELDS.get(call.tool, ())
        self.value = text_argument(call.arguments, *self.fields)

    def hit(self, rule: Rule) -> Hit | None:
        pattern = rule.pattern
        if not _is_same_tool(rule, self._call.tool):
            return None
        if pattern is None:
            return Hit(self.value)
        parameter = parameter_hit(self._call, pattern)
        if parameter is not None:
            return parameter
        if self.value is not None:
            return Hit(self.value) if self._matches(pattern) else None
        if self.fields or split_parameter(pattern) is None:
            return Hit(None, certain=False, reason="the rule cannot be compared with this call's arguments")
        return None

    def _matches(self, pattern: str) -> bool:
        value = self.value or ""
        arguments = (
            text_argument(self._call.arguments, "args", "arguments") if self._call.tool == "Skill" else None
        )
        forms = [value] if not arguments else [value, f"{value} {arguments}"]
        return any(text_glob(pattern).matches(form) for form in forms)

    def cover(self) -> Cover | Gap:
        for rule in self._call.allow.rules:
            if not _is_same_tool(rule, self._call.tool):
                continue
            if rule.pattern is None or (self.value is not None and self._matches(rule.pattern)):
                return Cover(rule.text, self.value)
        return Gap(self.value, "no rule allows it")

    def mode_gap(self) -> Gap | None:
        return None


def _is_same_tool(rule: Rule, tool: str) -> bool:
    """`Task` is the older name of `Agent`."""
    return (
        rule.names(tool)
        or (rule.names("Task") and tool == "Agent")
        or (rule.names("Agent") and tool == "Task")
    )
