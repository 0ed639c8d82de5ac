from __future__ import annotations

import re

import anyio
import anyio.lowlevel
import pytest

from robota.core.errors import ConfigurationError
from robota.core.hooks import (
    HOOK_EVENTS,
    HookDefinition,
    HookGroup,
    claude_timeout,
    describe_unsupported,
    merge_hooks,
    parse_hooks,
    runner,
)
from robota.core.hooks.definition import HOOK_TYPES, read_hooks
from robota.core.hooks.runner import matches, select_hooks
from robota.core.messages import Json, JsonObject

pytestmark = pytest.mark.anyio


def command(text: str = "true", **more: Json) -> JsonObject:
    return {"type": "command", "command": text, **more}


def test_all_events_of_the_project_are_known() -> None:
    assert set(HOOK_EVENTS) == {
        "PreToolUse", "PostToolUse", "SessionStart", "SessionEnd", "Stop", "StopFailure", "UserPromptSubmit",
        "PreCompact", "PostCompact", "WorktreeCreate", "WorktreeRemove", "SubagentStart", "SubagentStop",
        "Notification", "PermissionRequest", "PostToolUseFailure", "ConfigChange", "Elicitation",
        "ElicitationResult",
    }  # fmt: skip


def test_a_settings_object_becomes_groups_of_definitions() -> None:
    raw = {
        "PreToolUse": [
            {
                "matcher": "Bash|Edit",
                "env": {"A": "1", "B": "1"},
                "hooks": [
                    command(
                        "./guard", args=["-x"], timeout=3, env={"B": "2"}, statusMessage="checking", once=True
                    ),
                    {
                        "type": "http",
                        "url": "https://example.org/h",
                        "headers": {"X": "$K"},
                        "allowedEnvVars": ["K"],
                    },
                ],
            }
        ],
        "Stop": [{"hooks": [{"type": "agent", "agent": "reviewer", "maxTurns": 3, "if": "Bash(git *)"}]}],
    }
    assert parse_hooks(raw, source="here") == {
        "PreToolUse": (
            HookGroup(
                matcher="Bash|Edit",
                env={"A": "1", "B": "1"},
                hooks=(
                    HookDefinition(
                        type="command",
                        command="./guard",
                        args=("-x",),
                        timeout=3,
                        env={"B": "2"},
                        status_message="checking",
                        extra={"once": True},
                        source="here",
                    ),
                    HookDefinition(
                        type="http",
                        url="https://example.org/h",
                        headers={"X": "$K"},
                        allowed_env_vars=("K",),
                        source="here",
                    ),
                ),
            ),
        ),
        "Stop": (
            HookGroup(
                hooks=(
                    HookDefinition(
                        type="agent", agent="reviewer", max_turns=3, condition="Bash(git *)", source="here"
                    ),
                )
            ),
        ),
    }


def test_a_plugin_file_may_wrap_its_events() -> None:
    groups = [{"matcher": None, "hooks": [command()]}]
    assert parse_hooks({"description": "d", "hooks": {"Stop": groups}}) == parse_hooks({"Stop": groups})


def test_the_default_timeout_is_ten_seconds_or_what_the_file_format_says() -> None:
    raw = {event: [{"hooks": [command()]}] for event in ("Stop", "SessionEnd", "UserPromptSubmit")}
    assert {groups[0].hooks[0].timeout for groups in parse_hooks(raw).values()} == {10.0}
    claude = parse_hooks(raw, default_timeout=claude_timeout)
    assert [groups[0].hooks[0].timeout for groups in claude.values()] == [600.0, 1.5, 30.0]
    assert (claude_timeout("Stop", "prompt"), claude_timeout("Stop", "agent")) == (30.0, 60.0)


def test_every_malformed_entry_is_reported_with_its_place() -> None:
    raw = {
        "Stop": "x",
        "PreToolUse": [3, {"hooks": {}}, {"matcher": 5, "env": {"K": 1}, "hooks": []}],
        "PostToolUse": [
            {
                "hooks": [
                    "echo",
                    {"command": "no type"},
                    command(""),
                    command(timeout=0),
                    command(timeout="5"),
                    {"type": "command", "command": ["ls"]},
                    {"type": "http", "url": "ftp://x"},
                    {"type": "agent"},
                ]
            }
        ],
    }
    with pytest.raises(ConfigurationError) as error:
        parse_hooks(raw, source="/p/settings.json")
    lines = str(error.value).splitlines()
    assert "/p/settings.json" in lines[0]
    assert [line.partition(":")[0] for line in lines[1:]] == [
        "- Stop", "- PreToolUse[0]", "- PreToolUse[1].hooks",
        "- PreToolUse[2].matcher", "- PreToolUse[2].env",
        *(f"- PostToolUse[0].hooks[{place}]" for place in range(8)),
    ]  # fmt: skip
    assert lines[8] == "- PostToolUse[0].hooks[2]: a 'command' handler needs `command`"
    with pytest.raises(ConfigurationError, match="expected an object of events, got a list"):
        parse_hooks([])


