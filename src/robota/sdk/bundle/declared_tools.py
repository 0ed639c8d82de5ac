"""The keys of a manifest that are robota's own: `tools` and `permissions`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

import msgspec
from msgspec import Struct

from robota.core.given import kind_of_value
from robota.core.messages import Json, JsonObject
from robota.core.permissions.rules import RuleKind, RuleProblem, parse_rule
from robota.sdk.bundle.bundle import PluginPermissions, ToolDefinition, substitute
from robota.sdk.bundle.manifest import list_texts
from robota.sdk.bundle.places import Declared

MAX_NAME = 64
"""Characters that every service takes in the name of a tool."""
TOOL_SECONDS = 600.0
"""For a tool whose definition has no `timeout`: as long as a hook command of a plugin has."""
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_-]")
_KINDS: tuple[RuleKind, ...] = ("allow", "ask", "deny")
_TOO_WIDE = frozenset(("Bash", "Write", "Edit", "Agent", "WebFetch"))
"""Tools of which a plugin may allow certain calls, never all."""


class _Tool(Struct, rename="camel"):
    name: str
    description: str
    command: str
    input_schema: JsonObject = {}
    args: tuple[str, ...] | None = None
    timeout: float = TOOL_SECONDS


def name_tool(plugin: str, tool: str) -> str:
    """`plugin__<plugin>__<tool>` in letters that services take."""
    return f"plugin__{_NOT_IN_NAMES.sub('_', plugin)}__{tool}"


def read_tools(
    declared: Declared, plugin: str, variables: Mapping[str, str], env: Mapping[str, str]
) -> Iterator[ToolDefinition]:
    """The tools that can be offered; what is wrong with others is a problem."""
    taken: set[str] = set()
    for value, source in declared.values("tools"):
        for place, each in enumerate(value if isinstance(value, list) else [value]):
            tool = _read_tool(declared, source, f"tools[{place}]", each)
            if tool is None:
                continue
            name = name_tool(plugin, tool.name)
            wrong = _find_problem(tool, name, taken)
            if wrong:
                declared.tell(source, f"tools[{place}]", f"{wrong}: the tool is not offered.")
                continue
            taken.add(name)
            yield ToolDefinition(
                name=name,
                description=tool.description,
                command=tool.command,
                args=None if tool.args is None else tuple(substitute(part, variables) for part in tool.args),
                input_schema=tool.input_schema or {"type": "object", "properties": {}},
                timeout=tool.timeout,
                env=env,
                source=source,
            )


def _read_tool(declared: Declared, source: str, place: str, given: Json) -> _Tool | None:
    try:
        return msgspec.convert(given, _Tool)
    except msgspec.ValidationError as error:
        what = f"{str(error).rstrip('.')}: the tool is not offered. It needs name, description, command."
        declared.tell(source, place, what)
        return None


def _find_problem(tool: _Tool, name: str, taken: set[str]) -> str:
    if not tool.name or _NOT_IN_NAMES.search(tool.name):
        return f"{tool.name!r} cannot be the name of a tool (letters, digits, hyphens, underscores)"
    if len(name) > MAX_NAME:
        return f"The name {name} is longer than {MAX_NAME} characters"
    if name in taken:
        return f"There are two tools with the name {tool.name!r}"
    if not tool.command.strip():
        return "Its `command` is empty"
    if tool.timeout <= 0:
        return "Its `timeout` is not more than 0 seconds"
    if tool.input_schema and tool.input_schema.get("type") != "object":
        return "Its `inputSchema` is not of type 'object'"
    return ""


def read_permissions(declared: Declared, variables: Mapping[str, str]) -> PluginPermissions:
    """The rules that count once the plugin is used. None of them may allow everything that a tool can do."""
    rules: dict[RuleKind, list[str]] = {kind: [] for kind in _KINDS}
    for value, source in declared.values("permissions"):
        if not isinstance(value, dict):
            what = f"An object with allow, ask and deny was expected, not {kind_of_value(value)}."
            declared.tell(source, "permissions", what)
            continue
        for kind in _KINDS:
            for text in list_texts(value.get(kind)):
                rule = parse_rule(substitute(text, variables), kind=kind)
                if isinstance(rule, RuleProblem):
                    declared.tell(source, f"permissions.{kind}", f"{text!r}: {rule.reason}; left out.")
                elif kind == "allow" and _is_too_wide(rule.tool, rule.pattern):
                    what = f"{text!r} allows more than a plugin may have; write which calls. It was left out."
                    declared.tell(source, "permissions.allow", what)
                else:
                    rules[kind].append(rule.text.strip())
    return PluginPermissions(**{kind: tuple(found) for kind, found in rules.items()})


def _is_too_wide(tool: str, pattern: str | None) -> bool:
    everything = pattern is None or not pattern.strip("* /.:")
    return everything and (tool in _TOO_WIDE or "*" in tool)
