"""A provider that holds another one: what cache, retry and recording have in common."""

from __future__ import annotations

from typing import Self

from robota.core.provider import Capabilities, Provider, get_provider_capabilities, get_provider_secrets


class ProviderWrapper:
    """Looks like the provider inside; a subclass changes how `stream` reaches it."""

    def __init__(self, inner: Provider) -> None:
        self.inner = inner

    @property
    def name(self) -> str:
        return self.inner.name

    @property
    def capabilities(self) -> Capabilities:
        return get_provider_capabilities(self.inner)

    @property
    def secrets(self) -> tuple[str, ...]:
        return get_provider_secrets(self.inner)

    async def aclose(self) -> None:
        """Close the wrapped provider, if it can be closed."""
        close = getattr(self.inner, "aclose", None)
        if close is not None:
            await close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()
