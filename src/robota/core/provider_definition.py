"""How a provider package introduces itself: names, defaults, models, setup, and how to make one.

Definitions are data with a few functions in them. Setup flows, model pickers and error messages read them, so
that no generic layer ever asks which vendor it is talking about.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from itertools import chain
from typing import Literal, TypeAlias

from msgspec import Struct, field

from robota.core.credentials import has_usable_secret_reference, is_env_reference
from robota.core.messages import Json
from robota.core.provider import Provider

CatalogStatus: TypeAlias = Literal["live", "generated", "fallback", "unavailable"]
ModelLifecycle: TypeAlias = Literal["active", "preview", "deprecated", "unavailable"]
ModelCapability: TypeAlias = Literal[
    "tools", "vision", "json_schema", "json_object", "reasoning", "native_web", "streaming"
]
HelpLinkKind: TypeAlias = Literal["api-key", "console", "official"]
SetupKey: TypeAlias = Literal["model", "api_key", "base_url", "timeout"]
Credential: TypeAlias = Literal["api_key", "base_url"]

HELP_LINK_PREFERENCE: tuple[HelpLinkKind, ...] = ("api-key", "console", "official")


class ProviderConfig(Struct, frozen=True, kw_only=True):
    """The settings of one provider profile; also a definition's defaults."""

    model: str | None = None
    api_key: str | None = None
    """The key or a `$ENV:` reference to it."""
    base_url: str | None = None
    timeout: float | None = None
    options: Mapping[str, Json] = field(default_factory=dict)
    """The provider's own options; generic layers pass them through unread."""

    def __repr__(self) -> str:
        key = self.api_key if self.api_key is None or is_env_reference(self.api_key) else "***"
        return f"ProviderConfig(model={self.model!r}, api_key={key!r}, base_url={self.base_url!r})"


class ModelCatalogEntry(Struct, frozen=True, kw_only=True):
    """One model that a provider offers."""

    id: str
    display_name: str | None = None
    description: str | None = None
    lifecycle: ModelLifecycle = "active"
    capabilities: tuple[ModelCapability, ...] = ()
    context_window: int | None = None
    max_output: int | None = None


class ModelCatalog(Struct, frozen=True, kw_only=True):
    """The models of a provider and how fresh that knowledge is."""

    status: CatalogStatus
    entries: tuple[ModelCatalogEntry, ...] = ()
    last_verified_at: str | None = None
    """ISO date."""
    source_url: str | None = None


class SetupHelpLink(Struct, frozen=True, kw_only=True):
    """Where a user gets a key or reads how."""

    kind: HelpLinkKind
    url: str
    label: str = ""


class SetupStep(Struct, frozen=True, kw_only=True):
    """One question of the guided setup."""

    key: SetupKey
    title: str
    default_value: str | None = None
    required: bool = False
    masked: bool = False


class CredentialRequirement(Struct, frozen=True):
    """What a provider needs before it can be used."""

    any_of: tuple[Credential, ...]
    """One of these settings must have a usable value."""


class ProbeResult(Struct, frozen=True, kw_only=True):
    """Whether a profile works, in words for the user."""

    ok: bool
    message: str
    models: tuple[str, ...] = ()


class ProviderDefinition(Struct, frozen=True, kw_only=True):
    """Introduces a provider by name: how it is made, what it needs, which models it has."""

    type: str
    create: Callable[[ProviderConfig], Provider]
    aliases: tuple[str, ...] = ()
    display_name: str = ""
    description: str = ""
    defaults: ProviderConfig = ProviderConfig()
    model_catalog: ModelCatalog = ModelCatalog(status="unavailable")
    setup_help_links: tuple[SetupHelpLink, ...] = ()
    setup_steps: tuple[SetupStep, ...] = ()
    credential_requirement: CredentialRequirement | None = None
    refresh: Callable[[ProviderConfig], Awaitable[ModelCatalog]] | None = None
    """Ask the service which models it has."""
    probe: Callable[[ProviderConfig], Awaitable[ProbeResult]] | None = None
    """Try a profile out."""

    @property
    def title(self) -> str:
        return self.display_name or self.type

    @property
    def requires_api_key(self) -> bool:
        """Whether nothing but a key will do."""
        return self.credential_requirement is not None and self.credential_requirement.any_of == ("api_key",)

    @property
    def preferred_help_link(self) -> SetupHelpLink | None:
        """The link that brings a user closest to a key."""
        ranked = sorted(self.setup_help_links, key=lambda link: HELP_LINK_PREFERENCE.index(link.kind))
        return ranked[0] if ranked else None


def find_provider_definition(
    definitions: Iterable[ProviderDefinition], type_or_alias: str
) -> ProviderDefinition | None:
    """The definition of that type; an alias counts only if no type has the name."""
    known = tuple(definitions)
    by_type = (definition for definition in known if definition.type == type_or_alias)
    by_alias = (definition for definition in known if type_or_alias in definition.aliases)
    return next(chain(by_type, by_alias), None)


def format_supported_provider_types(definitions: Iterable[ProviderDefinition]) -> str:
    """`type (alias: x), other (aliases: y, z)` for error messages."""
    shown: list[str] = []
    for definition in definitions:
        word = "alias" if len(definition.aliases) == 1 else "aliases"
        named = f" ({word}: {', '.join(definition.aliases)})" if definition.aliases else ""
        shown.append(definition.type + named)
    return ", ".join(shown)


def selectable_models(catalog: ModelCatalog) -> tuple[ModelCatalogEntry, ...]:
    """The models worth offering: all but those that cannot be used."""
    return tuple(entry for entry in catalog.entries if entry.lifecycle != "unavailable")


def has_usable_credentials(
    definition: ProviderDefinition, config: ProviderConfig, env: Mapping[str, str] | None = None
) -> bool:
    """Whether the profile, or the definition's defaults, meet the credential requirement."""
    if definition.credential_requirement is None:
        return True
    return any(
        has_usable_secret_reference(getattr(config, name) or getattr(definition.defaults, name), env)
        for name in definition.credential_requirement.any_of
    )
