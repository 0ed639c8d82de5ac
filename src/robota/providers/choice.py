"""Which model answers: what was named, what a key is there for, a local server, a local model.

The first that applies wins. Never a silent substitute: `note` says who answers when nobody chose it. A key of
the environment goes to its vendor's own host, and elsewhere only if provider and address were both named.
"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, NoReturn, TypeAlias
from urllib.parse import urlsplit

from msgspec import Struct
from msgspec.structs import replace

from robota.core.credentials import (
    ENV_REFERENCE_PREFIX,
    KeptKeys,
    format_env_reference,
    resolve_env_reference,
)
from robota.core.errors import ConfigurationError, RobotaError, UnknownNameError
from robota.core.provider import Provider
from robota.core.provider_definition import (
    ProviderConfig,
    ProviderDefinition,
    format_supported_provider_types,
    selectable_models,
)
from robota.core.retry import RetryingProvider, RetryPolicy
from robota.providers.catalog import (
    find_owner,
    guess_owner,
    is_listed,
    known_models,
    nearest_names,
    suggest,
)
from robota.providers.configuration import KeyAdvice, advise, fit_to_server, is_own_server
from robota.providers.definitions import OURS, all_definitions, find_definition

if TYPE_CHECKING:
    from robota.providers.local.detect import LocalServer

KEYS: dict[str, str] = {
    "ANTHROPIC_API_KEY": "anthropic",
    "OPENAI_API_KEY": "openai",
    "GEMINI_API_KEY": "gemini",
    "GOOGLE_API_KEY": "gemini",
    "DEEPSEEK_API_KEY": "deepseek",
    "DASHSCOPE_API_KEY": "qwen",
    "OPENROUTER_API_KEY": "openrouter",
}
"""Variables with a key, in order of preference, and whose it is."""
ADDRESSES: dict[str, str] = {
    "anthropic": "ANTHROPIC_BASE_URL",
    "openai": "OPENAI_BASE_URL",
    "gemini": "GOOGLE_GEMINI_BASE_URL",
}
"""The vendors' own variables for another address; it gets the vendor's key, being set beside it."""
NOTHING = (
    "Set a key such as ANTHROPIC_API_KEY or OPENAI_API_KEY, name a service with --provider or --base-url, or "
    "try a tiny model on this machine: robota model pull smollm2-135m"
)
LOCAL_NOTE = "{why} is {name}, a tiny offline model; it is often wrong, so look twice before you approve."
SERVER_TYPES = {"llama.cpp": "local-server"}
"""Where the kind of a detected server is no type of its own."""
LOCAL_PREFIX = "local:"
LOCAL_TEMPERATURE = 0.2
"""Small models lose the thread sooner when they are free to wander."""
LIST_SECONDS = 5.0
PATIENCE = RetryPolicy(max_attempts=4, base_delay=0.5)
"""Enough for a moment of weakness, and whoever typed a wrong address is told within seconds."""
Confirm: TypeAlias = Callable[[str], bool]
ListModels: TypeAlias = Callable[[], Awaitable[Sequence[str]]]


class ChosenProvider(Struct, frozen=True):
    """A provider that is ready to be used, and the model to ask it for."""

    provider: Provider
    """Closed by its user."""
    model: str
    note: str | None = None
    """Why it was chosen, if nobody named it."""
    context_window: int | None = None
    """Where the shipped facts know nothing of the model."""
    secrets: tuple[str, ...] = ()
    """Keys that must not be written anywhere."""
    list_models: ListModels | None = None
    """Asks the service which models it has."""


class ProviderArguments(Struct, frozen=True, kw_only=True):
    """What the user said about the model, and what there is to go by."""

    provider: str | None = None
    model: str | None = None
    base_url: str | None = None
    environment: Mapping[str, str]
    confirm: Confirm | None = None
    """Asks the user; `None` where nobody can be asked."""
    kept: Callable[[str], str | None] | None = None
    """Gives the key, or a reference, that the user keeps for a type; it goes to that service's own host."""
    report: Callable[[str], None] | None = None
    """Told of providers in other packages that cannot be used."""

    def value(self, variable: str) -> str | None:
        return self.environment.get(variable, "").strip() or None

    def key(self, type: str, *, elsewhere: bool = False) -> str | None:
        """A reference to the key that the environment has for this type, else what the user keeps for it;
        `elsewhere` than at the service's own host, only the first."""
        for variable, owner in KEYS.items():
            if owner == type and self.value(variable):
                return format_env_reference(variable)
        return None if self.kept is None or elsewhere else self.kept(type)

    def secrets(self, definition: ProviderDefinition | None = None) -> tuple[str, ...]:
        """The keys in the environment: those known here, and that of a provider from another package."""
        own = (definition.defaults.api_key if definition else None) or ""
        found = [self.value(variable) for variable in (*KEYS, own.removeprefix(ENV_REFERENCE_PREFIX))]
        return tuple(dict.fromkeys(filter(None, found)))


