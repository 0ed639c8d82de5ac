"""The models of a provider with what is known about each, for `robota model list --provider`."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator

from robota.core.errors import RobotaError
from robota.core.models import find_model_price
from robota.core.provider_definition import ModelCatalog, ModelCatalogEntry
from robota.sdk.auth import KeyStore
from robota.sdk.places import find_places

LIST_SECONDS = 10.0
HEADINGS = ("model", "window", "output", "$/M in", "$/M out", "what it is")


def show_models(provider: str, base_url: str | None) -> None:
    """Print the models that the service has now, or else those that are known here."""
    import asyncio  # noqa: PLC0415 - only for lists of services

    catalog, note = asyncio.run(_find(provider, base_url))
    print(note, file=sys.stderr)
    rows = [HEADINGS, *map(_describe, catalog.entries)]
    widths = [max(len(row[column]) for row in rows) for column in range(5)]
    for row in rows:
        numbers = (f"{row[at]:>{widths[at]}}" for at in range(1, 5))
        print("  ".join((f"{row[0]:<{widths[0]}}", *numbers, row[5])))


async def _find(provider: str, base_url: str | None) -> tuple[ModelCatalog, str]:
    from robota.cli.chosen_provider import find_service  # noqa: PLC0415 - see above
    from robota.cli.opening import read_own_settings  # noqa: PLC0415
    from robota.providers.choice import ProviderArguments  # noqa: PLC0415

    kept = KeyStore(find_places().robota_home).get
    given = ProviderArguments(base_url=base_url, environment=os.environ, kept=kept)
    profiles = read_own_settings(os.environ).profiles
    definition, config = find_service(given, profiles, provider, timeout=LIST_SECONDS)
    shipped, why = definition.model_catalog, "it has no list"
    if definition.refresh is not None:
        try:
            live = await definition.refresh(config)
        except RobotaError as error:
            if not shipped.entries:
                raise
            why = str(error).rstrip(".")
        else:
            return live, f"{len(live.entries)} models, as {definition.title} lists them now."
    seen = f", last compared on {shipped.last_verified_at}" if shipped.last_verified_at else ""
    return shipped, f"{len(shipped.entries)} models, as they are known here{seen}. ({why}.)"


def _describe(entry: ModelCatalogEntry) -> tuple[str, ...]:
    price = find_model_price(entry.id)
    return (
        entry.id,
        _count(entry.context_window),
        _count(entry.max_output),
        f"{price.input:g}" if price else "-",
        f"{price.output:g}" if price else "-",
        ", ".join(_words(entry)),
    )


def _words(entry: ModelCatalogEntry) -> Iterator[str]:
    if entry.display_name:
        yield entry.display_name
    if entry.lifecycle != "active":
        yield entry.lifecycle
    yield from entry.capabilities
    if entry.context_window is None:
        yield "nothing is published about its window"


def _count(value: int | None) -> str:
    return "-" if value is None else f"{value:,}"
