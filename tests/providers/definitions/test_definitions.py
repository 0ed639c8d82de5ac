from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from robota.core.errors import ConfigurationError
from robota.core.provider import get_provider_capabilities
from robota.core.provider_definition import ProviderConfig, find_provider_definition, selectable_models
from robota.providers.definitions import (
    OURS,
    DefinedService,
    all_definitions,
    find_definition,
    our_definitions,
)
from robota.providers.qwen import SERVICE, QwenProvider

DEFINITIONS = {definition.type: definition for definition in our_definitions()}
KEYED = [definition for definition in DEFINITIONS.values() if definition.defaults.api_key]


@pytest.fixture(autouse=True)
def no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for definition in KEYED:
        monkeypatch.delenv(str(definition.defaults.api_key).removeprefix("$ENV:"), raising=False)
    monkeypatch.delenv("GOOGLE_API_KEY", raising=False)


@pytest.mark.parametrize(
    ("type", "model", "variable", "base_url"),
    [
        ("anthropic", "claude-sonnet-4-6", "ANTHROPIC_API_KEY", "https://api.anthropic.com"),
        ("openai", None, "OPENAI_API_KEY", "https://api.openai.com/v1"),
        (
            "gemini",
            "gemini-3-flash-preview",
            "GEMINI_API_KEY",
            "https://generativelanguage.googleapis.com",
        ),
        ("deepseek", "deepseek-v4-flash", "DEEPSEEK_API_KEY", "https://api.deepseek.com"),
        ("openrouter", None, "OPENROUTER_API_KEY", "https://openrouter.ai/api/v1"),
        (
            "qwen",
            "qwen-plus",
            "DASHSCOPE_API_KEY",
            "https://dashscope-intl.aliyuncs.com/compatible-mode/v1",
        ),
        ("openai-compatible", None, None, None),
        ("gemma", None, None, "http://localhost:1234/v1"),
        ("lmstudio", None, None, "http://localhost:1234/v1"),
        ("ollama", None, None, "http://localhost:11434/v1"),
        ("vllm", None, None, "http://localhost:8000/v1"),
    ],
)
def test_a_definition_has_the_defaults_of_its_service(
    type: str, model: str | None, variable: str | None, base_url: str | None
) -> None:
    key = None if variable is None else f"$ENV:{variable}"
    assert DEFINITIONS[type].defaults == ProviderConfig(model=model, api_key=key, base_url=base_url)


def test_the_table_of_ours_names_every_definition_by_its_type() -> None:
    assert list(OURS) == list(DEFINITIONS)


@pytest.mark.parametrize(
    ("alias", "type"), [("google", "gemini"), ("claude", "anthropic"), ("lm-studio", "lmstudio")]
)
def test_a_definition_is_found_by_its_alias(alias: str, type: str) -> None:
    found = find_definition(alias)
    assert found is not None
    assert found.type == type


@pytest.mark.parametrize("definition", DEFINITIONS.values(), ids=DEFINITIONS)
def test_a_default_model_is_in_the_catalogue_and_can_be_chosen(definition) -> None:  # type: ignore[no-untyped-def]
    offered = [entry.id for entry in selectable_models(definition.model_catalog)]
    assert definition.defaults.model is None or definition.defaults.model in offered


@pytest.mark.parametrize("definition", DEFINITIONS.values(), ids=DEFINITIONS)
def test_a_catalogue_says_how_fresh_it_is(definition) -> None:  # type: ignore[no-untyped-def]
    catalog = definition.model_catalog
    if catalog.status == "generated":
        assert catalog.last_verified_at
        assert catalog.source_url.startswith("https://")
    assert all(entry.capabilities for entry in catalog.entries)
    assert bool(catalog.entries) == (catalog.status != "unavailable")


def test_names_and_windows_in_a_catalogue_come_from_the_table_of_models() -> None:
    sonnet = next(
        entry for entry in DEFINITIONS["anthropic"].model_catalog.entries if entry.id == "claude-sonnet-4-6"
    )
    assert (sonnet.display_name, sonnet.context_window, sonnet.max_output) == (
        "Claude Sonnet 4.6",
        1_000_000,
        64_000,
    )


def test_a_key_is_typed_behind_a_mask_and_explained_by_a_link() -> None:
    assert KEYED
    for definition in KEYED:
        step = next(step for step in definition.setup_steps if step.key == "api_key")
        assert (step.masked, step.required) == (True, True)
        assert definition.preferred_help_link is not None
        assert definition.preferred_help_link.kind == "api-key"


@pytest.mark.parametrize("definition", KEYED, ids=lambda definition: definition.type)
def test_without_a_key_creating_says_which_variable_to_set(definition) -> None:  # type: ignore[no-untyped-def]
    variable = definition.defaults.api_key.removeprefix("$ENV:")
    with pytest.raises(ConfigurationError, match=f"needs an API key: set {variable}"):
        definition.create(ProviderConfig(model="any"))


@pytest.mark.parametrize("definition", DEFINITIONS.values(), ids=DEFINITIONS)
def test_a_definition_creates_its_provider_without_a_connection(definition) -> None:  # type: ignore[no-untyped-def]
    options = {"provider": "any"} if definition.type == "remote" else {}
    provider = definition.create(
        ProviderConfig(
            model="/some/model.gguf",
            api_key="key-for-the-test",
            base_url="http://127.0.0.1:9/v1",
            options=options,
        )
    )
    assert provider.name
    assert get_provider_capabilities(provider).function_calling


