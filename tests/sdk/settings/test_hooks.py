"""Hooks of all layers."""

from __future__ import annotations

from typing import Any

import pytest
from tests.sdk.settings.conftest import House

from robota.sdk.settings import Settings, fit_to_tools

TOOLS = ("Bash", "Read", "Write", "Edit", "Glob", "Grep")


def command(text: str, matcher: str = "", **more: Any) -> dict[str, Any]:
    return {"matcher": matcher, "hooks": [{"type": "command", "command": text, **more}]}


def http(url: str, *variables: str) -> dict[str, Any]:
    return {"hooks": [{"type": "http", "url": url, "allowedEnvVars": list(variables)}]}


def commands(settings: Settings, event: str) -> list[str]:
    return [hook.command for group in settings.hooks.get(event, ()) for hook in group.hooks]


def test_hooks_of_all_layers_are_pooled(house: House) -> None:
    house.write(
        claude_user={"hooks": {"Stop": [command("one")]}},
        user={"hooks": {"Stop": [command("two")]}},
        claude={"hooks": {"Stop": [command("three")], "SessionStart": [command("start")]}},
        project={"hooks": {"Stop": [command("four")]}},
    )

    settings = house.load()

    assert commands(settings, "Stop") == ["one", "two", "three", "four"]
    assert commands(settings, "SessionStart") == ["start"]
    assert settings.problems == ()


def test_timeouts_are_those_of_the_program_the_file_was_written_for(house: House) -> None:
    house.write(
        claude={"hooks": {"Stop": [command("a")], "UserPromptSubmit": [command("b")]}},
        project={"hooks": {"Stop": [command("c"), command("d", timeout=3)]}},
    )

    hooks = house.load().hooks

    assert [group.hooks[0].timeout for group in hooks["Stop"]] == [600.0, 10.0, 3.0]
    assert hooks["UserPromptSubmit"][0].hooks[0].timeout == 30.0


@pytest.mark.parametrize(
    ("hooks", "line", "subject", "sentence"),
    [
        (
            {"PreToolUze": [command("x")]},
            3,
            "hooks.PreToolUze",
            "there is no event 'PreToolUze'; did you mean",
        ),
        (
            {"PreToolUse": [command("x", "(")]},
            5,
            "hooks.PreToolUse[0].matcher",
            "neither a list of names nor a",
        ),
        ({"PreToolUse": command("x")}, 3, "hooks.PreToolUse", "expected a list of groups"),
        ({"PreToolUse": [{"hooks": "x"}]}, 5, "hooks.PreToolUse[0].hooks", "expected a list of handlers"),
        (
            {"PreToolUse": [{"hooks": [{"type": "command"}]}]},
            6,
            "hooks.PreToolUse[0].hooks[0]",
            "a 'command' handler needs `command`",
        ),
        ([], 2, "hooks", "this is an object, not a list"),
    ],
)
def test_a_malformed_hook_is_named_with_its_place_and_the_others_run(
    house: House, hooks: Any, line: int, subject: str, sentence: str
) -> None:
    house.write(user={"hooks": {"Stop": [command("good")]}})
    settings = house.write(claude={"hooks": hooks}).load()

    (problem,) = settings.problems
    assert sentence in problem.message
    assert (problem.source, problem.line, problem.subject) == (str(house.path("claude")), line, subject)
    assert commands(settings, "Stop") == ["good"]
    assert commands(settings, "PreToolUse") == []


def test_one_bad_handler_does_not_take_its_neighbours_along(house: House) -> None:
    house.write(user={"hooks": {"Stop": [command("good"), {"hooks": [{"type": "comand", "command": "x"}]}]}})

    settings = house.load()

    assert commands(settings, "Stop") == ["good"]
    assert "did you mean 'command'" in settings.problems[0].message


