"""What different hosts say to the command, and rely on hearing from it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.support.command import model_requests
from tests.support.driven import Driven, Frame, driven
from tests.support.mcp_server import definition

from robota.core.provider import ReasoningChunk
from robota.testing import HttpError, ModelServer, call


def say_at_once(host: Driven, words: str, **initialize: Any) -> None:
    """As a host does that does not wait for the answer to its first request."""
    request = {"subtype": "initialize", **initialize}
    message = {"role": "user", "content": [{"type": "text", "text": words}]}
    frames: list[Frame] = [
        {"type": "control_request", "request_id": "i", "request": request},
        {"type": "user", "session_id": "", "message": message, "parent_tool_use_id": None},
    ]
    host.send_line("\n".join(map(json.dumps, frames)))


def offered(server: ModelServer) -> set[str]:
    return {tool["function"]["name"] for tool in model_requests(server)[0].body.get("tools", ())}


def system_message(server: ModelServer) -> str:
    messages = model_requests(server)[0].body["messages"]
    return "".join(each["content"] for each in messages if each["role"] == "system")


# --- how the session is wanted ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wanted", "begins", "ends"),
    [
        ({"systemPrompt": [""]}, "", ""),
        ({"systemPrompt": "Be terse."}, "Be terse.", "Be terse."),
        ({"systemPrompt": ["One.", "Two."]}, "One.\n\nTwo.", "Two."),
        ({"appendSystemPrompt": "And kind."}, "You are robota", "And kind."),
        ({}, "You are robota", ""),
    ],
)
def test_a_system_prompt_comes_with_the_first_request(
    tmp_path: Path, wanted: dict[str, Any], begins: str, ends: str
) -> None:
    with ModelServer("Ok.").in_thread() as server, driven(cwd=tmp_path, server=server) as host:
        say_at_once(host, "hi", **wanted)
        host.until("result")
        said = system_message(server)

    assert said.startswith(begins)
    assert said.endswith(ends)
    assert bool(said) is bool(begins)


def test_servers_inside_the_host_come_with_the_first_request_and_may_speak_first(tmp_path: Path) -> None:
    tools: list[Frame] = [{"name": "add", "inputSchema": {"type": "object"}}]

    def serve(host: Driven, message: Frame) -> None:
        results = {
            "initialize": {
                "protocolVersion": "2025-11-25",
                "capabilities": {"tools": {"listChanged": True}},
                "serverInfo": {"name": "calc", "version": "1.0.0"},
            },
            "tools/list": {"tools": tools},
            "tools/call": {"content": [{"type": "text", "text": "5"}]},
        }
        inner = message["request"]["message"]
        answer = {"jsonrpc": "2.0", "id": inner.get("id", 0), "result": results.get(inner["method"], {})}
        response = {"subtype": "success", "request_id": message["request_id"]}
        host.send({"type": "control_response", "response": response | {"response": {"mcp_response": answer}}})

    def until(host: Driven, wanted: str) -> Frame:
        while wanted not in ((frame := host.read())["type"], frame.get("subtype")):
            if frame["type"] == "control_request":
                serve(host, frame)
        return frame

    with (
        ModelServer([call("mcp__calc__add", a=2)], "Five.", "Ok.").in_thread() as server,
        driven("--allowedTools=mcp__calc__add", cwd=tmp_path, server=server) as host,
    ):
        say_at_once(host, "add", sdkMcpServers=["calc"], sdkMcpServerConfigs={"calc": {"timeout": 60000}})
        first = until(host, "init")
        assert until(host, "result")["result"] == "Five."
        tools.append({"name": "sub", "inputSchema": {"type": "object"}})
        news = {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}
        request = {"subtype": "mcp_message", "server_name": "calc", "message": news}
        host.send({"type": "control_request", "request_id": "news", "request": request})
        until(host, "informational")  # which tells of the new tool
        host.prompt("again")
        second = until(host, "init")

    assert first["mcp_servers"] == [{"name": "calc", "status": "connected"}]
    assert "mcp__calc__sub" not in first["tools"]
    assert {"mcp__calc__add", "mcp__calc__sub"} <= set(second["tools"])


def test_the_answer_says_what_was_taken_and_which_models_there_are(tmp_path: Path) -> None:
    hooks = {"Stop": [{"hookCallbackIds": ["hook_0"]}]}
    servers = {"calc": {"type": "stdio", "command": "true"}}
    with ModelServer("Ok.", "Ok.").in_thread() as server, driven(cwd=tmp_path, server=server) as host:
        first = host.initialize(hooks=hooks, mcpServers=servers)["response"]["response"]
        host.request("set_model", model="other")
        again = host.initialize(hooks=hooks)["response"]["response"]
        back = host.request("set_model", model="default")

    assert first["claude_code_version"] == "2.1.325"
    assert (first["hooks_applied"], first["mcp_servers_applied"]) == (True, True)
    assert again["hooks_applied"] is False
    assert [model["value"] for model in first["models"]] == ["default", "scripted"]
    assert back["response"] == {"model": "scripted"}


@pytest.mark.parametrize(
    ("wishes", "words"),
    [
        ({"hooks": 3}, "`hooks` of initialize is an object"),
        ({"hooks": {"PreToolUse": 3}}, "`hooks` of initialize is an object"),
        ({"hooks": {"PreToolUse": [{"matcher": "[", "hookCallbackIds": ["h"]}]}}, "The matcher '['"),
        ({"jsonSchema": 3}, "`jsonSchema` of initialize is a JSON schema: an object"),
        ({"jsonSchema": {"type": "frob"}}, "`jsonSchema` of initialize is not a JSON schema"),
        ({"jsonSchema": {"$ref": "#/$defs/cat"}}, "Pointer '/$defs/cat' does not exist"),
    ],
)
def test_wishes_that_cannot_be_read_are_refused_and_no_turn_runs_without_them(
    tmp_path: Path, wishes: dict[str, Any], words: str
) -> None:
    with ModelServer("Never.").in_thread() as server, driven(cwd=tmp_path, server=server) as host:
        say_at_once(host, "hi", **wishes)
        answer, result = host.until("control_response")["response"], host.until("result")
        code, err = host.finish()

    assert answer["subtype"] == "error"
    assert words in answer["error"]
    assert result["errors"] == [answer["error"]]
    assert (code, model_requests(server)) == (1, [])
    assert err == f"robota: {answer['error']}\n"


def test_a_session_works_as_an_agent_of_the_host(tmp_path: Path) -> None:
    agent = {"description": "Reviews", "prompt": "You review.", "tools": ["Read", "Task"]}
    with (
        ModelServer("Ok.").in_thread() as server,
        driven("--agent=reviewer", cwd=tmp_path, server=server) as host,
    ):
        say_at_once(host, "hi", systemPrompt=[""], agents={"reviewer": agent}, title="Review")
        result = host.until("result")
        assert system_message(server) == "You review."
        assert offered(server) == {"Read"}

    assert result["result"] == "Ok."


def test_an_agent_that_is_not_there_is_named(tmp_path: Path) -> None:
    with ModelServer().in_thread() as server, driven("--agent=nobody", cwd=tmp_path, server=server) as host:
        host.prompt("hi")
        code, _ = host.finish()

    assert code == 1
    assert host.seen[-1]["errors"][0].startswith("There is no agent 'nobody'; there are Explore")


# --- options ----------------------------------------------------------------------------------------------


def test_all_that_is_asked_nothing_about(tmp_path: Path) -> None:
    for option in (
        ("--permission-mode=bypassPermissions", "--allow-dangerously-skip-permissions"),
        ("--dangerously-skip-permissions",),
    ):
        with (
            ModelServer([call("Bash", command="touch made")], "Ok.").in_thread() as server,
            driven(*option, "--await-initialize", cwd=tmp_path, server=server) as host,
        ):
            host.ask("go")
        assert (tmp_path / "made").exists()
        (tmp_path / "made").unlink()


def test_a_host_may_say_that_nobody_is_asked(tmp_path: Path) -> None:
    with (
        ModelServer([call("Bash", command="touch made")], "Pity.").in_thread() as server,
        driven(
            "--permission-prompt-tool=stdio", "--permission-prompts=none", cwd=tmp_path, server=server
        ) as host,
    ):
        assert len(host.ask("go")["permission_denials"]) == 1

    assert not (tmp_path / "made").exists()


def test_what_goes_on_is_told_on_stderr(tmp_path: Path) -> None:
    with (
        ModelServer("Ok.").in_thread() as server,
        driven("--debug-to-stderr", cwd=tmp_path, server=server) as host,
    ):
        host.ask("go")
        assert "run_start" in host.finish()[1]


def test_what_goes_on_is_written_to_a_file(tmp_path: Path) -> None:
    log = tmp_path / "log.txt"
    with (
        ModelServer("Ok.").in_thread() as server,
        driven(f"--debug-file={log}", cwd=tmp_path, server=server) as host,
    ):
        host.ask("go")
        code, err = host.finish()

    assert (code, err) == (0, "")
    assert "run_start" in log.read_text()


def test_tools_have_the_names_of_other_programs_too(tmp_path: Path) -> None:
    with (
        ModelServer("Ok.").in_thread() as server,
        driven("--tools", "Task,LS,KillShell,CronCreate", cwd=tmp_path, server=server) as host,
    ):
        assert set(host.ask("go") and offered(server)) == {"Agent", "Glob", "KillBash"}


def test_a_tool_that_is_denied_is_not_offered(tmp_path: Path) -> None:
    rules = "Bash,Task,WebFetch(domain:example.com),NoSuchTool"
    with (
        ModelServer([call("Bash", command="touch made")], "Ok.").in_thread() as server,
        driven("--disallowedTools", rules, cwd=tmp_path, server=server) as host,
    ):
        host.prompt("go")
        init = host.until("init")
        host.until("result")
        names = offered(server)

    assert set(init["tools"]) == names
    assert names.isdisjoint({"Bash", "Agent"})
    assert "WebFetch" in names
    assert not (tmp_path / "made").exists()
    told = " ".join(frame["content"] for frame in host.seen if frame.get("subtype") == "informational")
    assert "NoSuchTool" in told


# --- what a turn came to ----------------------------------------------------------------------------------


def test_each_block_of_an_answer_is_a_frame(tmp_path: Path) -> None:
    said = [ReasoningChunk("Hm."), "Look.", call("Glob", pattern="*"), call("Glob", pattern="*.md")]
    with ModelServer(said, "Done.").in_thread() as server, driven(cwd=tmp_path, server=server) as host:
        host.ask("go")

    answers = [frame for frame in host.seen if frame["type"] == "assistant"]
    assert [[block["type"] for block in frame["message"]["content"]] for frame in answers] == [
        ["thinking"], ["text"], ["tool_use"], ["tool_use"], ["text"],
    ]  # fmt: skip
    assert len({frame["message"]["id"] for frame in answers[:4]}) == 1
    assert len({frame["uuid"] for frame in answers}) == 5


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (400, "invalid_request"),
        (401, "authentication_failed"),
        (402, "billing_error"),
        (403, "authentication_failed"),
    ],
)
def test_a_service_that_refuses_is_an_answer_of_no_model(tmp_path: Path, status: int, error: str) -> None:
    refusal = HttpError(status, {"error": {"message": "no"}})
    with ModelServer(refusal).in_thread() as server, driven(cwd=tmp_path, server=server) as host:
        host.prompt("go")
        code, _ = host.finish()

    (answer,) = [frame for frame in host.seen if frame["type"] == "assistant"]
    assert (answer["error"], answer["message"]["model"]) == (error, "<synthetic>")
    result = host.seen[-1]
    assert (code, result["subtype"], result["is_error"]) == (1, "success", True)
    assert (result["api_error_status"], result["terminal_reason"]) == (status, "api_error")


@pytest.mark.parametrize(("status", "error"), [(429, "rate_limit"), (529, "server_error")])
def test_a_service_that_is_busy_is_asked_again(tmp_path: Path, status: int, error: str) -> None:
    busy = HttpError(status, {"error": {"message": "slow"}}, headers={"retry-after": "0"})
    with ModelServer(busy, "Ok.").in_thread() as server, driven(cwd=tmp_path, server=server) as host:
        assert host.ask("go")["result"] == "Ok."

    (retry,) = [frame for frame in host.seen if frame.get("subtype") == "api_retry"]
    assert (retry["attempt"], retry["max_retries"]) == (1, 3)
    assert (retry["error_status"], retry["error"]) == (status, error)


def answering(host: Driven, **answers: Any) -> Frame:
    """Answer hooks by the names of their events until the turn is over."""
    while (frame := host.read())["type"] != "result":
        if frame["type"] == "control_request":
            body = answers[frame["request"]["input"]["hook_event_name"]]
            response = {"subtype": "success", "request_id": frame["request_id"], "response": body}
            host.send({"type": "control_response", "response": response})
    return frame


def register(*events: str, **more: Any) -> Frame:
    return {event: [{"matcher": None, "hookCallbackIds": [event], **more}] for event in events}


def test_a_prompt_that_a_hook_blocks_ends_its_turn_without_an_error(tmp_path: Path) -> None:
    with ModelServer("Never.").in_thread() as server, driven(cwd=tmp_path, server=server) as host:
        say_at_once(host, "my password", hooks=register("UserPromptSubmit"))
        result = answering(host, UserPromptSubmit={"decision": "block", "reason": "no secrets"})
        assert model_requests(server) == []
        assert host.finish()[0] == 0

    assert (result["subtype"], result["is_error"], result["num_turns"]) == ("success", False, 0)
    assert "no secrets" in result["result"]
    told = [frame["content"] for frame in host.seen if frame.get("subtype") == "informational"]
    assert any("no secrets" in words for words in told)


def test_a_hook_that_ends_the_run_is_told_of(tmp_path: Path) -> None:
    with (
        ModelServer([call("Glob", pattern="*")]).in_thread() as server,
        driven(cwd=tmp_path, server=server) as host,
    ):
        say_at_once(host, "go", hooks=register("PostToolUse"))
        result = answering(host, PostToolUse={"continue": False, "stopReason": "enough"})

    assert (result["is_error"], result["terminal_reason"]) == (False, "hook_stopped")


def test_a_command_takes_no_turn_of_a_model(tmp_path: Path) -> None:
    with ModelServer().in_thread() as server, driven(cwd=tmp_path, server=server) as host:
        result = host.ask("/help")

    assert (result["is_error"], result["num_turns"]) == (False, 0)
    assert "/clear" in result["result"]


# --- hooks ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("on_failure", "answer", "runs"),
    [
        (None, {"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "Deny"}}, True),
        ("continue", {"decision": "maybe"}, True),
        ("block", {"decision": "maybe"}, False),
    ],
)
def test_an_answer_of_a_hook_that_cannot_be_read_is_a_failure_of_the_hook(
    tmp_path: Path, on_failure: str | None, answer: Frame, runs: bool
) -> None:
    with (
        ModelServer([call("Bash", command="touch made")], "Ok.").in_thread() as server,
        driven("--dangerously-skip-permissions", cwd=tmp_path, server=server) as host,
    ):
        say_at_once(host, "go", hooks=register("PreToolUse", onFailure=on_failure))
        answering(host, PreToolUse=answer)

    assert (tmp_path / "made").exists() is runs


def test_a_stop_hook_that_has_something_to_say_lets_the_model_go_on(tmp_path: Path) -> None:
    more = {"hookSpecificOutput": {"hookEventName": "Stop", "additionalContext": "Say bye, too."}}
    with ModelServer("Hello.", "Bye.").in_thread() as server, driven(cwd=tmp_path, server=server) as host:
        say_at_once(host, "go", hooks=register("Stop"))
        answers = iter((more, {}))
        while (frame := host.read())["type"] != "result":
            if frame["type"] == "control_request":
                response = {"subtype": "success", "request_id": frame["request_id"]}
                host.send({"type": "control_response", "response": response | {"response": next(answers)}})
        asked = model_requests(server)[1].body["messages"][-1]["content"]

    assert "Say bye, too." in asked
    assert (frame["result"], frame["num_turns"]) == ("Bye.", 2)


def test_hooks_are_pointed_to_a_transcript_that_is_up_to_date(tmp_path: Path) -> None:
    seen: list[Any] = []
    config = tmp_path / "config"
    with (
        ModelServer([call("Glob", pattern="*")], "Done.").in_thread() as server,
        driven("--session-mirror", cwd=tmp_path, server=server, CLAUDE_CONFIG_DIR=str(config)) as host,
    ):
        say_at_once(host, "go", hooks=register("Stop", "PreToolUse"))
        while (frame := host.read())["type"] != "result":
            if frame["type"] == "control_request":
                path = Path(frame["request"]["input"]["transcript_path"])
                seen.append([json.loads(line)["type"] for line in path.read_text().splitlines()])
                response = {"subtype": "success", "request_id": frame["request_id"], "response": {}}
                host.send({"type": "control_response", "response": response})

    assert path.is_relative_to(config / "projects")
    assert seen == [["user", "assistant"], ["user", "assistant", "user", "assistant"]]
    told = [entry for frame in host.seen for entry in frame.get("entries", ())]
    assert [entry["type"] for entry in told] == seen[-1]


def test_the_reason_of_a_hook_that_asks_goes_to_the_host_as_it_is(tmp_path: Path) -> None:
    ask = {"permissionDecision": "ask", "permissionDecisionReason": "please look"}
    with (
        ModelServer([call("Glob", pattern="*")], "Done.").in_thread() as server,
        driven("--permission-prompt-tool", "stdio", cwd=tmp_path, server=server) as host,
    ):
        say_at_once(host, "go", hooks=register("PreToolUse"))
        hook = host.until("control_request")
        body = {"hookSpecificOutput": {"hookEventName": "PreToolUse", **ask}}
        response = {"subtype": "success", "request_id": hook["request_id"], "response": body}
        host.send({"type": "control_response", "response": response})
        question = host.until("control_request")["request"]

    assert (question["subtype"], question["decision_reason"]) == ("can_use_tool", "please look")


def test_a_hook_for_the_end_of_the_session_leaves_the_result_the_last_word(tmp_path: Path) -> None:
    with ModelServer("Done.").in_thread() as server, driven(cwd=tmp_path, server=server) as host:
        say_at_once(host, "go", hooks=register("SessionEnd"))
        host.finish()

    assert host.seen[-1]["type"] == "result"


# --- servers ----------------------------------------------------------------------------------------------


def test_the_status_of_a_server_says_what_its_tools_are_like(tmp_path: Path) -> None:
    servers = json.dumps({"mcpServers": {"calc": definition()}})
    with (
        ModelServer("Ok.").in_thread() as server,
        driven("--mcp-config", servers, cwd=tmp_path, server=server) as host,
    ):
        host.ask("hi")
        (status,) = host.request("mcp_status")["response"]["mcpServers"]

    init = next(frame for frame in host.seen if frame.get("subtype") == "init")
    assert init["mcp_servers"] == [{"name": "calc", "status": "connected"}]
    assert {"readOnly": True} in [tool["annotations"] for tool in status["tools"]]


def test_an_interrupt_ends_the_wait_for_a_server(tmp_path: Path) -> None:
    silent = {"command": "sleep", "args": ["100"], "startupTimeout": 100_000}
    servers = json.dumps({"mcpServers": {"silent": silent}})
    with (
        ModelServer("Never.").in_thread() as server,
        driven("--mcp-config", servers, cwd=tmp_path, server=server) as host,
    ):
        host.initialize()
        host.request("mcp_status")  # so there is a session
        host.prompt("hi")
        host.request("interrupt")
        result = host.until("result")
        asked = model_requests(server)

    assert result["terminal_reason"] == "aborted_streaming"
    assert not asked


def test_a_tool_of_a_server_is_asked_in_a_conversation(tmp_path: Path) -> None:
    servers = json.dumps({"mcpServers": {"desk": definition()}})
    arguments = ("--mcp-config", servers, "--permission-prompt-tool", "mcp__desk__approve")
    calls = [call("Bash", command=command) for command in ("touch made", "touch other")]
    with (
        ModelServer(calls, "Done.").in_thread() as server,
        driven(*arguments, cwd=tmp_path, server=server) as host,
    ):
        result = host.ask("go")
        code, _ = host.finish()

    assert (code, result["subtype"]) == (0, "success")
    assert [each["tool_use_id"] for each in result["permission_denials"]] == ["call_Bash_2"]
    assert (tmp_path / "made").exists()
    assert not (tmp_path / "other").exists()
