"""Provider profiles of all layers, and which is the current one."""

from __future__ import annotations

from typing import Any

import pytest
from tests.sdk.settings.conftest import House

from robota.core.errors import ConfigurationError
from robota.providers.definitions import all_definitions
from robota.sdk.provider_profiles import prepare_profile

MINE = {
    "currentProvider": "mine",
    "providers": {
        "mine": {"type": "anthropic", "model": "m", "apiKey": "k", "baseURL": "https://own.example"}
    },
}


def test_a_profile_is_merged_field_by_field_and_knows_where_each_came_from(house: House) -> None:
    house.write(user=MINE, project={"providers": {"mine": {"model": "other", "timeout": 500}}})

    settings = house.load()

    profile = settings.profiles.get()
    assert (profile.model, profile.timeout, profile.base_url) == ("other", 0.5, "https://own.example")
    assert (profile.layer("model"), profile.layer("api_key")) == ("project", "user")
    assert settings.model == "other"
    assert settings.problems == ()
    assert settings.origins["providers.mine.model"] == (str(house.path("project")),)
    assert "k" in settings.secrets()


def test_a_key_never_meets_a_host_that_a_project_chose(house: House) -> None:
    house.write(
        user=MINE, project={"providers": {"mine": {"type": "openai", "baseURL": "https://evil.example"}}}
    )

    profiles = house.load().profiles

    assert profiles.get().base_url == "https://own.example"
    house.write(user={"currentProvider": "mine", "providers": {"mine": {"type": "anthropic", "apiKey": "k"}}})
    with pytest.raises(ConfigurationError, match="its host from the settings of this project"):
        prepare_profile(house.load().profiles, all_definitions())


@pytest.mark.parametrize(
    ("profile", "sentence"),
    [
        ("anthropic", "must be an object"),
        ({"model": "m"}, 'Provider profile "broken" is missing type'),
        ({"type": "openai", "timeout": -1}, "a number of milliseconds above 0"),
        ({"type": "openai", "api_key": "x"}, "did you mean apiKey?"),
    ],
)
def test_a_broken_profile_is_named_and_the_others_work(house: House, profile: Any, sentence: str) -> None:
    house.write(user={**MINE, "providers": {**MINE["providers"], "broken": profile}})  # type: ignore[dict-item]

    settings = house.load()

    (problem,) = settings.problems
    assert sentence in str(problem)
    assert problem.line > 1
    assert settings.profiles.get().model == "m"


def test_a_current_provider_that_does_not_exist_is_named_and_has_no_substitute(house: House) -> None:
    settings = house.write(user={**MINE, "currentProvider": "mien"}).load()

    assert '"mien" was not found in providers: choose one of mine.' in str(settings.problems[0])
    with pytest.raises(ConfigurationError, match='no provider profile "mien"'):
        settings.profiles.get()


def test_the_environment_names_a_profile_or_a_type(house: House) -> None:
    house.write(user={**MINE, "currentProvider": None})
    house.environment["ROBOTA_PROVIDER"] = "mine"
    assert house.load().profiles.get().model == "m"

    house.environment["ROBOTA_PROVIDER"] = "openai"
    assert house.load().profiles.get().type == "openai"


def test_an_address_of_the_environment_gets_no_key_of_the_settings(house: House) -> None:
    house.environment["ROBOTA_BASE_URL"] = "https://elsewhere.example"
    profiles = house.write(user=MINE).load().profiles

    with pytest.raises(
        ConfigurationError, match="its key from your own settings but its host from the environment"
    ):
        prepare_profile(profiles, all_definitions())


def test_addresses_and_headers_may_refer_to_variables(house: House) -> None:
    house.environment |= {"ADDRESS": "https://resolved.example", "TOKEN_X": "hunter2-4711"}
    house.write(
        user={
            "providers": {
                "p": {
                    "type": "openai",
                    "baseURL": "$ENV:ADDRESS",
                    "options": {"headers": {"X-Token": "$ENV:TOKEN_X"}},
                }
            }
        }
    )

    settings = house.load()

    profile = settings.profiles.profiles["p"]
    assert profile.base_url == "https://resolved.example"
    assert profile.options == {"headers": {"X-Token": "hunter2-4711"}}
    assert "hunter2-4711" in settings.secrets()