class Choice(Struct, frozen=True):
    definition: ProviderDefinition
    config: ProviderConfig
    note: str | None = None


async def choose_provider(
    *, provider: str | None = None, model: str | None = None, base_url: str | None = None
) -> ChosenProvider:
    """The provider and the model that the `robota` command would take, retries included.

    Without arguments the keys of the environment decide. A service that is named and has none there gets the
    key that its user keeps for it, at its own host alone. `chosen.provider` and `chosen.model` are for
    `Robota`, `Session` or `InteractiveSession`; close the provider when you are done.
    """
    given = ProviderArguments(
        provider=provider,
        model=model,
        base_url=base_url,
        environment=os.environ,
        kept=KeptKeys.of_user(os.environ).get,
    )
    try:
        choice = await find_choice(given)
        if choice is None:
            raise ConfigurationError(f"There is no model to ask. {NOTHING}")
        return await open_choice(choice, given)
    except ConfigurationError as error:
        raise ConfigurationError(_as_keywords(str(error))) from error


def _as_keywords(sentence: str) -> str:
    """What the command calls its options, as a program would write them."""
    for option, keyword in (("--model or ROBOTA_MODEL", "model=…"), ("--model", "model=…")):
        sentence = sentence.replace(option, keyword)
    return sentence.replace("--provider", "provider=…").replace("--base-url", "base_url=…")


async def open_choice(choice: Choice, given: ProviderArguments) -> ChosenProvider:
    """Make the provider; a server of the user's own is asked about its model first."""
    config, note = choice.config, choice.note
    if not config.model:
        config, note = await _find_model(choice)
    config, small = await fit_to_server(choice.definition, config)
    note = "\n".join(filter(None, (note, small))) or None
    provider = choice.definition.create(config)
    window: int | None = getattr(provider, "context_size", None)
    patient = RetryingProvider(KeyAdvice(provider, advise(choice.definition, config)), policy=PATIENCE)
    kept = resolve_env_reference(config.api_key) if config.api_key else None
    secrets = dict.fromkeys((*given.secrets(choice.definition), *filter(None, (kept,))))
    models = partial(list_models, choice.definition, config)
    return ChosenProvider(patient, config.model or "", note, window, tuple(secrets), models)


async def list_models(definition: ProviderDefinition, config: ProviderConfig) -> Sequence[str]:
    """Those that can be used: what the service says, else what is shipped about it."""
    catalog = definition.model_catalog
    if definition.refresh is not None:
        catalog = await definition.refresh(replace(config, timeout=LIST_SECONDS))
    return tuple(entry.id for entry in selectable_models(catalog))


async def find_choice(given: ProviderArguments) -> Choice | None:
    """The first that applies; `None` when there is nothing to go by."""
    if given.provider in (None, "local") and (given.model or "").startswith(LOCAL_PREFIX):
        return _take_local((given.model or "").removeprefix(LOCAL_PREFIX))
    if given.provider:
        return _take_named(given, given.provider)
    if given.base_url:
        return _take_address(given, given.base_url)
    if given.model:
        return _take_model(given, given.model) or await _offer_server(given) or _miss_service(given.model)
    return _take_key(given) or await _offer_server(given) or _take_local_model(given)


async def _offer_server(given: ProviderArguments) -> Choice | None:
    """A server that runs on this machine, if the user wants it."""
    if given.confirm is None:
        return None
    for server in await find_local_servers(given):
        fitting = [name for name in server.models if not given.model or is_listed(given.model, [name])]
        if not fitting:
            continue
        definition = _ours(SERVER_TYPES.get(server.kind, server.kind))
        if given.confirm(f"{server.kind} runs at {server.base_url}. Use it with {fitting[0]}?"):
            return Choice(definition, ProviderConfig(model=fitting[0], base_url=server.base_url))
    return None


