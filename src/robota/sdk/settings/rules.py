"""The permission rules of all layers, pooled: a deny of any layer counts, and none vanishes.

A deny or ask rule that cannot be used makes its tool ask, every tool if that cannot be told.
"""

from __future__ import annotations

import os

from robota.core.messages import Json
from robota.core.permissions.modes import CLASS_POLICY, TRUST_TO_MODE, PermissionMode
from robota.core.permissions.rules import RuleKind, RuleProblem, parse_rule
from robota.sdk.places import Places
from robota.sdk.settings.claude_rules import translate_rule
from robota.sdk.settings.layers import Layer
from robota.sdk.settings.merge import Merged
from robota.sessions.permissions.live_rules import PermissionRules

_KINDS: tuple[RuleKind, ...] = ("allow", "deny", "ask")
_READ_ONLY_PROGRAMS = """
    ls cat head tail wc nl grep egrep fgrep rg find tree stat file du df diff cmp comm cut paste sort uniq tr
    column basename dirname realpath readlink pwd echo printf true false test which type whoami id uname
    md5sum sha1sum sha256sum cksum jq
"""
_READ_ONLY_GIT = """
    status log diff show blame shortlog describe rev-parse rev-list ls-files ls-tree cat-file merge-base grep
"""
_READ_ONLY_EXACT = (
    "date", "git branch", "git branch -a", "git branch -v", "git branch -vv", "git branch --show-current",
    "git remote", "git remote -v", "git tag", "git stash list", "git worktree list", "git --version",
)  # fmt: skip

READ_ONLY_COMMANDS: tuple[str, ...] = (
    *(f"Bash({program}:*)" for program in _READ_ONLY_PROGRAMS.split()),
    *(f"Bash(git {command}:*)" for command in _READ_ONLY_GIT.split()),
    *(f"Bash({command})" for command in _READ_ONLY_EXACT),
)
"""Commands that only look, as allow rules: what the setting `autoAllowReadOnly` adds.

The rules are prefixes; options of these programs that write a file or start another program ask all the same,
because no prefix reaches them.
"""


def build_rules(merged: Merged, places: Places) -> PermissionRules:
    """Rules and mode; what is wrong with them is added to the problems."""
    pooled: dict[str, list[str]] = {kind: [] for kind in _KINDS}
    for kind in _KINDS:
        for entry in merged.written.get(f"permissions.{kind}", ()):
            for position, text in enumerate(entry.value):
                usable, asked = _read_rule(text, kind, position, entry.layer, places, merged)
                pooled[kind] += usable
                pooled["ask"] += asked
    if merged.values.get("autoAllowReadOnly"):
        pooled["allow"] += READ_ONLY_COMMANDS
    allow, deny, ask = (tuple(dict.fromkeys(pooled[kind])) for kind in _KINDS)
    return PermissionRules(mode=_choose_mode(merged), allow=allow, deny=deny, ask=ask)


def _read_rule(
    text: Json, kind: RuleKind, position: int, layer: Layer, places: Places, merged: Merged
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What a rule comes to, and what has to be asked about because it cannot be used."""
    rule = parse_rule(text, kind=kind)
    usable: tuple[str, ...] = ()
    tool: str | None
    if isinstance(rule, RuleProblem):
        tool, problem = rule.tool, rule.reason
    elif layer.dialect == "robota":
        return (rule.text.strip(),), ()
    else:
        root = places.claude_home if layer.name == "user" else places.cwd
        translation = translate_rule(rule, kind, root)
        usable, tool, problem = translation.rules, rule.tool, translation.problem
    if not problem:
        return usable, ()
    asked = () if usable or kind == "allow" else (tool or "*",)
    merged.report(
        layer,
        ("permissions", kind, position),
        f"the rule {_show(text)}: {problem}.{_consequence(kind, usable, asked)}",
    )
    return usable, asked


def _consequence(kind: RuleKind, usable: tuple[str, ...], asked: tuple[str, ...]) -> str:
    if usable:
        return ""
    if kind == "allow":
        return " It grants nothing."
    return " Every call is asked about." if asked == ("*",) else f" Every call of {asked[0]} is asked about."


def _show(rule: Json) -> str:
    text = rule if isinstance(rule, str) and rule.isprintable() else ascii(rule)
    return text if len(text) <= 200 else text[:197] + "..."


def _choose_mode(merged: Merged) -> PermissionMode:
    values = merged.values
    written = values.get("permissions.defaultMode")
    level = values.get("defaultTrustLevel")
    mode: PermissionMode = TRUST_TO_MODE[level] if written is None and level is not None else "default"
    if written in CLASS_POLICY:
        mode = written
    elif written in ("auto", "dontAsk"):
        layer = merged.written["permissions.defaultMode"][-1].layer
        merged.report(
            layer,
            ("permissions", "defaultMode"),
            f"there is no mode {written} here; the mode is default, which asks before anything is changed.",
        )
    if mode == "bypassPermissions" and "permissions.disableBypassPermissionsMode" in values:
        layer = merged.written["permissions.disableBypassPermissionsMode"][-1].layer
        merged.report(
            layer,
            ("permissions", "disableBypassPermissionsMode"),
            "the mode bypassPermissions is disabled; the mode is default.",
        )
        return "default"
    return mode


def find_directories(merged: Merged, places: Places) -> tuple[str, ...]:
    """The additional directories of all layers, absolute."""
    found: dict[str, None] = {}
    for entry in merged.written.get("permissions.additionalDirectories", ()):
        for position, text in enumerate(entry.value):
            if not isinstance(text, str) or not text.strip():
                continue
            path = places.locate(text)
            # Where a link of a project leads now is what the user was shown.
            found[os.path.realpath(path) if entry.layer.of_project else path] = None
            if not os.path.isdir(path):
                where = ("permissions", "additionalDirectories", position)
                merged.report(entry.layer, where, f"the directory {_show(text)} does not exist.")
    return tuple(found)
