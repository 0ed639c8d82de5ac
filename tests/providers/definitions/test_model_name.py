from __future__ import annotations

import pytest

from robota.providers.catalog import find_owner, guess_owner, is_listed, nearest_names, suggest


@pytest.mark.parametrize(
    ("model", "listed", "same"),
    [
        ("claude-sonnet-4-5", "claude-sonnet-4-5", True),
        ("claude-sonnet-4-5", "claude-sonnet-4-5-20250929", True),
        ("claude-sonnet-4-5-20250929", "claude-sonnet-4-5", True),
        ("gpt-5.2", "gpt-5.2-2025-12-11", True),
        ("qwen3", "qwen3:latest", True),
        ("gpt-5", "gpt-5-mini", False),
        ("claude-opus-4", "claude-opus-4-5", False),
        ("qwen3", "qwen3:8b", False),
        ("gpt-5", "gpt-5.2", False),
    ],
)
def test_a_date_or_latest_makes_no_other_model(model: str, listed: str, same: bool) -> None:
    assert is_listed(model, [listed]) is same


def test_the_nearest_names_ignore_case() -> None:
    assert nearest_names("GPT-5.3", ["gpt-5.2", "gpt-5.5", "beta"]) == ("gpt-5.5", "gpt-5.2")


@pytest.mark.parametrize(
    ("known", "said"),
    [
        (["alpha"], "there is alpha"),
        (["alpha", "beta"], "there are alpha, beta"),
        ([], "there are none"),
        ([f"m{n}" for n in range(10)], "there are m0, m1, m2, m3, m4, m5, m6, m7 and 2 more"),
        (["zoom", "alpha"], "the nearest is zoom"),
    ],
)
def test_a_wrong_name_is_answered_with_the_right_ones(known: list[str], said: str) -> None:
    assert suggest("zool", known) == said


@pytest.mark.parametrize(
    ("model", "owner", "guess"),
    [
        ("claude-sonnet-4-6", "anthropic", "anthropic"),
        ("claude-sonnet-4-5-20250929", "anthropic", "anthropic"),
        ("claude-opus-99", None, "anthropic"),
        ("gpt-99", None, "openai"),
        ("o3", "openai", "openai"),
        ("ollama-model", None, None),
        ("gemini-2.5-pro", "gemini", "gemini"),
        ("qwen3:8b", None, "qwen"),
        ("anthropic/claude-sonnet-4.5", None, None),
    ],
)
def test_a_name_tells_whose_model_it_is(model: str, owner: str | None, guess: str | None) -> None:
    assert (find_owner(model), guess_owner(model)) == (owner, guess)