async def find_local_servers(given: ProviderArguments) -> list[LocalServer]:
    """Model servers that run on this machine, at the usual addresses and where `OLLAMA_HOST` says."""
    from robota.providers.local.detect import USUAL_ADDRESSES, detect_local_servers  # noqa: PLC0415 - rarely needed

    own = _ollama_address(given)
    places = USUAL_ADDRESSES if own is None else (own, *USUAL_ADDRESSES)
    return await detect_local_servers(tuple(dict.fromkeys(places)))


def _miss_service(model: str) -> NoReturn:
    raise ConfigurationError(
        f"There is no service to ask for the model {model!r}{_near(model)}: "
        "set a key such as OPENAI_API_KEY, or name a service with --provider or --base-url."
    )


def _take_local(model: str, note: str | None = None) -> Choice:
    config = ProviderConfig(model=model, options={"temperature": LOCAL_TEMPERATURE})
    return Choice(_ours("local"), config, note)


def _take_local_model(given: ProviderArguments) -> Choice | None:
    from robota.providers.local import is_engine_installed  # noqa: PLC0415 - rarely needed
    from robota.providers.local.store import find_local_model  # noqa: PLC0415

    found = find_local_model(given.environment)
    if found is None or not is_engine_installed():
        return None
    why = "This" if given.provider else "There is no key: this"
    return _take_local(str(found), LOCAL_NOTE.format(why=why, name=found.stem))


def find_named(given: ProviderArguments, name: str) -> ProviderDefinition:
    """The provider of that type or alias."""
    definition = find_definition(name, given.report)
    if definition is None:
        known = all_definitions(lambda _: None)
        near = nearest_names(name, [other for one in known for other in (one.type, *one.aliases)])
        offer = (
            f"did you mean {' or '.join(near)}?" if near else f"use {format_supported_provider_types(known)}."
        )
        raise UnknownNameError(f"There is no provider {name!r}: {offer}")
    return definition


def _take_named(given: ProviderArguments, name: str) -> Choice:
    definition = find_named(given, name)
    if definition.type == "local":
        found = _take_local(given.model) if given.model else _take_local_model(given)
        if found is None:
            raise ConfigurationError(
                "There is no local model to run: `robota model list` names some, `robota model pull NAME` "
                "brings one, and pip install 'robota[local]' what runs them."
            )
        return found
    choice = _take(given, definition)
    names = [entry.id for entry in definition.model_catalog.entries]
    if choice.config.base_url is None and given.model and names and not is_listed(given.model, names):
        nearest = suggest(given.model, names)
        note = f"{definition.title} is asked for the unknown model {given.model!r}; {nearest}."
        return Choice(definition, choice.config, note)
    return choice


def _take_address(given: ProviderArguments, address: str) -> Choice:
    note = None
    if given.value("OPENAI_API_KEY"):
        note = f"OPENAI_API_KEY is not sent to {_host(address)}: add --provider openai if it belongs there."
    return _take(given, _ours("local-server" if is_own_server(address) else "openai-compatible"), note)


def _host(address: str) -> str:
    try:
        return urlsplit(address).hostname or address
    except ValueError:  # no address at all, which the provider will say
        return address


def _take_model(given: ProviderArguments, model: str) -> Choice | None:
    owner = find_owner(model)
    if owner is not None and _is_served(given, owner):
        return _take(given, _ours(owner))
    if owner is not None:
        raise ConfigurationError(
            f"{model} is a model of {_ours(owner).title}: set {_variable(owner)}, or name a service that has "
            "it with --provider or --base-url."
        )
    family = "openrouter" if "/" in model else guess_owner(model)
    served = [type for type in list_served(given) if type == family] or list_served(given)
    if not served:
        return None
    definition = _ours(served[0])
    near = _near(model)
    if served[0] == family and not near:
        return _take(given, definition)
    return _take(given, definition, f"{definition.title} is asked for the unknown model {model!r}{near}.")


