from __future__ import annotations

import pytest

from robota.core.errors import ConfigurationError
from robota.core.templates import AgentTemplate, AgentTemplates
from robota.providers.scripted import ScriptedProvider

REVIEWER = AgentTemplate(
    id="reviewer",
    name="Reviewer",
    category="code",
    tags=("review", "quality"),
    provider="anthropic",
    model="claude-haiku-4-5",
    config={"system_message": "Review the code.", "max_rounds": 5},
)
WRITER = AgentTemplate(id="writer", name="Writer", category="text", tags=("prose",), provider="openai")


def test_a_registered_template_is_found_by_its_id_until_it_is_unregistered() -> None:
    templates = AgentTemplates()
    assert templates.register(REVIEWER) is None
    assert templates.get("reviewer") is REVIEWER
    assert templates.unregister("reviewer") is True
    assert templates.unregister("reviewer") is False
    assert templates.get("reviewer") is None


def test_a_template_needs_an_id() -> None:
    with pytest.raises(ConfigurationError, match="'Nameless' has no id"):
        AgentTemplates().register(AgentTemplate(id="", name="Nameless"))


def test_registering_an_id_again_replaces_the_template_and_says_so() -> None:
    templates = AgentTemplates([REVIEWER])
    newer = AgentTemplate(id="reviewer", name="Better reviewer")
    assert templates.register(newer) == "Template 'reviewer' (Reviewer) was replaced by 'Better reviewer'."
    assert templates.list() == (newer,)


@pytest.mark.parametrize(
    ("conditions", "found"),
    [
        ({}, (REVIEWER, WRITER)),
        ({"category": "code"}, (REVIEWER,)),
        ({"tags": ["prose", "poetry"]}, (WRITER,)),
        ({"tags": ["review", "prose"]}, (REVIEWER, WRITER)),
        ({"provider": "openai"}, (WRITER,)),
        ({"model": "claude-haiku-4-5"}, (REVIEWER,)),
        ({"category": "text", "tags": ["review"]}, ()),
    ],
)
def test_templates_are_found_by_category_any_tag_provider_and_model(
    conditions: dict[str, object], found: tuple[AgentTemplate, ...]
) -> None:
    assert AgentTemplates([REVIEWER, WRITER]).find(**conditions) == found  # type: ignore[arg-type]


def test_applying_a_template_gives_arguments_for_an_agent() -> None:
    applied = AgentTemplates([REVIEWER]).apply("reviewer")
    assert applied.config == {
        "system_message": "Review the code.",
        "max_rounds": 5,
        "model": "claude-haiku-4-5",
    }
    assert (applied.template, applied.warnings, applied.modified) == (REVIEWER, (), False)


def test_overrides_win_and_mark_the_result_as_modified() -> None:
    applied = AgentTemplates().apply(REVIEWER, max_rounds=9, name="Rex")
    assert (applied.config["max_rounds"], applied.config["name"], applied.modified) == (9, "Rex", True)
    assert REVIEWER.config["max_rounds"] == 5


def test_adding_something_or_repeating_a_value_is_no_modification() -> None:
    assert AgentTemplates().apply(REVIEWER, max_rounds=5, name="Rex").modified is False


def test_another_provider_than_the_template_was_written_for_is_a_warning() -> None:
    templates = AgentTemplates([REVIEWER])
    applied = templates.apply("reviewer", provider=ScriptedProvider(name="scripted"))
    assert applied.warnings == (
        "Template 'reviewer' was written for provider 'anthropic', not for 'scripted'.",
    )
    assert templates.apply("reviewer", provider=ScriptedProvider(name="anthropic")).warnings == ()


def test_an_unknown_template_is_refused_with_the_ids_there_are() -> None:
    with pytest.raises(ConfigurationError, match="no template 'poet'; registered: reviewer, writer"):
        AgentTemplates([WRITER, REVIEWER]).apply("poet")
