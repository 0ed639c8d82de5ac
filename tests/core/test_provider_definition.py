from __future__ import annotations

import pytest

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
    format_supported_provider_types,
    has_usable_credentials,
    selectable_models,
)
from robota.providers.scripted import ScriptedProvider

pytestmark = pytest.mark.anyio


def create(config: ProviderConfig) -> Provider:
    return ScriptedProvider(name=config.model or "none")


async def refresh(config: ProviderConfig) -> ModelCatalog:
    return ModelCatalog(status="live", entries=(ModelCatalogEntry(id="fresh"),))


async def probe(config: ProviderConfig) -> ProbeResult:
    return ProbeResult(ok=config.api_key is not None, message="No key was given.")


CLOUD = ProviderDefinition(
    type="cloud",
    aliases=("sky",),
    display_name="The Cloud",
    create=create,
    defaults=ProviderConfig(model="big", api_key="$ENV:CLOUD_KEY"),
    setup_steps=(SetupStep(key="api_key", title="API key", required=True, masked=True),),
    credential_requirement=CredentialRequirement(("api_key",)),
    refresh=refresh,
    probe=probe,
)
LOCAL = ProviderDefinition(type="local", aliases=("here", "home"), create=create)
PLAIN = ProviderDefinition(type="plain", create=create)


@pytest.mark.parametrize(
    ("name", "found"), [("cloud", CLOUD), ("sky", CLOUD), ("home", LOCAL), ("plain", PLAIN), ("moon", None)]
)
def test_a_definition_is_found_by_type_or_alias(name: str, found: ProviderDefinition | None) -> None:
    assert find_provider_definition([CLOUD, LOCAL, PLAIN], name) is found


def test_a_type_wins_over_an_alias_of_the_same_name() -> None:
    greedy = ProviderDefinition(type="greedy", aliases=("plain",), create=create)
    assert find_provider_definition([greedy, PLAIN], "plain") is PLAIN


def test_supported_types_are_listed_with_their_aliases() -> None:
    assert format_supported_provider_types([CLOUD, LOCAL, PLAIN]) == (
        "cloud (alias: sky), local (aliases: here, home), plain"
    )


def test_models_that_cannot_be_used_are_not_offered() -> None:
    entries = tuple(
        ModelCatalogEntry(id=lifecycle, lifecycle=lifecycle)
        for lifecycle in ("active", "preview", "deprecated", "unavailable")
    )
    offered = selectable_models(ModelCatalog(status="fallback", entries=entries))
    assert [entry.id for entry in offered] == ["active", "preview", "deprecated"]


def test_a_definition_without_a_catalog_says_that_none_is_available() -> None:
    assert PLAIN.model_catalog == ModelCatalog(status="unavailable")


def test_the_help_link_nearest_to_a_key_is_preferred() -> None:
    links = [
        SetupHelpLink(kind="official", url="https://docs"),
        SetupHelpLink(kind="console", url="https://console"),
        SetupHelpLink(kind="api-key", url="https://keys"),
    ]
    for count, url in ((1, "https://docs"), (2, "https://console"), (3, "https://keys")):
        definition = ProviderDefinition(type="x", create=create, setup_help_links=tuple(links[:count]))
        assert definition.preferred_help_link is not None
        assert definition.preferred_help_link.url == url
    assert PLAIN.preferred_help_link is None


def test_a_title_is_the_display_name_or_the_type() -> None:
    assert (CLOUD.title, PLAIN.title) == ("The Cloud", "plain")


@pytest.mark.parametrize(
    ("any_of", "config", "usable"),
    [
        (None, ProviderConfig(), True),
        (("api_key",), ProviderConfig(), False),
        (("api_key",), ProviderConfig(api_key="sk-1"), True),
        (("api_key",), ProviderConfig(api_key="$ENV:SET"), True),
        (("api_key",), ProviderConfig(api_key="$ENV:UNSET"), False),
        (("api_key", "base_url"), ProviderConfig(base_url="http://localhost"), True),
    ],
)
def test_one_of_the_required_credentials_is_enough(any_of, config: ProviderConfig, usable: bool) -> None:  # type: ignore[no-untyped-def]
    requirement = None if any_of is None else CredentialRequirement(any_of)
    definition = ProviderDefinition(type="x", create=create, credential_requirement=requirement)
    assert has_usable_credentials(definition, config, {"SET": "sk-2"}) is usable


def test_a_default_reference_counts_as_a_credential_when_its_variable_is_set() -> None:
    assert has_usable_credentials(CLOUD, ProviderConfig(), {"CLOUD_KEY": "sk-1"})
    assert not has_usable_credentials(CLOUD, ProviderConfig(), {})


def test_a_key_is_required_when_nothing_else_will_do() -> None:
    either = ProviderDefinition(
        type="x", create=create, credential_requirement=CredentialRequirement(("api_key", "base_url"))
    )
    assert [definition.requires_api_key for definition in (CLOUD, either, PLAIN)] == [True, False, False]


async def test_a_definition_makes_probes_and_refreshes_by_its_own_functions() -> None:
    assert CLOUD.create(ProviderConfig(model="big")).name == "big"
    assert CLOUD.probe is not None
    assert (await CLOUD.probe(ProviderConfig())).ok is False
    assert CLOUD.refresh is not None
    assert (await CLOUD.refresh(ProviderConfig())).entries == (ModelCatalogEntry(id="fresh"),)


def test_a_literal_key_is_never_shown() -> None:
    assert repr(ProviderConfig(model="m", api_key="sk-1")) == (
        "ProviderConfig(model='m', api_key='***', base_url=None)"
    )
    assert "$ENV:CLOUD_KEY" in repr(ProviderConfig(api_key="$ENV:CLOUD_KEY"))
