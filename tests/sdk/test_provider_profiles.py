from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from robota.core.errors import ConfigurationError
from robota.core.provider import Provider
from robota.core.provider_definition import CredentialRequirement, ProviderConfig, ProviderDefinition
from robota.providers.scripted import ScriptedProvider
from robota.sdk.interactive import InteractiveSession
from robota.sdk.kept_sessions import SessionStore
from robota.sdk.provider_profiles import (
    ProviderProfile,
    ProviderProfiles,
    create_provider,
    make_profile_key,
    parse_profiles,
    prepare_profile,
)

pytestmark = pytest.mark.anyio

KEY = "literal-key-4711-for-the-test"
made: list[ProviderConfig] = []


def create(config: ProviderConfig) -> Provider:
    made.append(config)
    return ScriptedProvider("ok", name="cloud")


CLOUD = ProviderDefinition(
    type="cloud",
    aliases=("sky",),
    create=create,
    defaults=ProviderConfig(model="big", api_key="$ENV:CLOUD_KEY"),
    credential_requirement=CredentialRequirement(("api_key",)),
)
HOME = ProviderDefinition(type="home", create=create)
DEFINITIONS = (CLOUD, HOME)
SETTINGS: dict[str, Any] = {
    "currentProvider": "work",
    "providers": {
        "work": {
            "type": "cloud",
            "model": "big-2",
            "apiKey": "$ENV:WORK_KEY",
            "baseURL": "https://work.example/v1",
            "timeout": 2500,
            "options": {"region": "eu"},
        },
        "lab": {"type": "home"},
    },
}


@pytest.fixture(autouse=True)
def nothing_made(monkeypatch: pytest.MonkeyPatch) -> None:
    made.clear()
    for variable in ("CLOUD_KEY", "WORK_KEY"):
        monkeypatch.delenv(variable, raising=False)


def test_profiles_are_read_from_settings_with_milliseconds_as_seconds() -> None:
    profiles = parse_profiles(SETTINGS)

    assert profiles.current == "work"
    assert profiles.profiles == {
        "work": ProviderProfile(
            type="cloud",
            model="big-2",
            api_key="$ENV:WORK_KEY",
            base_url="https://work.example/v1",
            timeout=2.5,
            options={"region": "eu"},
        ),
        "lab": ProviderProfile(type="home"),
    }


def test_profiles_are_written_as_they_were_read() -> None:
    assert parse_profiles(SETTINGS).to_settings() == SETTINGS


