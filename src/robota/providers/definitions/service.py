"""A service that lists its models over HTTP: how a catalogue is refreshed and a profile tried out.

Both send GET requests only, so no tokens are spent. What a probe finds is said in one sentence.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

from msgspec import Struct

from robota.core.errors import ProviderError, RobotaError
from robota.core.messages import Json
from robota.core.provider_definition import ModelCatalog, ModelCatalogEntry, ProbeResult, ProviderConfig
from robota.providers.definitions.catalog import with_facts
from robota.providers.definitions.configuration import settle
from robota.providers.definitions.model_name import is_listed, suggest

if TYPE_CHECKING:
    from robota.providers.wire.errors import Refusal

ReadModels: TypeAlias = Callable[[Json], Iterable[ModelCatalogEntry]]
"""Raises `LookupError`, `TypeError` or `AttributeError` when the answer is no list of models."""
DescribeRefusal: TypeAlias = "Callable[[Refusal, str, Sequence[str]], RobotaError]"
NO_LIST = (404, 405, 501)
"""How endpoints answer that have models but no list of them."""


def bearer(key: str) -> Mapping[str, str]:
    return {"authorization": f"Bearer {key}"}


class ModelService(Struct, frozen=True, kw_only=True):
    """Where the list is, who may ask for it and how it reads; the functions belong to one vendor."""

    title: str
    defaults: ProviderConfig
    list_url: Callable[[str], str]
    """The address of the list, made from the base URL."""
    read: ReadModels
    sign: Callable[[str], Mapping[str, str]] = bearer
    """The headers that carry a key."""
    headers: Mapping[str, str] = {}
    key_url: Callable[[str], str] | None = None
    """Where a wrong key is refused, if the list itself is open to everybody."""
    needs_key: bool = False
    catalog: ModelCatalog = ModelCatalog(status="unavailable")
    describe: DescribeRefusal | None = None
    """The vendor's own reading of a refusal, where the status does not tell."""

    async def refresh(self, config: ProviderConfig) -> ModelCatalog:
        """The models the service has now, with what is known about them."""
        return await self._list(settle(config, self.defaults, self.title, needs_key=self.needs_key))

    async def probe(self, config: ProviderConfig) -> ProbeResult:
        """Whether the profile works as far as this can be told without asking a model."""
        try:
            settled = settle(config, self.defaults, self.title, needs_key=self.needs_key)
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
            entries = tuple(with_facts(entry, self.catalog) for entry in self.read(answer))
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
