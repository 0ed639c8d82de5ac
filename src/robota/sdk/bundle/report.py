"""What a plugin would run and reach, found by reading it: shown before anybody agrees to it.

Commands and rules are exact. Hosts and variables are what its scripts mention, which is a hint and no limit.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping

from msgspec import Struct

from robota.core.jsontext import encode
from robota.core.messages import JsonObject
from robota.core.regular_file import open_regular
from robota.sdk.bundle.bundle import BundlePlugin, substitute
from robota.sdk.skills.render import find_commands
from robota.sdk.skills.skill import Skill, SkillError
from robota.sdk.view.neutral import neutral_line

_SCRIPTS = (".sh", ".bash", ".zsh", ".py", ".js", ".mjs", ".cjs", ".ts", ".rb", ".pl", ".ps1", ".json")
_MAX_SCRIPT = 256 * 1024
_MAX_SCRIPTS = 500
_HOST = re.compile(r"\b(?:https?|wss?)://(?:[^\s/@\"']+@)?(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9.-]+)")
_VARIABLE = re.compile(
    r"\$\{?([A-Z][A-Z0-9_]{2,})|environ(?:\.get\(|\[)[\"']([A-Z][A-Z0-9_]{2,})|getenv\([\"']([A-Z][A-Z0-9_]{2,})"
    r"|process\.env\.([A-Z][A-Z0-9_]{2,})"
)
_USUAL = frozenset(("HOME", "PATH", "PWD", "USER", "SHELL", "TMPDIR", "LANG", "BASH_SOURCE", "ARGUMENTS"))
TITLES: Mapping[str, str] = {
    "hooks": "Hooks that run by themselves",
    "servers": "MCP servers that are started",
    "tools": "Tools that run commands",
    "commands": "Commands inside of skills",
    "allow": "Rules that let tools run without a question",
    "deny": "Rules that ask or refuse",
    "prompt": "Added to the system prompt",
    "hosts": "Hosts that its files mention",
    "variables": "Variables that its scripts read",
    "brings": "For people and models",
}


class BundleReport(Struct, frozen=True, kw_only=True):
    """What one plugin would do, by kind, in sentences that are safe to show."""

    id: str
    version: str
    items: tuple[tuple[str, str], ...]
    """Kind and text."""

    def of(self, kind: str) -> list[str]:
        return [text for each, text in self.items if each == kind]

    @property
    def runs_something(self) -> bool:
        """Whether it does more than to give models something to read."""
        return any(kind not in ("brings", "prompt", "hosts") for kind, _ in self.items)

    def describe(self) -> list[str]:
        """For people: a title for each kind and a line for each item."""
        lines: list[str] = []
        for kind, title in TITLES.items():
            texts = self.of(kind)
            lines += [f"{title}:", *(f"  - {text}" for text in texts)] if texts else []
        return lines


def report_on(plugin: BundlePlugin) -> BundleReport:
    found = dict.fromkeys((kind, neutral_line(text)) for kind, text in _list_items(plugin))
    return BundleReport(id=plugin.id, version=plugin.version, items=tuple(found))


def _list_items(plugin: BundlePlugin) -> Iterator[tuple[str, str]]:
    for kind, text in (*_list_commands(plugin), *_list_rules(plugin)):
        yield kind, _shorten(text.replace(plugin.root, "${CLAUDE_PLUGIN_ROOT}"))
    if plugin.system_prompt:
        yield "prompt", f"{len(plugin.system_prompt):,} characters: {plugin.system_prompt[:100]}"
    yield from (("hosts", host) for host in sorted(_find_hosts(plugin)))
    yield from (("variables", name) for name in sorted(_find_variables(plugin)))
    for title, names in (
        ("Skills and commands", [f"/{skill.name}" for skill in plugin.skills]),
        ("Agents", [agent.name for agent in plugin.agents]),
    ):
        if names:
            yield "brings", f"{title}: {', '.join(names)}"


def _list_commands(plugin: BundlePlugin) -> Iterator[tuple[str, str]]:
    groups = ((event, group) for event, groups in plugin.hooks.items() for group in groups)
    for event, group in groups:
        where = f"{event} ({group.matcher})" if group.matcher else event
        for hook in group.hooks:
            what = hook.command or hook.url or hook.prompt or hook.agent or encode(hook.extra).decode()
            yield "hooks", f"{where}: {' '.join((what, *(hook.args or ())))}"
    for name, server in plugin.servers.items():
        yield "servers", f"{name}: {describe_server(server)}"
    for tool in plugin.tools:
        yield "tools", f"{tool.name}: {' '.join((tool.command, *(tool.args or ())))}"
    for skill in plugin.skills:
        yield from (("commands", f"{skill.name}: {command}") for command in _commands_of(skill))
        if skill.hooks:
            yield "hooks", f"while {skill.name} is used: {encode(dict(skill.hooks)).decode()}"


def _list_rules(plugin: BundlePlugin) -> Iterator[tuple[str, str]]:
    for skill in plugin.skills:
        if skill.allowed_tools:
            rules = (substitute(rule, skill.variables) for rule in skill.allowed_tools)
            yield "allow", f"while {skill.name} is used: {', '.join(rules)}"
    given = plugin.permissions
    yield from (("allow", rule) for rule in given.allow)
    yield from (("deny", f"ask {rule}") for rule in given.ask)
    yield from (("deny", f"deny {rule}") for rule in given.deny)


def describe_server(server: JsonObject) -> str:
    words = [str(server.get("url") or server.get("command") or "")]
    return " ".join([*words, *map(str, server.get("args") or ())])


def _shorten(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= 500 else f"{text[:300]} … ({len(text) - 500} characters) … {text[-200:]}"


def _commands_of(skill: Skill) -> list[str]:
    try:
        return find_commands(skill.read_body())
    except SkillError:
        return []


def _find_hosts(plugin: BundlePlugin) -> set[str]:
    texts = [encode(dict(plugin.servers)).decode()]
    texts += [
        f"{hook.url} {hook.command}"
        for groups in plugin.hooks.values()
        for group in groups
        for hook in group.hooks
    ]
    texts += [tool.command for tool in plugin.tools]
    return {found[1] for text in (*texts, *_scripts(plugin.root)) for found in _HOST.finditer(text)}


def _find_variables(plugin: BundlePlugin) -> set[str]:
    names = {
        name
        for text in _scripts(plugin.root)
        for found in _VARIABLE.finditer(text)
        for name in found.groups()
        if name
    }
    return {name for name in names if name not in _USUAL and not name.startswith("CLAUDE_")}


def _scripts(root: str) -> Iterator[str]:
    """The text of its scripts, as far as anybody would read them."""
    count = 0
    for place, directories, files in os.walk(root):
        directories[:] = sorted(name for name in directories if name not in (".git", "node_modules"))
        for name in sorted(files):
            path = os.path.join(place, name)
            if count >= _MAX_SCRIPTS or os.path.islink(path) or not name.endswith(_SCRIPTS):
                continue
            count += 1
            try:
                with open_regular(path) as file:
                    yield file.read(_MAX_SCRIPT).decode("utf-8", "replace")
            except OSError:
                continue