def test_what_will_never_run_is_named() -> None:
    config = parse_hooks(
        {
            "FileChanged": [{"hooks": [command()]}],
            "Stop": [{"hooks": [{"type": "mcp_tool", "server": "s"}, command("x", **{"if": "Bash(ls)"})]}],
        },
        source="s.json",
    )
    assert describe_unsupported(config) == [
        "Hooks for 'FileChanged' never run: this program does not have that event.",
        "The Stop hook 'mcp_tool' (s.json) never runs: nothing here can execute the type 'mcp_tool'.",
        "The Stop hook 'x' (s.json) never runs: `if` has no meaning for Stop.",
    ]
    assert config["Stop"][0].hooks[0].extra == {"server": "s"}
    assert len(describe_unsupported(config, types=["command", "mcp_tool"])) == 2


def test_whoever_can_go_on_without_what_never_runs_is_told_where_it_stands() -> None:
    raw = {
        "FileChanged": [{"hooks": [command()]}],
        "Stop": [{"hooks": [{"type": "mcp_tool"}, command("x", **{"if": "Bash(ls)"}), command("y")]}],
    }
    config, problems = read_hooks(raw, types=HOOK_TYPES)
    assert [hook.command for group in config["Stop"] for hook in group.hooks] == ["y"]
    assert (tuple(config), problems) == (
        ("Stop",),
        (
            "FileChanged: its hooks never run: there is no such event here",
            "Stop[0].hooks[0]: it never runs: nothing here can execute the type 'mcp_tool'",
            "Stop[0].hooks[1]: it never runs: `if` has no meaning for Stop",
        ),
    )


def test_layers_are_pooled() -> None:
    user, project = (parse_hooks({"Stop": [{"hooks": [command(name)]}]}) for name in ("user", "project"))
    merged = merge_hooks(user, project, parse_hooks({"SessionEnd": [{"hooks": [command("end")]}]}))
    assert [group.hooks[0].command for group in merged["Stop"]] == ["user", "project"]
    assert set(merged) == {"Stop", "SessionEnd"}


# --- matching --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("matcher", "target", "fits"),
    [
        ("", "Bash", True),
        ("*", "Bash", True),
        ("Bash", "Bash", True),
        ("Bash", "BashOutput", False),
        ("bash", "Bash", False),
        ("Edit|Write", "Write", True),
        ("Edit, Write", "Write", True),
        ("mcp__memory", "mcp__memory__store", False),
        ("mcp__memory__.*", "mcp__memory__store", True),
        ("mcp__my-server__x", "mcp__my-server__x", True),
        ("Notebook.*", "MyNotebookEdit", True),
        ("^Bash$", "Bash", True),
        ("^(?!Read)", "Read", False),
    ],
)
async def test_a_matcher_is_all_or_names_or_a_pattern(matcher: str, target: str, fits: bool) -> None:
    assert await matches(matcher, target) is fits


@pytest.mark.parametrize(
    ("event", "hook_input"),
    [
        ("PreToolUse", {"tool_name": "wanted"}),
        ("PostToolUse", {"tool_name": "wanted"}),
        ("PermissionRequest", {"tool_name": "wanted"}),
        ("SessionStart", {"source": "wanted"}),
        ("SessionEnd", {"reason": "wanted"}),
        ("StopFailure", {"error": "wanted", "reason": "other"}),
        ("SubagentStart", {"agent_type": "wanted", "agent_id": "other"}),
        ("SubagentStop", {"agent_type": "", "agent_id": "wanted"}),
        ("PreCompact", {"trigger": "wanted"}),
        ("PostCompact", {"trigger": "wanted"}),
        ("Notification", {"notification_type": "wanted"}),
    ],
)
async def test_each_event_has_its_own_target(event: str, hook_input: JsonObject) -> None:
    config = parse_hooks({event: [{"matcher": "wanted", "hooks": [command()]}]})
    assert len((await select_hooks(config, event, hook_input))[0]) == 1
    assert (await select_hooks(config, event, {}))[0] == []


@pytest.mark.parametrize("event", ["UserPromptSubmit", "Stop", "WorktreeCreate"])
async def test_events_without_a_target_ignore_the_matcher(event: str) -> None:
    config = parse_hooks({event: [{"matcher": "whatever", "hooks": [command()]}]})
    assert len((await select_hooks(config, event, {}))[0]) == 1


