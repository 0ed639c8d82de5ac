"""Every provider introduces itself here, as data: `all_definitions()` has ours and those of other packages.

Other packages come through entry points of the group `robota.providers`, each naming a `ProviderDefinition`
or a function that gives one. Ours are in a table: reading entry points means looking through every installed
package (tens of milliseconds), which a start with a known provider need not pay, and the table also works
where robota is not installed but on the path.

A vendor is one module or package, with its provider and the facts about it: `SERVICE`, of which a definition
is made here, or `define`, which gives one. Loading all of them loads no dialect, which encodes requests and
reads replies, and no HTTP; and making a provider loads no definition.

Lists and probes are GET requests only, so no tokens are spent. What a probe finds is said in one sentence.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING

from msgspec.structs import replace

from robota.core.credentials import format_env_reference
from robota.core.errors import ConfigurationError, ProviderError, RobotaError, describe_exception
from robota.core.jsontext import object_of, text_of
from robota.core.messages import Json
from robota.core.provider import Provider
from robota.core.provider_definition import (
    CredentialRequirement,
    ModelCatalog,
    ModelCatalogEntry,
    ProbeResult,
    ProviderConfig,
    ProviderDefinition,
    SetupHelpLink,
    SetupStep,
    find_provider_definition,
)
from robota.providers.catalog import judge_model, shipped_catalog, with_facts
from robota.providers.configuration import (
    USUAL_OPTIONS,
    is_same_host,
    make_provider,
    read_options,
    settle,
)
from robota.providers.service import Service

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

NO_CATALOG = ModelCatalog(status="unavailable")
NO_LIST = (404, 405, 501)
"""How endpoints answer that have models but no list of them."""
GROUP = "robota.providers"
OURS = {
    "anthropic": "AnthropicProvider",
    "openai": "OpenAIProvider",
    "gemini": "GeminiProvider",
    "openai-compatible": "OpenAICompatibleProvider",
    "deepseek": "DeepSeekProvider",
    "qwen": "QwenProvider",
    "openrouter": "OpenRouterProvider",
    "gemma": "GemmaProvider",
    "lmstudio": "LmStudioProvider",
    "ollama": "OllamaProvider",
    "vllm": "VllmProvider",
    "local-server": "LocalServerProvider",
    "local": "LocalProvider",
    "remote": "RemoteProvider",
    "scripted": "ScriptedProvider",
}
"""The types that come with the package, each called like its module, and their providers."""


def our_definitions() -> tuple[ProviderDefinition, ...]:
    return tuple(map(_define, OURS))


def all_definitions(on_problem: Callable[[str], None] | None = None) -> tuple[ProviderDefinition, ...]:
    """Ours and those of other packages; one that cannot be used is reported and left out."""
    report = _log if on_problem is None else on_problem
    known = list(our_definitions())
    for point in _entry_points():
        try:
            found = point.load()
            definition = found() if callable(found) else found
        except Exception as error:  # noqa: BLE001 - other people's code, and the rest must go on
            report(
                f"The provider {point.name!r} of {_origin(point)} is left out: {describe_exception(error)}."
            )
            continue
        problem = _objection(definition, known)
        if problem:
            report(f"The provider {point.name!r} of {_origin(point)} is left out: {problem}.")
        else:
            known.append(definition)
    return tuple(known)


def find_definition(
    type_or_alias: str, on_problem: Callable[[str], None] | None = None
) -> ProviderDefinition | None:
    """The definition of that name; other packages are looked through only for names that are not ours."""
    if type_or_alias in OURS:
        return _define(type_or_alias)
    return find_provider_definition(our_definitions(), type_or_alias) or find_provider_definition(
        all_definitions(on_problem), type_or_alias
    )


@cache
def _define(type: str) -> ProviderDefinition:
    vendor = import_module(f"robota.providers.{type.replace('-', '_')}")
    service = getattr(vendor, "SERVICE", None)
    if service is None:
        definition: ProviderDefinition = vendor.define()
        return definition

    def make(*given: Json, **options: Json) -> Provider:
        provider: Provider = getattr(vendor, OURS[type])(*given, **options)  # which may load the adapter
        return provider

    return define_service(type, service, service.make or make)


def _entry_points() -> Iterator[EntryPoint]:
    from importlib.metadata import entry_points  # noqa: PLC0415 - looks through every installed package

    yield from entry_points(group=GROUP)


def _objection(definition: object, known: list[ProviderDefinition]) -> str | None:
    if not isinstance(definition, ProviderDefinition):
        return f"{type(definition).__name__} is not a ProviderDefinition"
    taken = {name for other in known for name in (other.type, *other.aliases)}
    clash = next((name for name in (definition.type, *definition.aliases) if name in taken), None)
    return f"the name {clash!r} is taken" if clash else None


def _origin(point: EntryPoint) -> str:
    return point.dist.name if point.dist is not None else point.value


def _log(problem: str) -> None:
    import logging  # noqa: PLC0415 - nothing goes wrong as a rule

    logging.getLogger(GROUP).warning(problem)


# --- services ----------------------------------------------------------------------------------------


def define_service(type: str, service: Service, make: Callable[..., Provider]) -> ProviderDefinition:
    """The definition of a service whose providers are made by `make`."""
    defined = DefinedService(service, make)
    links = (
        SetupHelpLink(kind="api-key", url=service.key_page, label="Make an API key"),
        SetupHelpLink(kind="official", url=service.docs, label="Documentation"),
    )
    return ProviderDefinition(
        type=type,
        create=defined.create,
        aliases=service.aliases,
        display_name=service.display_name or service.title,
        description=service.description,
        defaults=defined.defaults,
        model_catalog=defined.catalog,
        setup_help_links=tuple(link for link in links if link.url),
        setup_steps=tuple(_setup_steps(service)),
        credential_requirement=_requirement(service),
        refresh=defined.refresh,
        probe=defined.probe,
    )


def _requirement(service: Service) -> CredentialRequirement | None:
    if service.key_page:
        return CredentialRequirement(("api_key",))
    return None if service.base_url else CredentialRequirement(("base_url",))


def _setup_steps(service: Service) -> Iterator[SetupStep]:
    model, address = service.model, service.base_url
    if service.key_page:
        yield SetupStep(key="api_key", title="API key", required=True, masked=True)
        if service.regions:
            yield SetupStep(key="base_url", title="Base URL of your region", default_value=address)
    elif address:
        yield SetupStep(key="base_url", title="Base URL", default_value=address)
        yield SetupStep(key="api_key", title="API key, if the server wants one", masked=True)
    else:
        yield SetupStep(key="base_url", title="Base URL, usually with /v1 at the end", required=True)
        yield SetupStep(key="api_key", title="API key, if the service wants one", masked=True)
    yield SetupStep(key="model", title="Model", default_value=model, required=model is None)


class DefinedService:
    """A service as its definition uses it: makes providers of profiles, lists models, tries a profile out."""

    def __init__(self, service: Service, make: Callable[..., Provider]) -> None:
        self.service = service
        self.catalog = shipped_catalog(service.catalog) if service.catalog else NO_CATALOG
        self._make = make
        key = service.key_variables[0] if service.key_variables else None
        self.defaults = ProviderConfig(
            model=service.model,
            api_key=None if key is None else format_env_reference(key),
            base_url=service.base_url,
        )

    def settle(self, config: ProviderConfig) -> ProviderConfig:
        """The profile with what it leaves to the service."""
        service, defaults = self.service, self.defaults
        if service.regions:
            defaults = replace(defaults, base_url=_find_region(service, config))
        variable = next((name for name in service.key_variables if os.environ.get(name)), None)
        if variable is not None:
            defaults = replace(defaults, api_key=format_env_reference(variable))
        return settle(config, defaults, service.title, needs_key=bool(service.key_page))

    def create(self, config: ProviderConfig) -> Provider:
        service, settled = self.service, self.settle(config)
        options = read_options(settled, service.title, {**USUAL_OPTIONS, **service.options})
        if service.regions:
            options.pop("region", None)  # it is in the address now
        return make_provider(self._make, settled, options)

    async def refresh(self, config: ProviderConfig) -> ModelCatalog:
        """The models the service has now, with what is known about them."""
        return await self._list(self.settle(config))

    async def probe(self, config: ProviderConfig) -> ProbeResult:
        """Whether the profile works as far as this can be told without asking a model."""
        try:
            settled = self.settle(config)
            if self.service.key_url is not None and settled.api_key:
                await self._get(self.service.key_url(settled.base_url or ""), settled)
            catalog = await self._list(settled)
        except RobotaError as error:
            if isinstance(error, ProviderError) and error.status in NO_LIST:
                return ProbeResult(
                    ok=True, message=f"{self.service.title} answers, but has no list of models to check."
                )
            return ProbeResult(ok=False, message=str(error))
        names = tuple(entry.id for entry in catalog.entries)
        ok, message = judge_model(settled.model, names, self.service.title)
        return ProbeResult(ok=ok, message=message, models=names)

    async def _list(self, settled: ProviderConfig) -> ModelCatalog:
        from robota.core.ports import utc_now  # noqa: PLC0415 - the day matters only with an answer

        url = self.service.find_list(settled.base_url or "")
        answer = await self._get(url, settled)
        try:
            entries = tuple(with_facts(entry, self.catalog) for entry in self._read(answer))
        except (LookupError, TypeError, AttributeError) as error:
            raise ProviderError(
                f"{self.service.title} answered, but not with a list of models; check the base URL.",
                provider=self.service.title,
            ) from error
        return ModelCatalog(
            status="live",
            entries=entries,
            last_verified_at=utc_now().date().isoformat(),
            source_url=url.partition("?")[0],
        )

    def _read(self, answer: Json) -> Iterator[ModelCatalogEntry]:
        """The models of a list; an odd entry is left out, what is not a list at all raises."""
        listed = answer[self.service.entries]
        if not isinstance(listed, list):
            raise TypeError(f"{self.service.entries} is not a list")
        for model in listed:
            name = text_of(object_of(model).get(self.service.key))
            facts = self.service.read(model) if name else None
            if facts is not None:
                yield ModelCatalogEntry(
                    id=facts.get("id", name),
                    display_name=text_of(facts.get("display_name")) or None,
                    description=text_of(facts.get("description")) or None,
                    lifecycle=facts.get("lifecycle", "active"),
                    capabilities=facts.get("capabilities", ()),
                    context_window=_count(facts.get("context_window")),
                    max_output=_count(facts.get("max_output")),
                )

    async def _get(self, url: str, settled: ProviderConfig) -> Json:
        from robota.providers.wire.channel import get_json  # noqa: PLC0415 - definitions load no adapter
        from robota.providers.wire.errors import describe_refusal  # noqa: PLC0415

        return await get_json(
            url,
            self.service.headers,
            provider=self.service.title,
            key=settled.api_key,
            sign=self.service.sign,
            timeout=settled.timeout,
            describe=self.service.describe or describe_refusal,
        )


def _find_region(service: Service, config: ProviderConfig) -> str:
    """The address of the region that a profile is about, by its name or by an address of that host."""
    region = config.options.get("region")
    home = service.base_url if region is None else service.regions.get(str(region))
    if home is None:
        names = ", ".join(service.regions)
        raise ConfigurationError(f"{service.title} has no region {region!r}: use one of {names}.")
    given = config.base_url
    return next((own for own in service.regions.values() if given and is_same_host(given, own)), home)


def _count(value: Json) -> int | None:
    return value if isinstance(value, int) and value > 0 else None
