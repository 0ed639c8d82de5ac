"""Which files count, in which order, and what happens to those that cannot be read."""

from __future__ import annotations

import os
from typing import Any

import pytest
from tests.sdk.settings.conftest import FILES, House
from tests.support.unprivileged import bound_by_modes

from robota.core.errors import ConfigurationError
from robota.sdk.settings import read_layers

ORDER = ["flags", "environment", "local", "project", "claude_local", "claude", "user", "claude_user"]


@pytest.mark.parametrize("highest", range(len(ORDER)))
def test_the_highest_of_the_six_layers_decides(house: House, highest: int) -> None:
    options: dict[str, Any] = {}
    for name in ORDER[highest:]:
        if name == "flags":
            options["flags"] = {"language": "flags"}
        elif name == "environment":
            house.environment["ROBOTA_LANGUAGE"] = "environment"
        else:
            house.write(**{name: {"language": name}})

    settings = house.load(**options)

    expected = ORDER[highest]
    origin = {"flags": "the settings of this session", "environment": "the environment"}
    assert settings.language == expected
    assert settings.origins["language"] == (origin.get(expected) or str(house.path(expected)),)
    assert settings.problems == ()


@pytest.mark.parametrize(
    ("sources", "language"),
    [
        (None, "local"),
        (("user",), "user"),
        (("project",), "project"),
        (("local", "user"), "local"),
        ((), None),
    ],
)
def test_sources_pick_among_the_files(house: House, sources: Any, language: str | None) -> None:
    house.write(local={"language": "local"}, project={"language": "project"}, user={"language": "user"})

    assert house.load(sources=sources).language == language


def test_a_source_that_does_not_exist_is_refused(house: House) -> None:
    with pytest.raises(ConfigurationError, match="no settings of 'projet'; did you mean 'project'"):
        house.load(sources=("projet",))


def test_comments_trailing_commas_and_a_byte_order_mark_are_accepted(house: House) -> None:
    house.write(user='\ufeff{\n // why\n "language": "de", /* and\n so on */ "env": {"A": "x // y,}",},\n}\n')

    settings = house.load()

    assert settings.language == "de"
    assert settings.env == {"A": "x // y,}"}


@pytest.mark.parametrize("text", ["", "  \n\t\n", "\ufeff"])
def test_an_empty_file_is_a_missing_one(house: House, text: str) -> None:
    house.write(project=text)

    assert house.load().layers == ()


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (
            '{\n "language": "de"\n "model": "x"\n}',
            'a comma or } is missing: " does not belong there (line 3)',
        ),
        ('{"permissions": {"deny": ["Read(.env)"', "the text ends too early (line 1)"),
        ("[]", "it holds a list and not an object of settings (line 1)"),
        ('"x"', "it holds a string"),
        ('{"a": NaN}', "NaN is not a value"),
        ("[" * 100_000, "nested too deeply"),
        ("{}\n{}", "there is something behind the end of the value (line 2)"),
    ],
)
def test_a_file_that_does_not_parse_stops_with_path_line_and_reason(
    house: House, text: str, reason: str
) -> None:
    house.write(project=text)

    with pytest.raises(ConfigurationError) as caught:
        house.load(trusted=False)

    assert str(house.path("project")) in str(caught.value)
    assert reason in str(caught.value)


def test_a_file_that_is_not_text_stops_with_its_line(house: House) -> None:
    house.write(user="")
    house.path("user").write_bytes(b'{\n"language": "\xff"}')

    with pytest.raises(ConfigurationError, match="not UTF-8 text in line 2"):
        house.load()


def test_a_file_that_may_not_be_read_stops(house: House) -> None:
    house.write(project={"permissions": {"deny": ["Bash"]}}).path("project").chmod(0)

    with bound_by_modes(), pytest.raises(ConfigurationError, match="Permission denied"):
        house.load()


def test_neither_a_pipe_nor_a_directory_is_waited_for(house: House) -> None:
    house.write(project="{}").path("project").unlink()
    os.mkfifo(house.path("project"))
    with pytest.raises(ConfigurationError, match="not a regular file"):
        house.load()

    house.path("project").unlink()
    house.path("project").mkdir()
    with pytest.raises(ConfigurationError, match="Is a directory"):
        house.load()


def test_a_key_that_is_there_twice_loses_nothing(house: House) -> None:
    house.write(user='{"permissions": {"deny": ["Read(a)"]},\n "permissions": {"deny": ["Read(b)"]}}')

    settings = house.load()

    assert settings.rules.deny == ("Read(a)", "Read(b)")
    assert "'permissions' is there twice" in str(settings.problems[0])


def test_local_settings_of_the_other_program_are_at_the_top_of_the_repository(house: House) -> None:
    house.write(claude_local={"language": "top"})
    (house.cwd / ".git").mkdir()
    inner = house.cwd / "packages" / "web"
    inner.mkdir(parents=True)
    house.cwd = inner

    assert house.load().language == "top"


def test_a_home_that_is_opened_as_a_project_stays_the_users_own(house: House) -> None:
    house.write(user={"language": "mine", "autoAllowReadOnly": True})
    house.cwd = house.root / "home"

    settings = house.load(trusted=False)

    assert settings.language == "mine"
    assert [layer.name for layer in settings.layers] == ["user"]


def test_layers_are_read_as_they_are_written_with_their_lines(house: House) -> None:
    house.write(claude='{\n "permissions": {\n  "deny": [\n   "Read(a)",\n   "Read(b)"\n  ]\n }\n}')

    (layer,) = read_layers(house.places, environment={})

    assert (layer.name, layer.dialect, layer.of_project) == ("project", "claude", True)
    assert layer.line("permissions", "deny", 1) == 5
    assert layer.line("permissions", "deny", 7) == 3
    assert layer.line("nothing") == 1


def test_every_file_is_known_to_the_tests(house: House) -> None:
    house.write(**{layer: {"env": {layer: "1"}} for layer in FILES})

    assert sorted(house.load().env) == sorted(FILES)


def test_variables_of_robota_are_the_environment_layer(house: House) -> None:
    house.environment |= {
        "ROBOTA_PROVIDER": "openai",
        "ROBOTA_MODEL": "small",
        "ROBOTA_BASE_URL": "https://models.example/v1",
        "ROBOTA_PERMISSION_MODE": "plan",
        "ROBOTA_MEMORY": "on",
        "ROBOTA_SANDBOX": "required",
    }

    settings = house.load()

    profile = settings.profiles.get()
    assert (profile.type, profile.base_url) == ("openai", "https://models.example/v1")
    assert profile.layer("type") == profile.layer("base_url") == "environment"
    assert (settings.model, settings.rules.mode, settings.sandbox.mode) == ("small", "plan", "required")
    assert settings.get("memory.enabled") is True
    assert settings.problems == ()


def test_robota_home_moves_the_users_file(house: House) -> None:
    moved = house.root / "elsewhere"
    moved.mkdir()
    (moved / "settings.json").write_text('{"language": "moved"}')
    house.write(user={"language": "home"})
    house.environment["ROBOTA_HOME"] = str(moved)

    assert house.load().language == "moved"
