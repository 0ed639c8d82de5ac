"""Permission rules: `Name`, `Name(pattern)`, `Name(*)`.

A rule that cannot be used is never dropped silently: it comes back as a `RuleProblem`, grants nothing, and
as a deny or ask rule makes the tool it was meant for ask.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from functools import lru_cache
from typing import Literal, TypeAlias

from msgspec import Struct

from robota._lazy_pattern import lazy_pattern
from robota.core.permissions.globs import Glob, compile_glob
from robota.core.permissions.subjects import TOUCHES, WRITING_TOOLS, kind_of

RuleKind: TypeAlias = Literal["allow", "deny", "ask"]

_NAMES_ELSEWHERE = """
    AskUserQuestion BashOutput Cd CronCreate CronDelete CronList EnterPlanMode EnterWorktree ExitPlanMode
    ExitWorktree KillBash KillShell ListMcpResourcesTool LS LSP Monitor NotebookRead PowerShell
    PushNotification ReadMcpResourceTool RemoteTrigger ScheduleWakeup SendMessage SlashCommand
    StructuredOutput TaskCreate TaskGet TaskList TaskOutput TaskStop TaskUpdate TeamCreate TeamDelete
    TodoRead TodoWrite ToolSearch Workflow
"""
KNOWN_ELSEWHERE = frozenset(_NAMES_ELSEWHERE.split())
"""Tools that are not in every session, or only in programs whose settings people bring along."""
_NAME = lazy_pattern(r"[A-Za-z0-9_.:/@*-]+")
_UNREADABLE = lazy_pattern("[\x00-\x08\x0b-\x1f\ud800-\udfff]")


class Rule(Struct, frozen=True):
    """A permission rule, parsed."""

    text: str
    tool: str
    pattern: str | None
    """None: every call."""
    position: int = 0

    def names(self, tool: str) -> bool:
        """Whether the rule is about this tool; `mcp__server` means all tools of that server."""
        if self.tool == tool:
            return True
        if "*" in self.tool:
            return compile_glob(self.tool).matches(tool)
        return (
            self.tool.startswith("mcp__") and "__" not in self.tool[5:] and tool.startswith(self.tool + "__")
        )


class RuleProblem(Struct, frozen=True):
    """Why a rule cannot be used as it is written."""

    position: int
    text: str
    reason: str
    tool: str | None
    """The tool the rule was meant for; None when that cannot be told."""

    def concerns(self, tool: str) -> bool:
        if self.tool is None:
            return True
        meant = Rule(self.text, self.tool, None)
        return any(meant.names(each) for each in (tool, *_bound_by(tool)))


def _bound_by(tool: str) -> tuple[str, ...]:
    """The other names whose deny and ask rules reach a tool."""
    match kind_of(tool):
        case "agent":
            return ("Agent", "Task")
        case "read" | "search":
            return ("Read",)
        case "write":
            return ("Read", *WRITING_TOOLS)
    return ()


def compared_fields(tool: str) -> tuple[str, ...]:
    """The arguments that the pattern of a rule for a tool is compared with."""
    return TOUCHES[tool].fields if tool in TOUCHES else ()


class RuleSet(Struct, frozen=True, eq=False):
    """Rules that were read together; compared by identity, since what is found out about them is kept."""

    rules: tuple[Rule, ...] = ()
    problems: tuple[RuleProblem, ...] = ()


def parse_rule(text: object, *, kind: RuleKind = "deny", position: int = 0) -> Rule | RuleProblem:
    """Read one rule, or say what is wrong with it."""
    if not isinstance(text, str):
        return RuleProblem(position, repr(text), "a rule is a text such as Bash(git status)", None)
    rule = text.strip()
    name, opening, rest = rule.partition("(")
    tool = name.strip()
    reason = _check_name(name, kind) or _check_pattern(opening, rest)
    pattern = rest[:-1] if opening else None
    if reason is None and pattern is not None:
        reason = _check_parameter(tool, pattern)
    if reason is not None:
        return RuleProblem(position, text, reason, tool if _NAME.fullmatch(tool) else None)
    if pattern is not None and not pattern.strip("*"):
        pattern = None
    return Rule(text, tool, pattern, position)


def _check_name(name: str, kind: RuleKind) -> str | None:
    if not _NAME.fullmatch(name):
        if not name.strip():
            return "the name of the tool is missing"
        return "the name of the tool holds a blank or a character that names do not have"
    if kind == "allow" and "*" in name:
        server = name.split("__", 2)
        if len(server) < 3 or server[0] != "mcp" or not server[1] or "*" in server[1]:
            return "an allow rule may use * in a name only after mcp__<server>__"
    return None


def _check_pattern(opening: str, rest: str) -> str | None:
    if not opening:
        return None
    if not rest.endswith(")"):
        return "the closing parenthesis is missing or followed by more text"
    if not rest[:-1].strip():
        return "the pattern is empty; write the name alone to mean every call"
    if not rest.isprintable() and _UNREADABLE.search(rest):
        return "the pattern holds control characters or is not valid text"
    return None


def _check_parameter(tool: str, pattern: str) -> str | None:
    name, colon, value = pattern.partition(":")
    if colon and name in compared_fields(tool) and value != "*":
        return f"{name} is what a pattern is compared with anyway; write {tool}(pattern)"
    climbs = ".." in pattern and ".." in pattern.partition("*")[2].split("/")[1:]
    if climbs and (tool == "Read" or tool in WRITING_TOOLS):
        return "`..` behind a wildcard never matches; write the path without it"
    if tool == "WebFetch" and colon and name == "domain":
        return _check_domain(value.strip())
    return None


def _check_domain(host: str) -> str | None:
    if not host or set(host) & set("/\\@?#% \t\n"):
        return "a domain rule names a host alone, such as domain:example.com"
    port = host.rpartition(":")[2] if host.count(":") == 1 or "]:" in host else "0"
    return None if port == "*" or port.isdecimal() else "the port of the host is not a number"


def find_unknown_tool(name: str, tools: Collection[str]) -> str | None:
    """What is wrong with the name of a tool, for a session that has these; names of MCP servers and names
    with wildcards may be about tools that come later."""
    known = {*tools, *TOUCHES}
    if name in known or name in KNOWN_ELSEWHERE or "__" in name or "*" in name:
        return None
    from robota.core.given import nearest, suggest  # noqa: PLC0415 - only a mistake needs it

    near = nearest(name, known)
    return f"there is no tool {name!r}; {suggest(name, (near,) if near else tools or TOUCHES)}"


NO_RULES = RuleSet()


def check_rules(rules: object, *, kind: RuleKind = "deny") -> tuple[RuleProblem, ...]:
    """What is wrong with a list of rules, each with its position and text, for those who load them."""
    return load_rules(rules, kind).problems


def load_rules(rules: object, kind: RuleKind) -> RuleSet:
    """Every usable rule, and every problem with the others."""
    if rules is None or rules == ():
        return NO_RULES
    if type(rules) is list or type(rules) is tuple:
        given = tuple(rules)
    elif isinstance(rules, str):
        given = (rules,)
    elif isinstance(rules, Iterable) and not isinstance(rules, (Mapping, bytes)):
        given = tuple(rules)
    else:
        return RuleSet(problems=(RuleProblem(0, repr(rules), "rules are given as a list of strings", None),))
    try:
        return _parse_texts(given, kind)
    except TypeError:  # something in it that is no text and cannot be looked up either
        return _parse_all(given, kind)


def _parse_all(rules: tuple[object, ...], kind: RuleKind) -> RuleSet:
    parsed = [parse_rule(rule, kind=kind, position=index) for index, rule in enumerate(rules)]
    return RuleSet(
        tuple(each for each in parsed if isinstance(each, Rule)),
        tuple(each for each in parsed if isinstance(each, RuleProblem)),
    )


_parse_texts = lru_cache(maxsize=256)(_parse_all)
text_glob = lru_cache(maxsize=1024)(compile_glob)


def split_parameter(pattern: str) -> tuple[str, Glob] | None:
    """A parameter rule's name and value pattern (`model:opus`), None when the pattern is something else."""
    name, colon, value = pattern.partition(":")
    if not colon or not value or not name.isidentifier():
        return None
    return name, text_glob(value)
