"""What plugins bring along, put among the settings and the tools of a session."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING

from msgspec.structs import replace

from robota.core.hooks.definition import merge_hooks
from robota.core.tool import Tool
from robota.sdk.mcp.reading import ReadServers, ServerTable, read_servers
from robota.sdk.problems import Problem
from robota.sdk.settings.hooks import permit_http_hooks, with_variables

if TYPE_CHECKING:
    from robota.core.robota import Robota
    from robota.sdk.bundle.bundles import Bundles
    from robota.sdk.bundle.tool import BundleTool
    from robota.sdk.settings.settings import Settings


def use_bundles(settings: Settings, bundles: Bundles) -> tuple[Settings, list[Problem]]:
    """Settings with the hooks and rules of plugins: their hooks run before those of files, and every limit
    on hooks is one for them too."""
    if not bundles.plugins:
        return settings, []
    off = {of_project: _hooks_are_off(settings, of_project) for of_project in (False, True)}
    hooks, problems = permit_http_hooks(
        merge_hooks(
            *(
                plugin.hooks
                for plugin in bundles.plugins
                if not off[False] and not (off[True] and plugin.scope == "project")
            )
        ),
        urls=settings.get("allowedHttpHookUrls"),
        variables=settings.get("httpHookAllowedEnvVars"),
    )
    rules = settings.rules
    brought = [plugin.permissions for plugin in bundles.plugins]
    return replace(
        settings,
        hooks=merge_hooks(with_variables(hooks, settings.env), settings.hooks),
        rules=replace(
            rules,
            allow=(*rules.allow, *(rule for each in brought for rule in each.allow)),
            ask=(*rules.ask, *(rule for each in brought for rule in each.ask)),
            deny=(*rules.deny, *(rule for each in brought for rule in each.deny)),
        ),
    ), problems


def read_plugin_servers(bundles: Bundles, variables: Mapping[str, str], cwd: str) -> ReadServers:
    """The MCP servers of plugins, with the variables of the session."""
    read = [
        read_servers(
            ServerTable(
                servers=plugin.servers,
                source=plugin.root,
                scope="plugin",
                variables=variables,
                cwd=cwd,
                plugin=plugin.name,
            )
        )
        for plugin in bundles.plugins
        if plugin.servers
    ]
    return ReadServers(
        tuple(server for each in read for server in each.found),
        tuple(problem for each in read for problem in each.problems),
    )


def _hooks_are_off(settings: Settings, of_project: bool) -> bool:
    """What the highest layer of the project, or of the user, says; a project turns off its own only."""
    said = (
        layer.values["disableAllHooks"]
        for layer in settings.layers
        if layer.of_project == of_project and "disableAllHooks" in layer.values
    )
    return bool(next(said, False))


class BundleTools:
    """The tools of plugins in one session, as the plugins come and go."""

    def __init__(self, keep_variables: Callable[[], Collection[str]]) -> None:
        self._keep = keep_variables
        self._made: dict[str, BundleTool] = {}

    def make(self, bundles: Bundles) -> list[Tool]:
        """One for each definition; that of one that is as before stays the same."""
        if not bundles.tools and not self._made:
            return []
        from robota.sdk.bundle.tool import BundleTool  # noqa: PLC0415 - few plugins bring tools

        made = {}
        for definition in bundles.tools:
            known = self._made.get(definition.name)
            same = known is not None and known.definition == definition
            made[definition.name] = known if known and same else BundleTool(definition, self._keep)
        self._made = made
        return list(made.values())

    def renew(self, bundles: Bundles, agent: Robota) -> None:
        """Let the next round have the tools there are now: new ones stand behind the others."""
        before = dict(self._made)
        now = {tool.name: tool for tool in self.make(bundles)}
        if before == now:
            return
        kept = [tool for name, tool in agent.toolset.tools.items() if name not in before]
        taken = {tool.name for tool in kept}
        new = [tool for name, tool in now.items() if name not in taken]
        agent.toolset = agent.toolset.renew((*kept, *new))