def test_a_reference_to_a_variable_that_is_not_set_names_the_variable() -> None:
    with pytest.raises(ConfigurationError, match="read from the variable MY_KEY, which is not set"):
        DEFINITIONS["anthropic"].create(ProviderConfig(api_key="$ENV:MY_KEY"))


@pytest.mark.parametrize(
    ("type", "options", "words"),
    [
        ("anthropic", {"promptCashing": True}, "no option 'promptCashing': the nearest is prompt_caching"),
        ("anthropic", {"promptCaching": "yes"}, "must be true or false"),
        ("openai", {"api": "soap"}, "'responses' or 'chat'"),
        ("ollama", {"headers": {"x": 1}}, "must hold texts only"),
        ("scripted", {"replies": [1]}, "must be a list of strings"),
        ("qwen", {"region": "mars"}, "no region 'mars': use one of singapore, beijing"),
        ("qwen", {"builtInWebTools": {"webSeek": True}}, "has webSearch and webFetch, each true or false"),
    ],
)
def test_a_wrong_option_is_one_sentence(type: str, options: dict[str, object], words: str) -> None:
    with pytest.raises(ConfigurationError, match=words):
        DEFINITIONS[type].create(ProviderConfig(api_key="key-for-the-test", options=options))


def test_options_reach_the_provider_in_both_spellings() -> None:
    config = ProviderConfig(
        model="m", base_url="http://127.0.0.1:9/v1", options={"outputSchema": False, "vision": True}
    )
    able = get_provider_capabilities(DEFINITIONS["ollama"].create(config))
    assert (able.vision, able.output_schema) == (True, False)


def test_hosted_web_tools_are_enabled_by_an_option() -> None:
    options = {"builtInWebTools": {"webSearch": True}, "region": "virginia"}
    able = get_provider_capabilities(
        DEFINITIONS["qwen"].create(ProviderConfig(api_key="key-for-the-test", options=options))
    )
    assert (able.web_search.enabled, able.web_fetch.enabled) == (True, False)


@pytest.mark.parametrize(
    ("config", "sent"),
    [
        (ProviderConfig(options={"region": "beijing"}), True),
        (ProviderConfig(base_url="https://dashscope-us.aliyuncs.com/compatible-mode/v1"), True),
        (ProviderConfig(base_url="https://dashscope.example/v1"), False),
    ],
)
def test_the_key_of_the_environment_goes_to_every_region_and_nowhere_else(
    config: ProviderConfig, sent: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DASHSCOPE_API_KEY", "key-of-the-environment")
    settled = DefinedService(SERVICE, QwenProvider).settle(config)
    assert (settled.api_key == "key-of-the-environment") is sent


def test_definitions_load_no_dialect_and_no_http() -> None:
    code = (
        "import sys; from robota.providers.definitions import our_definitions; our_definitions();"
        "print(*(name for name in sys.modules))"
    )
    done = subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert not loaded & {"httpx2", "anyio", "asyncio", "ssl", "robota.providers.wire.channel"}
    vendors = {f"robota.providers.{type.replace('-', '_')}" for type in OURS}
    inside = {name for name in loaded if name.count(".") > 2 and name.rpartition(".")[0] in vendors}
    assert vendors <= loaded
    assert not inside | {
        name for name in loaded if name.startswith(("robota.providers.chat.", "robota.providers.responses."))
    }


GOOD = """
from robota.core.provider_definition import ProviderConfig, ProviderDefinition
from robota.providers.scripted import ScriptedProvider

SUN = ProviderDefinition(type="sun", create=lambda config: ScriptedProvider("shine", name="sun"))
THIEF = ProviderDefinition(type="thief", aliases=("google",), create=SUN.create)
NOTHING = 42

def make() -> ProviderDefinition:
    return ProviderDefinition(type="moon", create=SUN.create)
"""
POINTS = """[robota.providers]
sun = weather:SUN
moon = weather:make
thief = weather:THIEF
nothing = weather:NOTHING
gone = storms:GONE
broken = storm:ANY
"""


def test_other_packages_bring_providers_and_broken_ones_are_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "weather.py").write_text(GOOD)
    (tmp_path / "storm.py").write_text("raise RuntimeError('thunder')")
    package = tmp_path / "weather-1.0.dist-info"
    package.mkdir()
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: weather\nVersion: 1.0\n")
    (package / "entry_points.txt").write_text(POINTS)
    monkeypatch.syspath_prepend(str(tmp_path))
    problems: list[str] = []

    found = all_definitions(problems.append)

    assert [definition.type for definition in found] == [*DEFINITIONS, "sun", "moon"]
    assert find_provider_definition(found, "google") is DEFINITIONS["gemini"]
    assert problems == [
        "The provider 'thief' of weather is left out: the name 'google' is taken.",
        "The provider 'nothing' of weather is left out: int is not a ProviderDefinition.",
        "The provider 'gone' of weather is left out: ModuleNotFoundError: No module named 'storms'.",
        "The provider 'broken' of weather is left out: RuntimeError: thunder.",
    ]
