"""Permission rules of `.claude` files in the words of ours.

There a leading `/` is the directory of the settings, `//` the file-system root, `*` in a path stays within
one component, and a bare name means any depth. What cannot be said by our rules grants nothing, and as a deny
or ask rule reaches more than it did, never less.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from robota._lazy_pattern import lazy_pattern
from robota.core.permissions.rules import Rule, RuleKind, split_parameter

_READING = ("Read", "Grep", "Glob")
_WRITING = ("Edit", "Write")
_NEVER_CONSULTED = {
    "Write": "Edit", "MultiEdit": "Edit", "NotebookEdit": "Edit",
    "Glob": "Read", "Grep": "Read", "LS": "Read", "NotebookRead": "Read",
}  # fmt: skip
"""Tools whose path rules the other program accepts and does not look at, and which it looks at instead."""
_ESCAPED = lazy_pattern(r"\\([()\\])")
"""As that program writes parentheses and backslashes into rules."""
_UNSAYABLE = lazy_pattern(r"\\.|\?|\[[^\]]*\]")
"""One character of several, or an escaped one."""


class Translation(Struct, frozen=True):
    rules: tuple[str, ...] = ()
    problem: str = ""
    """Why the rule is not quite, or not at all, what it was."""


def translate_rule(rule: Rule, kind: RuleKind, root: str) -> Translation:
    """A rule as ours; `root` is what a leading `/` stands for in its file."""
    if rule.pattern is None or (kind != "allow" and _is_parameter(rule)):
        return Translation((rule.text.strip(),))
    pattern = _ESCAPED.sub(r"\1", rule.pattern)
    match rule.tool:
        case "Bash":
            return Translation((f"Bash({_translate_command(pattern)})",))
        case "Skill":
            name = pattern.removesuffix(":*").removesuffix(" *")
            return Translation((f"Skill({name})", f"Skill({name} *)") if name != pattern else (rule.text,))
        case "WebFetch" if kind == "allow" and not pattern.startswith("domain:"):
            return Translation(problem="an allow rule for WebFetch names a host, such as domain:example.com")
        case "Read" | "Edit":
            return _translate_path(rule.tool, pattern, kind, root)
        case tool if tool in _NEVER_CONSULTED:
            if kind == "allow":
                meant = f"{_NEVER_CONSULTED[tool]}({pattern})"
                return Translation(problem=f"path rules for {tool} are never consulted; write {meant}")
            return _translate_path(tool, pattern, kind, root)
    return Translation((rule.text.strip(),))


def _is_parameter(rule: Rule) -> bool:
    return rule.tool not in ("Bash", "Skill", "WebFetch") and split_parameter(rule.pattern or "") is not None


def _translate_command(pattern: str) -> str:
    """A blank and a star at the end mean the command with or without arguments."""
    words = pattern.removesuffix(" *").rstrip()
    return f"{words}:*" if pattern.endswith(" *") and words else pattern


def _translate_path(tool: str, pattern: str, kind: RuleKind, root: str) -> Translation:
    grants = kind == "allow"
    if pattern.startswith("!"):
        return Translation(problem="a pattern that begins with ! cannot be used here")
    plain = _UNSAYABLE.sub("*", pattern)
    if grants:
        problem = _find_unsayable(pattern, plain, root)
        if problem:
            return Translation(problem=problem)
    paths = list(_anchor(plain, root, grants=grants))
    if grants and "*" not in paths[0].rpartition("/")[2]:  # a directory means all that is in it
        paths.append(f"{paths[0]}/**")
    tools: Iterable[str] = (tool,)
    if grants:
        tools = _READING if tool == "Read" else _WRITING
    return Translation(
        tuple(f"{each}({path})" for each in tools for path in paths),
        "" if plain == pattern else f"it is read as {tool}({paths[0]}), which reaches more",
    )


def _find_unsayable(written: str, plain: str, root: str) -> str:
    """Why an allow rule cannot be said without granting more."""
    if written != plain:
        return "an allow rule for files knows no wildcard but *"
    if "*" in root and plain.startswith("/") and not plain.startswith("//"):
        return "the directory of its file has a star in its name"
    components = plain.rstrip("/").split("/")
    for index, component in enumerate(components):
        last = index == len(components) - 1
        free = component in ("**", "*") if last else component == "**"
        anywhere = last and (index == 0 or components[index - 1] == "**")
        if "*" in component and not (free or anywhere):
            return "a star that stays within one directory cannot be said here; write ** or list the files"
    return ""


def _anchor(pattern: str, root: str, *, grants: bool) -> Iterable[str]:
    body = pattern.rstrip("/") or "/"
    if pattern.startswith("//"):
        yield "/" + body.lstrip("/")
    elif pattern.startswith("/"):
        yield root.rstrip("/") + body
    elif pattern.startswith(("~", "./")):
        yield body
    else:
        first, slash, rest = body.partition("/")
        anywhere = grants if not slash else not grants and rest in ("*", "**") and first != "**"
        yield f"**/{body}" if anywhere and not body.startswith("**") else body
