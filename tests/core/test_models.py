from __future__ import annotations

import subprocess
import sys

import pytest

from robota.core.errors import ConfigurationError
from robota.core.models import (
    CLAUDE_MODELS,
    DEFAULT_CONTEXT_WINDOW,
    DEFAULT_MAX_OUTPUT,
    ModelDefinition,
    ModelPrice,
    ModelTable,
    find_model_price,
    format_token_count,
    get_model_context_window,
    get_model_max_output,
    get_model_name,
    is_known_model,
    shipped_models,
)

MILLION = 1_000_000


@pytest.mark.parametrize(
    ("model", "name", "window", "output"),
    [
        ("claude-opus-4-6", "Claude Opus 4.6", MILLION, 128_000),
        ("claude-sonnet-4-6", "Claude Sonnet 4.6", MILLION, 64_000),
        ("claude-haiku-4-5", "Claude Haiku 4.5", 200_000, 64_000),
        ("claude-haiku-4-5-20251001", "Claude Haiku 4.5", 200_000, 64_000),
        ("claude-sonnet-4-5", "Claude Sonnet 4.5", 200_000, 64_000),
        ("claude-sonnet-4-5-20250929", "Claude Sonnet 4.5", 200_000, 64_000),
        ("claude-opus-4-5", "Claude Opus 4.5", 200_000, 64_000),
        ("claude-opus-4-5-20251101", "Claude Opus 4.5", 200_000, 64_000),
        ("gpt-4o", "GPT-4o", 128_000, 16_384),
        ("gemini-2.5-pro", "Gemini 2.5 Pro", 1_048_576, 65_536),
    ],
)
def test_known_models_have_their_facts(model: str, name: str, window: int, output: int) -> None:
    facts = (get_model_name(model), get_model_context_window(model), get_model_max_output(model))
    assert facts == (name, window, output)
    assert is_known_model(model)


@pytest.mark.parametrize(
    ("spelling", "name"),
    [
        ("claude-opus-4-6-20260205", "Claude Opus 4.6"),
        ("claude-sonnet-4-5@20250929", "Claude Sonnet 4.5"),
        ("us.anthropic.claude-sonnet-4-5-20250929-v1:0", "Claude Sonnet 4.5"),
        ("anthropic/claude-sonnet-4.5", "Claude Sonnet 4.5"),
        ("gpt-4o-2024-08-06", "GPT-4o"),
        ("models/gemini-2.5-pro", "Gemini 2.5 Pro"),
        ("GPT-4.1-Mini", "GPT-4.1 mini"),
    ],
)
def test_dated_and_hosted_spellings_find_the_same_model(spelling: str, name: str) -> None:
    assert get_model_name(spelling) == name


@pytest.mark.parametrize("model", ["qwen2.5-coder:7b", "claude-opus-99", "gpt-4o-audio", "o1-x", ""])
def test_an_unknown_model_gets_the_defaults_and_its_id_as_name(model: str) -> None:
    assert not is_known_model(model)
    assert get_model_context_window(model) == DEFAULT_CONTEXT_WINDOW == 200_000
    assert get_model_max_output(model) == DEFAULT_MAX_OUTPUT == 16_384
    assert get_model_name(model) == model


def test_claude_models_are_keyed_by_id() -> None:
    assert CLAUDE_MODELS["claude-haiku-4-5"] == ModelDefinition(
        id="claude-haiku-4-5",
        name="Claude Haiku 4.5",
        context_window=200_000,
        max_output=64_000,
        price=ModelPrice(1, 5, 0.1, 1.25),
        family="claude",
    )
    assert all(id == model.id and model.name.startswith("Claude") for id, model in CLAUDE_MODELS.items())


def test_every_shipped_model_has_plausible_numbers() -> None:
    for model in shipped_models().models.values():
        assert 0 < model.max_output < model.context_window
        assert model.price is None or 0 < model.price.input <= model.price.output


@pytest.mark.parametrize(
    ("model", "price"),
    [
        ("gpt-4o", ModelPrice(2.5, 10, 1.25)),
        ("gpt-4o-mini-2024-07-18", ModelPrice(0.15, 0.6, 0.075)),
        ("claude-sonnet-4-6", ModelPrice(3, 15, 0.3, 3.75)),
        ("claude-sonnet-99", ModelPrice(3, 15, 0.3, 3.75)),
        ("anthropic/claude-haiku-99", ModelPrice(0.8, 4, 0.08, 1.0)),
        ("deepseek-chat", ModelPrice(0.14, 0.28, 0.014)),
        ("gemini-2.0-flash", ModelPrice(0.1, 0.4, 0.025)),
        ("my-own-model", None),
    ],
)
def test_a_price_is_that_of_the_model_else_of_its_family_else_none(
    model: str, price: ModelPrice | None
) -> None:
    assert find_model_price(model) == price


def test_a_table_can_be_extended_without_changing_the_shipped_one() -> None:
    more = ModelTable.from_json(
        b"""{
            "models": {
                "mine": {"name": "Mine", "contextWindow": 32000, "maxOutput": 4000},
                "gpt-4o": {"name": "x", "contextWindow": 9, "maxOutput": 1, "price": {"input":0,"output":0}}
            },
            "familyPrices": {
                "claude-sonnet-9*": {"input": 1, "output": 2},
                "mine": {"input": 3, "output": 4}
            }
        }"""
    )
    table = shipped_models().extended(more)
    assert table.find("mine") == ModelDefinition(
        id="mine", name="Mine", context_window=32_000, max_output=4000
    )
    assert [
        table.find_price(model) for model in ("gpt-4o", "claude-sonnet-99", "claude-sonnet-8", "mine")
    ] == [
        ModelPrice(0, 0),
        ModelPrice(1, 2),
        ModelPrice(3, 15, 0.3, 3.75),
        ModelPrice(3, 4),
    ]
    assert not is_known_model("mine")
    assert find_model_price("gpt-4o") == ModelPrice(2.5, 10, 1.25)


@pytest.mark.parametrize("text", [b"nothing", b'{"models": {"x": {"name": "X", "contextWindow": "big"}}}'])
def test_an_unreadable_table_is_refused_with_its_name_and_the_reason(text: bytes) -> None:
    with pytest.raises(ConfigurationError, match=r"Cannot read my\.json: "):
        ModelTable.from_json(text, "my.json")


@pytest.mark.parametrize(
    ("tokens", "text"),
    [
        (-5, "0K"),
        (0, "0K"),
        (1, "<1K"),
        (999, "<1K"),
        (1000, "1K"),
        (1500, "1.5K"),
        (200_000, "200K"),
        (999_900, "999.9K"),
        (999_999, "1M"),
        (MILLION, "1M"),
        (1_200_000, "1.2M"),
        (1_048_576, "1M"),
    ],
)
def test_token_counts_are_short_for_people(tokens: int, text: str) -> None:
    assert format_token_count(tokens) == text


def test_importing_the_module_reads_no_file() -> None:
    script = (
        "import sys\n"
        "opened = []\n"
        "sys.addaudithook(lambda name, args: opened.append(str(args[0])) if name == 'open' else None)\n"
        "import robota.core.models\n"
        "assert not [path for path in opened if path.endswith('.json')], opened\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True)
