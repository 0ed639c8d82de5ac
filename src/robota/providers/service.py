"""Services that have models: what defines them, how their lists read, whether a profile works.

Lists and probes are GET requests only, so no tokens are spent. What a probe finds is said in one sentence.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from msgspec import Struct

from robota.core.env_ref import format_env_reference
from robota.core.errors import ProviderError, RobotaError
from robota.core.messages import Json, JsonObject
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
)
from robota.providers.catalog import is_listed, suggest, with_facts
from robota.providers.configuration import USUAL_OPTIONS, make_provider, read_options, settle

if TYPE_CHECKING:
    from robota.providers.chat_vendor import VendorProvider
    from robota.providers.wire.errors import Refusal

ReadModel: TypeAlias = Callable[[JsonObject], JsonObject | None]
"""The facts of a catalogue entry in one entry of a list; `None` for a model that is not to be offered."""
DescribeRefusal: TypeAlias = "Callable[[Refusal, str, Sequence[str]], RobotaError]"
NO_LIST = (404, 405, 501)
"""How endpoints answer that have models but no list of them."""


def base_path(base_url: str, *endings: str) -> tuple[str, str]:
    """The address without what adapters let people write behind it, and its query."""
    path, mark, query = base_url.strip().partition("?")
    path = path.rstrip("/")
    for ending in endings:
        path = path.removesuffix(ending)
    return path, f"{mark}{query}"


def openai_list_url(base_url: str) -> str:
    path, query = base_path(base_url, "/chat/completions", "/responses")
    return f"{path}/models{query}"


def read_openai(model: JsonObject) -> JsonObject:
    window = model.get("context_length") or model.get("max_model_len") or model.get("context_window")
    return {"context_window": window}


def bearer(key: str) -> Mapping[str, str]:
    return {"authorization": f"Bearer {key}"}


class ModelService(Struct, frozen=True, kw_only=True):
    """How a provider is made, where the list is, who may ask for it and how it reads."""

    title: str
    make: Callable[..., Provider]
    """Takes a key, a base URL, a model and options."""
    options: Mapping[str, type] = {}
    """What a profile may say beside the usual options."""
    defaults: ProviderConfig = ProviderConfig()
    find_defaults: Callable[[ProviderConfig, ProviderConfig], ProviderConfig] | None = None
    """Changes the defaults to what fits a profile and the environment."""
    list_url: Callable[[str], str] = openai_list_url
    """The address of the list, made from the base URL."""
    entries: str = "data"
    """The field with the list."""
    key: str = "id"
    """The field with a model's name."""
    read: ReadModel = read_openai
    sign: Callable[[str], Mapping[str, str]] = bearer
    """The headers that carry a key."""
    headers: Mapping[str, str] = {}
    key_url: Callable[[str], str] | None = None
    """Where a wrong key is refused, if the list itself is open to everybody."""
    needs_key: bool = False
    catalog: ModelCatalog = ModelCatalog(status="unavailable")
    describe: DescribeRefusal | None = None
    """The vendor's own reading of a refusal, where the status does not tell."""

    def settle(self, config: ProviderConfig) -> ProviderConfig:
        """The profile with what it leaves to the service."""
        defaults = self.defaults
        if self.find_defaults is not None:
            defaults = self.find_defaults(config, defaults)
        return settle(config, defaults, self.title, needs_key=self.needs_key)

    def create(self, config: ProviderConfig) -> Provider:
        settled = self.settle(config)
        options = read_options(settled, self.title, {**USUAL_OPTIONS, **self.options})
        return make_provider(self.make, settled, options)

    async def refresh(self, config: ProviderConfig) -> ModelCatalog:
        """The models the service has now, with what is known about them."""
        return await self._list(self.settle(config))

    async def probe(self, config: ProviderConfig) -> ProbeResult:
        """Whether the profile works as far as this can be told without asking a model."""
        try:
            settled = self.settle(config)
            if self.key_url is not None and settled.api_key:
                await self._get(self.key_url(settled.base_url or ""), settled)
            catalog = await self._list(settled)
        except RobotaError as error:
            if isinstance(error, ProviderError) and error.status in NO_LIST:
                return ProbeResult(
                    ok=True, message=f"{self.title} answers, but has no list of models to check."
                )
            return ProbeResult(ok=False, message=str(error))
        names = tuple(entry.id for entry in catalog.entries)
        ok, message = judge_model(settled.model, names, self.title)
        return ProbeResult(ok=ok, message=message, models=names)

    async def _list(self, settled: ProviderConfig) -> ModelCatalog:
        from robota.core.ports import utc_now  # noqa: PLC0415 - the day matters only with an answer

        url = self.list_url(settled.base_url or "")
        answer = await self._get(url, settled)
        try:
            entries = tuple(with_facts(entry, self.catalog) for entry in self._read(answer))
        except (LookupError, TypeError, AttributeError) as error:
            raise ProviderError(
                f"{self.title} answered, but not with a list of models; check the base URL.",
                provider=self.title,
            ) from error
        return ModelCatalog(
            status="live",
            entries=entries,
            last_verified_at=utc_now().date().isoformat(),
            source_url=url.partition("?")[0],
        )

    def _read(self, answer: Json) -> Iterator[ModelCatalogEntry]:
        """The models of a list; an odd entry is left out, what is no list at all raises."""
        listed = answer[self.entries]
        if not isinstance(listed, list):
            raise TypeError(f"{self.entries} is no list")
        for model in listed:
            name = _text(model.get(self.key)) if isinstance(model, dict) else None
            facts = self.read(model) if name else None
            if name and facts is not None:
                yield ModelCatalogEntry(
                    id=facts.get("id", name),
                    display_name=_text(facts.get("display_name")),
                    description=_text(facts.get("description")),
                    lifecycle=facts.get("lifecycle", "active"),
                    capabilities=facts.get("capabilities", ()),
                    context_window=_count(facts.get("context_window")),
                    max_output=_count(facts.get("max_output")),
                )

    async def _get(self, url: str, settled: ProviderConfig) -> Json:
        from robota.providers.wire.errors import describe_refusal  # noqa: PLC0415 - definitions load no adapter
        from robota.providers.wire.get import get_json  # noqa: PLC0415

        key = settled.api_key
        return await get_json(
            url,
            {**self.headers, **(self.sign(key) if key else {})},
            provider=self.title,
            secrets=(key,) if key else (),
            timeout=settled.timeout,
            describe=self.describe or describe_refusal,
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


def _text(value: Json) -> str | None:
    return value if isinstance(value, str) and value else None


def _count(value: Json) -> int | None:
    return value if isinstance(value, int) and value > 0 else None


# --- definitions -------------------------------------------------------------------------------------


def vendor_service(provider: type[VendorProvider], **facts: Any) -> ModelService:
    """The service of a vendor or a server of Chat Completions, with more facts about it."""
    vendor = provider.vendor
    key = format_env_reference(vendor.key_variable) if vendor.key_variable else None
    defaults = ProviderConfig(model=vendor.model, api_key=key, base_url=vendor.base_url)
    known = {"title": vendor.title, "make": provider, "defaults": defaults, "needs_key": key is not None}
    if key is None:  # the address of a server at home may be given without its path
        known["list_url"] = lambda base_url: openai_list_url(vendor.find_address(base_url))
    return ModelService(**{**known, **facts})


def define_service(
    name: str,
    service: ModelService,
    *,
    description: str,
    docs: str,
    key_page: str | None = None,
    aliases: tuple[str, ...] = (),
    steps: tuple[SetupStep, ...] = (),
) -> ProviderDefinition:
    """A service that wants a key, which is made at `key_page`; without it, a server that people run
    themselves: its address is known, its models are theirs. `steps` of the setup come before the model.
    """
    model, base_url = service.defaults.model, service.defaults.base_url
    links: tuple[SetupHelpLink, ...] = (SetupHelpLink(kind="official", url=docs, label="Documentation"),)
    if key_page is not None:
        links = (SetupHelpLink(kind="api-key", url=key_page, label="Make an API key"), *links)
        steps = (SetupStep(key="api_key", title="API key", required=True, masked=True), *steps)
    else:
        steps = (
            SetupStep(key="base_url", title="Base URL", default_value=base_url),
            SetupStep(key="api_key", title="API key, if the server wants one", masked=True),
            *steps,
        )
    return ProviderDefinition(
        type=name,
        create=service.create,
        aliases=aliases,
        display_name=service.title,
        description=description,
        defaults=service.defaults,
        model_catalog=service.catalog,
        setup_help_links=links,
        setup_steps=(
            *steps,
            SetupStep(key="model", title="Model", default_value=model, required=model is None),
        ),
        credential_requirement=CredentialRequirement(("api_key",)) if key_page is not None else None,
        refresh=service.refresh,
        probe=service.probe,
    )
