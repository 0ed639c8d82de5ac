"""Reads one plugin: every component it declares, leniently. What cannot be used is named, the rest counts."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping

from msgspec import Struct
from msgspec.structs import replace

from robota.core.given import kind_of_value
from robota.core.hooks.definition import HookDefinition, HooksConfig, claude_timeout, merge_hooks, read_hooks
from robota.core.messages import Json, JsonObject
from robota.sdk.agents.definition import AgentDefinition
from robota.sdk.agents.loader import read_plugin_agent, tell_unreadable
from robota.sdk.bundle.bundle import BundlePlugin, BundleSite, PluginPermissions, substitute, substitute_all
from robota.sdk.bundle.declared_tools import read_permissions, read_tools
from robota.sdk.bundle.manifest import Manifest, make_manifest, read_manifest
from robota.sdk.bundle.options import read_options
from robota.sdk.bundle.places import Declared
from robota.sdk.frontmatter import list_markdown, read_document
from robota.sdk.problems import Problem
from robota.sdk.settings.hooks import HANDLERS, take_apart, with_variables
from robota.sdk.skills.loader import FILE, Found, Home, list_files, read_skills
from robota.sdk.skills.skill import Skill

_NO_QUOTES_NEEDED = re.compile(r"[\w@%+=:,./-]*", re.ASCII)


def read_bundle(site: BundleSite, problems: list[Problem]) -> BundlePlugin | None:
    """The plugin that lies there; `None` with a problem when it cannot be loaded at all."""
    known = len(problems)
    manifest = read_manifest(site.root, site.name, problems)
    if manifest is None:
        return None
    if "@" in site.id:  # its marketplace has named it
        about = {key: site.entry[key] for key in ("version", "description") if key in site.entry}
        fields: JsonObject = {**about, **manifest.fields, "name": site.name}
        manifest = make_manifest(fields, manifest.source or f"the marketplace entry of {site.id}", problems)
        if manifest is None:
            return None
    declared = Declared(site, manifest, problems)
    if conflict := declared.find_conflict():
        problems.append(Problem(manifest.source, f"It was not loaded: {conflict}", subject=site.id))
        return None
    plugin = _Reader(site, manifest, declared, problems).read()
    return replace(plugin, problems=tuple(problems[known:]))


class _Reader(Struct):
    site: BundleSite
    manifest: Manifest
    declared: Declared
    problems: list[Problem]

    def read(self) -> BundlePlugin:
        site, manifest = self.site, self.manifest
        options = read_options(manifest, site, self.declared.tell)
        variables = {**site.variables(), **options.shown}
        for_commands = {**variables, **options.secret}
        permissions = read_permissions(self.declared, variables)
        # A cache beside a script would be a change of the plugin.
        env = {**site.variables(), **options.env, "PYTHONDONTWRITEBYTECODE": "1"}
        plugin = BundlePlugin(
            id=site.id,
            manifest=manifest,
            root=site.root,
            scope=site.scope,
            version=site.version or manifest.version,
            data=site.data,
            variables=variables,
            skills=self._read_skills(variables, permissions),
            agents=tuple(self._read_agents(variables)),
            hooks=self._read_hooks(for_commands, env),
            servers=dict(self._read_servers(for_commands, env)),
            tools=tuple(read_tools(self.declared, manifest.name, for_commands, env)),
            permissions=permissions,
            system_prompt=self._read_prompt(variables),
        )
        self.declared.tell_of_others()
        if not any((plugin.skills, plugin.agents, plugin.hooks, plugin.servers, plugin.tools)) and not (
            plugin.system_prompt or permissions != PluginPermissions() or self.problems
        ):
            self.declared.tell(site.root, "", "It brings nothing along that a session could use.")
        return plugin

    def _may_have(self, component: str, source: str) -> bool:
        """Whether the manifest declares it; one that lists its features may have no others."""
        if self.manifest.declares(component):
            return True
        what = f"Its manifest does not declare {component} under `features`, so they were left out."
        self.declared.tell(source, component, what)
        return False

    # --- skills and commands --------------------------------------------------------------------------

    def _read_skills(self, variables: Mapping[str, str], permissions: PluginPermissions) -> tuple[Skill, ...]:
        files: dict[str, tuple[Home, Found]] = {}  # a manifest may also name what lies in the usual place
        for home, file in (*self._find_skills(variables), *self._find_commands(variables)):
            files.setdefault(file[2], (home, file))
        found = read_skills(files.values())
        self.problems += [
            replace(problem, subject=f"{self.site.name}: {problem.subject}") for problem in found.problems
        ]
        if "permissions" not in self.manifest.fields:
            return tuple(found)
        return tuple(self._limit(skill, permissions) for skill in found)

    def _limit(self, skill: Skill, permissions: PluginPermissions) -> Skill:
        """A plugin that declares its permissions gets no others by way of its skills."""
        granted = [
            rule for rule in skill.allowed_tools if substitute(rule, skill.variables) in permissions.allow
        ]
        if beyond := [rule for rule in skill.allowed_tools if rule not in granted]:
            what = f"Its `allowed-tools` ask for more than the plugin's `permissions`: {', '.join(beyond)}."
            self.declared.tell(skill.path, skill.name, f"{what} That was left out.")
        return replace(skill, granted=tuple(granted))

    def _find_skills(self, variables: Mapping[str, str]) -> Iterator[tuple[Home, Found]]:
        home = Home("", plugin=self.manifest.name, variables=variables)
        paths = list(self.declared.paths("skills"))
        root = os.path.join(self.site.root, FILE)
        if not paths and os.path.isfile(root) and self.declared.uses_usual("skills"):
            paths = [self.site.root]
        if paths and not self._may_have("skills", paths[0]):
            return
        for path in dict.fromkeys(each.removesuffix(f"{os.sep}{FILE}") for each in paths):
            if os.path.isfile(os.path.join(path, FILE)):
                name = self.manifest.name if path == self.site.root else os.path.basename(path)
                yield home, (name, "", os.path.join(path, FILE))
            elif os.path.isdir(path):
                yield from ((home, found) for found in list_files(replace(home, path=path)))
            else:
                self.declared.tell(
                    path, "skills", f"A directory with a {FILE} was expected; it was left out."
                )

    def _find_commands(self, variables: Mapping[str, str]) -> Iterator[tuple[Home, Found]]:
        home = Home("", is_commands=True, plugin=self.manifest.name, variables=variables)
        paths = list(self.declared.paths("commands"))
        if paths and not self._may_have("commands", paths[0]):
            return
        for path in paths:
            if os.path.isdir(path):
                yield from ((home, found) for found in list_files(replace(home, path=path)))
            elif path.endswith(".md"):
                yield home, (os.path.basename(path).removesuffix(".md"), "", path)
            else:
                self.declared.tell(path, "commands", "A Markdown file was expected; it was left out.")

    # --- agents ---------------------------------------------------------------------------------------

    def _read_agents(self, variables: Mapping[str, str]) -> Iterator[AgentDefinition]:
        paths = list(self.declared.paths("agents"))
        if paths and not self._may_have("agents", paths[0]):
            return
        names: dict[str, str] = {}
        files = [found for path in paths for found in _list_agents(path)]
        for path, group in files:
            agent = self._read_agent(path, f"{self.manifest.name}:{group}", variables)
            if agent is None:
                continue
            first = names.setdefault(agent.name, path)
            if first == path:
                yield agent
            else:
                self.declared.tell(path, agent.name, f"It was left out: {first} has an agent of this name.")

    def _read_agent(self, path: str, prefix: str, variables: Mapping[str, str]) -> AgentDefinition | None:
        try:
            document = read_document(path)
        except OSError as error:
            self.declared.tell(
                path, "agents", f"The file cannot be read ({error.strerror}): the agent is missing."
            )
            return None
        if document.problem is not None:
            self.problems.append(tell_unreadable(document.problem))
            return None
        document = replace(document, body=substitute(document.body, variables))
        name = os.path.basename(path).removesuffix(".md")
        return read_plugin_agent(document, name, prefix, self.site.root, self.problems)

    # --- hooks, servers, prompt -----------------------------------------------------------------------

    def _read_hooks(self, variables: Mapping[str, str], env: Mapping[str, str]) -> HooksConfig:
        configs = []
        for value, source in self.declared.objects("hooks", os.path.join("hooks", "hooks.json")):
            if not self._may_have("hooks", source):
                break
            config, wrong = read_hooks(value, source=source, default_timeout=claude_timeout, types=HANDLERS)
            for place, reason in map(take_apart, wrong):
                self.declared.tell(source, place, reason)
            configs.append(config)
        return with_variables(_put_in(merge_hooks(*configs), variables), env)

    def _read_servers(
        self, variables: Mapping[str, str], env: Mapping[str, str]
    ) -> Iterator[tuple[str, JsonObject]]:
        for value, source in self.declared.objects("mcpServers", ".mcp.json"):
            if not self._may_have("mcpServers", source):
                break
            table = value.get("mcpServers", value)
            for name, server in table.items() if isinstance(table, dict) else ():
                if not isinstance(server, dict) or not any(key in server for key in ("command", "url")):
                    self.declared.tell(
                        source, f"mcpServers.{name}", "A `command` or a `url` is missing; it was left out."
                    )
                    continue
                ready = substitute_all(server, variables)
                if "command" in ready:
                    given = ready.get("env")
                    ready["env"] = {**env, **(given if isinstance(given, dict) else {})}
                yield name, ready

    def _read_prompt(self, variables: Mapping[str, str]) -> str:
        parts = []
        for value, source in self.declared.values("systemPrompt"):
            text = self._read_text(value, source)
            parts.append(substitute(text, variables).strip())
        return "\n\n".join(filter(None, parts))

    def _read_text(self, value: Json, source: str) -> str:
        if not isinstance(value, str):
            what = f"A text or the path of a file was expected, not {kind_of_value(value)}; it was left out."
            self.declared.tell(source, "systemPrompt", what)
            return ""
        if not value.startswith("./"):
            return value
        path = self.declared.locate(value, "systemPrompt", source)
        if path is None:
            return ""
        try:
            return read_document(path).body
        except OSError as error:
            self.declared.tell(
                path, "systemPrompt", f"The file cannot be read ({error.strerror}); it was left out."
            )
            return ""


def _list_agents(path: str) -> Iterator[tuple[str, str]]:
    """The files of agents, and the group that each is in."""
    if not os.path.isdir(path):
        yield path, ""
        return
    for file in list_markdown(path):
        group = os.path.relpath(os.path.dirname(file), path)
        yield file, "" if group == "." else f"{group.replace(os.sep, ':')}:"


def _put_in(config: HooksConfig, variables: Mapping[str, str]) -> HooksConfig:
    """Placeholders in the hooks replaced. In a line for the shell only by what a shell takes as it is: the
    rest it finds in its environment."""
    plain = {name: text for name, text in variables.items() if _NO_QUOTES_NEEDED.fullmatch(text)}

    def fill(hook: HookDefinition) -> HookDefinition:
        return replace(
            hook,
            command=substitute(hook.command, plain if hook.args is None else variables),
            args=None if hook.args is None else tuple(substitute(each, variables) for each in hook.args),
            url=substitute(hook.url, variables),
            prompt=substitute(hook.prompt, variables),
            headers={name: substitute(value, variables) for name, value in hook.headers.items()},
        )

    return {
        event: tuple(replace(group, hooks=tuple(map(fill, group.hooks))) for group in groups)
        for event, groups in config.items()
    }
