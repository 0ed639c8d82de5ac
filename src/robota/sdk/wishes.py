"""What a project wants to do by itself: commands it would run, servers it would start, rights it would take.

Files are read as data and nothing of them acts. A wish is shown to the user before it may come true, and a
wish that has changed since is another one.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Literal, TypeAlias

from msgspec import Struct

from robota._lazy_pattern import lazy_pattern
from robota.core.jsontext import encode
from robota.core.messages import Json
from robota.core.regular_file import open_regular
from robota.sdk.agents.loader import find_homes as find_agent_homes
from robota.sdk.agents.loader import read_agent_servers
from robota.sdk.bundle.bundles import find_plugin_directories, list_tree
from robota.sdk.frontmatter import list_markdown, parse_bytes, read_within
from robota.sdk.places import Places
from robota.sdk.problems import Problem
from robota.sdk.settings.jsonc import JsoncError, read_jsonc
from robota.sdk.skills.loader import find_homes as find_skill_homes
from robota.sdk.skills.loader import list_files
from robota.sdk.skills.render import find_commands
from robota.sdk.skills.skill import Stamp, stamp_of

WishKind: TypeAlias = Literal[
    "hooks", "servers", "commands", "plugins", "allow", "directories", "mode", "env", "addresses", "agents",
    "skills", "settings",
]  # fmt: skip
SettingsFile: TypeAlias = tuple[str, Mapping[str, Json]]
"""The path of a project's settings file, and what is in it."""

_TITLES: Mapping[WishKind, str] = {
    "hooks": "Hooks that run by themselves",
    "servers": "MCP servers",
    "commands": "Other commands (never run here, trusted or not)",
    "plugins": "Plugins and where they come from",
    "allow": "Rules that let tools run without a question",
    "directories": "More directories to work in",
    "mode": "Permission mode",
    "env": "Environment variables",
    "addresses": "Addresses and credentials (never taken from a project, trusted or not)",
    "agents": "Agents",
    "skills": "Skills",
    "settings": "Other settings that guard you",
}
_MAX_SHOWN = 500
_END_SHOWN = 200
"""Of these, from the end: what matters of a command may be there."""
_NEVER = ("apiKeyHelper", "awsAuthRefresh", "awsCredentialExport", "otelHeadersHelper", "baseURL", "provider")
_SENSITIVE = (
    "sandbox", "autoAllowReadOnly", "allowedHttpHookUrls", "httpHookAllowedEnvVars", "disableAllHooks",
    "enableAllProjectMcpServers", "enabledMcpjsonServers", "autoMemoryDirectory", "plansDirectory",
    "fileCheckpointingEnabled", "memory", "currentProvider",
)  # fmt: skip
_SOURCES = ("extraKnownMarketplaces", "pluginConfigs")
_RIGHTS = ("allowed-tools", "hooks", "mcpServers")
_VARIABLE = lazy_pattern(r"\$(?:\{|ENV:)([A-Za-z_][A-Za-z0-9_]*)")
"""Of the environment, which a server would get to know."""


class Wish(Struct, frozen=True, order=True):
    """One thing that a project wants."""

    kind: str
    text: str
    """For people; everything that could be mistaken on a screen is escaped."""
    mark: str
    """Of all that it says, also of what is not shown."""


class Wishes(Struct, frozen=True):
    """All of them, in a fixed order."""

    all: tuple[Wish, ...] = ()
    problems: tuple[Problem, ...] = ()
    agents: Mapping[str, Stamp] = {}
    """How the files of agents and plugins and their directories looked before they were read for this."""
    servers: Json = None
    """The table of `.mcp.json` as it was looked at: what is used must be the same."""

    def __bool__(self) -> bool:
        return bool(self.all)

    @property
    def are_current(self) -> bool:
        """Whether agents and plugins are still those that were looked at: they are read once more."""
        return all(stamp_of(path) == stamp for path, stamp in self.agents.items())

    @property
    def digest(self) -> str:
        """The same for the same wishes, whichever order the files have them in."""
        return _hash(encode([[wish.kind, wish.text, wish.mark] for wish in self.all]))

    def of(self, kind: WishKind) -> tuple[str, ...]:
        return tuple(wish.text for wish in self.all if wish.kind == kind)

    def describe(self) -> list[str]:
        """For people, by kind, a line each."""
        return describe_wishes(self.all)


def describe_wishes(wishes: Iterable[Wish], sign: str = "-") -> list[str]:
    """A title for each kind and a line for each wish."""
    lines: list[str] = []
    found = sorted(set(wishes))
    for kind, title in _TITLES.items():
        texts = [wish.text for wish in found if wish.kind == kind]
        lines += [f"{title}:", *(f"  {sign} {text}" for text in dict.fromkeys(texts))] if texts else []
    return lines


