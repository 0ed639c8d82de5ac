"""What a directory has to say to a session: everything that is read from files, as one value.

It is read in one go, before the session is made, and again when a file changes; nothing of it acts by itself.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping

from msgspec import Struct
from msgspec.structs import replace

from robota.core.errors import ConfigurationError, StorageError
from robota.core.messages import Json
from robota.sdk.agents.loader import Agents, find_unknown_names, load_agents
from robota.sdk.agents.loader import find_homes as find_agent_homes
from robota.sdk.auth import KeyStore
from robota.sdk.bundle.assembly import read_plugin_servers, use_bundles
from robota.sdk.bundle.bundles import Bundles, find_plugin_directories
from robota.sdk.context.instructions import ALL_SOURCES, Reading
from robota.sdk.context.loading import ProjectContext, load_context
from robota.sdk.mcp.found import ServerSources, find_agent_servers, find_servers
from robota.sdk.places import Places
from robota.sdk.problems import Problem
from robota.sdk.provider_profiles import ProviderProfiles
from robota.sdk.settings.fitting import fit_to_tools
from robota.sdk.settings.layers import Layer, read_layers
from robota.sdk.settings.settings import Settings, build_settings
from robota.sdk.skills.loader import find_homes as find_skill_homes
from robota.sdk.skills.loader import load_skills
from robota.sdk.skills.skill import Skills
from robota.sdk.trust import Trust, TrustStore
from robota.sdk.wishes import Wishes, find_wishes
from robota.sessions.permissions.live_rules import LiveRules
from robota.tools.mcp.definition import ServerDefinition

_ATTEMPTS = 3


class Project(Struct, frozen=True, kw_only=True):
    """A project as it was when its files were read."""

    places: Places
    settings: Settings
    trust: Trust
    context: ProjectContext
    agents: Agents = Agents()
    skills: Skills = Skills()
    servers: Mapping[str, ServerDefinition] = {}
    """The MCP servers that may be connected, by name."""
    agent_servers: Mapping[str, Mapping[str, ServerDefinition]] = {}
    """Those that agents bring along, by the names of the agents."""
    variables: Mapping[str, str] = {}
    """The environment that it was read in, with what settings add."""
    bundles: Bundles = Bundles()
    """The plugins that are used; what they bring along is among the skills, agents, hooks and rules."""
    problems: tuple[Problem, ...] = ()

    @property
    def trusted(self) -> bool:
        """Whether its hooks, servers, allow rules, agents and the like may act."""
        return self.trust.trusted


class ProjectOptions(Struct, frozen=True, kw_only=True):
    """How a project is read, the first time and every other."""

    places: Places
    trust: bool | None = None
    """In the place of what the user once said."""
    sources: tuple[str, ...] | None = None
    """The layers of files that count: `user`, `project`, `local`; `None` is all."""
    flags: Mapping[str, Json] | None = None
    """Settings above those of all files."""
    given: str = ""
    """The same as JSON or the path of a file; `flags` count more."""
    agents: Mapping[str, Mapping[str, Json]] = {}
    """Agents besides those of files, as `read_inline` takes them."""
    skills: Collection[str] | None = None
    """The only skills there are; `None` is all."""
    servers: Mapping[str, Json] | None = None
    """MCP servers above those of all files, as `.mcp.json` has them."""
    only_those_servers: bool = False
    plugin_dirs: tuple[str, ...] = ()
    """Plugins besides the installed ones, by their directories."""
    environment: Mapping[str, str] = os.environ
    imports_allowed: bool = False
    """The instructions of the project may import files from outside it."""
    kept: Mapping[str, Layer | None] = {}
    """What counts in the place of settings files, by their paths; `None`: as if there were none."""


def load_project(options: ProjectOptions) -> Project:
    """Read the files of a project and those of its user. What changes while it is read is not trusted."""
    for _ in range(_ATTEMPTS):
        project = _read_project(options)
        if not project.trusted or project.trust.wishes.are_current:
            return project
    return _read_project(replace(options, trust=False))


def _read_project(options: ProjectOptions) -> Project:
    places, environment = options.places, options.environment
    problems: list[Problem] = []
    layers = read_layers(
        places,
        sources=options.sources,
        flags=options.flags,
        given=options.given,
        environment=environment,
        kept=options.kept,
    )
    looked = look_at_trust(places, layers, problems, sources=options.sources)
    trust = replace(looked, given=options.trust)
    settings = build_settings(layers, places, environment=environment, trusted=trust.trusted)
    problems += settings.problems
    settings = replace(settings, profiles=find_keys(places, settings, problems))
    if trust.notice:
        problems.append(Problem(places.cwd, trust.notice))
    bundles = find_bundles(options, settings, trusted=trust.trusted)
    settings, refused = use_bundles(settings, bundles)
    problems += (*bundles.problems, *refused)
    context = load_context(describe_reading(options, settings))
    agents = load_agents(
        places, trusted=trust.trusted, sources=options.sources, inline=options.agents, more=bundles.agents
    )
    skills = load_skills(
        places,
        trusted=trust.trusted,
        sources=options.sources,
        overrides=settings.get("skillOverrides"),
        more=bundles.skills,
    )
    if options.skills is not None:
        skills = replace(
            skills, found={name: skills.found[name] for name in options.skills if name in skills.found}
        )
    variables = {**environment, **settings.env}
    of_plugins = read_plugin_servers(bundles, variables, places.cwd)
    sources = replace(describe_servers(options, settings, trust, variables), more=of_plugins.found)
    servers = find_servers(sources)
    agent_servers, unusable = find_agent_servers(sources, agents.definitions.values())
    problems += (*of_plugins.problems, *unusable)
    return Project(
        places=places,
        settings=settings,
        trust=trust,
        context=context,
        agents=agents,
        skills=skills,
        bundles=bundles,
        servers=servers.servers,
        agent_servers=agent_servers,
        variables=variables,
        problems=(*problems, *context.problems, *agents.problems, *skills.problems, *servers.problems),
    )


def describe_servers(
    options: ProjectOptions, settings: Settings, trust: Trust, variables: Mapping[str, str]
) -> ServerSources:
    """Where MCP servers come from; a project's only if the user trusts it."""
    return ServerSources(
        places=options.places,
        layers=settings.layers,
        trusted=trust.trusted,
        variables=variables,
        file=trust.wishes.servers if options.sources is None or "project" in options.sources else None,
        given=options.servers,
        strict=options.only_those_servers,
    )


