"""The MCP servers of a project and its user: `.mcp.json`, settings, and what the command line brings."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from msgspec import Struct

from robota.core.credentials import is_credential
from robota.core.messages import Json
from robota.sdk.agents.definition import AgentDefinition
from robota.sdk.mcp.reading import ReadServers, ServerTable, read_servers
from robota.sdk.places import Places
from robota.sdk.problems import Problem
from robota.sdk.settings.layers import Layer
from robota.tools.mcp.definition import ServerDefinition, ServerScope

FILE = ".mcp.json"
_SCOPES: Mapping[str, ServerScope] = {
    "flags": "flag", "environment": "flag", "local": "local", "project": "project", "user": "user",
}  # fmt: skip


class FoundServers(Struct, frozen=True):
    """The definitions that count, by name."""

    servers: Mapping[str, ServerDefinition]
    problems: tuple[Problem, ...] = ()


class ServerSources(Struct, frozen=True, kw_only=True):
    """Where servers may come from, for one session."""

    places: Places
    layers: tuple[Layer, ...] = ()
    trusted: bool
    variables: Mapping[str, str]
    file: Json = None
    """The table of `.mcp.json`, as it was when the user's trust was looked at."""
    given: Mapping[str, Json] | None = None
    """Of the command line or a program, above all files."""
    strict: bool = False
    """Whether only those count."""
    more: tuple[ServerDefinition, ...] = ()
    """Of plugins, below all files."""


def find_servers(sources: ServerSources) -> FoundServers:
    """Where two have the same name, the one of the command line counts, then the local one, the project's,
    the user's, a plugin's."""
    found: dict[str, ServerDefinition] = {}
    problems: list[Problem] = []
    for table in _list_tables(sources):
        read = _read(sources, table)
        problems += read.problems
        for each in read.found:
            found.setdefault(each.name, each)
    for each in () if sources.strict else sources.more:
        found.setdefault(each.name, each)
    return FoundServers(found, tuple(problems))


def _read(sources: ServerSources, table: tuple[Json, str, ServerScope]) -> ReadServers:
    servers, source, scope = table
    if not isinstance(servers, dict):
        return ReadServers((), (Problem(source, "`mcpServers` is not an object of servers; correct it."),))
    return read_servers(
        ServerTable(
            servers=servers,
            source=source,
            scope=scope,
            variables=sources.variables,
            cwd=sources.places.cwd,
        )
    )


def _list_tables(sources: ServerSources) -> Iterator[tuple[Json, str, ServerScope]]:
    if sources.given:
        yield dict(sources.given), "the MCP servers of this session", "flag"
    if sources.strict:
        return
    layers = [layer for layer in sources.layers if sources.trusted or not layer.of_project]
    tables = [
        (layer.values["mcpServers"], layer.path, _SCOPES[layer.name])
        for layer in layers
        if "mcpServers" in layer.values
    ]
    yield from (table for table in tables if table[2] in ("flag", "local"))
    if sources.trusted and sources.file is not None:
        yield sources.file, sources.places.project(FILE), "project"
    yield from (table for table in tables if table[2] in ("project", "user"))


def find_agent_servers(
    sources: ServerSources, agents: Iterable[AgentDefinition]
) -> tuple[Mapping[str, Mapping[str, ServerDefinition]], tuple[Problem, ...]]:
    """The servers that agents bring along, by their names, and what is wrong with them."""
    found: dict[str, Mapping[str, ServerDefinition]] = {}
    problems: list[Problem] = []
    for agent in () if sources.strict else agents:
        if agent.own_servers:
            scope: ServerScope = "project" if agent.scope == "project" else "user"
            read = _read(sources, (dict(agent.own_servers), agent.source, scope))
            found[agent.name] = {each.name: each for each in read.found}
            problems += read.problems
    return found, tuple(problems)


def find_secrets(*tables: Mapping[str, ServerDefinition]) -> Iterator[str]:
    """What the definitions hold that must be written nowhere."""
    for server in (each for table in tables for each in table.values()):
        for name, value in (*server.env.items(), *server.headers.items()):
            plain = value.removeprefix("Bearer ").strip()
            if len(plain) >= 8 and (name in server.headers or is_credential(name, value)):
                yield plain