def test_settings_without_providers_hold_no_profiles() -> None:
    assert parse_profiles({}) == ProviderProfiles()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"currentProvider": "x", "providers": {"a": {"type": "home"}, "b": {"type": "home"}}},
            'currentProvider "x" was not found in providers: choose one of a, b.',
        ),
        (
            {"currentProvider": "x"},
            'currentProvider "x" was not found in providers, which is empty.',
        ),
        ({"providers": {"x": {"model": "m"}}}, 'Provider profile "x" is missing type in user.json.'),
        ({"providers": []}, "Invalid settings in user.json: providers must be an object of profiles."),
        ({"providers": {"x": 1}}, 'Invalid settings in user.json: provider profile "x" must be an object.'),
        (
            {"currentProvider": 1},
            "Invalid settings in user.json: currentProvider must be the name of a profile.",
        ),
        (
            {"providers": {"x": {"type": "home", "timeout": 0}}},
            'Invalid settings in user.json: timeout of provider profile "x" must be a number of milliseconds '
            "above 0.",
        ),
        (
            {"providers": {"x": {"type": "home", "apiKey": 5}}},
            'Invalid settings in user.json: apiKey of provider profile "x" must be a text that is not empty.',
        ),
        (
            {"providers": {"x": {"type": "home", "options": "fast"}}},
            'Invalid settings in user.json: options of provider profile "x" must be an object.',
        ),
        (
            {"providers": {"x": {"type": "home", "base_url": "u"}}},
            'Unknown setting "base_url" of provider profile "x" in user.json; did you mean baseURL?',
        ),
    ],
)
def test_wrong_settings_are_one_exact_sentence(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        parse_profiles(settings, source="user.json")
    assert str(caught.value) == message


def test_an_unknown_setting_can_be_a_warning() -> None:
    warnings: list[str] = []
    profiles = parse_profiles({"providers": {"x": {"type": "home", "colour": 1}}}, on_problem=warnings.append)

    assert profiles.profiles == {"x": ProviderProfile(type="home")}
    assert warnings == [
        'Unknown setting "colour" of provider profile "x" in the settings; '
        "there are type, model, apiKey, baseURL, timeout, options."
    ]


@pytest.mark.parametrize(
    ("model", "taken", "key"),
    [
        ("claude-sonnet-4-6", (), "claude-sonnet-4-6"),
        ("GPT-5.2", (), "gpt-5-2"),
        ("openrouter/Meta: Llama 3", (), "openrouter-meta-llama-3"),
        ("big", ("big",), "big-2"),
        ("big", ("big", "big-2"), "big-3"),
        ("模型", (), "provider"),
    ],
)
def test_a_profile_is_called_after_its_model(model: str, taken: tuple[str, ...], key: str) -> None:
    assert make_profile_key(model, taken) == key


def test_adding_changing_removing_and_selecting_give_new_values() -> None:
    none = ProviderProfiles()
    one = none.add(ProviderProfile(type="cloud", model="big"))
    two = one.add(ProviderProfile(type="home", model="big"))
    selected = two.select("big-2")
    changed = selected.update("big", model="bigger")
    removed = changed.remove("big-2")

    assert (none.profiles, none.current) == ({}, None)
    assert (list(one.profiles), one.current) == (["big"], "big")
    assert (list(two.profiles), two.current) == (["big", "big-2"], "big")
    assert selected.current == "big-2"
    assert changed.get("big").model == "bigger"
    assert (list(removed.profiles), removed.current) == (["big"], None)


def test_wrong_names_say_which_there_are() -> None:
    profiles = parse_profiles(SETTINGS)
    with pytest.raises(ConfigurationError, match='no provider profile "wrok": choose one of work, lab'):
        profiles.select("wrok")
    with pytest.raises(ConfigurationError, match='a provider profile "lab" already'):
        profiles.add(ProviderProfile(type="home"), "lab")
    with pytest.raises(ConfigurationError, match='no field "colour"'):
        profiles.update("lab", colour="red")
    with pytest.raises(ConfigurationError, match="No provider is selected: set currentProvider"):
        ProviderProfiles().get()


def test_a_provider_is_made_of_the_current_profile_with_its_key(monkeypatch: pytest.MonkeyPatch) -> None:
    profiles = parse_profiles(SETTINGS)
    monkeypatch.setenv("WORK_KEY", "value-of-the-variable")

    provider = create_provider(profiles, DEFINITIONS)

    assert provider.name == "cloud"
    assert made == [
        ProviderConfig(
            model="big-2",
            api_key="value-of-the-variable",
            base_url="https://work.example/v1",
            timeout=2.5,
            options={"region": "eu"},
        )
    ]


def test_a_provider_can_be_made_of_another_profile_and_by_an_alias() -> None:
    profiles = parse_profiles({"providers": {"a": {"type": "sky", "apiKey": KEY}, "b": {"type": "home"}}})
    create_provider(profiles, DEFINITIONS, "b")
    create_provider(profiles, DEFINITIONS, "a")
    assert [config.api_key for config in made] == [None, KEY]


@pytest.mark.parametrize(
    ("profile", "message"),
    [
        (
            {"type": "clowd"},
            'Provider profile "x" has the unknown type "clowd": use one of cloud (alias: sky), home.',
        ),
        ({"type": "cloud"}, 'Provider profile "x" needs a key or CLOUD_KEY in the environment.'),
        (
            {"type": "cloud", "apiKey": "$ENV:WORK_KEY"},
            'Provider profile "x" reads its key from the variable WORK_KEY, which is not set: '
            "set it or give the profile another key.",
        ),
    ],
)
def test_a_profile_that_cannot_work_is_one_exact_sentence(profile: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        create_provider(parse_profiles({"providers": {"x": profile}}), DEFINITIONS, "x")
    assert str(caught.value) == message
    assert made == []


USER = {"type": "user", "api_key": "user", "base_url": "user"}


@pytest.mark.parametrize(
    ("profile", "layers", "refused"),
    [
        ({"apiKey": KEY, "baseURL": "https://mine.example"}, USER, False),
        ({"apiKey": KEY, "baseURL": "https://mine.example"}, {}, False),
        ({"apiKey": KEY}, USER | {"model": "project"}, False),
        ({"apiKey": KEY, "baseURL": "https://evil.example"}, USER | {"base_url": "project"}, True),
        ({"baseURL": "https://evil.example"}, {"base_url": "project"}, True),
        ({"apiKey": KEY, "baseURL": "https://other.example"}, USER | {"base_url": "environment"}, True),
        ({"apiKey": KEY, "baseURL": "https://other.example"}, USER | {"base_url": "flags"}, True),
        ({"apiKey": KEY}, USER | {"type": "project"}, True),
        ({"apiKey": "$ENV:WORK_KEY"}, {"type": "project", "api_key": "project"}, True),
    ],
)
def test_a_key_goes_only_to_the_host_that_its_own_layer_named(
    profile: dict[str, Any], layers: Any, refused: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WORK_KEY", "value-of-the-variable")
    monkeypatch.setenv("CLOUD_KEY", "value-of-the-default")
    profiles = parse_profiles({"providers": {"x": {"type": "cloud", **profile}}}, layers={"x": layers})
    if refused:
        with pytest.raises(ConfigurationError, match="your own settings") as caught:
            create_provider(profiles, DEFINITIONS, "x")
        assert KEY not in str(caught.value)
    else:
        create_provider(profiles, DEFINITIONS, "x")
    assert bool(made) is not refused


def test_what_is_changed_later_remembers_where() -> None:
    profiles = parse_profiles({"providers": {"x": {"type": "cloud", "apiKey": KEY}}})
    moved = profiles.update("x", "environment", base_url="https://other.example")
    with pytest.raises(ConfigurationError, match="its host from the environment"):
        prepare_profile(moved, DEFINITIONS, "x")


def test_a_literal_key_is_never_shown() -> None:
    profiles = parse_profiles({"providers": {"x": {"type": "cloud", "apiKey": KEY}}})
    assert KEY not in repr(profiles)
    assert "***" in repr(profiles)


def test_a_reference_may_be_shown() -> None:
    assert "$ENV:WORK_KEY" in repr(parse_profiles(SETTINGS))


def test_keys_and_secret_headers_are_known_as_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORK_KEY", "value-of-the-variable")
    headers = {"X-Api-Key": "header-secret", "X-Title": "robota"}
    profiles = parse_profiles(
        {
            "providers": {
                "a": {"type": "cloud", "apiKey": KEY},
                "b": {"type": "cloud", "apiKey": "$ENV:WORK_KEY", "options": {"headers": headers}},
                "c": {"type": "cloud", "apiKey": "$ENV:CLOUD_KEY"},
            }
        }
    )
    assert profiles.secrets() == (KEY, "value-of-the-variable", "header-secret")


async def test_a_literal_key_is_written_nowhere_by_a_session(tmp_path: Path) -> None:
    profiles = parse_profiles({"currentProvider": "x", "providers": {"x": {"type": "cloud", "apiKey": KEY}}})
    store = SessionStore(str(tmp_path))
    session = InteractiveSession(
        cwd=tmp_path,
        provider=ScriptedProvider(f"Your key is {KEY}."),
        session_store=store,
        secrets=profiles.secrets(),
    )
    await session.submit(f"is {KEY} right?")
    await session.shutdown()

    written = [
        path.read_text() for path in tmp_path.rglob("*") if path.is_file() and path.suffix.startswith(".json")
    ]
    assert written
    assert not any(KEY in text for text in written)
