"""The scripted model: no service, no key, no thinking; for tests, demonstrations and the tour."""

from __future__ import annotations

from robota.core.errors import ConfigurationError
from robota.core.provider import Provider
from robota.core.provider_definition import (
    ModelCatalog,
    ModelCatalogEntry,
    ProbeResult,
    ProviderConfig,
    ProviderDefinition,
)
from robota.providers.definitions.configuration import read_options

TITLE = "The scripted model"
OPTIONS = {"replies": list}
MODEL = "scripted"
REPLY = "I am the scripted model, so I can only say this sentence."


def create(config: ProviderConfig) -> Provider:
    from robota.providers.scripted import ScriptedProvider  # noqa: PLC0415 - definitions load no adapter

    replies = read_options(config, TITLE, OPTIONS).get("replies", [REPLY])
    if not replies or not all(isinstance(reply, str) for reply in replies):
        raise ConfigurationError("The option 'replies' of the scripted model must be a list of texts.")
    return ScriptedProvider(*replies, repeat=True)


async def refresh(config: ProviderConfig) -> ModelCatalog:
    return CATALOG


async def probe(config: ProviderConfig) -> ProbeResult:
    return ProbeResult(ok=True, message=f"{TITLE} always answers.", models=(MODEL,))


CATALOG = ModelCatalog(
    status="live",
    entries=(ModelCatalogEntry(id=MODEL, capabilities=("tools", "streaming"), context_window=100_000),),
)
DEFINITION = ProviderDefinition(
    type="scripted",
    create=create,
    display_name="Scripted",
    description="Says fixed sentences, without a service or a key.",
    defaults=ProviderConfig(model=MODEL),
    model_catalog=CATALOG,
    refresh=refresh,
    probe=probe,
)
