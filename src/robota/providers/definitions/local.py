"""Local: a model file on this machine, run by llama.cpp in this process."""

from __future__ import annotations

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
from robota.providers.definitions.configuration import read_options
from robota.providers.definitions.service import judge_model

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
    from robota.providers.local import LocalProvider  # noqa: PLC0415 - definitions load no adapter

    return LocalProvider(_find_model(config), **read_options(config, TITLE, OPTIONS))


async def refresh(config: ProviderConfig) -> ModelCatalog:
    """The model files that are here."""
    from robota.providers.local.store import ModelStore  # noqa: PLC0415 - definitions load no adapter

    ready = [model for model in ModelStore().list() if model.path is not None]
    entries = (
        ModelCatalogEntry(
            id=model.name,
            display_name=model.title or None,
            capabilities=("tools", "json_schema", "streaming"),
        )
        for model in ready
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
    from robota.providers.local.store import find_local_model  # noqa: PLC0415 - definitions load no adapter

    if config.model:
        return config.model
    found = find_local_model()
    if found is None:
        raise ConfigurationError(f"{TITLE} has no model yet: see `robota model list` and pull one.")
    return str(found)


def _judge(model: str, names: tuple[str, ...]) -> tuple[bool, str]:
    from os.path import expanduser, isfile  # noqa: PLC0415 - see above

    if model.endswith(".gguf") or "/" in model:
        there = isfile(expanduser(model))
        return there, f"{TITLE} has {model}." if there else f"{TITLE} finds no file {model}."
    return judge_model(model, names, TITLE)


DEFINITION = ProviderDefinition(
    type="local",
    create=create,
    aliases=("llama.cpp",),
    display_name="Local",
    description="A model file run by llama.cpp in this process; no key and no network.",
    setup_steps=(SetupStep(key="model", title="Name of a pulled model, or path of a GGUF file"),),
    refresh=refresh,
    probe=probe,
)
