"""MCP servers through the front door: found in files, connected beside the session, called by the model."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest
from tests.support.mcp_server import definition
from tests.support.mcp_session import ends, notices, offered, opened, write_servers

from robota.core.events import Noticed, ToolProgressed, ToolStarted
from robota.core.messages import ImagePart, ToolMessage
from robota.core.questions import FormAnswer, FormQuestion, PermissionAnswer, PermissionQuestion
from robota.sdk.interactive import InteractiveSession
from robota.sessions import SessionStore
from robota.sessions.replay.session_replay import replay_session
from robota.testing import ScriptedProvider, call
from robota.tools import tool

pytestmark = pytest.mark.anyio


async def test_a_model_calls_a_tool_of_a_server_in_the_projects_file(project: Path) -> None:
    write_servers(project, stub=definition())
    provider = ScriptedProvider([call("mcp__stub__add", a=2, b=3)], "Five.")
    async with opened(project, provider) as session:
        heard = ends(session)
        result = await session.submit("Add two and three.")
    assert result.text == "Five."
    assert [(each.error, each.content) for each in heard] == [(None, "5")]
    assert "mcp__stub__add" in offered(provider.requests[0])


async def test_the_first_request_does_not_wait_for_servers_and_a_search_does(
    project: Path, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    write_servers(project, stub=definition(gate=str(gate)))
    provider = ScriptedProvider(
        [call("ToolSearch", query="add numbers")], [call("mcp__stub__add", a=1, b=1)], "Two."
    )
    async with InteractiveSession(
        provider=provider, cwd=project, trust_project=True, permission_mode="bypassPermissions"
    ) as session:
        opened_gate = os.open(gate, os.O_RDWR)
        session.events.on(ToolStarted, lambda _: os.write(opened_gate, b"x"))
        heard = ends(session)
        result = await session.submit("Add.")
        os.close(opened_gate)
    assert result.text == "Two."
    first, second = map(offered, provider.requests[:2])
    assert "ToolSearch" in first
    assert not any(name.startswith("mcp__") for name in first)
    assert "mcp__stub__add" in second
    assert [each.outcome for each in heard] == ["success", "success"]


async def test_killing_a_server_in_mid_call_is_an_error_at_once_the_session_goes_on_and_the_server_is_back(
    project: Path, tmp_path: Path
) -> None:
    log = tmp_path / "log"
    write_servers(project, stub=definition(log=str(log)))  # which may be silent for ten minutes
    provider = ScriptedProvider(
        [call("mcp__stub__hang")],
        [call("mcp__stub__add", a=1, b=2)],
        "Three.",
        [call("mcp__stub__add", a=2, b=2)],
        "Four.",
    )

    def kill(_: ToolProgressed) -> None:
        pid = next(line for line in log.read_text().splitlines() if line.startswith("process")).split()[1]
        os.kill(int(pid), signal.SIGKILL)

    async with opened(project, provider) as session:
        session.events.on(ToolProgressed, kill)
        heard = ends(session)
        assert (await session.submit("Go.")).text == "Three."
        assert (await session.submit("Go on.")).text == "Four."
        assert session.kit.servers.connections["stub"].starts == 2
    assert [each.outcome for each in heard] == ["error", "success", "success"]
    assert heard[0].error == "The MCP server 'stub' ended."


async def test_the_last_words_of_a_server_that_dies_in_a_call_reach_the_model(project: Path) -> None:
    write_servers(project, stub=definition())
    async with opened(project, ScriptedProvider([call("mcp__stub__die")], "Done.")) as session:
        heard = ends(session)
        await session.submit("Go.")
    assert "the disk is on fire" in str(heard[0].error)


async def test_changed_tools_count_in_the_same_turn_and_a_vanished_one_says_that_it_is_gone(
    project: Path,
) -> None:
    write_servers(project, stub=definition())
    changed = asyncio.Event()

    @tool
    async def wait() -> str:
        """Wait until the list has changed."""
        await changed.wait()
        return "yes"

    fresh = [call("mcp__stub__fresh"), call("mcp__stub__echo", text="x")]
    provider = ScriptedProvider([call("mcp__stub__change")], [call("wait")], fresh, "Done.")
    async with opened(project, provider, tools=[wait]) as session:
        heard, told = ends(session), notices(session)
        session.events.on(Noticed, lambda _: changed.set())
        await session.submit("Go.")
    ended = {each.tool_name: each for each in heard}
    assert ended["mcp__stub__fresh"].outcome == "success"
    assert "gone" in str(ended["mcp__stub__echo"].error)
    assert offered(provider.requests[2])[-1] == "mcp__stub__fresh"
    assert any("new: fresh; gone: echo" in each for each in told)


async def test_progress_is_shown_while_a_call_runs(project: Path) -> None:
    write_servers(project, stub=definition())
    shown: list[str] = []
    async with opened(project, ScriptedProvider([call("mcp__stub__progress")], "Done.")) as session:
        session.events.on(ToolProgressed, lambda event: shown.append(event.text.strip()))
        await session.submit("Go.")
    assert shown == ["1/2 working", "2/2 working"]


async def test_an_aborted_call_is_cancelled_at_the_server(project: Path, tmp_path: Path) -> None:
    log = tmp_path / "log"
    write_servers(project, stub=definition(log=str(log)))
    provider = ScriptedProvider([call("mcp__stub__hang")], [call("mcp__stub__add", a=1, b=1)], "Two.")
    async with opened(project, provider) as session:
        session.events.on(ToolProgressed, lambda _: session.abort())
        result = await session.submit("Go.")
        assert result.interrupted
        await session.submit("Again.")  # behind it everything that was sent before has arrived
    assert "cancelled" in log.read_text()


async def test_images_and_resources_of_a_result_reach_the_conversation(project: Path) -> None:
    write_servers(project, stub=definition())
    async with opened(project, ScriptedProvider([call("mcp__stub__picture")], "Done.")) as session:
        await session.submit("Go.")
        answer = next(each for each in session.session.messages if isinstance(each, ToolMessage))
    assert answer.content == "Look.\n[resource note://one]\nA note."
    assert [type(part) for part in answer.parts] == [ImagePart]


async def test_a_server_asks_the_user_a_form_through_the_broker(project: Path) -> None:
    write_servers(project, stub=definition())
    asked: list[FormQuestion] = []

    async def answer(question: FormQuestion) -> FormAnswer:
        asked.append(question)
        return FormAnswer(action="accept", content={"colour": "green"})

    provider = ScriptedProvider([call("mcp__stub__ask")], "Done.")
    async with opened(project, provider, ask_handler=answer) as session:
        heard = ends(session)
        await session.submit("Go.")
    assert (asked[0].message, asked[0].server) == ("Which colour?", "stub")
    assert asked[0].call_id == heard[0].call_id
    assert json.loads(heard[0].content) == {"action": "accept", "content": {"colour": "green"}}


async def test_with_nobody_to_ask_a_form_is_cancelled(project: Path) -> None:
    write_servers(project, stub=definition())
    async with opened(project, ScriptedProvider([call("mcp__stub__ask")], "Done.")) as session:
        heard = ends(session)
        await session.submit("Go.")
    assert json.loads(heard[0].content) == {"action": "cancel"}


@pytest.mark.parametrize("allowed", [True, False])
async def test_a_server_asks_the_model_only_with_the_users_consent(project: Path, allowed: bool) -> None:
    write_servers(project, stub=definition())
    asked: list[PermissionQuestion] = []

    async def decide(question: PermissionQuestion) -> PermissionAnswer:
        asked.append(question)
        return PermissionAnswer(allow=allowed or question.tool_name.endswith("__sample"))

    said = ["Four."] if allowed else []
    provider = ScriptedProvider([call("mcp__stub__sample")], *said, "Done.")
    async with opened(project, provider, permission_mode="default", permission_handler=decide) as session:
        heard = ends(session)
        result = await session.submit("Go.")
    assert [each.tool_name for each in asked] == ["mcp__stub__sample", "mcp__stub__sampling"]
    assert result.text == "Done."
    answer = json.loads(heard[0].content)
    assert answer.get("content", {}).get("text") == ("Four." if allowed else None)
    assert allowed or "does not let" in answer["message"]


async def test_a_tool_is_unclassified_whatever_it_claims_and_rules_name_servers(project: Path) -> None:
    write_servers(project, stub=definition(), other=definition(name="other"))
    settings = {"permissions": {"deny": ["mcp__other", "mcp__stub__echo"], "allow": ["mcp__stub__big"]}}
    calls = [
        call("mcp__stub__add", a=1, b=1),
        call("mcp__other__add", a=1, b=1),
        call("mcp__stub__echo"),
        call("mcp__stub__big"),
    ]
    provider = ScriptedProvider(calls, "Done.")
    async with opened(project, provider, permission_mode="default", settings=settings) as session:
        heard = ends(session)
        await session.submit("Go.")
    assert {each.tool_name: each.outcome for each in heard} == {
        "mcp__stub__add": "denied",
        "mcp__other__add": "error",  # not offered
        "mcp__stub__echo": "error",
        "mcp__stub__big": "success",
    }


async def test_a_declared_path_is_stopped_by_a_rule_about_files(project: Path) -> None:
    write_servers(project, stub=definition())
    calls = [
        call("mcp__stub__write", target=str(project / "secret.txt"), text="x"),
        call("mcp__stub__write", target=str(project / "free.txt"), text="x"),
    ]
    settings = {"permissions": {"deny": ["Write(secret.txt)"], "allow": ["mcp__stub__write"]}}
    async with opened(project, ScriptedProvider(calls, "Done."), settings=settings) as session:
        await session.submit("Go.")
    assert not (project / "secret.txt").exists()
    assert (project / "free.txt").exists()


async def test_a_server_gets_the_plain_environment_and_what_its_definition_says(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOME_API_KEY", "sk-1234567890")
    monkeypatch.setenv("OTHER_TOKEN", "tok-1234567890")
    env = {"KEY": "${SOME_API_KEY}", "WHERE": "${NOWHERE:-here}", "LEFT": "${NOWHERE}"}
    write_servers(project, stub={**definition(), "env": env})
    async with opened(project, ScriptedProvider([call("mcp__stub__environment")], "Done.")) as session:
        heard = ends(session)
        await session.submit("Go.")
        problems = [str(each) for each in session.problems]
    given = json.loads(heard[0].content)
    assert (given["KEY"], given["WHERE"], given["LEFT"]) == ("sk-1234567890", "here", "${NOWHERE}")
    assert "OTHER_TOKEN" not in given
    assert "SOME_API_KEY" not in given
    assert any("${NOWHERE}" in each for each in problems)


async def test_a_prompt_of_a_server_is_a_command(project: Path) -> None:
    write_servers(project, stub=definition())
    provider = ScriptedProvider("Hello, Ann.")
    async with opened(project, provider) as session:
        assert "mcp__stub__greet" in [each.name for each in session.list_commands()]
        missing = await session.execute_command("mcp__stub__greet")
        result = await session.submit("/mcp__stub__greet Ann 'with flowers'")
        shown = session.full_history
    assert missing is not None
    assert missing.message == "/mcp__stub__greet needs who."
    assert result.text == "Hello, Ann."
    assert provider.requests[0].messages[-1].content == "Greet Ann with flowers."
    assert any("/mcp__stub__greet Ann" in str(entry.data) for entry in shown)


async def test_a_resource_goes_with_the_prompt_that_names_it(project: Path) -> None:
    write_servers(project, stub=definition())
    (project / "plan.md").write_text("The plan.\n")
    provider = ScriptedProvider("Yes.")
    async with opened(project, provider) as session:
        await session.submit("Compare @stub:note://one with @plan.md.")
    sent = str(provider.requests[0].messages[-1].content)
    assert "The note at note://one." in sent
    assert "The plan." in sent


async def test_the_command_shows_state_tools_and_cost_and_connects_anew(project: Path) -> None:
    write_servers(project, stub=definition(noise=True), gone={"command": "there-is-no-such-program"})
    async with opened(project, ScriptedProvider("x")) as session:
        listed = await say(session, "")
        one = await say(session, "stub")
        again = await say(session, "reconnect stub")
        unknown = await say(session, "stab")
        off = await say(session, "disable stub")
        after = await say(session, "")
    assert "stub (project): connected, 15 tools" in listed
    assert "tokens" in listed
    assert "gone (project): failed" in listed
    assert "No such file" in listed
    assert "mcp__stub__add" in one
    assert "hello from the server" in one
    assert "a warning of the server" in one
    assert "stub: connected" in again
    assert "There is no MCP server 'stab'" in unknown
    assert "turned off" in off
    assert "stub (project): turned off" in after


async def say(session: InteractiveSession, args: str) -> str:
    answer = await session.execute_command("mcp", args)
    assert answer is not None
    return answer.message


async def test_servers_of_a_changed_file_take_effect_in_the_live_session(project: Path) -> None:
    write_servers(project, stub=definition(own=1))
    provider = ScriptedProvider("One.", "Two.", "Three.")
    async with opened(project, provider) as session:
        await session.submit("First.")
        write_servers(project, other=definition(own=1))
        os.utime(project / ".mcp.json", ns=(1, 1))
        await session.ready()
        await session.kit.servers.settle(60)
        await session.submit("Second.")
        (project / ".mcp.json").unlink()
        await session.submit("Third.")
    found = [[name for name in offered(each) if name.startswith("mcp__")] for each in provider.requests]
    assert found == [["mcp__stub__add"], ["mcp__other__add"], []]


async def test_an_untrusted_projects_servers_are_not_started_and_a_changed_one_asks_again(
    project: Path, tmp_path: Path
) -> None:
    log = tmp_path / "log"
    write_servers(project, stub=definition(log=str(log)))
    async with opened(project, ScriptedProvider("x", "y"), trust_project=None) as session:
        assert session.kit.servers.connections == {}
        shown = await session.execute_command("mcp")
        assert shown is not None
        assert "not trusted" in shown.message
        session.describe_trust()
        await session.trust_project()
        await session.kit.servers.settle(60)
        assert session.kit.servers.connections["stub"].state == "connected"
    started = log.read_text().count("initialize\n")
    write_servers(project, stub=definition(log=str(log), tools=1))
    async with opened(project, ScriptedProvider("x"), trust_project=None) as session:
        assert session.kit.servers.connections == {}
        assert any("+ stub:" in line for line in session.describe_trust())
    assert log.read_text().count("initialize\n") == started


async def test_a_session_with_servers_replays_without_them(project: Path, tmp_path: Path) -> None:
    write_servers(project, stub=definition())
    store = SessionStore(tmp_path / "store")
    calls: list[Any] = [
        [call("mcp__stub__progress"), call("mcp__stub__ask")],
        [call("mcp__stub__change")],
        [call("mcp__stub__die")],
        "Done.",
    ]

    async def answer(question: FormQuestion) -> FormAnswer:
        return FormAnswer(action="accept", content={"colour": "green"})

    provider = ScriptedProvider(*calls)
    async with opened(project, provider, session_store=store, ask_handler=answer) as session:
        await session.submit("Go.")
        id = session.session_id
    (project / ".mcp.json").unlink()
    report = await replay_session(tmp_path / "store" / f"{id}.jsonl")
    assert report.divergence is None


async def test_a_hook_may_be_a_tool_of_a_server(project: Path) -> None:
    write_servers(project, stub=definition())
    (project / "notes.txt").write_text("milk")
    hook = {
        "type": "mcp_tool",
        "server": "stub",
        "tool": "judge",
        "input": {"text": "${tool_input.file_path}"},
    }
    settings = {"hooks": {"PreToolUse": [{"matcher": "Read", "hooks": [hook]}]}}
    calls = [call("Read", file_path="notes.txt"), call("Read", file_path="secret.txt")]
    async with opened(project, ScriptedProvider(calls, "Done."), settings=settings) as session:
        heard, told = ends(session), notices(session)
        await session.submit("Go.")
    ended = {each.arguments["file_path"]: each for each in heard}
    assert ended["notes.txt"].outcome == "success", told
    assert "too secret" in str(ended["secret.txt"].error)


async def test_the_question_of_trust_shows_everything_that_a_server_would_run_and_get(project: Path) -> None:
    far = {"type": "http", "url": "https://far.example", "headersHelper": "print-headers --all"}
    write_servers(project, near={**definition(), "env": {"NODE_OPTIONS": "${TOKEN}"}}, far=far)
    async with opened(project, ScriptedProvider("x"), trust_project=None) as session:
        shown = "\n".join(session.describe_trust())
    assert "far: https://far.example (runs print-headers --all)" in shown
    assert "(sets NODE_OPTIONS; is given TOKEN)" in shown
