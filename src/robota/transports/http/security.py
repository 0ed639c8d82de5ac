"""Who may use the server: a token on every request, and no page of another site.

A page that a browser loaded from elsewhere can send requests here, and a name that somebody else owns can be
made to lead here. `Origin` gives away the first, `Host` the second; both are looked at before anything else.
"""

from __future__ import annotations

import hmac
import ipaddress
import socket
from collections.abc import Iterable
from urllib.parse import parse_qs, urlsplit

from starlette.types import Scope

from robota.core.errors import ConfigurationError
from robota.transports.http.replies import CLOSE, HttpError

LOOPBACK_NAMES = ("127.0.0.1", "localhost", "::1")
SHORTEST_TOKEN = 16
"""Characters of a token that protects a server others can reach."""


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches a server that is bound to it."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def require_token(host: str, token: str | None) -> None:
    """Refuse a token that is none, and a server that others can reach without one that its user chose."""
    if token is not None and not (token and token.isascii() and token.isprintable() and " " not in token):
        raise ConfigurationError("A token is made of printable ASCII letters, without blanks.")
    if not is_loopback(host) and len(token or "") < SHORTEST_TOKEN:
        raise ConfigurationError(
            f"Others can reach {host}: choose a token of at least {SHORTEST_TOKEN} letters, or 127.0.0.1."
        )


class Guard:
    """Lets requests through that come to a name of this server, from no other page, with the token."""

    def __init__(self, token: str, host: str = "127.0.0.1", *, names: Iterable[str] = ()) -> None:
        self._token = token.encode()
        self._names = {*LOOPBACK_NAMES, host.strip("[]").casefold(), *(name.casefold() for name in names)}
        self._takes_addresses = host in ("0.0.0.0", "::", "")
        if self._takes_addresses:
            self._names.add(socket.gethostname().casefold())

    def check_place(self, scope: Scope) -> None:
        """Refuse a request for another host, or from a page of one, or with a head that is too large."""
        if scope.get("state", {}).get("head_too_large"):
            raise HttpError(431, "head_too_large", "The head of the request is too large.", CLOSE)
        hosts = [value for name, value in scope["headers"] if name == b"host"]
        host = hosts[0].decode("latin-1") if len(hosts) == 1 else ""
        if not self._is_ours(host):
            raise HttpError(403, "foreign_host", "This server does not answer to that Host.")
        for name, value in scope["headers"]:
            if name == b"origin" and not self._is_same(value.decode("latin-1"), host):
                raise HttpError(403, "foreign_origin", "Pages of other sites may not use this server.")

    def _is_ours(self, host: str) -> bool:
        try:
            name = (urlsplit(f"//{host}").hostname or "").rstrip(".")
        except ValueError:
            return False
        if not host or "@" in host or "/" in host:
            return False
        return name in self._names or (self._takes_addresses and _is_address(name))

    def _is_same(self, origin: str, host: str) -> bool:
        return origin.casefold() in (f"http://{host}".casefold(), f"https://{host}".casefold())

    def check_token(self, scope: Scope, *, in_query: bool) -> None:
        """Refuse whoever does not have the token. In the query it is taken only where headers cannot be set:
        addresses end up in logs and histories."""
        given = [
            value[7:].strip()
            for name, value in scope["headers"]
            if name == b"authorization" and value[:7].lower() == b"bearer "
        ]
        if not given and in_query:
            query = parse_qs(scope["query_string"].decode("latin-1"))
            given = [value.encode() for value in query.get("token", ())]
        if len(given) != 1 or not hmac.compare_digest(given[0], self._token):
            raise HttpError(
                401,
                "unauthorized",
                "The token is missing or wrong: send the printed one, as Authorization: Bearer TOKEN.",
                {"www-authenticate": "Bearer"},
            )


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