def find_wishes(places: Places, settings: Iterable[SettingsFile]) -> Wishes:
    """Everything that takes effect once the directory is trusted; `settings` are the project's files."""
    found: set[Wish] = set()
    problems: list[Problem] = []
    for path, values in settings:
        found.update(_find_in_settings(places, places.shown(path), values))
    servers = _read_mcp_file(places, problems)
    found.update(_find_servers(".mcp.json", servers))
    agents = {**dict(_look_at_agents(places)), **dict(_look_at_plugins(places))}
    found.update(_find_agents(places))
    found.update(_find_skills(places))
    found.update(find_plugin_wishes(places))
    return Wishes(tuple(sorted(found)), tuple(problems), agents, servers)


def make_wish(kind: WishKind, source: str, text: str, content: Json = None) -> Wish:
    """`content` is what counts besides the text."""
    shown = f"{text}  [{source}]"
    if not shown.isprintable():
        shown = "".join(letter if letter.isprintable() else _escape(letter) for letter in shown)
    if len(shown) > _MAX_SHOWN:
        left_out = len(shown) - _MAX_SHOWN
        shown = f"{shown[: _MAX_SHOWN - _END_SHOWN]}… ({left_out} characters left out) …{shown[-_END_SHOWN:]}"
    return Wish(kind, shown, _hash(encode([text, source, content])))


def _escape(letter: str) -> str:
    return letter.encode("unicode_escape", "backslashreplace").decode()


def _hash(data: bytes) -> str:
    from hashlib import sha256  # noqa: PLC0415 - loads OpenSSL, for projects that wish for something

    return sha256(data).hexdigest()[:32]


def _find_in_settings(places: Places, source: str, values: Mapping[str, Json]) -> Iterator[Wish]:
    yield from _find_hooks(source, values.get("hooks"))
    yield from _find_servers(source, values.get("mcpServers"))
    yield from _find_permissions(places, source, values)
    yield from _find_addresses(source, values)
    for name, value in _items(values.get("env")):
        yield make_wish("env", source, f"{name}={_plain(value)}")
    for name, value in _items(values.get("enabledPlugins")):
        yield make_wish("plugins", source, f"{name}: {_plain(value)}")
    for key, value in values.items():
        if key in _SENSITIVE:
            yield make_wish("settings", source, f"{key}: {_plain(value)}")
        elif key in _SOURCES:
            yield make_wish("plugins", source, f"{key}: {_plain(value)}")
        elif isinstance(value, dict) and "command" in value:  # statusLine, fileSuggestion and the like
            yield make_wish("commands", source, f"{key}: {_plain(value['command'])}", value)


def _find_addresses(source: str, values: Mapping[str, Json]) -> Iterator[Wish]:
    for key in _NEVER:
        if key in values:
            yield make_wish("addresses", source, f"{key}: {_plain(values[key])}")
    for name, profile in _items(values.get("providers")):
        for what, value in _items(profile):
            if what in ("apiKey", "baseURL", "options"):
                shown = "…" if what == "apiKey" else _plain(value)
                yield make_wish("addresses", source, f"providers.{name}.{what}: {shown}", value)


def _find_hooks(source: str, hooks: Json) -> Iterator[Wish]:
    for event, groups in _items(hooks):
        for group in groups if isinstance(groups, list) else [groups]:
            matcher = group.get("matcher", "") if isinstance(group, dict) else ""
            handlers = group.get("hooks") if isinstance(group, dict) else None
            for handler in handlers if isinstance(handlers, list) else [group]:  # shown, whatever it means
                said = handler if isinstance(handler, dict) else {}
                ways = [said[key] for key in ("command", "url", "prompt", "agent", "tool") if key in said]
                what = " ".join(_plain(each) for each in (*(ways or [handler]), *_list(said.get("args"))))
                where = f"{event} ({matcher})" if matcher else event
                yield make_wish("hooks", source, f"{where}: {what}", group)


def _find_servers(source: str, servers: Json) -> Iterator[Wish]:
    for name, server in _items(servers):
        said = server if isinstance(server, dict) else {}
        ways = [said[key] for key in ("command", "url") if key in said] or [server]
        words = (*ways, *_list(said.get("args")))
        more = [f"runs {_plain(said['headersHelper'])}"] if said.get("headersHelper") else []
        more += [f"sets {', '.join(key for key, _ in _items(said.get('env')))}"] if said.get("env") else []
        variables = dict.fromkeys(_VARIABLE.findall(_plain(server)))
        more += [f"is given {', '.join(variables)}"] if variables else []
        given = f" ({'; '.join(more)})" if more else ""
        yield make_wish("servers", source, f"{name}: {' '.join(map(_plain, words))}{given}", server)


def _find_permissions(places: Places, source: str, values: Mapping[str, Json]) -> Iterator[Wish]:
    permissions = values.get("permissions")
    given = permissions if isinstance(permissions, dict) else {}
    allowed = given.get("allow")
    for rule in [allowed] if isinstance(allowed, str) else _list(allowed):
        yield make_allow_wish(source, _plain(rule))
    for directory in _list(given.get("additionalDirectories")):
        written = _plain(directory)
        path = os.path.relpath(places.locate(written), places.cwd)
        plain, real = (os.path.realpath(places.cwd), path), os.path.realpath(places.locate(written))
        is_link = real != os.path.normpath(os.path.join(*plain))
        yield make_wish("directories", source, f"{written} -> {real}" if is_link else written)
    for mode in (given.get("defaultMode"), values.get("defaultTrustLevel")):
        if mode is not None:
            yield make_wish("mode", source, _plain(mode))


