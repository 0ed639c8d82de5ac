"""Definitions of MCP servers as files have them, read one by one: what cannot be used is named, the rest is.

A plugin's table goes through `read_servers` too, with its own variables and its name.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from robota._lazy_pattern import lazy_pattern
from robota.core.credentials import is_env_reference, resolve_env_reference
from robota.core.messages import Json, JsonObject
from robota.sdk.problems import Problem
from robota.tools.mcp.definition import (
    CALL_SECONDS,
    START_SECONDS,
    OAuthOptions,
    ServerDefinition,
    ServerKind,
    ServerScope,
)

_VARIABLE = lazy_pattern(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")
_KINDS: Mapping[str, ServerKind] = {
    "stdio": "stdio", "http": "http", "streamable-http": "http", "sse": "sse", "sdk": "client",
}  # fmt: skip
_NAME = lazy_pattern(r"[^\s/:@\x00-\x1f]{1,64}")
_WEB = ("http://", "https://")
START_VARIABLE = "MCP_TIMEOUT"
CALL_VARIABLE = "MCP_TOOL_TIMEOUT"
"""Milliseconds, as other programs read them."""


class ServerTable(Struct, frozen=True, kw_only=True):
    """Where a table of servers was written, and what its texts may name."""

    servers: Mapping[str, Json]
    source: str
    scope: ServerScope = "user"
    variables: Mapping[str, str]
    cwd: str = ""
    plugin: str = ""
    """The plugin that brings them: part of their names."""


class ReadServers(Struct, frozen=True):
    """What came of a table."""

    found: tuple[ServerDefinition, ...] = ()
    problems: tuple[Problem, ...] = ()


def read_servers(table: ServerTable) -> ReadServers:
    """Every server of a table that can be used, and why the others cannot."""
    found: list[ServerDefinition] = []
    problems: list[Problem] = []
    for name, written in table.servers.items():
        subject = f"MCP server {name}"
        try:
            reader = _Reader(table, name, written)
            found.append(reader.read())
        except _UnusableError as error:
            problems.append(Problem(table.source, f"{error} It is left out.", subject=subject))
            continue
        if reader.unset:
            names = ", ".join(dict.fromkeys(reader.unset))
            problems.append(
                Problem(table.source, f"It names {names}, which nobody has set; set it.", subject=subject)
            )
    return ReadServers(tuple(found), tuple(problems))


class _UnusableError(Exception):
    """Why a definition cannot be used, in a sentence."""


class _Reader:
    """One definition."""

    def __init__(self, table: ServerTable, name: str, written: Json) -> None:
        if not isinstance(written, dict):
            raise _UnusableError("It is not an object with `command` or `url`.")
        if not _NAME.fullmatch(name):
            raise _UnusableError("Its name must be one word of at most 64 characters without / : @.")
        self.table = table
        self.name = f"plugin_{table.plugin}_{name}" if table.plugin else name
        self.written: JsonObject = written
        self.unset: list[str] = []

    def read(self) -> ServerDefinition:
        kind = self._kind()
        definition = ServerDefinition(
            name=self.name,
            kind=kind,
            scope=self.table.scope,
            source=self.table.source,
            cwd=self.table.cwd,
            start_timeout=self._seconds("startupTimeout", START_VARIABLE, START_SECONDS),
            call_timeout=self._seconds("timeout", CALL_VARIABLE, CALL_SECONDS),
            always_load=self.written.get("alwaysLoad") is True,
        )
        if kind == "client":
            return definition
        if kind == "stdio":
            return replace(
                definition,
                command=self._text("command"),
                args=tuple(map(self._expand, self._list("args"))),
                env={key: self._expand(value) for key, value in self._table("env").items()},
                cwd=self._directory(),
            )
        return replace(
            definition,
            url=self._url(),
            headers={key: self._expand(value) for key, value in self._table("headers").items()},
            headers_helper=self._text("headersHelper", ""),
            oauth=self._oauth(),
        )

    def _kind(self) -> ServerKind:
        written = self.written.get("type")
        if written is None:
            if "command" in self.written:
                return "stdio"
            if "url" in self.written:
                raise _UnusableError('It has a `url` and no `type`: add "type": "http" or "sse".')
            raise _UnusableError("It has neither `command` nor `url`.")
        kind = _KINDS.get(written) if isinstance(written, str) else None
        if kind is None:
            known = ", ".join(name for name in _KINDS if name != "sdk")
            raise _UnusableError(f"Its type {written!r} is not known here: there are {known}.")
        if kind == "client" and self.table.scope != "flag":
            raise _UnusableError('"type": "sdk" is for programs that drive robota.')
        return kind

    def _url(self) -> str:
        url = self._text("url")
        if not url.startswith(_WEB):
            raise _UnusableError(f"Its `url` must begin with {' or '.join(_WEB)}, not {url[:40]!r}.")
        return url

    def _directory(self) -> str:
        given = self._text("cwd", "")
        return os.path.join(self.table.cwd, os.path.expanduser(given)) if given else self.table.cwd

    def _text(self, key: str, default: str | None = None) -> str:
        value = self.written.get(key, default)
        if not isinstance(value, str) or (not value and default is None):
            raise _UnusableError(f"Its `{key}` must be a text.")
        return self._expand(value)

    def _list(self, key: str) -> list[Any]:
        value = self.written.get(key) or []
        if not isinstance(value, list):
            raise _UnusableError(f"Its `{key}` must be a list of strings.")
        return value

    def _table(self, key: str) -> JsonObject:
        value = self.written.get(key) or {}
        if not isinstance(value, dict):
            raise _UnusableError(f"Its `{key}` must be an object of texts.")
        return value

    def _seconds(self, key: str, variable: str, default: float) -> float:
        """Files have milliseconds."""
        given = self.written.get(key)
        if given is None:
            text = self.table.variables.get(variable, "")
            given = int(text) if text.isdecimal() else None
        if given is None:
            return default
        if isinstance(given, bool) or not isinstance(given, int | float) or given <= 0:
            raise _UnusableError(f"Its `{key}` must be a number of milliseconds.")
        return float(given / 1000)

    def _oauth(self) -> OAuthOptions | None:
        given = self._table("oauth")
        if not given:
            return None
        scopes, port = given.get("scopes"), given.get("callbackPort")
        metadata = self._expand(given.get("authServerMetadataUrl") or "")
        if metadata and not metadata.startswith(_WEB):
            raise _UnusableError(f"Its `authServerMetadataUrl` must begin with {' or '.join(_WEB)}.")
        return OAuthOptions(
            client_id=str(given.get("clientId") or ""),
            callback_port=port if isinstance(port, int) else 0,
            scopes=" ".join(map(str, scopes)) if isinstance(scopes, list) else str(scopes or ""),
            metadata_url=metadata,
        )

    def _expand(self, value: Json) -> str:
        """A text with its variables filled in; one that nobody has set stays as it is written."""
        if isinstance(value, bool | int | float):
            return str(value).lower() if isinstance(value, bool) else str(value)
        if not isinstance(value, str):
            raise _UnusableError(f"It has {type(value).__name__} where a text belongs.")
        if is_env_reference(value):
            known = resolve_env_reference(value, self.table.variables)
            if known is None:
                self.unset.append(value)
            return known or value
        return _VARIABLE.sub(self._fill_in, value)

    def _fill_in(self, found: re.Match[str]) -> str:
        name, default = found.groups()
        known = self.table.variables.get(name)
        if known or (known is not None and default is None):
            return known
        if default is None:
            self.unset.append(f"${{{name}}}")
            return found[0]
        return default
