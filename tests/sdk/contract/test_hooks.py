"""Hooks of the settings files, through a whole session: when they run, what they are told and may do."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.sdk.contract.heard import Heard, hook, write

from robota import InteractiveSession, create_project_session_store
from robota.core import PromptBlockedError, ProviderError, TokenUsage
from robota.testing import Fail, ScriptedProvider, call

pytestmark = pytest.mark.anyio
FREE = "bypassPermissions"
KEEP = "cat >> heard.jsonl; echo >> heard.jsonl"
LIFE = (
    "SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "Stop", "StopFailure", "SessionEnd",
    "PreCompact", "PostCompact", "SubagentStart", "SubagentStop",
)  # fmt: skip


def listen(project: Path, *events: str) -> None:
    command = {"type": "command", "command": KEEP}
    write(project / ".robota/settings.json", {"hooks": {event: [{"hooks": [command]}] for event in events}})


def heard_by_hooks(project: Path) -> list[dict[str, Any]]:
    path = project / "heard.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines() if line] if path.exists() else []


def answer(event: str, **said: Any) -> dict[str, Any]:
    return hook(f"echo '{json.dumps(said)}'", event=event)


def trusted(project: Path, *replies: Any, **more: Any) -> InteractiveSession:
    more.setdefault("permission_mode", FREE)
    return InteractiveSession(cwd=project, provider=ScriptedProvider(*replies), trust_project=True, **more)


def last_prompt(session: InteractiveSession) -> str:
    return next(str(each.content) for each in reversed(session.session.messages) if each.role == "user")


async def test_the_whole_life_of_a_session_is_told_in_order(project: Path) -> None:
    listen(project, *LIFE)
    async with trusted(project, [call("Read", file_path="notes.txt")], "Milk.") as session:
        await session.submit("Read")
    told = heard_by_hooks(project)
    assert [each["hook_event_name"] for each in told] == [
        "SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "Stop", "SessionEnd",
    ]  # fmt: skip
    for each in told:
        assert each["session_id"] == session.session_id
        assert each["cwd"] == str(project)
    start, prompt, before, after, stop, end = told
    assert start["source"] == "startup"
    assert prompt["prompt"] == prompt["user_message"] == "Read"
    assert before["tool_name"] == "Read"
    assert before["tool_input"]["file_path"].endswith("notes.txt")
    assert before["permission_mode"] == FREE
    assert "milk" in json.dumps(after["tool_response"])
    assert "milk" in json.dumps(after["tool_output"])
    assert stop["last_assistant_message"] == stop["response"] == "Milk."
    assert stop["stop_hook_active"] is False
    assert end["reason"] == "other"


async def test_hooks_are_told_whether_a_session_is_new_goes_on_or_is_a_fork(
    project: Path, tmp_path: Path
) -> None:
    listen(project, "SessionStart")
    store = create_project_session_store(tmp_path / "sessions")
    async with trusted(project, "One.", session_store=store) as first:
        await first.submit("Go")
    again = trusted(project, "Two.", session_store=store, resume_session_id=first.session_id)
    async with again:
        await again.submit("On")
    fork = trusted(
        project, "Three.", session_store=store, resume_session_id=first.session_id, fork_session=True
    )
    async with fork:
        await fork.submit("Elsewhere")
    assert [each["source"] for each in heard_by_hooks(project)] == ["startup", "resume", "fork"]


async def test_a_failing_turn_is_told_as_such(project: Path) -> None:
    listen(project, "Stop", "StopFailure")
    async with trusted(project, [Fail(ProviderError("no such model"))]) as session:
        heard = Heard(session)
        await session.submit("Go")
        assert heard.closings() == ["error"]
    (told,) = heard_by_hooks(project)
    assert told["hook_event_name"] == "StopFailure"
    assert "no such model" in told["reason"]


async def test_compaction_is_told_before_and_after(project: Path) -> None:
    listen(project, "PreCompact", "PostCompact")
    async with trusted(project, "One.", "A summary of everything.") as session:
        await session.submit("Go")
        assert (await session.execute_command("compact", "")).success
    before, after = heard_by_hooks(project)
    assert (before["hook_event_name"], before["trigger"]) == ("PreCompact", "manual")
    assert (after["hook_event_name"], after["trigger"]) == ("PostCompact", "manual")
    assert "A summary of everything." in after["compact_summary"]


async def test_raw_input_is_what_hooks_are_told(project: Path) -> None:
    listen(project, "UserPromptSubmit")
    async with trusted(project, "Fine.") as session:
        await session.submit("the long prompt", "/audit", "tools:audit now")
        assert session.messages[0].content == "/audit"
        assert last_prompt(session).endswith("the long prompt")
    (told,) = heard_by_hooks(project)
    assert told["prompt"] == "tools:audit now"


async def test_what_start_and_prompt_hooks_print_is_put_before_the_prompt_as_it_is(project: Path) -> None:
    settings = {
        "hooks": {
            "SessionStart": [{"hooks": [{"type": "command", "command": "echo on branch main"}]}],
            "UserPromptSubmit": [{"hooks": [{"type": "command", "command": "echo be brief"}]}],
        }
    }
    write(project / ".robota/settings.json", settings)
    async with trusted(project, "One.", "Two.") as session:
        await session.submit("Hello")
        assert last_prompt(session) == (
            "<system-reminder>\non branch main\nbe brief\n</system-reminder>\nHello"
        )
        await session.submit("Again")
        assert last_prompt(session) == "<system-reminder>\nbe brief\n</system-reminder>\nAgain"
        assert [message.content for message in session.messages if message.role == "user"] == [
            "Hello", "Again",
        ]  # fmt: skip


async def test_additional_context_of_a_prompt_hook_reaches_the_model(project: Path) -> None:
    said = {"hookEventName": "UserPromptSubmit", "additionalContext": "It is Monday."}
    write(project / ".robota/settings.json", answer("UserPromptSubmit", hookSpecificOutput=said))
    async with trusted(project, "Fine.") as session:
        await session.submit("Which day?")
        assert "It is Monday." in last_prompt(session)


@pytest.mark.parametrize(
    "refusal",
    [
        hook("echo 'not on Mondays' >&2; exit 2", event="UserPromptSubmit"),
        answer("UserPromptSubmit", decision="block", reason="not on Mondays"),
    ],
    ids=["exit", "json"],
)
async def test_a_prompt_that_is_refused_ends_in_error_and_leaves_the_conversation(
    project: Path, refusal: dict[str, Any]
) -> None:
    write(project / ".robota/settings.json", refusal)
    async with trusted(project, "never") as session:
        heard = Heard(session)
        result = await session.submit("a secret plan")
        assert heard.closings() == ["error"]
        assert isinstance(result.error, PromptBlockedError)
        assert "not on Mondays" in str(result.error)
        assert "a secret plan" not in str(session.session.messages)


@pytest.mark.parametrize("code", [0, 1, 2, 3])
async def test_exit_codes_before_a_tool(project: Path, code: int) -> None:
    """0 goes on, 2 blocks with what stands on standard error, everything else goes on with a warning."""
    write(project / ".robota/settings.json", hook(f"echo why >&2; exit {code}", event="PreToolUse"))
    async with trusted(project, [call("Bash", command="touch made")], "Done.") as session:
        heard, notices = Heard(session), []
        session.on("notice", lambda event: notices.append(event.message))
        await session.submit("Go")
        (end,) = heard.of("tool_end")
        assert (project / "made").exists() == (code != 2)
        assert (end.result == "success") == (code != 2)
        assert any("why" in notice for notice in notices) == (code in (1, 3))
        results = [message.content for message in session.session.messages if message.role == "tool"]
        assert ("Blocked by hook: why" in str(results)) == (code == 2)


@pytest.mark.parametrize(
    ("decision", "made"), [("deny", False), ("allow", True), ("ask", False), ("defer", False)]
)
async def test_decisions_before_a_tool_in_default_mode(project: Path, decision: str, made: bool) -> None:
    said = {"hookEventName": "PreToolUse", "permissionDecision": decision, "permissionDecisionReason": "why"}
    write(project / ".robota/settings.json", answer("PreToolUse", hookSpecificOutput=said))
    session = trusted(project, [call("Bash", command="touch made")], "Done.", permission_mode="default")
    async with session:
        await session.submit("Go")
        assert (project / "made").exists() == made


async def test_deny_of_one_hook_wins_over_allow_of_another(project: Path) -> None:
    groups = [
        answer("PreToolUse", hookSpecificOutput={"hookEventName": "PreToolUse", "permissionDecision": said})
        for said in ("allow", "deny")
    ]
    write(project / ".robota/settings.json", groups[0])
    write(project / ".claude/settings.json", groups[1])
    async with trusted(project, [call("Bash", command="touch made")], "No.") as session:
        await session.submit("Go")
        assert not (project / "made").exists()


async def test_an_input_that_a_hook_rewrites_is_judged_and_run(project: Path) -> None:
    said = {"hookEventName": "PreToolUse", "updatedInput": {"command": "touch other"}}
    settings = answer("PreToolUse", hookSpecificOutput=said) | {"permissions": {"deny": ["Bash(touch made)"]}}
    write(project / ".robota/settings.json", settings)
    async with trusted(project, [call("Bash", command="touch made")], "Done.") as session:
        await session.submit("Go")
        assert (project / "other").exists()
        assert not (project / "made").exists()


async def test_a_result_can_be_replaced_and_explained(project: Path) -> None:
    said = {"hookEventName": "PostToolUse", "updatedToolOutput": "[gone]", "additionalContext": "lint failed"}
    write(project / ".robota/settings.json", answer("PostToolUse", hookSpecificOutput=said))
    async with trusted(project, [call("Read", file_path="notes.txt")], "Done.") as session:
        await session.submit("Go")
        (result,) = [str(message.content) for message in session.session.messages if message.role == "tool"]
        assert "milk" not in result
        assert "[gone]" in result
        assert result.endswith("<system-reminder>\nlint failed\n</system-reminder>\n")


async def test_continue_false_ends_the_turn_with_its_reason(project: Path) -> None:
    write(
        project / ".robota/settings.json",
        answer("PostToolUse", **{"continue": False, "stopReason": "enough for today"}),
    )
    async with trusted(project, [call("Read", file_path="notes.txt")], "never") as session:
        heard, notices = Heard(session), []
        session.on("notice", lambda event: notices.append(event.message))
        result = await session.submit("Go")
        assert len(heard.closings()) == 1
        assert "never" not in result.text
        assert any("enough for today" in notice for notice in notices)


@pytest.mark.parametrize(
    ("matcher", "runs"),
    [("", True), ("*", True), ("Read", True), ("Edit|Read", True), ("Edit", False), ("Re", False),
     ("^Re.*", True), ("read", False)],
)  # fmt: skip
async def test_matchers_go_by_the_name_of_the_tool(project: Path, matcher: str, runs: bool) -> None:
    write(project / ".robota/settings.json", hook("touch ran", event="PreToolUse", matcher=matcher))
    async with trusted(project, [call("Read", file_path="notes.txt")], "Done.") as session:
        await session.submit("Go")
        assert (project / "ran").exists() == runs


async def test_hooks_of_all_layers_run_and_the_same_one_once(project: Path, home: Path) -> None:
    for path, word in (
        (project / ".robota/settings.json", "project"),
        (project / ".claude/settings.json", "claude"),
        (home / ".robota/settings.json", "user"),
        (project / ".robota/settings.local.json", "project"),
    ):
        write(path, hook(f"echo {word} >> ran", event="Stop"))
    async with trusted(project, "Done.") as session:
        await session.submit("Go")
    assert sorted((project / "ran").read_text().split()) == ["claude", "project", "user"]


async def test_a_hook_that_hangs_blocks_the_tool(project: Path) -> None:
    settings = {"matcher": "", "hooks": [{"type": "command", "command": "sleep 60", "timeout": 0.2}]}
    write(project / ".robota/settings.json", {"hooks": {"PreToolUse": [settings]}})
    async with trusted(project, [call("Bash", command="touch made")], "No.") as session:
        await session.submit("Go")
        assert not (project / "made").exists()
        assert "timed out" in str(session.session.messages).lower()


async def test_a_prompt_hook_is_a_question_to_the_model(project: Path) -> None:
    prompt = {"type": "prompt", "prompt": "May it? $ARGUMENTS"}
    write(project / ".robota/settings.json", {"hooks": {"PreToolUse": [{"hooks": [prompt]}]}})
    replies = ([call("Bash", command="touch made")], '{"ok": false, "reason": "too risky"}', "I did not.")
    async with trusted(project, *replies) as session:
        await session.submit("Go")
        assert not (project / "made").exists()
        assert "too risky" in str([each.content for each in session.session.messages if each.role == "tool"])


@pytest.mark.parametrize("matcher", ["Task", "Agent", "Bash|Task", "^Task$"])
async def test_hooks_for_agents_know_the_tool_under_its_older_name_too(project: Path, matcher: str) -> None:
    write(project / ".claude/settings.json", hook("exit 2", event="PreToolUse", matcher=matcher))
    async with trusted(project, [call("Agent", prompt="Go")], "No.") as session:
        heard = Heard(session)
        await session.submit("Go")
        assert [state.result for state in heard.of("tool_end")] == ["denied"]


async def test_hooks_for_a_tool_that_is_not_here_are_named(project: Path) -> None:
    path = write(
        project / ".claude/settings.json", hook("true", event="PreToolUse", matcher="NotebookEdit|LS")
    )
    async with trusted(project, "Fine.") as session:
        assert (await session.submit("Go")).success
        assert any(
            str(path) == each.source and "NotebookEdit or LS" in each.message for each in session.problems
        )


async def test_a_hook_whose_model_is_not_there_asks_the_sessions_own(project: Path) -> None:
    prompt = {"type": "prompt", "prompt": "May it?", "model": "haiku"}
    write(project / ".claude/settings.json", {"hooks": {"PreToolUse": [{"hooks": [prompt]}]}})
    replies = ([call("Read", file_path="notes.txt")], '{"ok": true}', "Milk.")
    async with trusted(project, *replies, model="scripted") as session:
        heard, notices = Heard(session), []
        session.on("notice", lambda event: notices.append(event.message))
        await session.submit("Go")
        assert [state.result for state in heard.of("tool_end")] == ["success"]
        assert any("haiku" in notice for notice in notices)


async def test_an_event_that_never_fires_here_is_named_at_the_start(project: Path) -> None:
    write(project / ".claude/settings.json", hook("true", event="TeammateIdle"))
    async with trusted(project, "Fine.") as session:
        notices: list[str] = []
        session.on("notice", lambda event: notices.append(event.message))
        assert (await session.submit("Go")).success
        assert any("TeammateIdle" in each for each in (*notices, *map(str, session.problems)))


def watcher(verdict: str) -> str:
    return (
        f'{sys.executable} -c "import json,sys; e=json.load(sys.stdin); '
        "open('changes','a').write(e['source']+' '+e['file_path']+chr(10)); "
        f'{verdict}"'
    )


async def test_a_changed_settings_file_is_told_and_then_counts(project: Path, home: Path) -> None:
    write(home / ".robota/settings.json", hook(watcher("sys.exit(0)"), event="ConfigChange"))
    async with trusted(project, [call("Read", file_path="notes.txt")], "No.") as session:
        await session.ready()
        path = write(project / ".robota/settings.json", {"permissions": {"deny": ["Read(notes.txt)"]}})
        heard = Heard(session)
        await session.submit("Go")
        assert [state.result for state in heard.of("tool_end")] == ["denied"]
    assert (project / "changes").read_text().splitlines() == [f"project_settings {path}"]


async def test_a_change_that_a_hook_refuses_does_not_count(project: Path, home: Path) -> None:
    refuse = watcher("print('not now', file=sys.stderr); sys.exit(2)")
    write(home / ".robota/settings.json", hook(refuse, event="ConfigChange", matcher="project_settings"))
    write(project / ".robota/settings.json", {"permissions": {"deny": ["Read(notes.txt)"]}})
    read = [call("Read", file_path="notes.txt")]
    async with trusted(project, read, "No.", read, "No.", read, "Yes.") as session:
        heard, notices = Heard(session), []
        session.on("notice", lambda event: notices.append(event.message))
        await session.submit("Go")
        write(project / ".robota/settings.json", {})
        await session.submit("And now?")
        assert any("not now" in notice for notice in notices)
        write(project / "AGENTS.md", "Be brief.")  # another reason to read everything again
        write(home / ".robota/settings.json", {})
        await session.submit("And now?")
        assert [state.result for state in heard.of("tool_end")] == ["denied", "denied", "success"]


async def test_a_hook_of_the_project_cannot_refuse_the_users_own_settings(project: Path, home: Path) -> None:
    refuse = watcher("print('never', file=sys.stderr); sys.exit(2)")
    write(project / ".robota/settings.json", hook(refuse, event="ConfigChange"))
    read = [call("Read", file_path="notes.txt")]
    async with trusted(project, read, "Yes.", read, "No.") as session:
        heard = Heard(session)
        await session.submit("Go")
        write(project / ".robota/settings.local.json", {"permissions": {"allow": ["Bash(ls)"]}})
        path = write(home / ".robota/settings.json", {"permissions": {"deny": ["Read(notes.txt)"]}})
        await session.submit("And now?")
        assert [state.result for state in heard.of("tool_end")] == ["success", "denied"]
        assert "Bash(ls)" not in session.session.rules.rules.allow
    assert f"user_settings {path}" in (project / "changes").read_text().splitlines()


async def test_what_hooks_said_about_changes_is_replayed(project: Path, home: Path, tmp_path: Path) -> None:
    from robota.sessions.replay.session_replay import replay_session

    write(home / ".robota/settings.json", hook("exit 0", event="ConfigChange"))
    store = create_project_session_store(tmp_path / "sessions")
    replies = (
        [call("Bash", command="echo '{}' > .robota/settings.json")],
        [call("Read", file_path="a")],
        "Ok.",
    )
    write(project / ".robota/settings.json", {"language": "en"})
    async with trusted(project, *replies, "Fine.", session_store=store) as session:
        await session.submit("Go")
        write(project / ".robota/settings.local.json", {"language": "ko"})
        await session.submit("On")
    report = await replay_session(store.journal_path(session.session_id))
    assert report.identical, report


async def test_what_hooks_said_about_calls_of_a_subagent_is_replayed(project: Path, tmp_path: Path) -> None:
    from robota.sessions.replay.session_replay import replay_session

    write(project / "notes.txt", "milk")
    listen(project, "PreToolUse", "PostToolUse", "SubagentStart", "SubagentStop")
    store = create_project_session_store(tmp_path / "sessions")
    look = [call("Agent", prompt="Look.", description="look", subagent_type="general-purpose")]
    replies = (look, [call("Read", file_path="notes.txt")], "Milk.", "Done.")
    async with trusted(project, *replies, session_store=store) as session:
        await session.submit("Go")
    assert "SubagentStop" in [each["hook_event_name"] for each in heard_by_hooks(project)]
    report = await replay_session(store.journal_path(session.session_id))
    assert report.divergence is None


COMPACTED = ([call("Read", file_path="notes.txt"), TokenUsage(190_000, 10)], "They looked.", "Milk.")
FAILED = ([Fail(ProviderError("no"))],)


@pytest.mark.parametrize(
    ("work", "told"),
    [(COMPACTED, ["PreCompact", "PostCompact"]), (FAILED, ["StopFailure"])],
    ids=["compacted", "failed"],
)
async def test_what_hooks_said_about_the_run_of_a_subagent_is_replayed(
    project: Path, tmp_path: Path, work: Any, told: list[str]
) -> None:
    from robota.sessions.replay.session_replay import replay_session

    listen(project, "PreCompact", "PostCompact", "StopFailure")
    store = create_project_session_store(tmp_path / "sessions")
    look = [call("Agent", prompt="Look.", description="look", subagent_type="general-purpose")]
    async with trusted(project, look, *work, "Done.", session_store=store) as session:
        await session.submit("Go")
    assert [each["hook_event_name"] for each in heard_by_hooks(project)] == told
    report = await replay_session(store.journal_path(session.session_id))
    assert report.divergence is None