def find_bundles(options: ProjectOptions, settings: Settings, *, trusted: bool) -> Bundles:
    """The plugins of a session with these options and settings."""
    directories = (path for path, _ in find_plugin_directories(options.places))
    if not options.plugin_dirs and not any(map(os.path.isdir, directories)):
        return Bundles()
    from robota.sdk.bundle.loading import load_bundles  # noqa: PLC0415 - for those who have plugins

    return load_bundles(
        options.places,
        trusted=trusted,
        sources=options.sources,
        enabled=settings.get("enabledPlugins"),
        configs=settings.get("pluginConfigs"),
        given=options.plugin_dirs,
    )


def describe_reading(options: ProjectOptions, settings: Settings) -> Reading:
    """How instruction files are read: as far as the user agreed, and no rule forbids it."""
    places = options.places
    agreed = os.path.realpath(places.cwd) in (settings.get("allowOutsideImports") or ())
    return Reading(
        places=places,
        sources=ALL_SOURCES if options.sources is None else options.sources,
        imports_allowed=options.imports_allowed or agreed,
        is_denied=LiveRules(settings.rules, home=places.home).path_filter(places.cwd),
        excludes=settings.get("claudeMdExcludes") or (),
    )


def list_definitions(project: Project) -> Iterator[str]:
    """The files of skills, agents and plugins, and the directories where others may appear."""
    yield from project.bundles.files()
    yield from (home.path for home in find_skill_homes(project.places))
    yield from (home for home, _ in find_agent_homes(project.places))
    for skill in project.skills:
        yield from (skill.path, skill.directory, os.path.dirname(skill.directory))
    for agent in project.agents.definitions.values():
        if agent.source:
            yield from (agent.source, os.path.dirname(agent.source))


def fit_project(project: Project, tools: Collection[str]) -> Project:
    """Without rules and hooks for tools that a session with these does not have; they are named, and so are
    the agents that name tools and skills that are not there."""
    settings = fit_to_tools(project.settings, tools)
    found = settings.problems[len(project.settings.problems) :]
    unknown = find_unknown_names(project.agents, tools, project.skills)
    return replace(project, settings=settings, problems=(*project.problems, *found, *unknown))


def find_keys(places: Places, settings: Settings, problems: list[Problem]) -> ProviderProfiles:
    """The profiles with the keys that are kept for them."""
    keys = KeyStore(places.robota_home)
    try:
        return keys.fill_in(settings.profiles, lambda what: problems.append(Problem(keys.path, what)))
    except ConfigurationError as error:
        problems.append(Problem(keys.path, str(error)))
        return settings.profiles


def look_at_trust(
    places: Places, layers: Collection[Layer], problems: list[Problem], *, sources: Collection[str] | None
) -> Trust:
    """What the user thinks of the directory, by what it wants now."""
    wishes = Wishes()
    if sources is None or {"project", "local"} & set(sources):
        wishes = find_wishes(places, [(layer.path, layer.values) for layer in layers if layer.of_project])
        problems += wishes.problems
    store = TrustStore(places.robota_home, home=places.home)
    try:
        return store.look(places.cwd, wishes)
    except (ConfigurationError, StorageError) as error:
        problems.append(Problem(store.path, f"{error} Until then no directory is trusted."))
        return Trust(directory=os.path.realpath(places.cwd), state="untrusted", wishes=wishes)
