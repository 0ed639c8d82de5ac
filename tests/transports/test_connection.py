"""The sequences of the stream-json protocol, with a host that is written out by hand."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from tests.support.stream_json import Connection, Frame, connected, connected_to, kinds_of

from robota.core.errors import ConfigurationError
from robota.core.messages import ReasoningBlock
from robota.core.provider import ReasoningChunk
from robota.testing import Fail, ScriptedProvider, Stall, call
from robota.transports.stream_json.driver import DriveOptions
from robota.transports.stream_json.state import READS

pytestmark = pytest.mark.anyio
ASKING = DriveOptions(asks_host=True)
WRITE = call("Write", file_path="a.txt", content="hello")


@pytest.fixture(autouse=True)
def quiet_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))


@pytest.fixture
def project(tmp_path: Path) -> Path:
    path = tmp_path / "project"
    path.mkdir()
    return path


def kinds(host: Connection) -> list[str]:
    return [frame.get("subtype") or frame["type"] for frame in host.seen]


async def test_one_prompt_over_a_pipe_that_is_closed_at_once(project: Path) -> None:
    async with connected(ScriptedProvider([WRITE], "Done."), project, permission_mode="acceptEdits") as host:
        answer = await host.request("initialize", hooks=None)
        host.prompt("write it")

        code = await host.finish()

    assert code == 0
    assert answer["subtype"] == "success"
    assert answer["response"]["hook_on_failure_supported"] is True
    assert [it for it in kinds(host) if it != "informational"] == [
        "control_response", "init", "assistant", "user", "assistant", "success",
    ]  # fmt: skip
    assert (project / "a.txt").read_text() == "hello"
    session = {frame["session_id"] for frame in host.seen[1:]}
    assert len(session) == 1
    assert session != {""}
    assert len({frame["uuid"] for frame in host.seen[1:]}) == len(host.seen) - 1


async def test_messages_have_the_fields_that_clients_insist_on(project: Path) -> None:
    thought = [ReasoningChunk("hm"), ReasoningBlock("hm", None), "Look.", call("Glob", pattern="*")]
    async with connected(ScriptedProvider(thought, "None."), project) as host:
        host.prompt("look")
        result = await host.until("result")

    *first_blocks, first, second = host.shown("assistant")
    assert [frame["message"]["content"] for frame in (*first_blocks, first)] == [
        [{"type": "thinking", "thinking": "hm", "signature": ""}],
        [{"type": "text", "text": "Look."}],
        [{"type": "tool_use", "id": "call_Glob", "name": "Glob", "input": {"pattern": "*"}}],
    ]
    assert first["message"]["model"]
    assert first["message"]["id"] != second["message"]["id"]
    block = host.shown("user")[0]["message"]["content"][0]
    assert (block["type"], block["tool_use_id"], block["is_error"]) == ("tool_result", "call_Glob", False)
    assert result["subtype"] == "success"
    assert result["result"] == "None."
    assert result["num_turns"] == 2
    assert {"duration_ms", "duration_api_ms", "is_error", "session_id", "usage", "modelUsage"} <= set(result)
    assert result["terminal_reason"] == "completed"
    (init,) = host.shown("init")
    assert "Bash" in init["tools"]
    assert init["claude_code_version"].count(".") == 2


async def test_each_turn_begins_with_init_and_ends_with_one_result(project: Path) -> None:
    async with connected(ScriptedProvider("One.", "Two."), project) as host:
        for words in ("first", "second"):
            host.prompt(words)
            await host.until("result")
        assert await host.finish() == 0

    assert [it for it in kinds(host) if it in ("init", "success")] == ["init", "success"] * 2
    assert [frame["result"] for frame in host.shown("result")] == ["One.", "Two."]


async def test_a_prompt_during_a_turn_waits_and_the_state_stays_running(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(READS, "1")
    async with connected(ScriptedProvider("One.", "Two."), project) as host:
        host.prompt("first")
        host.prompt("second")
        assert await host.finish() == 0

    states = [(frame["state"], frame["sdk_host_only"]) for frame in host.shown("session_state_changed")]
    assert states == [("running", True), ("idle", True)]
    assert kinds(host)[-2:] == ["success", "session_state_changed"]


async def test_without_a_wish_no_state_is_told(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(READS, raising=False)
    async with connected(ScriptedProvider("One."), project) as host:
        host.prompt("first")
        await host.finish()

    assert host.shown("session_state_changed") == []


# --- permission -------------------------------------------------------------------------------------------


async def test_a_tool_that_needs_permission_is_asked_about_and_runs_with_the_changed_input(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(READS, "1")
    async with connected(ScriptedProvider([WRITE], "Done."), project, ASKING) as host:
        host.prompt("write it")
        question = await host.until("can_use_tool")
        request = question["request"]
        assert kinds(host)[-3:-1] == ["assistant", "session_state_changed"]
        assert request["tool_use_id"] == "call_Write"
        assert request["input"] == {"file_path": "a.txt", "content": "hello"}
        suggestion = request["permission_suggestions"][0]
        assert suggestion["rules"][0] == {"toolName": "Write", "ruleContent": "a.txt"}

        host.answer(question, {"behavior": "allow", "updatedInput": {"file_path": "a.txt", "content": "HI"}})
        await host.until("result")

    assert (project / "a.txt").read_text() == "HI"
    assert [frame["state"] for frame in host.shown("session_state_changed")][:3] == [
        "running", "requires_action", "running",
    ]  # fmt: skip


async def test_the_changed_input_is_judged_again(project: Path) -> None:
    deny = {"permissions": {"deny": ["Write(secret.txt)"]}}
    async with connected(ScriptedProvider([WRITE], "Done."), project, ASKING, settings=deny) as host:
        host.prompt("write it")
        question = await host.until("can_use_tool")
        host.answer(
            question, {"behavior": "allow", "updatedInput": {"file_path": "secret.txt", "content": "x"}}
        )
        result = await host.until("result")

    assert not (project / "secret.txt").exists()
    assert result["permission_denials"][0]["tool_use_id"] == "call_Write"


@pytest.mark.parametrize("error", ["", "the callback broke"])
async def test_a_no_and_a_callback_that_breaks_refuse_the_call(project: Path, error: str) -> None:
    async with connected(ScriptedProvider([WRITE], "Pity."), project, ASKING) as host:
        host.prompt("write it")
        question = await host.until("can_use_tool")
        host.answer(question, {"behavior": "deny", "message": "not on Mondays"}, error=error)
        result = await host.until("result")

    told = host.shown("user")[0]["message"]["content"][0]
    assert told["is_error"] is True
    assert (error or "not on Mondays") in told["content"]
    assert result["permission_denials"] == [
        {
            "tool_name": "Write",
            "tool_use_id": "call_Write",
            "tool_input": {"file_path": "a.txt", "content": "hello"},
        }
    ]
    assert result["subtype"] == "success"


async def test_a_no_with_interrupt_ends_the_turn_and_not_the_connection(project: Path) -> None:
    async with connected(ScriptedProvider([WRITE], "Next."), project, ASKING) as host:
        host.prompt("write it")
        question = await host.until("can_use_tool")
        host.answer(question, {"behavior": "deny", "message": "stop it", "interrupt": True})
        result = await host.until("result")
        host.prompt("go on")
        after = await host.until("result")

    assert "stop it" in host.shown("user")[0]["message"]["content"][0]["content"]
    assert (result["subtype"], result["terminal_reason"]) == ("error_during_execution", "aborted_tools")
    assert after["result"] == "Next."


async def test_without_the_prompt_tool_a_question_is_a_denial(project: Path) -> None:
    async with connected(ScriptedProvider([WRITE], "Pity."), project) as host:
        host.prompt("write it")
        result = await host.until("result")

    assert host.shown("can_use_tool") == []
    assert len(result["permission_denials"]) == 1


@pytest.mark.parametrize(
    "update",
    [
        {"type": "addRules", "rules": [{"toolName": "Write", "ruleContent": None}], "behavior": "allow"},
        {"type": "addRules", "rules": [{"toolName": "Write", "ruleContent": "*.txt"}], "behavior": "allow"},
        {"type": "replaceRules", "rules": [{"toolName": "Write"}], "behavior": "allow"},
        {"type": "setMode", "mode": "acceptEdits"},
    ],
    ids=["whole tool", "pattern", "replaced", "mode"],
)
async def test_permission_updates_make_the_next_question_unnecessary(project: Path, update: Frame) -> None:
    again = call("Write", file_path="b.txt", content="b")
    async with connected(ScriptedProvider([WRITE], [again], "Done."), project, ASKING) as host:
        host.prompt("write both")
        question = await host.until("can_use_tool")
        updates = [{**update, "destination": "session"}]
        host.answer(
            question,
            {
                "behavior": "allow",
                "updatedInput": question["request"]["input"],
                "updatedPermissions": updates,
            },
        )
        await host.until("result")

    assert len(host.shown("can_use_tool")) == 1
    assert (project / "b.txt").read_text() == "b"


async def test_a_rule_for_a_settings_file_is_written_there(project: Path) -> None:
    rule = {"toolName": "Write", "ruleContent": "*.txt"}
    update = {"type": "addRules", "rules": [rule], "behavior": "allow", "destination": "localSettings"}
    async with connected(ScriptedProvider([WRITE], "Done."), project, ASKING) as host:
        host.prompt("write it")
        question = await host.until("can_use_tool")
        host.answer(question, {"behavior": "allow", "updatedInput": {}, "updatedPermissions": [update]})
        await host.until("result")

    assert "Write(*.txt)" in (project / ".robota" / "settings.local.json").read_text()


async def act_on(host: Connection, *updates: Frame) -> list[str]:
    """What became of the calls of a turn; the first question is answered with yes and these updates."""
    host.prompt("go")
    question = await host.until("can_use_tool")
    host.answer(
        question,
        {
            "behavior": "allow",
            "updatedInput": question["request"]["input"],
            "updatedPermissions": list(updates),
        },
    )
    await host.until("result")
    return [frame["message"]["content"][0]["content"] for frame in host.shown("user")]


@pytest.mark.parametrize("mode", ["dontAsk", "auto", "manual"])
async def test_an_answer_may_set_a_mode_that_only_the_protocol_has(project: Path, mode: str) -> None:
    async with connected(ScriptedProvider([WRITE], "Done.", "And now."), project, ASKING) as host:
        await act_on(host, {"type": "setMode", "mode": mode, "destination": "session"})
        host.prompt("which mode?")
        await host.until("result")

    assert (project / "a.txt").exists()
    assert host.shown("init")[-1]["permissionMode"] == ("dontAsk" if mode == "dontAsk" else "default")


@pytest.mark.parametrize("destination", ["session", "localSettings"])
async def test_an_answer_may_add_a_directory(project: Path, tmp_path: Path, destination: str) -> None:
    near = tmp_path / "near"
    near.mkdir()
    (near / "a.txt").write_text("one")
    (near / "b.txt").write_text("two")
    calls = [[call("Read", file_path=str(near / name))] for name in ("a.txt", "b.txt")]
    update = {"type": "addDirectories", "directories": ["../near"], "destination": destination}
    async with connected(ScriptedProvider(*calls, "Read."), project, ASKING) as host:
        first, second = await act_on(host, update)

    assert "one" in first
    assert "two" in second
    assert len(host.shown("can_use_tool")) == 1
    file = project / ".robota" / "settings.local.json"
    assert file.exists() == (destination == "localSettings")
    assert not file.exists() or str(near) in file.read_text()


async def test_replacing_the_rules_of_a_session_leaves_those_of_the_user(project: Path) -> None:
    again = call("Write", file_path="b.env", content="b")
    none = {"type": "replaceRules", "rules": [], "behavior": "deny", "destination": "session"}
    settings = {"permissions": {"deny": ["Write(*.env)"]}}
    provider = ScriptedProvider([WRITE], [again], "Done.")
    async with connected(provider, project, ASKING, settings=settings) as host:
        first, second = await act_on(host, none)

    assert "Written" in first
    assert "Write(*.env)" in second
    assert not (project / "b.env").exists()


async def test_an_update_that_cannot_be_read_refuses_the_call(project: Path) -> None:
    async with connected(ScriptedProvider([WRITE], "Pity."), project, ASKING) as host:
        host.prompt("write it")
        question = await host.until("can_use_tool")
        host.answer(
            question,
            {"behavior": "allow", "updatedInput": {}, "updatedPermissions": [{"type": "grantAll"}]},
        )
        await host.until("result")

    assert "grantAll" in host.shown("user")[0]["message"]["content"][0]["content"]
    assert not (project / "a.txt").exists()


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ({"behavior": "Allow"}, "the `behavior` 'Allow', which is neither allow nor deny"),
        (None, "the `behavior` None, which is neither allow nor deny"),
        ({"behavior": "allow", "updatedInput": "a.txt"}, "an `updatedInput` that is no object"),
        (
            {
                "behavior": "allow",
                "updatedPermissions": [{"type": "setMode", "mode": "plan", "destination": ["session"]}],
            },
            "`destination` is one of session, userSettings",
        ),
    ],
)
async def test_an_answer_in_another_form_is_a_no_that_says_why(
    project: Path, answer: Frame | None, words: str
) -> None:
    async with connected(ScriptedProvider([WRITE], "Pity."), project, ASKING) as host:
        host.prompt("write it")
        host.answer(await host.until("can_use_tool"), answer)
        await host.until("result")

    assert words in host.shown("user")[0]["message"]["content"][0]["content"]
    assert not (project / "a.txt").exists()


async def test_a_choice_is_put_to_the_host_and_its_answer_reaches_the_model(project: Path) -> None:
    questions = [{"question": "Which?", "header": "Pick", "options": ["tea", "coffee"]}]
    script = ScriptedProvider([call("AskUserQuestion", questions=questions)], "Fine.")
    async with connected(script, project, ASKING) as host:
        host.prompt("ask me")
        question = await host.until("can_use_tool")
        asked = question["request"]["input"]
        assert question["request"]["tool_name"] == "AskUserQuestion"
        assert [each["label"] for each in asked["questions"][0]["options"]] == ["tea", "coffee"]
        host.answer(question, {"behavior": "allow", "updatedInput": {**asked, "answers": {"Which?": "tea"}}})
        await host.until("result")

    assert "tea" in host.shown("user")[0]["message"]["content"][0]["content"]


async def test_a_plan_is_put_to_the_host_and_its_mode_counts(project: Path) -> None:
    leave = call("ExitPlanMode", plan="Write a.txt.")
    async with connected(
        ScriptedProvider([leave], [WRITE], "Done."), project, ASKING, permission_mode="plan"
    ) as host:
        host.prompt("plan it")
        question = await host.until("can_use_tool")
        assert question["request"]["tool_name"] == "ExitPlanMode"
        assert question["request"]["input"]["plan"] == "Write a.txt."
        mode = {"type": "setMode", "mode": "acceptEdits", "destination": "session"}
        host.answer(question, {"behavior": "allow", "updatedInput": {}, "updatedPermissions": [mode]})
        await host.until("result")

    assert (project / "a.txt").exists()


async def test_words_of_a_host_that_does_not_answer_reach_the_model(project: Path) -> None:
    questions = [{"question": "Which?", "options": ["tea", "coffee"]}, {"question": "When?"}]
    script = ScriptedProvider([call("AskUserQuestion", questions=questions)], "Fine.")
    async with connected(script, project, ASKING) as host:
        host.prompt("ask me")
        host.answer(await host.until("can_use_tool"), {"behavior": "deny", "message": "Neither: use water."})
        await host.until("result")

    told = json.loads(host.shown("user")[0]["message"]["content"][0]["content"])
    assert told == {
        "answers": {},
        "dismissed": "Which?",
        "cancelled": ["When?"],
        "said": "Neither: use water.",
    }


async def test_a_plan_that_the_host_changed_is_the_one_that_counts(project: Path) -> None:
    leave = call("ExitPlanMode", plan="Write a.txt.")
    async with connected(ScriptedProvider([leave], "Done."), project, ASKING, permission_mode="plan") as host:
        host.prompt("plan it")
        host.answer(
            await host.until("can_use_tool"), {"behavior": "allow", "updatedInput": {"plan": "Write b.txt."}}
        )
        await host.until("result")

    told = host.shown("user")[0]["message"]["content"][0]["content"]
    assert told.endswith("The plan, as they changed it:\nWrite b.txt.")


async def test_rules_that_come_with_a_plan_count(project: Path) -> None:
    leave = call("ExitPlanMode", plan="Write a.txt.")
    update = {"type": "addRules", "rules": [{"toolName": "Write"}], "behavior": "allow"}
    async with connected(
        ScriptedProvider([leave], [WRITE], "Done."), project, ASKING, permission_mode="plan"
    ) as host:
        host.prompt("plan it")
        host.answer(await host.until("can_use_tool"), {"behavior": "allow", "updatedPermissions": [update]})
        await host.until("result")

    assert (project / "a.txt").exists()


@pytest.mark.parametrize(
    ("updates", "words"),
    [
        (5, "updatedPermissions is a list"),
        (
            [{"type": "setMode", "mode": "acceptEdits"}, {"type": "setMode", "mode": "yolo"}],
            "There is no permission mode 'yolo'",
        ),
    ],
)
async def test_updates_of_a_plan_that_cannot_be_read_leave_plan_mode_on(
    project: Path, updates: Any, words: str
) -> None:
    leave = call("ExitPlanMode", plan="Write a.txt.")
    async with connected(ScriptedProvider([leave], "Pity."), project, ASKING, permission_mode="plan") as host:
        host.prompt("plan it")
        host.answer(await host.until("can_use_tool"), {"behavior": "allow", "updatedPermissions": updates})
        await host.until("result")
        host.prompt("and now?")
        await host.until("result")

    assert words in host.shown("user")[0]["message"]["content"][0]["content"]
    assert [frame["permissionMode"] for frame in host.shown("init")] == ["plan", "plan"]


async def test_a_question_of_a_subagent_names_it_and_a_no_with_interrupt_ends_the_turn(project: Path) -> None:
    task = call("Agent", prompt="write it")
    settings: Any = {"settings": {"permissions": {"allow": ["Agent"]}}}
    async with connected(ScriptedProvider([task], [WRITE], "Never."), project, ASKING, **settings) as host:
        host.prompt("delegate")
        question = await host.until("can_use_tool")
        host.answer(question, {"behavior": "deny", "message": "stop", "interrupt": True})
        result = await host.until("result")

    assert question["request"]["agent_id"]
    assert question["request"]["tool_use_id"] == "call_Write"
    assert result["terminal_reason"] == "aborted_tools"
    assert [each["tool_use_id"] for each in result["permission_denials"]] == ["call_Write"]


@pytest.mark.parametrize("by", ["option", "request"])
async def test_the_mode_in_which_nothing_is_asked(project: Path, by: str) -> None:
    options = DriveOptions(asks_host=True, mode="dontAsk" if by == "option" else "")
    async with connected(ScriptedProvider([WRITE], "Pity."), project, options) as host:
        if by == "request":
            answer = await host.request("set_permission_mode", mode="dontAsk")
            assert answer["response"] == {"mode": "dontAsk"}
        host.prompt("write it")
        result = await host.until("result")

    assert host.shown("can_use_tool") == []
    assert host.shown("init")[0]["permissionMode"] == "dontAsk"
    assert len(result["permission_denials"]) == 1


async def test_the_end_of_the_input_answers_open_questions_with_no_and_the_turn_goes_on(
    project: Path,
) -> None:
    async with connected(ScriptedProvider([WRITE], "Pity."), project, ASKING) as host:
        host.prompt("write it")
        await host.until("can_use_tool")

        assert await host.finish() == 0

    assert host.seen[-1]["result"] == "Pity."
    assert not (project / "a.txt").exists()


# --- interrupt --------------------------------------------------------------------------------------------


async def test_interrupt_is_answered_at_once_and_ends_the_model_call(project: Path) -> None:
    async with connected(ScriptedProvider(["Let me", Stall()], "Next."), project) as host:
        host.prompt("think")
        await host.until("init")
        answer = await host.request("interrupt")
        result = await host.until("result")
        host.prompt("go on")
        after = await host.until("result")

    assert answer["subtype"] == "success"
    assert (result["subtype"], result["is_error"]) == ("error_during_execution", True)
    assert result["terminal_reason"] == "aborted_streaming"
    assert result["errors"]
    assert after["result"] == "Next."


async def test_interrupt_kills_a_running_command_and_answers_its_call(project: Path) -> None:
    bash = call("Bash", command="touch began; sleep 60 && touch late")
    options: Any = {"permission_mode": "bypassPermissions"}
    async with connected(ScriptedProvider([bash]), project, **options) as host:
        host.prompt("run")
        await host.until("assistant")
        await until_exists(project / "began")
        await host.request("interrupt")
        result = await host.until("result")

    assert result["terminal_reason"] == "aborted_tools"
    (told,) = host.shown("user")
    assert told["message"]["content"][0]["tool_use_id"] == "call_Bash"
    assert told["message"]["content"][0]["is_error"] is True


async def until_exists(path: Path) -> None:
    while not path.exists():  # noqa: ASYNC110 - of a foreign process there is no event
        await asyncio.sleep(0.01)


async def test_interrupt_withdraws_an_open_question_before_it_is_answered(project: Path) -> None:
    async with connected(ScriptedProvider([WRITE]), project, ASKING) as host:
        host.prompt("write it")
        question = await host.until("can_use_tool")
        await host.request("interrupt")
        withdrawn, answered = host.seen[-2:]
        assert withdrawn == {"type": "control_cancel_request", "request_id": question["request_id"]}
        assert answered["type"] == "control_response"
        result = await host.until("result")

    assert result["subtype"] == "error_during_execution"


async def test_a_prompt_that_waits_can_be_taken_back(project: Path) -> None:
    async with connected(ScriptedProvider([WRITE], "One.", "Three."), project, ASKING) as host:
        host.prompt("first")
        question = await host.until("can_use_tool")
        host.prompt("second", uuid="second")
        host.prompt("third", uuid="third")
        taken = [(await host.request("cancel_async_message", message_uuid="second"))["response"]]
        taken += [(await host.request("cancel_async_message", message_uuid="second"))["response"]]
        host.answer(question, {"behavior": "deny", "message": "no"})
        results = [(await host.until("result"))["result"] for _ in range(2)]

    assert taken == [{"cancelled": True}, {"cancelled": False}]
    assert results == ["One.", "Three."]


async def test_interrupt_with_nothing_to_stop_does_nothing(project: Path) -> None:
    async with connected(ScriptedProvider("Hello."), project) as host:
        assert (await host.request("interrupt"))["subtype"] == "success"
        host.prompt("hi")
        assert (await host.until("result"))["subtype"] == "success"


# --- requests ---------------------------------------------------------------------------------------------


async def test_requests_are_served_while_a_turn_waits_for_permission(project: Path) -> None:
    async with connected(ScriptedProvider([WRITE], "Done."), project, ASKING) as host:
        host.prompt("write it")
        question = await host.until("can_use_tool")
        assert (await host.request("mcp_status"))["response"] == {"mcpServers": []}
        assert (await host.request("set_permission_mode", mode="plan"))["response"] == {"mode": "plan"}
        assert (await host.request("get_context_usage"))["response"]["maxTokens"] > 0
        host.answer(question, {"behavior": "deny", "message": "no"})
        await host.until("result")


async def test_a_mode_and_a_model_count_from_the_next_call_on(project: Path) -> None:
    provider = ScriptedProvider([WRITE], "Done.", "Again.")
    async with connected(provider, project, model="first") as host:
        assert (await host.request("set_permission_mode", mode="acceptEdits"))["subtype"] == "success"
        assert (await host.request("set_model", model="second"))["response"] == {"model": "second"}
        host.prompt("write it")
        await host.until("result")
        assert (await host.request("set_model", model=None))["response"] == {"model": "first"}
        host.prompt("again")
        await host.until("result")

    assert (project / "a.txt").exists()
    assert [frame["message"]["model"] for frame in host.shown("assistant")] == ["second", "second", "first"]
    assert [frame["model"] for frame in host.shown("init")] == ["second", "first"]


async def test_how_long_to_think_has_no_effect_and_is_told(project: Path) -> None:
    async with connected(ScriptedProvider("Hello."), project) as host:
        answer = await host.request("set_max_thinking_tokens", max_thinking_tokens=2000)

    assert (answer["subtype"], answer["response"]) == ("success", {})
    (told,) = host.shown("informational")
    assert told["content"] == "set_max_thinking_tokens takes no effect: use --effort."


@pytest.mark.parametrize(
    ("request_", "words"),
    [
        ({"subtype": "set_permission_mode", "mode": "yolo"}, "acceptEdits"),
        ({"subtype": "set_permission_mode"}, "`mode`"),
        ({"subtype": "make_coffee"}, "make_coffee"),
        ({"subtype": "mcp_reconnect", "serverName": "x"}, "'x'; there are none."),
        ({"subtype": "rewind_files", "user_message_id": "x"}, "checkpointing"),
        ({"subtype": "set_model", "model": 7}, "null"),
        ("nonsense", "subtype"),
    ],
)
async def test_a_request_that_cannot_be_served_is_refused_in_a_sentence(
    project: Path, request_: Any, words: str
) -> None:
    async with connected(ScriptedProvider("Hello."), project) as host:
        host.send({"type": "control_request", "request_id": "bad", "request": request_})
        answer = await host.answer_to("bad")
        host.prompt("hi")
        result = await host.until("result")

    assert answer["subtype"] == "error"
    assert words in answer["error"]
    assert result["result"] == "Hello."


async def test_files_go_back_to_before_a_prompt(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLAUDE_CODE_ENABLE_SDK_FILE_CHECKPOINTING", "true")
    (project / "a.txt").write_text("before")
    read, options = call("Read", file_path="a.txt"), DriveOptions(replay_user_messages=True)
    provider = ScriptedProvider([read], [WRITE], "Done.")
    async with connected(provider, project, options, permission_mode="acceptEdits") as host:
        host.prompt("write it", uuid="11111111-2222-4333-8444-555555555555")
        replay = await host.until("user")
        await host.until("result")
        assert (project / "a.txt").read_text() == "hello"
        shown = await host.request("rewind_files", user_message_id=replay["uuid"], dry_run=True)
        assert (project / "a.txt").read_text() == "hello"
        answer = await host.request("rewind_files", user_message_id=replay["uuid"])

    changed = {"canRewind": True, "filesChanged": [str(project / "a.txt")], "kept": []}
    assert (shown["response"], answer["response"]) == (changed, changed)
    assert replay["isReplay"] is True
    assert replay["uuid"] == "11111111-2222-4333-8444-555555555555"
    assert answer["subtype"] == "success", answer
    assert (project / "a.txt").read_text() == "before"


async def test_a_background_task_is_told_of_and_can_be_stopped(project: Path) -> None:
    bash = call("Bash", command="sleep 60", run_in_background=True)
    options: Any = {"permission_mode": "bypassPermissions"}
    async with connected(ScriptedProvider([bash], "Running."), project, **options) as host:
        host.prompt("start it")
        await host.until("result")
        (started,) = host.shown("task_started")
        assert (await host.request("stop_task", task_id=started["task_id"]))["subtype"] == "success"
        assert (await host.request("stop_task", task_id="nobody"))["subtype"] == "success"

    assert started["task_type"] == "local_bash"
    (updated,) = host.shown("task_updated")
    assert updated["patch"] == {"status": "killed"}
    (notified,) = host.shown("task_notification")
    assert notified["status"] == "stopped"


# --- hooks ------------------------------------------------------------------------------------------------


def hooks_for(event: str, **more: Any) -> Frame:
    return {event: [{"matcher": None, "hookCallbackIds": ["hook_0"], **more}]}


async def test_hooks_of_the_host_are_called_with_what_they_need_and_may_forbid(project: Path) -> None:
    script = ScriptedProvider([WRITE], "Pity.")
    async with connected(script, project, permission_mode="acceptEdits") as host:
        groups = [{"matcher": "Write|Edit", "hookCallbackIds": ["hook_0", "hook_1"], "timeout": 5}]
        await host.request("initialize", hooks={"PreToolUse": groups})
        host.prompt("write it")
        first = await host.until("hook_callback")
        second = await host.read()  # both at once
        told = first["request"]["input"]
        assert {first["request"]["callback_id"], second["request"]["callback_id"]} == {"hook_0", "hook_1"}
        assert first["request"]["tool_use_id"] == "call_Write"
        assert told["hook_event_name"] == "PreToolUse"
        assert told["tool_input"] == {"file_path": str(project / "a.txt"), "content": "hello"}
        assert {"session_id", "transcript_path", "cwd", "permission_mode"} <= set(told)
        deny = {"hookEventName": "PreToolUse", "permissionDecision": "deny", "permissionDecisionReason": "no"}
        host.answer(second, {"hookSpecificOutput": deny})
        host.answer(first, {})
        result = await host.until("result")

    assert not (project / "a.txt").exists()
    assert "no" in host.shown("user")[0]["message"]["content"][0]["content"]
    assert result["subtype"] == "success"


async def test_a_hook_may_let_a_call_run_and_change_it(project: Path) -> None:
    async with connected(ScriptedProvider([WRITE], "Done."), project) as host:
        await host.request("initialize", hooks=hooks_for("PreToolUse"))
        host.prompt("write it")
        question = await host.until("hook_callback")
        output = {"hookEventName": "PreToolUse", "permissionDecision": "allow"}
        changed = {"file_path": "a.txt", "content": "changed"}
        host.answer(question, {"hookSpecificOutput": {**output, "updatedInput": changed}})
        await host.until("result")

    assert (project / "a.txt").read_text() == "changed"


@pytest.mark.parametrize(
    ("more", "error", "runs"),
    [
        ({}, "it broke", True),
        ({"onFailure": "continue"}, "it broke", True),
        ({"onFailure": "block"}, "it broke", False),
        ({"timeout": 0.05}, "", False),
        ({"timeout": 0.05, "onFailure": "continue"}, "", True),
        ({"timeout": 0.05, "onFailure": "block"}, "", False),
    ],
)
async def test_a_hook_that_fails_decides_nothing_unless_it_guards(
    project: Path, more: Frame, error: str, runs: bool
) -> None:
    script = ScriptedProvider([WRITE], "Done.")
    async with connected(script, project, permission_mode="acceptEdits") as host:
        await host.request("initialize", hooks=hooks_for("PreToolUse", **more))
        host.prompt("write it")
        question = await host.until("hook_callback")
        if error:
            host.answer(question, error=error)
        await host.until("result")

    assert (project / "a.txt").exists() is runs
    assert bool(host.shown("control_cancel_request")) is not bool(error)


async def test_a_stop_hook_sends_the_model_on(project: Path) -> None:
    async with connected(ScriptedProvider("Done?", "Done."), project) as host:
        await host.request("initialize", hooks=hooks_for("Stop"))
        host.prompt("do it")
        first = await host.until("hook_callback")
        host.answer(first, {"decision": "block", "reason": "check again"})
        second = await host.until("hook_callback")
        host.answer(second, {})
        result = await host.until("result")

    assert first["request"]["input"]["stop_hook_active"] is False
    assert second["request"]["input"]["stop_hook_active"] is True
    assert result["result"] == "Done."
    assert "check again" in str(host.shown("user")[0]["message"]["content"])


async def test_hooks_for_tools_and_events_that_are_not_here_are_told_of(project: Path) -> None:
    groups = [{"matcher": "Frobnicate|Write", "hookCallbackIds": ["hook_0"]}]
    script = ScriptedProvider([WRITE], "Done.")
    async with connected(script, project, permission_mode="acceptEdits") as host:
        await host.request("initialize", hooks={"PreToolUse": groups, **hooks_for("FileChanged")})
        host.prompt("write it")
        host.answer(await host.until("hook_callback"), {})
        await host.until("result")

    told = [frame["content"] for frame in host.shown("informational")]
    assert any("Frobnicate" in words for words in told)
    assert any("FileChanged" in words for words in told)


async def test_what_hooks_did_is_told_on_demand(project: Path) -> None:
    options = DriveOptions(hook_events=True)
    async with connected(ScriptedProvider("Done."), project, options) as host:
        await host.request("initialize", hooks=hooks_for("UserPromptSubmit"))
        host.prompt("do it")
        host.answer(await host.until("hook_callback"), {})
        await host.until("result")

    (started,), (response,) = host.shown("hook_started"), host.shown("hook_response")
    assert started["hook_event"] == response["hook_event"] == "UserPromptSubmit"
    assert response["exit_code"] == 0


# --- endings ----------------------------------------------------------------------------------------------


async def test_used_up_rounds_are_an_error_of_their_own_and_exit_code_1(project: Path) -> None:
    look = call("Glob", pattern="*")
    async with connected(ScriptedProvider([look], "So far."), project, max_turns=1) as host:
        host.prompt("look")

        assert await host.finish() == 1

    result = host.seen[-1]
    assert (result["subtype"], result["is_error"]) == ("error_max_turns", True)
    assert result["terminal_reason"] == "max_turns"
    assert "1 rounds" in result["errors"][0]


async def test_a_budget_that_is_used_up(project: Path) -> None:
    from robota.sessions.usage.budget import Budget

    budget = Budget(max_cost_usd=0.0000001)
    provider = ScriptedProvider("Never.")
    async with connected(provider, project, model="claude-sonnet-4-5", budget=budget) as host:
        host.prompt("think")
        result = await host.until("result")

    assert (result["subtype"], result["terminal_reason"]) == ("error_max_budget_usd", "budget_exhausted")


async def test_an_answer_with_a_schema_is_a_value_too(project: Path) -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    provider = ScriptedProvider('{"n": "three"}', '{"n": 3}', *["never"] * 5)
    async with connected(provider, project, DriveOptions(schema=schema)) as host:
        host.prompt("count")
        good = await host.until("result")
        host.prompt("count again")
        bad = await host.until("result")

    assert good["structured_output"] == {"n": 3}
    assert good["result"] == '{"n": 3}'
    assert (bad["subtype"], bad["is_error"]) == ("error_max_structured_output_retries", True)


async def test_a_provider_that_fails_is_an_error_and_the_next_prompt_a_normal_turn(project: Path) -> None:
    from robota.core.errors import AuthenticationError

    failure = AuthenticationError("The key was refused.", provider="scripted", status=401)
    async with connected(ScriptedProvider([Fail(failure)], "Better."), project) as host:
        host.prompt("hi")
        bad = await host.until("result")
        host.prompt("again")
        good = await host.until("result")
        assert await host.finish() == 0

    assert (bad["subtype"], bad["is_error"], bad["terminal_reason"]) == ("success", True, "api_error")
    assert bad["api_error_status"] == 401
    assert "The key was refused." in bad["result"]
    assert host.shown("assistant")[0]["error"] == "authentication_failed"
    assert good["result"] == "Better."


async def test_behind_an_error_result_there_is_nothing_but_the_state(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(READS, "1")
    failure = [Fail(RuntimeError("broken"))]
    async with connected(ScriptedProvider(failure), project) as host:
        host.prompt("hi")

        assert await host.finish() == 1

    at = next(place for place, frame in enumerate(host.seen) if frame["type"] == "result")
    assert [kinds_of(frame) for frame in host.seen[at + 1 :]] == [{"system", "session_state_changed"}]


async def test_a_session_that_cannot_be_made_is_a_result_and_exit_code_1(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(wishes: object) -> Any:
        raise ConfigurationError("There is no key.")

    async with connected_to(fail, DriveOptions()) as host:
        assert (await host.request("initialize", hooks=None))["subtype"] == "success"
        assert "no key" in (await host.request("get_context_usage"))["error"]
        host.prompt("hi")
        result = await host.until("result")
        assert await host.finish() == 1

    assert result["errors"] == ["There is no key."]
    assert "robota: There is no key." in capsys.readouterr().err


@pytest.mark.parametrize(
    "line",
    [
        "{not json",
        "[1, 2]",
        '"words"',
        '{"type": "user"}',
    ],
)
async def test_a_line_that_cannot_be_read_ends_the_connection_with_a_sentence(
    project: Path, line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    async with connected(ScriptedProvider("Never."), project) as host:
        host.send_line(line)

        assert await host.finish() == 1

    assert host.seen[-1]["type"] == "result"
    said = capsys.readouterr().err
    assert said.startswith("robota: ")
    assert "Traceback" not in said


async def test_blank_lines_unknown_frames_and_late_answers_are_passed_over(project: Path) -> None:
    async with connected(ScriptedProvider("Hello."), project) as host:
        host.send_line("")
        host.send_line("   ")
        host.send({"type": "keep_alive"})
        host.send({"type": "control_response", "response": {"subtype": "success", "request_id": "old"}})
        host.prompt("hi")

        assert await host.finish() == 0


def image(kind: str, data: str) -> list[Frame]:
    return [{"type": "image", "source": {"type": "base64", "media_type": kind, "data": data}}]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("", "The prompt is empty"),
        (" \n", "The prompt is empty"),
        ([{"type": "text", "text": ""}], "The prompt is empty"),
        ([], "needs `content`: text, or a list of blocks"),
        (None, "needs `content`: text, or a list of blocks"),
        ([{"type": "x"}], "'x' is not one of them"),
        (image("text/html", "aGk="), "not 'text/html'"),
        (image("image/png", "no base64"), "is not base64"),
        (image("image/png", ""), "is empty"),
    ],
)
async def test_a_prompt_that_no_model_takes_is_an_error_result_and_the_connection_lives(
    project: Path, content: Any, words: str
) -> None:
    provider = ScriptedProvider("Hello.")
    async with connected(provider, project) as host:
        host.prompt(content)
        refused = await host.until("result")
        host.prompt("hi")
        result = await host.until("result")

    assert (refused["is_error"], refused["num_turns"]) == (True, 0)
    assert words in refused["errors"][0]
    assert result["result"] == "Hello."
    assert len(provider.requests[0].messages) == 2  # nothing of it stays in the conversation


async def test_bytes_that_are_no_text_end_the_connection_with_a_sentence(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async with connected(ScriptedProvider("Never."), project) as host:
        host._write(b'{"type": "user", "message": "\xff\xfe"}\n')
        assert await host.finish() == 1

    assert "Traceback" not in capsys.readouterr().err


async def test_a_prompt_with_half_a_character_is_read(project: Path) -> None:
    provider = ScriptedProvider("Hello.")
    async with connected(provider, project) as host:
        host.prompt("name\udcff")  # as Python has an undecodable file name; json.dumps escapes it
        result = await host.until("result")

    assert result["subtype"] == "success"
    assert provider.requests[0].messages[-1].content == "name\ufffd"


@pytest.mark.parametrize("agents", [[1], {"looker": "looks"}])
async def test_agents_that_are_none_are_refused_in_a_sentence(project: Path, agents: Any) -> None:
    async with connected(ScriptedProvider("Never."), project) as host:
        answer = await host.request("initialize", hooks=None, agents=agents)

    assert answer["error"].startswith("`agents` of initialize is an object of objects")


@pytest.mark.parametrize(
    ("said", "wrong"),
    [
        ({"plugins": ["x"]}, "`plugins` of initialize is a list of objects"),
        ({"plugins": 5}, "`plugins` of initialize is a list of objects"),
        ({"plugins": [{"type": "local"}]}, "A local plugin of initialize needs a `path`"),
        ({"sdkMcpServers": 5}, "`sdkMcpServers` of initialize is a list of names"),
        ({"sdkMcpServers": [1]}, "`sdkMcpServers` of initialize is a list of names"),
    ],
)
async def test_plugins_and_servers_that_are_none_are_refused_in_a_sentence(
    project: Path, said: dict[str, Any], wrong: str
) -> None:
    async with connected(ScriptedProvider("Never."), project) as host:
        answer = await host.request("initialize", hooks=None, **said)

    assert answer["error"].startswith(wrong)


async def test_no_prompt_is_exit_code_0_without_a_result(project: Path) -> None:
    async with connected(ScriptedProvider("Never."), project) as host:
        await host.request("initialize", hooks=None)
        assert await host.finish() == 0

    assert kinds(host) == ["control_response"]


async def test_a_second_initialize_is_answered_like_the_first(project: Path) -> None:
    async with connected(ScriptedProvider("Hi."), project) as host:
        first = await host.request("initialize", hooks=None)
        second = await host.request("initialize", hooks=None)

    assert first["response"] == second["response"]


# --- prompts ----------------------------------------------------------------------------------------------


async def test_a_prompt_may_have_images(project: Path) -> None:
    provider = ScriptedProvider("A dot.")
    source = {"type": "base64", "media_type": "image/png", "data": "aGk="}
    blocks = [{"type": "text", "text": "what is it"}, {"type": "image", "source": source}]
    async with connected(provider, project) as host:
        host.prompt(blocks)
        await host.until("result")

    parts = provider.requests[0].messages[-1].parts
    assert [type(part).__name__ for part in parts] == ["TextPart", "ImagePart"]


async def test_a_slash_calls_a_command_unless_the_prompt_is_verbatim(project: Path) -> None:
    provider = ScriptedProvider("I heard you.")
    (project / "notes.txt").write_text("secret words")
    async with connected(provider, project) as host:
        host.prompt("/help")
        command = await host.until("result")
        host.prompt("/help @notes.txt", client_composed=True)
        verbatim = await host.until("result")

    assert "clear" in command["result"]
    assert verbatim["result"] == "I heard you."
    assert provider.requests[0].messages[-1].content == "/help @notes.txt"


async def test_a_summary_is_told_as_a_boundary(project: Path) -> None:
    async with connected(ScriptedProvider("One.", "We said one."), project) as host:
        host.prompt("first")
        await host.until("result")
        host.prompt("/compact")
        result = await host.until("result")

    (boundary,) = host.shown("compact_boundary")
    assert boundary["compact_metadata"]["trigger"] == "manual"
    assert result["is_error"] is False


# --- partial messages -------------------------------------------------------------------------------------


async def test_partial_messages_add_up_to_the_whole_ones(project: Path) -> None:
    thinking = [ReasoningChunk("h"), ReasoningChunk("m"), ReasoningBlock("hm")]
    first = [*thinking, "Let ", "me look.", call("Glob", pattern="*"), call("Grep", pattern="x")]
    async with connected(
        ScriptedProvider(first, ["No", "ne."]), project, DriveOptions(partial_messages=True)
    ) as host:
        host.prompt("look")
        await host.until("result")

    events = [frame["event"] for frame in host.shown("stream_event")]
    messages: list[list[Frame]] = []
    for event in events:
        if event["type"] == "message_start":
            messages.append([])
        messages[-1].append(event)
    whole: dict[str, list[Any]] = {}
    for frame in host.shown("assistant"):
        whole.setdefault(frame["message"]["id"], []).extend(frame["message"]["content"])
    assert {message[0]["message"]["id"]: assemble(message) for message in messages} == whole
    for message in messages:
        assert [event["type"] for event in message[-2:]] == ["message_delta", "message_stop"]
    assert messages[0][-2]["delta"]["stop_reason"] == "tool_use"


def assemble(events: list[Frame]) -> list[Frame]:
    """The blocks that a client makes of stream events."""
    import json

    blocks: list[Frame] = []
    texts: list[str] = []
    for event in events:
        match event:
            case {"type": "content_block_start", "content_block": block, "index": index}:
                assert index == len(blocks)
                blocks.append(dict(block))
                texts.append("")
            case {"type": "content_block_delta", "delta": {"type": kind, **delta}}:
                (value,) = delta.values()
                if kind == "signature_delta":
                    blocks[-1]["signature"] = value
                else:
                    texts[-1] += value
    for block, text in zip(blocks, texts, strict=True):
        key = {"text": "text", "thinking": "thinking", "tool_use": "input"}[block["type"]]
        block[key] = json.loads(text) if key == "input" else text
    return blocks


async def test_a_subagent_is_told_of_below_the_call_that_began_it(project: Path) -> None:
    task = call("Agent", prompt="look around", description="look")
    script = ScriptedProvider([task], [call("Glob", pattern="*")], "Nothing there.", "It found nothing.")
    options: Any = {"permission_mode": "bypassPermissions"}
    async with connected(script, project, **options) as host:
        await host.request("initialize", hooks=None, forwardSubagentText=True)
        host.prompt("delegate")
        await host.until("result")

    inside = [frame for frame in host.seen if frame.get("parent_tool_use_id") == "call_Agent"]
    assert [frame["message"]["content"][0]["type"] for frame in inside] == ["tool_use", "tool_result", "text"]


async def test_a_session_may_be_limited_to_some_skills(project: Path) -> None:
    for name in ("one", "two"):
        skill = project / ".robota" / "skills" / name
        skill.mkdir(parents=True)
        (skill / "SKILL.md").write_text(f"---\nname: {name}\ndescription: Skill {name}.\n---\nDo {name}.\n")
    options: Any = {"skills": ["two", "three"], "trust_project": True}
    async with connected(ScriptedProvider("Hi."), project, **options) as host:
        host.prompt("hi")
        await host.until("result")

    assert host.shown("init")[0]["skills"] == ["two"]
