"""Rules that would make a question unnecessary, as a host may send them back."""

from __future__ import annotations

from collections.abc import Iterable

from robota.core.messages import JsonObject
from robota.core.permissions.rules import RuleProblem, parse_rule


def suggest_rules(rule: str | None) -> list[JsonObject]:
    """As permission updates."""
    rules = [parsed for text in _split(rule or "") if not isinstance(parsed := parse_rule(text), RuleProblem)]
    if not rules:
        return []
    listed = [{"toolName": each.tool, "ruleContent": each.pattern} for each in rules]
    return [{"type": "addRules", "rules": listed, "behavior": "allow", "destination": "session"}]


def _split(rules: str) -> Iterable[str]:
    """Rules in one text, separated by commas that stand outside of parentheses."""
    depth, begin = 0, 0
    for at, character in enumerate(rules):
        depth += (character == "(") - (character == ")")
        if character == "," and depth == 0:
            yield rules[begin:at].strip()
            begin = at + 1
    if rules[begin:].strip():
        yield rules[begin:].strip()