def make_allow_wish(source: str, rule: str) -> Wish:
    """That a rule of the file at `source`, as it is shown, lets something run without a question."""
    return make_wish("allow", source, rule)


def _read_mcp_file(places: Places, problems: list[Problem]) -> Json:
    data = _read(places.project(".mcp.json"))
    if data is None:
        return None
    try:
        found = read_jsonc(data.decode("utf-8-sig"))
    except ValueError as error:
        line = error.line if isinstance(error, JsoncError) else 0
        problems.append(
            Problem(".mcp.json", f"It is not JSON ({error}): no server of it is known. Correct it.", line)
        )
        return None
    return found.get("mcpServers") if isinstance(found, dict) else None


def _look_at_agents(places: Places) -> Iterator[tuple[str, Stamp]]:
    for home, scope in find_agent_homes(places):
        if scope == "project":
            found = list_markdown(home)
            for path in {home, *found, *map(os.path.dirname, found)}:
                yield path, stamp_of(path)


def _look_at_plugins(places: Places) -> Iterator[tuple[str, Stamp]]:
    for home, scope in find_plugin_directories(places):
        if scope == "project":
            yield from ((path, stamp_of(path)) for path in list_tree(home))


def _find_agents(places: Places) -> Iterator[Wish]:
    homes = [(path, scope == "project") for path, scope in find_agent_homes(places)]
    for home in _leave_out_own(homes):
        for path in list_markdown(home):
            data = _read(path)
            if data is not None:
                name, shown = os.path.relpath(path, home).removesuffix(".md"), places.shown(path)
                yield make_wish("agents", shown, name, _hash(data))
                _, servers, _ = read_agent_servers(parse_bytes(data, path))
                yield from _find_servers(shown, servers)


def _find_skills(places: Places) -> Iterator[Wish]:
    homes = {home.path: home for home in find_skill_homes(places)}
    for path in _leave_out_own([(home.path, home.in_project) for home in homes.values()]):
        plain = 0
        for _, _, file in list_files(homes[path]):
            data = _read(file) or b""
            skill = parse_bytes(data, file)  # as the loader does, so that nothing acts that is not shown
            rights = [f"{key}: {_plain(value)}" for key in _RIGHTS if (value := skill.fields.get(key))]
            said = [*find_commands(skill.body), *rights]
            plain += not said
            if said:
                yield make_wish("skills", places.shown(file), "; ".join(said), _hash(data))
        if plain:  # they are words for the model, and people write new ones every day
            yield make_wish("skills", places.shown(path), "instructions for the model")


def find_plugin_wishes(places: Places) -> Iterator[Wish]:
    """What the plugins that came with the project would run. One that changes in any file is another."""
    homes = [(path, scope == "project") for path, scope in find_plugin_directories(places)]
    for home in _leave_out_own(homes):
        from robota.sdk.bundle.loader import BundlePluginLoader  # noqa: PLC0415 - few projects have plugins
        from robota.sdk.bundle.lock import hash_bundle  # noqa: PLC0415
        from robota.sdk.bundle.names import BundleError  # noqa: PLC0415
        from robota.sdk.bundle.report import report_on  # noqa: PLC0415

        loader = BundlePluginLoader(home)
        for site in loader.find():
            shown, plugin = places.shown(site.root), loader.load(site)
            try:
                mark = hash_bundle(site.root, site.entry)
            except (BundleError, OSError) as error:
                mark = f"not read: {error}"
            yield make_wish("plugins", shown, f"{site.id} {site.version}".strip(), mark)
            for kind, text in () if plugin is None else report_on(plugin).items:
                if kind not in ("brings", "hosts", "variables"):
                    yield make_wish("plugins", shown, f"{site.id} {kind}: {text}")


def _leave_out_own(homes: Collection[tuple[str, bool]]) -> Iterator[str]:
    """Those of the project that are not the user's own, as they are when somebody works in their home."""
    own = {os.path.realpath(path) for path, in_project in homes if not in_project}
    for path, in_project in homes:
        if in_project and os.path.isdir(path) and os.path.realpath(path) not in own:
            yield path


def _read(path: str) -> bytes | None:
    """A regular file of a size that anybody would load; `None` if it is none."""
    try:
        with open_regular(path) as file:
            return read_within(file)
    except OSError:  # whoever loads it says what is wrong with it, and then it acts as little as here
        return None


def _items(value: Json) -> Iterable[tuple[str, Json]]:
    return value.items() if isinstance(value, dict) else ()


def _list(value: Json) -> list[Json]:
    return value if isinstance(value, list) else []


def _plain(value: Json) -> str:
    return value if isinstance(value, str) else encode(value).decode()
