"""`ServerDefinition`: what an MCP server is and how it is reached, with all variables filled in."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypeAlias

from msgspec import Struct, field

from robota._lazy_pattern import lazy_pattern

ServerKind: TypeAlias = Literal["stdio", "http", "sse", "client"]
"""A process, an address (Streamable HTTP or the older SSE), or a server inside the program around us."""
ServerScope: TypeAlias = Literal["user", "project", "local", "plugin", "flag", "client"]
"""Who brings it."""

START_SECONDS = 30.0
CALL_SECONDS = 600.0
MAX_NAME = 64
"""Characters of a tool's name that every service takes."""
_OTHER = lazy_pattern(r"[^A-Za-z0-9_-]")


class OAuthOptions(Struct, frozen=True, kw_only=True):
    """What a definition says about logging in; usually nothing."""

    client_id: str = ""
    callback_port: int = 0
    """0: any port that is free."""
    scopes: str = ""
    metadata_url: str = ""


class ServerDefinition(Struct, frozen=True, kw_only=True):
    """One server, ready to be reached."""

    name: str
    kind: ServerKind = "stdio"
    command: str = ""
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    cwd: str = ""
    url: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    headers_helper: str = ""
    """A command that prints more headers as a JSON object, run before each connection."""
    oauth: OAuthOptions | None = None
    start_timeout: float = START_SECONDS
    """Seconds until it has to answer for the first time; a call waits no longer for it."""
    call_timeout: float = CALL_SECONDS
    """Seconds a call may take without a sign of life."""
    always_load: bool = False
    """Its tools are offered from the start, however many there are."""
    scope: ServerScope = "user"
    source: str = ""
    """The file that it was written in."""

    @property
    def prefix(self) -> str:
        """What the names of its tools and prompts begin with."""
        return f"mcp__{plain_name(self.name)}__"

    @property
    def address(self) -> str:
        """For people: the command line or the URL, without what may be secret in it."""
        if self.kind == "stdio":
            return " ".join((self.command, *self.args))
        return self.url.partition("?")[0] if self.url else "inside the program that drives the session"


def plain_name(name: str) -> str:
    """A name as it may be a part of a tool's name."""
    return _OTHER.sub("_", name)


def tool_name(definition: ServerDefinition, name: str) -> str:
    """`mcp__server__tool`; one that would be too long is cut and made unlike others that are cut there."""
    full = definition.prefix + plain_name(name)
    if len(full) <= MAX_NAME:
        return full
    from hashlib import sha256  # noqa: PLC0415 - loads OpenSSL; few names are that long

    mark = sha256(full.encode()).hexdigest()[:8]
    return f"{full[: MAX_NAME - len(mark) - 1]}_{mark}"
