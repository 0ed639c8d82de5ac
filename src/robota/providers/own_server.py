"""A server of the user's own: how it is recognised, what it says about its model, how that model is asked."""

from __future__ import annotations

import ipaddress

from msgspec import Struct
from msgspec.structs import replace

from robota.core.provider_definition import ProviderConfig, ProviderDefinition
from robota.http.errors import UrlError
from robota.http.url import parse_url

OWN_SERVERS = ("ollama", "lmstudio", "vllm", "gemma", "local-server")
"""Types of providers whose server is asked."""
CONSTRAINING = ("llama.cpp", "vllm", "ollama")
"""Servers that keep a model to a schema."""
SMALL_PARAMETERS = 4_000_000_000
"""Models below rarely make a proper call by themselves, and hardly ever a wrong one under a schema."""
_HOME_NAMES = (".local", ".localhost", ".lan", ".internal", ".home.arpa")


class FittedConfig(Struct, frozen=True):
    config: ProviderConfig
    window: int | None = None
    note: str | None = None


def is_own_server(address: str) -> bool:
    """Whether the address leads to this machine or into a private network, as far as it tells."""
    try:
        url = parse_url(address)
    except UrlError:  # the provider will say so
        return False
    if url.is_address:
        return ipaddress.ip_address(url.host).is_private
    return "." not in url.host or url.host.endswith(_HOME_NAMES)


async def fit_to_server(definition: ProviderDefinition, config: ProviderConfig) -> FittedConfig:
    """The profile with what its server says: the window, and that a small model is held to a schema."""
    address = config.base_url or definition.defaults.base_url
    if definition.type not in OWN_SERVERS or address is None:
        return FittedConfig(config)
    from robota.providers.local.detect import ask_local_server  # noqa: PLC0415 - for own servers only
    from robota.providers.local.request import TINY_PARAMETERS  # noqa: PLC0415

    model = config.model or ""
    server = await ask_local_server(address, load=model)
    served = None if server is None else server.find(model)
    if server is None or served is None:
        return FittedConfig(config)
    options = {**config.options, "context_size": served.context_window}
    count, note = served.parameters, None
    if count is not None and count < SMALL_PARAMETERS and server.kind in CONSTRAINING:
        options |= {"constrain": True, "examples": count < TINY_PARAMETERS}
        size = f"{count / 1e9:.1f} billion" if count >= 1e9 else f"{count / 1e6:.0f} million"
        name = model.rpartition("/")[2]
        note = f"{name} is small ({size} parameters): it is held to a schema, one tool call at a time."
    known = {name: value for name, value in options.items() if value is not None}
    return FittedConfig(replace(config, options=known), served.context_window, note)
