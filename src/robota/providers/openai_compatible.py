"""Any endpoint that speaks Chat Completions: hosted services, gateways, the servers people run at home.

What vendors of such endpoints have in common is here too: an address, a key, a model, and habits as data.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar, TypedDict, Unpack

from msgspec import field

from robota.core.errors import ConfigurationError
from robota.core.provider import Capabilities
from robota.providers.chat import ChatHabits, chat_codec
from robota.providers.service import Service, endpoint
from robota.providers.wire.provider import WireProvider

if TYPE_CHECKING:
    import httpx2


class OpenAICompatibleProvider(WireProvider):
    """A model behind a Chat Completions endpoint.

    `base_url` is taken as given: with `/v1` if the service has it, with or without a slash at the end; a
    query stays behind the path. `api_key` may be missing (local servers). `headers` win over ours. Images,
    files and output schemas are sent only if the capabilities say that the endpoint takes them.
    """

    def __init__(
        self,
        api_key: str | None = None,
        base_url: str | None = None,
        model: str | None = None,
        *,
        name: str = "openai-compatible",
        headers: Mapping[str, str] | None = None,
        transport: httpx2.AsyncBaseTransport | None = None,
        client: httpx2.AsyncClient | None = None,
        capabilities: Capabilities | None = None,
        **habits: Unpack[ChatHabits],
    ) -> None:
        from robota.providers.wire.channel import HttpChannel  # noqa: PLC0415 - definitions load no HTTP

        if not base_url:
            raise ConfigurationError(
                f"Provider {name!r} needs a base_url, such as https://api.openai.com/v1 or http://localhost:11434/v1."
            )
        address = endpoint(base_url, "/chat/completions")
        channel = HttpChannel(
            address, headers, provider=name, key=api_key, transport=transport, client=client
        )
        able = Capabilities() if capabilities is None else capabilities
        encoder, content = chat_codec(able, **habits)
        super().__init__(name, model, able, channel=channel, encoder=encoder, content=content)


SERVICE = Service(
    title="The OpenAI-compatible service",
    display_name="OpenAI-compatible",
    description="Any address that speaks Chat Completions; function tools only.",
    options={"reasoning_field": str, "max_tokens_field": str},
)


# --- vendors -----------------------------------------------------------------------------------------


class Vendor(Service, frozen=True, kw_only=True):
    """A service of this kind that has a provider of its own."""

    base_url: str
    hosts: tuple[str, ...] = ()
    """The vendor's own, which alone may be sent the key from the environment."""
    spare_key: str = ""
    """Said to a server that wants to hear some key and does not look at it."""
    capabilities: Capabilities = Capabilities()
    habits: ChatHabits = field(default_factory=ChatHabits)

    def find_address(self, base_url: str | None) -> str:
        """The address to use: the vendor's own if none is given, and its path if only a host is given."""
        address = (base_url or "").strip() or self.base_url
        without_path = address.rstrip("/").count("/") == 2 and "?" not in address
        return address.rstrip("/") + _split(self.base_url)[2] if without_path else address

    def find_list(self, base_url: str) -> str:
        return self.list_url(self.find_address(base_url))

    def find_key(self, api_key: str | None, address: str) -> str | None:
        """The key to send to this address. One from the environment goes nowhere but to its vendor."""
        if api_key is not None:
            return api_key
        scheme, place, _ = _split(address)
        if scheme == "https" and place.removesuffix(":443") in self.hosts:
            return os.environ.get(self.key_variables[0]) or None
        return self.spare_key or None


class VendorOptions(TypedDict, total=False):
    """What the provider of every vendor takes besides key, address and model."""

    name: str
    headers: Mapping[str, str] | None
    transport: httpx2.AsyncBaseTransport | None
    client: httpx2.AsyncClient | None
    capabilities: Capabilities | None


class VendorProvider(OpenAICompatibleProvider):
    """A model of one vendor, or behind one kind of server. All that differs is in `vendor`.

    Without an `api_key` the one in the vendor's variable is used, but never for another host: a key goes to
    the service it belongs to. A `base_url` that is only a host gets the usual path.
    """

    vendor: ClassVar[Vendor]

    def __init__(
        self,
        api_key: str | None = None,
        base_url: str | None = None,
        model: str | None = None,
        **options: Unpack[VendorOptions],
    ) -> None:
        vendor = self.vendor
        address = vendor.find_address(base_url)
        options.setdefault("name", vendor.name)
        if options.get("capabilities") is None:
            options["capabilities"] = vendor.capabilities
        key = vendor.find_key(api_key, address)
        super().__init__(key, address, model or vendor.model, **options, **vendor.habits)


def _split(address: str) -> tuple[str, str, str]:
    """Scheme, everything between it and the path in lower case, and the path."""
    from urllib.parse import urlsplit  # noqa: PLC0415 - 5 ms, for vendors only

    try:
        parts = urlsplit(address)
    except ValueError:  # no address at all, which the channel will say
        return "", "", ""
    return parts.scheme, parts.netloc.lower(), parts.path
