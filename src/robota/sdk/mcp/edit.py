"""Servers written to files and taken out of them, on the user's word."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypeAlias

from robota.core.errors import ConfigurationError
from robota.core.messages import Json, JsonObject
from robota.sdk.mcp.found import FILE
from robota.sdk.mcp.reading import ServerTable, read_servers
from robota.sdk.places import Places
from robota.sdk.project import Project, ProjectOptions, load_project
from robota.sdk.settings.write import change_setting, remove_setting
from robota.sdk.trust import TrustStore

WriteScope: TypeAlias = Literal["local", "project", "user"]
SCOPES: tuple[WriteScope, ...] = ("local", "project", "user")


def find_file(places: Places, scope: WriteScope) -> tuple[str, str | None]:
    """The file of a scope, and the directory that it may not lead out of."""
    if scope == "user":
        return places.user("settings.json"), None
    if scope == "project":
        return places.project(FILE), places.cwd
    return places.project(".robota", "settings.local.json"), places.cwd


def add_server(places: Places, scope: WriteScope, name: str, written: JsonObject) -> tuple[str, bool]:
    """Write a server, if it can be used; the file, and whether it counts here now."""
    table = ServerTable(servers={name: written}, source="the command line", variables={})
    read = read_servers(table)
    if not read.found:
        raise ConfigurationError(f"The MCP server {name!r} was not added: {read.problems[0].message}")
    path, inside = find_file(places, scope)
    before = load_project(ProjectOptions(places=places))
    change_setting(path, ("mcpServers", name), written, project=inside)
    return path, scope == "user" or _keep_trust(before, places)


def remove_server(places: Places, scope: WriteScope | None, name: str) -> list[str]:
    """Take a server out of a file, or out of all; the files that had it."""
    before = load_project(ProjectOptions(places=places))
    changed = []
    for each in SCOPES if scope is None else (scope,):
        path, inside = find_file(places, each)
        if remove_setting(path, ("mcpServers", name), project=inside):
            changed.append(path)
    if changed:
        _keep_trust(before, places)
    return changed


def _keep_trust(before: Project, places: Places) -> bool:
    """What the user wrote themselves is no reason to ask them again."""
    if before.trust.state != "trusted":
        return False
    after = load_project(ProjectOptions(places=places)).trust
    TrustStore(places.robota_home, home=places.home).trust(after.directory, after.wishes)
    return True


def make_definition(
    words: tuple[str, ...], transport: str, env: Mapping[str, str], headers: Mapping[str, str]
) -> JsonObject:
    """A server as files have it, from the words of a command line."""
    if transport == "stdio":
        written: dict[str, Json] = {"command": words[0], "args": list(words[1:])}
        return {**written, "env": dict(env)} if env else written
    if len(words) != 1:
        raise ConfigurationError(f"A server reached by {transport} has one address, not {len(words)}.")
    remote: dict[str, Json] = {"type": transport, "url": words[0]}
    return {**remote, "headers": dict(headers)} if headers else remote