def _near(model: str) -> str:
    near = nearest_names(model, known_models())
    return f"; the nearest names known here are {', '.join(near)}" if near else ""


def _take_key(given: ProviderArguments) -> Choice | None:
    served = list_served(given)
    if not served:
        return None
    definitions = [_ours(type) for type in served]
    taken = next((one for one in definitions if one.defaults.model), definitions[0])
    choice = _take(given, taken)
    if len(served) == 1:
        why = f"because {_variable(taken.type, given)} is set"
    else:
        others = " and ".join(_variable(type, given) for type in served)
        why = f"as {others} are set; choose with --provider or --model"
    model = f" with {choice.config.model}" if choice.config.model else ""
    return Choice(taken, choice.config, f"{taken.title} answers{model}, {why}.")


def make_profile(
    given: ProviderArguments, definition: ProviderDefinition, *, timeout: float | None = None
) -> ProviderConfig:
    """What the arguments and the environment say about this provider."""
    address = given.base_url or given.value(ADDRESSES.get(definition.type, ""))
    if definition.type == "ollama":
        address = address or _ollama_address(given)
    model = given.model or definition.defaults.model
    key = given.key(definition.type, elsewhere=address is not None)
    return ProviderConfig(model=model, base_url=address, api_key=key, timeout=timeout)


def _take(given: ProviderArguments, definition: ProviderDefinition, note: str | None = None) -> Choice:
    config = make_profile(given, definition)
    if not config.model and config.base_url is None and definition.model_catalog.entries:
        offered = selectable_models(definition.model_catalog)
        names = [entry.id for entry in offered if entry.lifecycle == "active"]
        raise ConfigurationError(
            f"{definition.title} has no default model: give one with --model or ROBOTA_MODEL; "
            f"{suggest('', names)}."
        )
    return Choice(definition, config, note)


async def _find_model(choice: Choice) -> tuple[ProviderConfig, str]:
    """The only model of a service that has one; whoever has more must be told which."""
    definition, config = choice.definition, choice.config
    where = config.base_url or definition.defaults.base_url or definition.title
    wanted = f"No model is named for {where}: give one with --model or ROBOTA_MODEL"
    if definition.refresh is None:
        raise ConfigurationError(f"{wanted}.")
    try:
        listed = await definition.refresh(replace(config, timeout=LIST_SECONDS))
    except RobotaError as error:
        raise ConfigurationError(f"{wanted}. Its models cannot be listed: {error}") from error
    names = [entry.id for entry in listed.entries]
    if len(names) != 1:
        raise ConfigurationError(f"{wanted}; {suggest('', names)}.")
    note = f"{names[0]} answers, the only model of {where}."
    return replace(config, model=names[0]), f"{choice.note}\n{note}" if choice.note else note


def _ollama_address(given: ProviderArguments) -> str | None:
    """What Ollama's own variable says, which may be less than an address: `:8000`, `0.0.0.0`, `host:port`."""
    written = given.value("OLLAMA_HOST")
    if written is None:
        return None
    scheme, mark, place = written.rpartition("://")
    host, colon, port = place.rstrip("/").partition(":")
    host = "127.0.0.1" if host in ("", "0.0.0.0") else host
    port = f":{port}" if colon else "" if mark else ":11434"
    return f"{scheme or 'http'}://{host}{port}"


def list_served(given: ProviderArguments) -> list[str]:
    """The types that the environment has a key or an address for, in order of preference."""
    return [type for type in dict.fromkeys(KEYS.values()) if _is_served(given, type)]


def _is_served(given: ProviderArguments, type: str) -> bool:
    return given.key(type) is not None or given.value(ADDRESSES.get(type, "")) is not None


def _variable(type: str, given: ProviderArguments | None = None) -> str:
    """The variable that speaks for a type: the one that is set, else the one to set."""
    mine = [variable for variable, owner in KEYS.items() if owner == type]
    if given is None:
        return mine[0]
    named = next((name for name in (*mine, ADDRESSES.get(type, "")) if given.value(name)), None)
    return named or (mine[0] if given.key(type) is None else f"your key of {type}")


def _ours(type: str) -> ProviderDefinition:
    definition = find_definition(type)
    assert definition is not None, f"{type} is in {list(OURS)}"
    return definition
