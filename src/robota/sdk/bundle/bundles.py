"""All plugins of a session, and what they bring along together. How they are found is in `loading`."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from itertools import islice

from msgspec import Struct

from robota.core.hooks.definition import HooksConfig, merge_hooks
from robota.core.messages import JsonObject
from robota.sdk.agents.definition import AgentDefinition
from robota.sdk.bundle.bundle import BundlePlugin, Scope, ToolDefinition
from robota.sdk.context.system_prompt import PromptSection
from robota.sdk.places import Places
from robota.sdk.problems import Problem
from robota.sdk.skills.skill import Skill

INSTALLED = "installed_plugins.json"
LOCK = "plugins.lock.json"
MAX_WATCHED = 1_000
"""Files of one plugin that are looked at while a session works."""


class Bundles(Struct, frozen=True, kw_only=True):
    """The plugins that count, in the order in which they do."""

    plugins: tuple[BundlePlugin, ...] = ()
    problems: tuple[Problem, ...] = ()

    @property
    def skills(self) -> tuple[Skill, ...]:
        return tuple(skill for plugin in self.plugins for skill in plugin.skills)

    @property
    def agents(self) -> tuple[AgentDefinition, ...]:
        return tuple(agent for plugin in self.plugins for agent in plugin.agents)

    @property
    def hooks(self) -> HooksConfig:
        return merge_hooks(*(plugin.hooks for plugin in self.plugins))

    @property
    def tools(self) -> tuple[ToolDefinition, ...]:
        return tuple(tool for plugin in self.plugins for tool in plugin.tools)

    @property
    def servers(self) -> Mapping[str, JsonObject]:
        """By the names that their tools carry (`mcp__plugin_<plugin>_<server>__<tool>`)."""
        return {
            f"plugin_{plugin.name}_{name}": server
            for plugin in self.plugins
            for name, server in plugin.servers.items()
        }

    @property
    def sections(self) -> tuple[PromptSection, ...]:
        """What they add to the system prompt."""
        return tuple(
            PromptSection(f"Plugin {plugin.name}", plugin.system_prompt)
            for plugin in self.plugins
            if plugin.system_prompt
        )

    def files(self) -> Iterator[str]:
        """Those whose change changes what the plugins are, their scripts too."""
        for plugin in self.plugins:
            yield from islice(list_tree(plugin.root), MAX_WATCHED)


def list_tree(root: str, *, with_git: bool = False) -> Iterator[str]:
    """A directory and everything in it."""
    for place, directories, files in os.walk(root):
        directories[:] = sorted(name for name in directories if with_git or name != ".git")
        yield place
        yield from (os.path.join(place, name) for name in sorted(files))


def find_plugin_directories(places: Places) -> tuple[tuple[str, Scope], ...]:
    """Where plugins are installed, in the order in which they count."""
    return (places.project(".robota", "plugins"), "project"), (places.user("plugins"), "user")


def list_registries(places: Places) -> list[str]:
    """The files and directories by which a change of what is installed is seen."""
    return [
        os.path.join(path, name)
        for path, _ in find_plugin_directories(places)
        for name in ("", INSTALLED, LOCK)
    ]
