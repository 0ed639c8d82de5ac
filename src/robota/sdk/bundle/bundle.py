"""What a bundle plugin is once its files were read: values only, nothing of it acts by itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypeAlias

from msgspec import Struct, field

from robota._lazy_pattern import lazy_pattern
from robota.core.hooks.definition import HooksConfig
from robota.core.messages import Json, JsonObject
from robota.sdk.agents.definition import AgentDefinition
from robota.sdk.bundle.manifest import Manifest
from robota.sdk.bundle.names import split_id
from robota.sdk.problems import Problem
from robota.sdk.skills.skill import Skill

Scope: TypeAlias = Literal["user", "project", "session"]
"""Where a plugin is installed; one of a session was named by whoever started it."""
_PLACEHOLDER = lazy_pattern(r"\$\{([\w.-]+)\}")


class BundleSite(Struct, frozen=True, kw_only=True):
    """Where a plugin lies, and what is known of it besides its files."""

    root: str
    id: str
    """`name@marketplace`, or only a name for one of no marketplace."""
    scope: Scope = "user"
    data: str = ""
    """A directory of its own, which updates leave alone."""
    version: str = ""
    entry: Mapping[str, Json] = field(default_factory=dict)
    """What its marketplace says of it."""
    options: Mapping[str, Json] = field(default_factory=dict)
    """What the user chose of `userConfig`."""

    is_registered: bool = False
    """Whether it stands in the registry of its directory."""

    @property
    def name(self) -> str:
        return split_id(self.id)[0]

    def variables(self) -> dict[str, str]:
        """For its commands, in their environment and in their lines."""
        return {
            "CLAUDE_PLUGIN_ROOT": self.root,
            "CLAUDE_PLUGIN_PATH": self.root,
            "CLAUDE_PLUGIN_DATA": self.data,
        }


class ToolDefinition(Struct, frozen=True, kw_only=True):
    """A tool that a command carries out: arguments as JSON on its input, the result on its output."""

    name: str
    """As models call it: `plugin__<plugin>__<tool>`."""
    description: str
    command: str
    args: tuple[str, ...] | None = None
    input_schema: JsonObject
    timeout: float
    """Seconds."""
    env: Mapping[str, str] = field(default_factory=dict)
    source: str = ""


class PluginPermissions(Struct, frozen=True, kw_only=True):
    """Rules that a plugin brings along."""

    allow: tuple[str, ...] = ()
    ask: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()


class BundlePlugin(Struct, frozen=True, kw_only=True):
    """A plugin as it was when its files were read."""

    id: str
    manifest: Manifest
    root: str
    scope: Scope = "user"
    version: str = ""
    data: str = ""
    skills: tuple[Skill, ...] = ()
    """Its skills and its commands."""
    agents: tuple[AgentDefinition, ...] = ()
    hooks: HooksConfig = field(default_factory=dict)
    servers: Mapping[str, JsonObject] = field(default_factory=dict)
    """MCP servers by the names that it gives them."""
    tools: tuple[ToolDefinition, ...] = ()
    permissions: PluginPermissions = PluginPermissions()
    system_prompt: str = ""
    variables: Mapping[str, str] = field(default_factory=dict)
    problems: tuple[Problem, ...] = ()

    @property
    def name(self) -> str:
        return self.manifest.name

    @property
    def marketplace(self) -> str:
        return split_id(self.id)[1]

    @property
    def description(self) -> str:
        return self.manifest.description

    @property
    def commands(self) -> tuple[Skill, ...]:
        """Those of its skills that are single files of `commands`."""
        return tuple(skill for skill in self.skills if skill.is_command)


def substitute(text: str, variables: Mapping[str, str]) -> str:
    """The text with `${NAME}` replaced where the name is known."""
    return _PLACEHOLDER.sub(lambda found: variables.get(found[1], found[0]), text)


def substitute_all(value: Json, variables: Mapping[str, str]) -> Json:
    """The same in every text of a value."""
    if isinstance(value, str):
        return substitute(value, variables)
    if isinstance(value, list):
        return [substitute_all(each, variables) for each in value]
    if isinstance(value, dict):
        return {key: substitute_all(each, variables) for key, each in value.items()}
    return value
