"""The side of a host that knows no HTTP: who answers a request, and what is told of a failure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from robota.core.errors import ConfigurationError
from robota.core.messages import JsonObject
from robota.core.provider import Provider
from robota.providers.remote.failures import describe_error
from robota.providers.remote.protocol import RemoteRequest, read_request


class HostedProviders:
    """The providers of a host, by the names that clients know them by."""

    def __init__(self, providers: Mapping[str, Provider], secrets: Sequence[str] = ()) -> None:
        """`secrets` are never repeated to a client."""
        self.providers = dict(providers)
        self._secrets = tuple(secrets)

    def admit(self, body: bytes) -> tuple[Provider, RemoteRequest]:
        """Who answers a request, and what was asked."""
        asked = read_request(body)
        provider = self.providers.get(asked.provider)
        if provider is None:
            raise ConfigurationError(
                f"This host has no provider {asked.provider!r}; it has {', '.join(self.providers)}."
            )
        return provider, asked

    def describe(self, error: Exception, provider: str) -> JsonObject:
        """What a client is told of a failure."""
        return describe_error(error, provider, self._secrets)
