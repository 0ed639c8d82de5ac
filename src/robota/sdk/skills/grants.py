"""What the head of a skill allows and forbids, as permission rules."""

from __future__ import annotations

from collections.abc import Mapping

from robota.core.permissions.rules import RuleKind, RuleProblem, parse_rule
from robota.sdk.problems import Problem
from robota.sdk.settings.claude_rules import translate_rule
from robota.sdk.skills.skill import Skill
from robota.sessions.permissions.live_rules import Loan


def read_grants(skill: Skill, root: str, variables: Mapping[str, str]) -> tuple[Loan, list[Problem]]:
    """The rules for the turn that uses the skill, and what of them cannot be used. `root` is what a leading
    `/` stands for in a `.claude` file; directories may be written as variables."""
    problems: list[Problem] = []
    asked: list[str] = []

    def read(word: str, kind: RuleKind) -> tuple[str, ...]:
        for name, value in variables.items():
            word = word.replace(f"${{{name}}}", value)
        rule = parse_rule(word, kind=kind)
        if isinstance(rule, RuleProblem):
            problem, rules = rule.reason, tuple[str, ...]()
        elif skill.dialect == "robota":
            return (rule.text.strip(),)
        else:
            translation = translate_rule(rule, kind, root)
            problem, rules = translation.problem, translation.rules
        outcome = ""
        if problem and kind == "deny" and not rules:
            asked.append(rule.tool or "*")
            outcome = f" Every call{f' of {rule.tool}' if rule.tool else ''} is asked about."
        if problem:
            field = "allowed-tools" if kind == "allow" else "disallowed-tools"
            what = f"`{word}` in `{field}`: {problem}.{outcome}"
            problems.append(Problem(skill.path, what, subject=skill.name))
        return rules

    allow = tuple(rule for word in skill.allowed_tools for rule in read(word, "allow"))
    deny = tuple(rule for word in skill.disallowed_tools for rule in read(word, "deny"))
    return Loan(allow, deny, tuple(asked)), problems
