from __future__ import annotations

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
)
from robota.core.hooks.matching import matches, select_hooks
from robota.core.messages import Json, JsonObject


def command(text: str = "true", **more: Json) -> JsonObject:
    return {"type": "command", "command": text, **more}


def test_all_events_of_the_project_are_known() -> None:
    assert set(HOOK_EVENTS) == {
        "PreToolUse", "PostToolUse", "SessionStart", "SessionEnd", "Stop", "StopFailure", "UserPromptSubmit",
        "PreCompact", "PostCompact", "WorktreeCreate", "WorktreeRemove", "SubagentStart", "SubagentStop",
        "Notification", "PermissionRequest", "PostToolUseFailure",
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
                        env={"A": "1", "B": "2"},
                        status_message="checking",
                        extra={"once": True},
                        source="here",
                    ),
                    HookDefinition(
                        type="http",
                        url="https://example.org/h",
                        headers={"X": "$K"},
                        allowed_env_vars=("K",),
                        env={"A": "1", "B": "1"},
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
        "A": "x",
        "B": [3, {"hooks": {}}, {"matcher": 5, "env": {"K": 1}, "hooks": []}],
        "C": [
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
        "- A", "- B[0]", "- B[1].hooks", "- B[2].matcher", "- B[2].env",
        "- C[0].hooks[0]", "- C[0].hooks[1]", "- C[0].hooks[2]", "- C[0].hooks[3]", "- C[0].hooks[4]",
        "- C[0].hooks[5]", "- C[0].hooks[6]", "- C[0].hooks[7]",
    ]  # fmt: skip
    assert lines[8] == "- C[0].hooks[2]: a 'command' handler needs `command`"
    with pytest.raises(ConfigurationError, match="expected an object of events, got a list"):
        parse_hooks([])


def test_what_will_never_run_is_named() -> None:
    config = parse_hooks(
        {
            "Elicitation": [{"hooks": [command()]}],
            "Stop": [{"hooks": [{"type": "mcp_tool", "server": "s"}, command("x", **{"if": "Bash(ls)"})]}],
        },
        source="s.json",
    )
    assert describe_unsupported(config) == [
        "Hooks for 'Elicitation' never run: this program does not have that event.",
        "The hook type 'mcp_tool' (Stop, s.json) cannot be executed.",
        "The hook 'x' never runs: `if` has no meaning for Stop.",
    ]
    assert config["Stop"][0].hooks[0].extra == {"server": "s"}
    assert len(describe_unsupported(config, types=["command", "mcp_tool"])) == 2


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
        ("Bash(", "Bash(", True),
        ("Bash(", "Bash", False),
    ],
)
def test_a_matcher_is_all_or_names_or_a_pattern(matcher: str, target: str, fits: bool) -> None:
    assert matches(matcher, target) is fits


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
def test_each_event_has_its_own_target(event: str, hook_input: JsonObject) -> None:
    config = parse_hooks({event: [{"matcher": "wanted", "hooks": [command()]}]})
    assert len(select_hooks(config, event, hook_input)[0]) == 1
    assert select_hooks(config, event, {})[0] == []


@pytest.mark.parametrize("event", ["UserPromptSubmit", "Stop", "WorktreeCreate"])
def test_events_without_a_target_ignore_the_matcher(event: str) -> None:
    config = parse_hooks({event: [{"matcher": "whatever", "hooks": [command()]}]})
    assert len(select_hooks(config, event, {})[0]) == 1


def test_a_broken_pattern_is_a_name_and_a_warning() -> None:
    config = parse_hooks({"PreToolUse": [{"matcher": "Bash(", "hooks": [command()]}]})
    hooks, warnings = select_hooks(config, "PreToolUse", {"tool_name": "Bash("})
    assert len(hooks) == 1
    assert "'Bash(' is read as a plain name" in warnings[0]


def test_identical_handlers_run_once_in_configuration_order() -> None:
    user = parse_hooks({"Stop": [{"hooks": [command("a"), command("b")]}]}, source="user")
    project = parse_hooks(
        {"Stop": [{"hooks": [command("b"), command("a", timeout=1), command("c")]}]}, source="project"
    )
    hooks, _ = select_hooks(merge_hooks(user, project), "Stop", {})
    assert [(hook.command, hook.timeout, hook.source) for hook in hooks] == [
        ("a", 10, "user"),
        ("b", 10, "user"),
        ("a", 1, "project"),
        ("c", 10, "project"),
    ]


def test_the_if_rule_is_judged_by_the_given_function() -> None:
    config = parse_hooks({"PreToolUse": [{"hooks": [command("x", **{"if": "Bash(git *)"})]}]})
    asked = []

    def judge(rule: str, tool: str, tool_input: object) -> bool:
        asked.append((rule, tool, tool_input))
        return False

    call = {"tool_name": "Bash", "tool_input": {"command": "ls"}}
    assert select_hooks(config, "PreToolUse", call, judge)[0] == []
    assert asked == [("Bash(git *)", "Bash", {"command": "ls"})]
    assert len(select_hooks(config, "PreToolUse", call)[0]) == 1


def test_an_if_rule_outside_tool_events_never_matches() -> None:
    config = parse_hooks({"Stop": [{"hooks": [command("x", **{"if": "Bash"})]}]})
    assert select_hooks(config, "Stop", {}, lambda *call: True)[0] == []
