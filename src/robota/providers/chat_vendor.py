"""What vendors and servers of Chat Completions have in common: an address, a key, a model, habits as data."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, TypedDict, Unpack
from urllib.parse import urlsplit

from msgspec import Struct

from robota.core.provider import Capabilities
from robota.providers.chat import ChatHabits
from robota.providers.openai_compatible import OpenAICompatibleProvider
from robota.providers.service import Service, openai_list_url

if TYPE_CHECKING:
    import httpx2


class Vendor(Struct, frozen=True, kw_only=True):
    name: str
    title: str
    base_url: str
    model: str | None = None
    """The default; without one the user has to choose."""
    key_variable: str = ""
    """Where the environment keeps the key."""
    hosts: tuple[str, ...] = ()
    """The vendor's own, which alone may be sent the key from the environment."""
    spare_key: str = ""
    """Said to a server that wants to hear some key and does not look at it."""
    capabilities: Capabilities = Capabilities()
    habits: ChatHabits = {}

    def find_address(self, base_url: str | None) -> str:
        """The address to use: the vendor's own if none is given, and its path if only a host is given."""
        address = (base_url or "").strip() or self.base_url
        without_path = address.rstrip("/").count("/") == 2 and "?" not in address
        return address.rstrip("/") + _split(self.base_url)[2] if without_path else address

    def find_key(self, api_key: str | None, address: str) -> str | None:
        """The key to send to this address. One from the environment goes nowhere but to its vendor."""
        if api_key is not None:
            return api_key
        scheme, place, _ = _split(address)
        if scheme == "https" and place.removesuffix(":443") in self.hosts:
            return os.environ.get(self.key_variable) or None
        return self.spare_key or None


class VendorOptions(TypedDict, total=False):
    """What the provider of every vendor takes besides key, address and model."""

    name: str | None
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
        able = options.get("capabilities")
        super().__init__(
            vendor.find_key(api_key, address),
            address,
            model or vendor.model,
            name=options.get("name") or vendor.name,
            headers=options.get("headers"),
            transport=options.get("transport"),
            client=options.get("client"),
            capabilities=vendor.capabilities if able is None else able,
            **vendor.habits,
        )


def _split(address: str) -> tuple[str, str, str]:
    """Scheme, everything between it and the path in lower case, and the path."""
    try:
        parts = urlsplit(address)
    except ValueError:  # no address at all, which the channel will say
        return "", "", ""
    return parts.scheme, parts.netloc.lower(), parts.path


def service_of(provider: type[VendorProvider], **facts: Any) -> Service:
    """The service that a vendor's provider goes to, with what else is to be known of it."""
    vendor = provider.vendor
    known: dict[str, Any] = {
        "title": vendor.title,
        "make": provider,
        "key_variables": (vendor.key_variable,) if vendor.key_variable else (),
        "base_url": vendor.base_url,
        "model": vendor.model,
    }
    if not vendor.key_variable:  # the address of a server at home may be given without its path
        known["list_url"] = lambda base_url: openai_list_url(vendor.find_address(base_url))
    return Service(**{**known, **facts})
