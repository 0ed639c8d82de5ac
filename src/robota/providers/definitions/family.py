"""What the definitions of the Chat Completions family share: only addresses, keys and names differ."""

from __future__ import annotations

from msgspec import Struct

from robota.core.provider import Provider
from robota.core.provider_definition import (
    CredentialRequirement,
    ProviderConfig,
    ProviderDefinition,
    SetupHelpLink,
    SetupStep,
)
from robota.providers.definitions.configuration import USUAL_OPTIONS, make_provider, read_options, settle
from robota.providers.definitions.lists import openai_list_url
from robota.providers.definitions.service import ModelService


class Family(Struct, frozen=True, kw_only=True):
    """One member: its service, and where its provider is to be found."""

    place: str
    """`module:Class`, loaded when a provider is made."""
    service: ModelService
    options: dict[str, type] = {}
    """Beside the usual ones."""

    def create(self, config: ProviderConfig) -> Provider:
        from importlib import import_module  # noqa: PLC0415 - asked for by name

        service = self.service
        settled = settle(config, service.defaults, service.title, needs_key=service.needs_key)
        options = read_options(settled, service.title, {**USUAL_OPTIONS, **self.options})
        module, _, name = self.place.partition(":")
        return make_provider(getattr(import_module(module), name), settled, options)


def list_below_v1(base_url: str) -> str:
    """The list of a server at home, whose address may be given without its path."""
    bare = base_url.rstrip("/").count("/") == 2 and "?" not in base_url
    return openai_list_url(f"{base_url.rstrip('/')}/v1" if bare else base_url)


def define_hosted(
    type: str,
    family: Family,
    *,
    description: str,
    links: tuple[SetupHelpLink, ...],
    aliases: tuple[str, ...] = (),
) -> ProviderDefinition:
    """A service that wants a key."""
    service = family.service
    return ProviderDefinition(
        type=type,
        create=family.create,
        aliases=aliases,
        display_name=service.title,
        description=description,
        defaults=service.defaults,
        model_catalog=service.catalog,
        setup_help_links=links,
        setup_steps=(
            SetupStep(key="api_key", title="API key", required=True, masked=True),
            SetupStep(
                key="model",
                title="Model",
                default_value=service.defaults.model,
                required=service.defaults.model is None,
            ),
        ),
        credential_requirement=CredentialRequirement(("api_key",)),
        refresh=service.refresh,
        probe=service.probe,
    )


def define_server(
    type: str, family: Family, *, description: str, link: str, aliases: tuple[str, ...] = ()
) -> ProviderDefinition:
    """A server that people run themselves: its address is known, its models are theirs."""
    service = family.service
    return ProviderDefinition(
        type=type,
        create=family.create,
        aliases=aliases,
        display_name=service.title,
        description=description,
        defaults=service.defaults,
        setup_help_links=(SetupHelpLink(kind="official", url=link, label="Documentation"),),
        setup_steps=(
            SetupStep(key="base_url", title="Base URL", default_value=service.defaults.base_url),
            SetupStep(key="api_key", title="API key, if the server wants one", masked=True),
            SetupStep(key="model", title="Model", required=True),
        ),
        refresh=service.refresh,
        probe=service.probe,
    )