@pytest.mark.parametrize(
    ("user", "project", "left"),
    [
        (True, False, []),
        (False, True, ["mine"]),
        (None, True, ["mine"]),
        (True, None, []),
        (None, None, None),
    ],
)
def test_hooks_are_turned_off_by_the_user_for_all_and_by_a_project_for_itself(
    house: House, user: bool | None, project: bool | None, left: list[str] | None
) -> None:
    for layer, name, switch in (("user", "mine", user), ("project", "theirs", project)):
        more = {} if switch is None else {"disableAllHooks": switch}
        house.write(**{layer: {"hooks": {"Stop": [command(name)]}, **more}})

    assert commands(house.load(), "Stop") == (["mine", "theirs"] if left is None else left)


def test_http_hooks_go_where_the_user_lets_them_and_name_what_the_user_lets_them(house: House) -> None:
    house.write(
        user={"allowedHttpHookUrls": ["https://hooks.example/*"], "httpHookAllowedEnvVars": ["A"]},
        project={
            "hooks": {"Stop": [http("https://hooks.example/x", "A", "B"), http("https://evil.example/")]},
            "allowedHttpHookUrls": ["*"],
            "httpHookAllowedEnvVars": ["B"],
        },
    )

    settings = house.load()

    (hook,) = [hook for group in settings.hooks["Stop"] for hook in group.hooks]
    assert (hook.url, hook.allowed_env_vars) == ("https://hooks.example/x", ("A",))
    (problem,) = settings.problems
    assert "allowedHttpHookUrls has no entry for this address" in problem.message
    assert problem.subject == "https://evil.example/"


def test_http_hooks_of_a_project_get_no_credentials_in_their_headers(house: House) -> None:
    house.environment |= {"DEPLOY_TOKEN": "hunter2-4711", "STAGE": "test"}
    hooks = {"Stop": [http("https://a.example/", "DEPLOY_TOKEN", "STAGE")]}
    house.write(project={"hooks": hooks})

    settings = house.load()

    assert settings.hooks["Stop"][0].hooks[0].allowed_env_vars == ("STAGE",)
    assert "gets no credentials: DEPLOY_TOKEN" in str(settings.problems[0])
    house.write(project="", user={"hooks": hooks})
    assert house.load().hooks["Stop"][0].hooks[0].allowed_env_vars == ("DEPLOY_TOKEN", "STAGE")


def test_without_a_list_of_the_user_that_of_the_project_counts(house: House) -> None:
    hooks = {"Stop": [http("https://a.example/"), http("https://b.example/")]}
    house.write(project={"hooks": hooks, "allowedHttpHookUrls": ["https://a.*"]})

    urls = [hook.url for group in house.load().hooks["Stop"] for hook in group.hooks]

    assert urls == ["https://a.example/"]


def test_a_list_that_cannot_be_read_lets_nothing_through(house: House) -> None:
    house.write(user={"hooks": {"Stop": [http("https://a.example/")]}, "allowedHttpHookUrls": True})

    assert house.load().hooks["Stop"][0].hooks == ()


def test_names_of_tools_that_a_session_does_not_have_are_named_and_left_out(house: House) -> None:
    house.write(
        claude={
            "permissions": {"deny": ["Raed(.env)", "Bash(rm:*)", "mcp__x__y"], "allow": ["Bsh(ls)"]},
            "hooks": {
                "PreToolUse": [
                    command("both", "Bash|Wrte"),
                    command("none", "Wrte"),
                    command("pattern", "^Nothing$"),
                    command("condition", "Bash", **{"if": "Bsh(ls)"}),
                ],
                "Stop": [command("stop")],
            },
        }
    )

    settings = fit_to_tools(house.load(), TOOLS)

    assert settings.rules.deny == ("Bash(rm:*)", "mcp__x__y")
    assert settings.rules.allow == ()
    assert [(group.matcher, group.hooks[0].command) for group in settings.hooks["PreToolUse"]] == [
        ("Bash", "both"),
        ("^Nothing$", "pattern"),
    ]
    assert commands(settings, "Stop") == ["stop"]
    said = " ".join(map(str, settings.problems))
    assert "deny rule Raed(.env): there is no tool 'Raed'; did you mean 'Read'?" in said
    assert "hooks.PreToolUse: there is no tool 'Wrte'; did you mean 'Write'?" in said
    assert str(house.path("claude")) in said
    assert fit_to_tools(settings, TOOLS) == settings
