"""Posts JSON to a server: only where addresses allow it, within a time, again when the server is weak."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING

from msgspec import Struct

from robota.core.errors import ConfigurationError, PluginError
from robota.core.ports import REAL_WORLD, Ports

if TYPE_CHECKING:
    from robota.http.client import HttpClient

MAX_ANSWER_BYTES = 64 * 1024
_AGAIN = frozenset((408, 425, 429))
"""Besides 5xx; all other answers would only be given again."""


class Patience(Struct, frozen=True, kw_only=True):
    """How long one attempt may take, and how often and when it is made again; times are seconds."""

    timeout: float = 5.0
    retries: int = 3
    first_delay: float = 1.0
    """It doubles with every further one."""
    longest_delay: float = 10.0

    def delay(self, attempt: int) -> float:
        return min(self.first_delay * 2.0 ** (attempt - 1), self.longest_delay)


class Poster:
    """One address. Without `allowed_hosts` it has to be a public one; redirects are not followed."""

    def __init__(
        self,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        allowed_hosts: tuple[str, ...] = (),
        patience: Patience = Patience(),  # noqa: B008 - frozen
        ports: Ports = REAL_WORLD,
    ) -> None:
        from robota.http.exchange import build_request  # noqa: PLC0415 - for those who post something
        from robota.http.url import parse_url  # noqa: PLC0415 - likewise

        self._headers = {"Content-Type": "application/json", "Connection": "close", **(headers or {})}
        self.patience = patience
        self._allowed = tuple(allowed_hosts)
        self._ports = ports
        self._build = build_request
        try:
            self._url = parse_url(url)
            build_request("POST", self._url, self._headers)
        except (ValueError, TypeError, AttributeError) as error:
            raise ConfigurationError(f"Nothing can be posted there: {error}") from error

    @property
    def host(self) -> str:
        return self._url.host

    async def post(self, body: bytes, headers: Mapping[str, str] | None = None) -> int:
        """Deliver it, and say how many attempts that took; `PluginError` when all of them failed."""
        attempt = 1
        while True:
            problem, again = await self._attempt(body, headers or {})
            if not problem:
                return attempt
            if not again or attempt > self.patience.retries:
                raise PluginError(f"{self.host} took nothing after {attempt} attempts: {problem}.")
            await self._ports.sleep(self.patience.delay(attempt))
            attempt += 1

    async def _attempt(self, body: bytes, headers: Mapping[str, str]) -> tuple[str, bool]:
        """What went wrong, empty for nothing, and whether another attempt may help."""
        from robota.http.errors import HttpError, UrlError  # noqa: PLC0415 - see above

        request = self._build("POST", self._url, {**self._headers, **headers})
        try:
            async with asyncio.timeout(self.patience.timeout), self._client() as client:
                reply = await client.send(request, body)
                await reply.read(MAX_ANSWER_BYTES)
        except TimeoutError:
            return f"no answer within {self.patience.timeout:g} s", True
        except UrlError as error:
            return str(error).rstrip("."), False
        except HttpError as error:
            return str(error), True
        if 200 <= reply.status < 300:
            return "", False
        return f"HTTP {reply.status}", reply.status in _AGAIN or reply.status >= 500

    def _client(self) -> HttpClient:
        from robota.http.address import AddressPolicy  # noqa: PLC0415 - see above
        from robota.http.client import HttpClient  # noqa: PLC0415 - see above

        return HttpClient(policy=AddressPolicy(self._allowed))
