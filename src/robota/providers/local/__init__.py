"""A model file on this machine, run by llama.cpp in this process; and servers that run already (`detect`).

What runs it is loaded with the first provider.
"""

from __future__ import annotations

import os.path
from typing import TYPE_CHECKING

from robota._lazy import lazy_names
from robota.core.errors import ConfigurationError, RobotaError
from robota.core.provider import Provider
from robota.core.provider_definition import (
    ModelCatalog,
    ModelCatalogEntry,
    ProbeResult,
    ProviderConfig,
    ProviderDefinition,
    SetupStep,
)
from robota.providers.catalog import judge_model
from robota.providers.configuration import read_options

if TYPE_CHECKING:
    from robota.providers.local.provider import LocalProvider

__all__ = ["LocalProvider"]
__getattr__, __dir__ = lazy_names(__name__, {"LocalProvider": "robota.providers.local.provider"}, globals())
TITLE = "The local provider"
ENGINE = "xllamacpp"
OPTIONS = {
    "context_size": int,
    "max_tokens": int,
    "temperature": float,
    "seed": int,
    "threads": int,
    "examples": bool,
}


def create(config: ProviderConfig) -> Provider:
    from robota.providers.local.provider import LocalProvider  # noqa: PLC0415 - see the docstring

    return LocalProvider(_find_model(config), **read_options(config, TITLE, OPTIONS))


async def refresh(config: ProviderConfig) -> ModelCatalog:
    """The model files that are here."""
    from robota.providers.local.store import ModelStore  # noqa: PLC0415 - see the docstring

    entries = (
        ModelCatalogEntry(
            id=model.name,
            display_name=model.title or None,
            capabilities=("tools", "json_schema", "streaming"),
        )
        for model in ModelStore().list()
        if model.path is not None
    )
    return ModelCatalog(status="live", entries=tuple(entries))


async def probe(config: ProviderConfig) -> ProbeResult:
    try:
        model = _find_model(config)
        read_options(config, TITLE, OPTIONS)
        if not is_engine_installed():
            raise ConfigurationError(f"{TITLE} needs llama.cpp: pip install 'robota[local]'.")
        names = tuple(entry.id for entry in (await refresh(config)).entries)
        ok, message = _judge(model, names)
    except RobotaError as error:
        return ProbeResult(ok=False, message=str(error))
    return ProbeResult(ok=ok, message=message, models=names)


def is_engine_installed() -> bool:
    from importlib.util import find_spec  # noqa: PLC0415 - only for those without a key

    return find_spec(ENGINE) is not None


def _find_model(config: ProviderConfig) -> str:
    from robota.providers.local.store import find_local_model  # noqa: PLC0415 - see the docstring

    if config.model:
        return config.model
    found = find_local_model()
    if found is None:
        raise ConfigurationError(f"{TITLE} has no model yet: see `robota model list` and pull one.")
    return str(found)


def _judge(model: str, names: tuple[str, ...]) -> tuple[bool, str]:
    if model.endswith(".gguf") or "/" in model:
        there = os.path.isfile(os.path.expanduser(model))
        return there, f"{TITLE} has {model}." if there else f"{TITLE} finds no file {model}."
    return judge_model(model, names, TITLE)


def define() -> ProviderDefinition:
    return ProviderDefinition(
        type="local",
        create=create,
        aliases=("llama.cpp",),
        display_name="Local",
        description="A model file run by llama.cpp in this process; no key and no network.",
        setup_steps=(SetupStep(key="model", title="Name of a pulled model, or path of a GGUF file"),),
        refresh=refresh,
        probe=probe,
    )
