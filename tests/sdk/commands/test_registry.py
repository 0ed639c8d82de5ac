from __future__ import annotations

from collections.abc import Iterable

from robota.sdk.commands.builtin_source import BuiltinCommandSource, describe_window
from robota.sdk.commands.registry import Command, CommandRegistry


class Source:
    """Commands of one name each."""

    def __init__(self, name: str, *commands: Command) -> None:
        self.name = name
        self._commands = commands

    def commands(self) -> Iterable[Command]:
        return self._commands


def named(*names: str, source: str = "skill") -> list[Command]:
    return [Command(name=name, description=f"{name} of {source}", source=source) for name in names]


def names(commands: Iterable[Command]) -> list[str]:
    return [command.name for command in commands]


def test_commands_are_found_by_how_their_names_begin_in_any_case() -> None:
    registry = CommandRegistry(Source("skill", *named("Model-check", "mode", "cost")))

    assert names(registry.commands("MOD")) == ["Model-check", "mode"]
    assert names(registry.commands()) == ["Model-check", "mode", "cost"]
    assert registry.commands("x") == []


def test_the_first_source_counts_where_two_have_the_same_name() -> None:
    registry = CommandRegistry(Source("a", *named("audit", source="builtin")))
    registry.add_source(Source("b", *named("audit", "other")))

    assert [each.description for each in registry.commands()] == ["audit of builtin", "other of skill"]


def test_a_command_that_gives_way_is_replaced_by_the_users_own() -> None:
    registry = CommandRegistry(BuiltinCommandSource(), Source("skill", *named("review", "clear")))

    review, clear = registry.find("review"), registry.find("clear")

    assert review is not None
    assert review.source == "skill"
    assert clear is not None
    assert clear.source == "builtin"


def test_a_short_name_is_resolved_when_exactly_one_plugin_has_it() -> None:
    registry = CommandRegistry(Source("plugin", *named("one:audit", "one:fix", "two:fix", "audited")))

    assert registry.resolve("audit") == "one:audit"
    assert registry.resolve("fix") is None
    assert registry.resolve("nothing") is None
    assert registry.resolve("") is None
    found = registry.find("audit")
    assert found is not None
    assert found.name == "one:audit"


def test_a_source_takes_the_place_of_the_one_with_its_name() -> None:
    registry = CommandRegistry(Source("skill", *named("old")), Source("plugin", *named("p:x")))

    registry.replace_source(Source("skill", *named("new")))
    registry.replace_source(Source("more", *named("last")))

    assert names(registry.commands()) == ["new", "p:x", "last"]


def test_what_users_may_not_call_is_not_shown_and_not_found() -> None:
    hidden = Command(name="hidden", description="d", user_invocable=False, disable_model_invocation=False)
    registry = CommandRegistry(Source("skill", hidden))

    assert registry.commands() == []
    assert registry.find("hidden") is None
    assert names(registry.for_models()) == ["hidden"]


def test_a_skill_is_no_tool_of_its_own() -> None:
    skill = Command(name="audit", description="d", source="skill", disable_model_invocation=False)

    assert CommandRegistry(Source("skill", skill)).for_models() == []


def test_the_commands_that_models_may_call_change_no_rights_and_no_settings() -> None:
    registry = CommandRegistry(BuiltinCommandSource())

    assert names(registry.for_models()) == ["usage", "skills", "agents", "background"]


def test_the_built_in_commands_offer_what_may_stand_behind_them() -> None:
    registry = CommandRegistry(BuiltinCommandSource())

    assert names(registry.subcommands("mode")) == ["plan", "default", "acceptEdits", "bypassPermissions"]
    assert names(registry.subcommands("language")) == ["ko", "en", "ja", "zh"]
    assert registry.subcommands("help") == ()
    assert registry.subcommands("unknown") == ()
    models = {each.name: each.description for each in registry.subcommands("model")}
    assert models["claude-opus-4-6"] == "Claude Opus 4.6 (1M)"
    assert "claude-haiku-4-5" in models
    assert "claude-haiku-4-5-20251001" not in models


def test_a_window_is_described_in_few_signs() -> None:
    assert [describe_window(each) for each in (1_000_000, 1_050_000, 200_000, 512)] == [
        "1M",
        "1.05M",
        "200K",
        "512",
    ]
