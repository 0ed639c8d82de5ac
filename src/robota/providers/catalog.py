"""The catalogues that come with the package, and names of models: which mean the same, which are near.

`catalogs.json` says which models a provider had when it was last looked at, their lifecycle and what they can
do; names and windows come from the table of model facts (`robota.core.models`), so that no fact is written
twice. A catalogue is `generated` when its ids were compared with the vendor's own client on the day it names,
`fallback` when nobody could.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from functools import cache

import msgspec
from msgspec import Struct

from robota.core.models import shipped_models
from robota.core.provider_definition import (
    CatalogStatus,
    ModelCapability,
    ModelCatalog,
    ModelCatalogEntry,
    ModelLifecycle,
)

NEAREST = 3
_NAMED_IN_FULL = 8


class _Row(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    lifecycle: ModelLifecycle = "active"
    capabilities: tuple[ModelCapability, ...] | None = None


class _Catalog(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    status: CatalogStatus
    models: dict[str, _Row]
    source_url: str
    capabilities: tuple[ModelCapability, ...] = ()
    """Of the models that do not say otherwise."""
    last_verified_at: str | None = None


def shipped_catalog(name: str) -> ModelCatalog:
    written = _read()[name]
    return ModelCatalog(
        status=written.status,
        last_verified_at=written.last_verified_at,
        source_url=written.source_url,
        entries=tuple(
            with_facts(
                ModelCatalogEntry(
                    id=id,
                    lifecycle=row.lifecycle,
                    capabilities=written.capabilities if row.capabilities is None else row.capabilities,
                )
            )
            for id, row in written.models.items()
        ),
    )


def find_owner(model: str) -> str | None:
    """The name of the catalogue that has the model; a date may be added or left out."""
    return next((name for name, written in _read().items() if is_listed(model, written.models)), None)


def guess_owner(model: str) -> str | None:
    """The catalogue whose names begin with the same word: new models of a known family have no entry yet."""
    word = _first_word(model)
    return next(
        (name for name, written in _read().items() if word in {_first_word(id) for id in written.models}),
        None,
    )


def known_models() -> tuple[str, ...]:
    return tuple(id for written in _read().values() for id in written.models)


def with_facts(entry: ModelCatalogEntry, catalog: ModelCatalog | None = None) -> ModelCatalogEntry:
    """The entry with what the table of models and the catalogue know and it does not say itself."""
    known = shipped_models().find(entry.id)
    listed = next((other for other in catalog.entries if other.id == entry.id), None) if catalog else None
    return ModelCatalogEntry(
        id=entry.id,
        display_name=entry.display_name or (known.name if known else None),
        description=entry.description,
        lifecycle=listed.lifecycle if listed and entry.lifecycle == "active" else entry.lifecycle,
        capabilities=entry.capabilities or (listed.capabilities if listed else ()),
        context_window=entry.context_window or (known.context_window if known else None),
        max_output=entry.max_output or (known.max_output if known else None),
    )


def _first_word(model: str) -> str:
    end = next((at for at, letter in enumerate(model) if not letter.isalpha()), len(model))
    return model[:end].lower()


@cache
def _read() -> dict[str, _Catalog]:
    path = os.path.join(os.path.dirname(__file__), "catalogs.json")
    with open(path, "rb") as file:
        return msgspec.json.decode(file.read(), type=dict[str, _Catalog])


# --- names of models ---------------------------------------------------------------------------------


def is_listed(model: str, listed: Iterable[str]) -> bool:
    """Whether a service that lists these names has the model: a date or `latest` may be left out."""
    return any(_is_same(model, name) for name in listed)


def nearest_names(name: str, known: Iterable[str]) -> tuple[str, ...]:
    """The known names that look most like it, the best first."""
    from difflib import get_close_matches  # noqa: PLC0415 - only for names that are wrong

    by_key = {other.lower(): other for other in known}
    return tuple(by_key[key] for key in get_close_matches(name.lower(), by_key, NEAREST, 0.6))


def suggest(name: str, known: Iterable[str]) -> str:
    """`the nearest are a, b` for an error message; all of them when they are few and none is near."""
    names = tuple(known)
    near = nearest_names(name, names)
    if near:
        return f"the nearest {'is' if len(near) == 1 else 'are'} {', '.join(near)}"
    if not names:
        return "there are none"
    more = f" and {len(names) - _NAMED_IN_FULL} more" if len(names) > _NAMED_IN_FULL else ""
    return f"there {'is' if len(names) == 1 else 'are'} {', '.join(names[:_NAMED_IN_FULL])}{more}"


def _is_same(model: str, listed: str) -> bool:
    if listed == model:
        return True
    longer, shorter = (listed, model) if len(listed) > len(model) else (model, listed)
    rest = longer.removeprefix(shorter)
    return rest != longer and (
        rest in (":latest", "-latest")
        or (rest[:1] in "-@" and rest[1:].replace("-", "").isdecimal() and len(rest) > 8)
    )


def judge_model(model: str | None, names: Sequence[str], title: str) -> tuple[bool, str]:
    """Whether a service with these models can serve the profile, in a sentence."""
    if not names:
        return False, f"{title} answers, but has no models: load or pull one first."
    if not model:
        return False, f"{title} answers, but the profile names no model: {suggest('', names)}."
    if is_listed(model, names):
        return True, f"{title} answers and has {model}."
    return False, f"{title} has no model {model!r}: {suggest(model, names)}."