MISSPELT = {
    "PreTooluse": ({"PreTooluse": []}, "there is no event 'PreTooluse'; did you mean 'PreToolUse'?"),
    "Deploy": ({"Deploy": []}, "there is no event 'Deploy'; there are ConfigChange, Elicitation, "),
    "matcher": (
        {"Stop": [{"matchers": "Bash", "hooks": []}]},
        "Stop[0].matchers: there is no such field; did you mean 'matcher'?",
    ),
    "timeout": (
        {"Stop": [{"hooks": [{"type": "command", "command": "x", "timout": 5}]}]},
        "Stop[0].hooks[0].timout: there is no such field; did you mean 'timeout'?",
    ),
    "type": (
        {"Stop": [{"hooks": [{"type": "Comand", "command": "x"}]}]},
        "there is no handler type 'Comand'; did you mean 'command'?",
    ),
    "if": (
        {"PreToolUse": [{"hooks": [{"type": "command", "command": "x", "if": "Bash(ls"}]}]},
        "its `if` is not a permission rule: the closing parenthesis is missing",
    ),
    "pattern": (
        {"PreToolUse": [{"matcher": "Bash(", "hooks": []}]},
        "'Bash(' is neither a list of names nor",
    ),
}


@pytest.mark.parametrize("what", MISSPELT)
def test_a_name_that_is_almost_right_is_refused_with_the_one_that_was_meant(what: str) -> None:
    raw, sentence = MISSPELT[what]
    with pytest.raises(ConfigurationError) as error:
        parse_hooks(raw)
    assert sentence in str(error.value)


def test_a_group_made_by_hand_is_held_to_the_same() -> None:
    with pytest.raises(ConfigurationError, match="neither a list of names nor a regular expression"):
        HookGroup(matcher="Bash(", hooks=())


CATASTROPHIC = ("(a+)+$", "(?:a|a)*$", "(a|aa)+$", ".*.*.*.*=.*", "a?" * 30 + "a" * 30)


@pytest.mark.parametrize("pattern", CATASTROPHIC)
async def test_a_catastrophic_matcher_does_not_hold_the_loop(
    pattern: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The search goes on elsewhere while this loop counts, and in the end the hooks run rather than not."""
    monkeypatch.setattr(runner, "_SECONDS", 0.3)
    ticks = 0

    async def tick() -> None:
        nonlocal ticks
        while True:
            await anyio.lowlevel.checkpoint()
            ticks += 1

    target = "a" * 30 + "!" if "?" in pattern else "a" * 64 + "!"
    config = parse_hooks({"PreToolUse": [{"matcher": pattern, "hooks": [command()]}]})
    async with anyio.create_task_group() as group:
        group.start_soon(tick)
        hooks, warnings = await select_hooks(config, "PreToolUse", {"tool_name": target})
        group.cancel_scope.cancel()
    assert ticks > 1
    assert len(hooks) == len(warnings) or not warnings
    if warnings:
        assert warnings == (f"The PreToolUse matcher {pattern!r} takes too long; its hooks always run.",)


async def test_a_pattern_is_the_same_wherever_it_is_searched(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "_SECONDS", 60.0)  # a busy machine starts its process late
    for pattern in ("^(Read|Write)$", "^(?:mcp__(?:db|web)__)+w", "\\bEdit\\b.*"):
        for target in ("Write", "mcp__db__write", "Notebook Edit", "Bash", "x" * 300 + " Edit"):
            config = parse_hooks({"PreToolUse": [{"matcher": pattern, "hooks": [command()]}]})
            hooks, warnings = await select_hooks(config, "PreToolUse", {"tool_name": target})
            assert (len(hooks) == 1, warnings) == (re.search(pattern, target) is not None, ())


async def test_identical_handlers_run_once_in_configuration_order() -> None:
    user = parse_hooks({"Stop": [{"hooks": [command("a"), command("b")]}]}, source="user")
    project = parse_hooks(
        {"Stop": [{"hooks": [command("b"), command("a", timeout=1), command("c")]}]}, source="project"
    )
    hooks, _ = await select_hooks(merge_hooks(user, project), "Stop", {})
    assert [(hook.command, hook.timeout, hook.source) for hook in hooks] == [
        ("a", 10, "user"),
        ("b", 10, "user"),
        ("a", 1, "project"),
        ("c", 10, "project"),
    ]


async def test_the_if_rule_is_judged_by_the_given_function() -> None:
    config = parse_hooks({"PreToolUse": [{"hooks": [command("x", **{"if": "Bash(git *)"})]}]})
    asked = []

    def judge(rule: str, tool: str, tool_input: object) -> bool:
        asked.append((rule, tool, tool_input))
        return False

    call = {"tool_name": "Bash", "tool_input": {"command": "ls"}}
    assert (await select_hooks(config, "PreToolUse", call, judge))[0] == []
    assert asked == [("Bash(git *)", "Bash", {"command": "ls"})]
    assert len((await select_hooks(config, "PreToolUse", call))[0]) == 1


async def test_an_if_rule_outside_tool_events_never_matches() -> None:
    config = parse_hooks({"Stop": [{"hooks": [command("x", **{"if": "Bash"})]}]})
    assert (await select_hooks(config, "Stop", {}, lambda *call: True))[0] == []
