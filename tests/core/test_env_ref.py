from __future__ import annotations

import pytest

from robota.core.credentials import (
    ENV_REFERENCE_PREFIX,
    format_env_reference,
    has_usable_secret_reference,
    is_env_reference,
    resolve_env_reference,
)

ENV = {"KEY": "sk-1", "EMPTY": ""}


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("$ENV:KEY", True),
        ("$ENV:", True),
        ("sk-1", False),
        ("x$ENV:KEY", False),
        ("$env:KEY", False),
        (None, False),
        (3, False),
    ],
)
def test_a_reference_is_a_text_with_the_prefix(value: object, expected: bool) -> None:
    assert is_env_reference(value) is expected


def test_a_formatted_reference_is_one_and_resolves() -> None:
    assert ENV_REFERENCE_PREFIX == "$ENV:"
    assert format_env_reference("KEY") == "$ENV:KEY"
    assert resolve_env_reference(format_env_reference("KEY"), ENV) == "sk-1"


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("$ENV:KEY", "sk-1"),
        ("$ENV: KEY ", "sk-1"),
        ("$ENV:MISSING", None),
        ("$ENV:EMPTY", None),
        ("$ENV:", None),
        ("sk-2", "sk-2"),
        ("", ""),
    ],
)
def test_a_reference_resolves_to_its_variable_and_other_text_to_itself(
    value: str, expected: str | None
) -> None:
    assert resolve_env_reference(value, ENV) == expected


@pytest.mark.parametrize(
    ("value", "usable"),
    [
        ("$ENV:KEY", True),
        ("sk-2", True),
        ("$ENV:MISSING", False),
        ("$ENV:EMPTY", False),
        ("", False),
        (None, False),
    ],
)
def test_a_secret_is_usable_when_there_is_something_behind_it(value: str | None, usable: bool) -> None:
    assert has_usable_secret_reference(value, ENV) is usable


def test_the_environment_of_the_process_is_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROBOTA_TEST_KEY", "sk-3")
    assert resolve_env_reference("$ENV:ROBOTA_TEST_KEY") == "sk-3"
    assert has_usable_secret_reference("$ENV:ROBOTA_TEST_KEY")
