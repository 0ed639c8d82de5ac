from __future__ import annotations

import pytest

from robota.core.hooks import HOOK_EVENTS, HookDefinition, HookResult, parse_hooks, run_hooks
from robota.core.messages import JsonObject
from robota.core.permissions import evaluate_permission

CALL: JsonObject = {"session_id": "s", "cwd": ".", "tool_name": "Bash", "tool_input": {"command": "ls"}}


def group(command: str, **more: object) -> dict[str, object]:
    return {"matcher": "", "hooks": [{"type": "command", "command": command, **more}]}


def test_deny_beats_allow_and_allow_beats_the_mode() -> None:  # §20.49
    question = ("Write", {"file_path": "/w/a.txt"})

    assert evaluate_permission(*question, cwd="/w", allow=["Write"], deny=["Write(a.txt)"]) == "deny"
    assert evaluate_permission(*question, cwd="/w", mode="plan", allow=["Write(a.txt)"]) == "auto"
    assert evaluate_permission(*question, cwd="/w", mode="plan") == "deny"


@pytest.mark.parametrize("rule", ["Write", "Write(*)"])
@pytest.mark.parametrize("path", ["a.txt", "deep/er/b.md", "with blanks.txt"])
def test_a_bare_name_and_a_star_match_every_call(rule: str, path: str) -> None:  # §20.50
    assert evaluate_permission("Write", {"file_path": path}, cwd="/w", allow=[rule]) == "auto"


@pytest.mark.anyio
async def test_exit_2_blocks_with_stderr_as_reason_and_other_codes_go_on_with_a_warning() -> None:  # §20.51
    blocked = await run_hooks({"PreToolUse": [group("echo 'not now' >&2; exit 2")]}, "PreToolUse", CALL)
    warned = await run_hooks({"PreToolUse": [group("echo odd >&2; exit 7")]}, "PreToolUse", CALL)

    assert (blocked.blocked, blocked.reason) == (True, "not now")
    assert not warned.blocked
    assert any("odd" in warning for warning in warned.warnings)


def test_a_hook_has_ten_seconds_unless_it_says_otherwise() -> None:  # §20.52
    config = parse_hooks({"Stop": [group("true"), group("true", timeout=3)]})

    assert [hook.timeout for each in config["Stop"] for hook in each.hooks] == [10.0, 3.0]


@pytest.mark.anyio
async def test_extra_executors_are_added_to_command_and_http() -> None:  # §20.53
    class Prompt:
        type = "prompt"

        async def execute(self, hook: HookDefinition, hook_input: JsonObject) -> HookResult:
            return HookResult(exit_code=0, stdout="from the prompt")

    both = {
        "matcher": "",
        "hooks": [{"type": "prompt", "prompt": "x"}, {"type": "command", "command": "echo from a command"}],
    }
    outcome = await run_hooks({"UserPromptSubmit": [both]}, "UserPromptSubmit", CALL, executors=[Prompt()])

    assert [run.type for run in outcome.runs] == ["prompt", "command"]
    assert [run.result.stdout.strip() for run in outcome.runs] == ["from the prompt", "from a command"]


def test_the_worktree_events_exist() -> None:  # §20.54
    assert {"WorktreeCreate", "WorktreeRemove"} <= set(HOOK_EVENTS)
