"""An existing client of the stream-json protocol, unchanged, with `robota` as its executable."""

from __future__ import annotations

import asyncio
import sys
import uuid
from collections.abc import AsyncIterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from robota.testing import ModelServer, Stall, call

pytestmark = [pytest.mark.system, pytest.mark.anyio]

ROOT = Path(__file__).parents[2]
ROBOTA = Path(sys.executable).with_name("robota")
WRITE = call("Write", file_path="a.txt", content="hello")
SCHEMA = {
    "type": "json_schema",
    "schema": {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]},
}


@pytest.fixture(scope="module")
def sdk() -> Any:
    """The client, installed beside the packages that robota is tested with."""
    sys.path.append(str(ROOT / ".venv" / "client"))
    return import_module("claude_agent_sdk")


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ROBOTA_HOME", str(tmp_path / "robota"))
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "config"))
    path = tmp_path / "project"
    path.mkdir()
    return path


class Harness:
    """Makes options for one project and one scripted model."""

    def __init__(self, sdk: Any, project: Path, server: ModelServer) -> None:
        self.sdk = sdk
        self.project = project
        self.server = server
        self.said: list[str] = []

    def options(self, **more: Any) -> Any:
        env = {"ROBOTA_BASE_URL": f"{self.server.url}/v1", "ROBOTA_MODEL": "scripted", **more.pop("env", {})}
        values = {"cli_path": ROBOTA, "cwd": self.project, "stderr": self.said.append, "env": env}
        return self.sdk.ClaudeAgentOptions(**{**values, **more})

    async def query(self, prompt: Any, **more: Any) -> list[Any]:
        return [message async for message in self.sdk.query(prompt=prompt, options=self.options(**more))]

    def client(self, **more: Any) -> Any:
        return self.sdk.ClaudeSDKClient(self.options(**more))

    async def ask(self, client: Any, prompt: Any) -> list[Any]:
        await client.query(prompt)
        return [message async for message in client.receive_response()]

    @property
    def asked(self) -> list[Any]:
        """What the model was sent."""
        return [request.body for request in self.server.requests if request.method == "POST"]


def texts(messages: list[Any]) -> list[str]:
    blocks = [block for message in messages for block in _blocks(message)]
    return [block.text for block in blocks if hasattr(block, "text")]


def _blocks(message: Any) -> list[Any]:
    content = getattr(message, "content", None)
    return content if isinstance(content, list) else []


def results_of_tools(messages: list[Any]) -> list[Any]:
    blocks = [block for message in messages for block in _blocks(message)]
    return [block for block in blocks if hasattr(block, "is_error")]


def of_kind(messages: list[Any], name: str) -> list[Any]:
    return [message for message in messages if type(message).__name__ == name]


def data_of(messages: list[Any], subtype: str) -> list[Any]:
    return [message.data for message in messages if getattr(message, "subtype", "") == subtype]


# --- the whole of it --------------------------------------------------------------------------------------


async def test_a_conversation_with_everything(sdk: Any, project: Path) -> None:
    heard: list[str] = []

    async def approve(name: str, given: Any, context: Any) -> Any:
        heard.append(f"permission {name} {context.tool_use_id}")
        return sdk.PermissionResultAllow(updated_input={**given, "content": "changed"})

    async def guard(given: Any, tool_use_id: Any, context: Any) -> Any:
        heard.append(f"hook {given['hook_event_name']} {given['tool_name']}")
        return {}

    script = [WRITE], '{"n": 1}', [call("Bash", command="sleep 60")], '{"n": 2}'
    with ModelServer(*script).in_thread() as server:
        it = Harness(sdk, project, server)
        hooks = {"PreToolUse": [sdk.HookMatcher(matcher="Write", hooks=[guard])]}
        more = {"can_use_tool": approve, "hooks": hooks, "output_format": SCHEMA}
        async with it.client(**more) as client:
            first = await it.ask(client, "write it")
            await client.set_permission_mode("bypassPermissions")
            await client.query("wait")
            second = []
            async for message in client.receive_response():
                second.append(message)
                if type(message).__name__ == "AssistantMessage":
                    await client.interrupt()
            third = await it.ask(client, "and now?")

    assert heard == ["hook PreToolUse Write", "permission Write call_Write"]
    assert (project / "a.txt").read_text() == "changed"
    assert first[-1].structured_output == {"n": 1}
    assert (second[-1].subtype, second[-1].is_error) == ("error_during_execution", True)
    assert results_of_tools(second)[0].is_error is True
    assert third[-1].structured_output == {"n": 2}
    assert {message.session_id for message in (first[-1], second[-1], third[-1])} == {first[-1].session_id}
    assert it.said == [line for line in it.said if "Traceback" not in line]


async def test_a_query_of_one_prompt(sdk: Any, project: Path) -> None:
    with ModelServer([call("Glob", pattern="*")], "Nothing.").in_thread() as server:
        messages = await Harness(sdk, project, server).query("look")

    assert of_kind(messages, "SystemMessage")[0].subtype == "init"
    assert texts(messages) == ["Nothing."]
    result = messages[-1]
    assert (result.result, result.num_turns, result.is_error) == ("Nothing.", 2, False)
    assert result.usage["output_tokens"] > 0


async def test_a_query_of_several_prompts(sdk: Any, project: Path) -> None:
    async def prompts() -> AsyncIterator[Any]:
        for words in ("first", "second"):
            yield {"type": "user", "message": {"role": "user", "content": words}}

    with ModelServer("One.", "Two.").in_thread() as server:
        messages = await Harness(sdk, project, server).query(prompts())

    assert [message.result for message in of_kind(messages, "ResultMessage")] == ["One.", "Two."]


async def test_a_prompt_with_an_image(sdk: Any, project: Path) -> None:
    source = {"type": "base64", "media_type": "image/png", "data": "aGk="}
    content = [{"type": "text", "text": "what is it?"}, {"type": "image", "source": source}]

    async def prompts() -> AsyncIterator[Any]:
        yield {"type": "user", "message": {"role": "user", "content": content}}

    with ModelServer("A dot.").in_thread() as server:
        it = Harness(sdk, project, server)
        await it.query(prompts())
        sent = it.asked[0]["messages"][-1]["content"]

    assert sent[0] == {"type": "text", "text": "what is it?"}
    assert "image" in str(sent[1])  # or what becomes of one that the model cannot see


# --- errors -----------------------------------------------------------------------------------------------


async def test_an_error_result_is_a_message_and_then_an_exception(sdk: Any, project: Path) -> None:
    messages: list[Any] = []

    async def read_all(it: Harness) -> None:
        async for message in sdk.query(prompt="look", options=it.options(max_turns=1)):
            messages.append(message)  # noqa: PERF401 - what came before the error counts

    with (
        ModelServer([call("Glob", pattern="*")], "So far.").in_thread() as server,
        pytest.raises(sdk.ResultError) as raised,
    ):
        await read_all(Harness(sdk, project, server))

    assert messages[-1].subtype == raised.value.subtype == "error_max_turns"
    assert raised.value.exit_code == 1


async def test_a_budget_that_is_used_up(sdk: Any, project: Path) -> None:
    with ModelServer("Never.").in_thread() as server:
        it = Harness(sdk, project, server)
        with pytest.raises(sdk.ResultError) as raised:
            await it.query("go", max_budget_usd=1e-07, model="claude-sonnet-4-5")

    assert raised.value.subtype == "error_max_budget_usd"


async def test_a_session_that_does_not_exist(sdk: Any, project: Path) -> None:
    with ModelServer().in_thread() as server:
        it = Harness(sdk, project, server)
        with pytest.raises(sdk.ResultError, match="There is no session"):
            await it.client(resume=str(uuid.uuid4())).connect()


async def test_an_option_that_does_not_exist(sdk: Any, project: Path) -> None:
    with ModelServer().in_thread() as server:
        it = Harness(sdk, project, server)
        with pytest.raises(sdk.ProcessError):
            await it.query("go", extra_args={"frobnicate": None})

    assert any("--frobnicate" in line for line in it.said)


async def test_a_provider_that_refuses_the_key(sdk: Any, project: Path) -> None:
    from robota.testing import HttpError

    failure = HttpError(401, {"error": {"message": "bad key"}})
    with ModelServer(failure, "Better.").in_thread() as server:
        it = Harness(sdk, project, server)
        async with it.client() as client:
            bad = await it.ask(client, "go")
            good = await it.ask(client, "again")

    assert (bad[-1].subtype, bad[-1].is_error, bad[-1].api_error_status) == ("success", True, 401)
    assert of_kind(bad, "AssistantMessage")[0].error == "authentication_failed"
    assert good[-1].result == "Better."


# --- permission -------------------------------------------------------------------------------------------


async def test_a_callback_that_denies_interrupts_or_breaks(sdk: Any, project: Path) -> None:
    answers = iter(("deny", "break", "interrupt"))

    async def decide(name: str, given: Any, context: Any) -> Any:
        answer = next(answers)
        if answer == "break":
            raise RuntimeError("the callback broke")
        return sdk.PermissionResultDeny(message=f"no: {answer}", interrupt=answer == "interrupt")

    with ModelServer([WRITE], [WRITE], [WRITE], "Next.").in_thread() as server:
        it = Harness(sdk, project, server)
        async with it.client(can_use_tool=decide) as client:
            first = await it.ask(client, "write it")
            second = await it.ask(client, "go on")

    denied, broken, stopped = results_of_tools(first)
    assert "no: deny" in denied.content
    assert "the callback broke" in broken.content
    assert "no: interrupt" in stopped.content
    assert first[-1].terminal_reason == "aborted_tools"
    assert len(first[-1].permission_denials) == 3
    assert second[-1].result == "Next."
    assert not (project / "a.txt").exists()


async def test_an_answer_may_bring_rules(sdk: Any, project: Path) -> None:
    asked: list[str] = []

    async def decide(name: str, given: Any, context: Any) -> Any:
        asked.append(given["file_path"])
        assert context.suggestions[0].type == "addRules"
        rules = [sdk.types.PermissionRuleValue(tool_name="Write")]
        update = sdk.PermissionUpdate(type="addRules", rules=rules, behavior="allow", destination="session")
        return sdk.PermissionResultAllow(updated_permissions=[update])

    again = call("Write", file_path="b.txt", content="b")
    with ModelServer([WRITE], [again], "Done.").in_thread() as server:
        await Harness(sdk, project, server).query("write both", can_use_tool=decide)

    assert asked == ["a.txt"]
    assert (project / "b.txt").exists()


async def test_rules_and_tools_of_the_options(sdk: Any, project: Path) -> None:
    script = [WRITE, call("Bash", command="touch b.txt"), call("Bash", command="touch c.txt")], "Done."
    with ModelServer(*script).in_thread() as server:
        it = Harness(sdk, project, server)
        messages = await it.query(
            "go",
            tools=["Write", "Bash", "Read"],
            allowed_tools=["Write", "Bash(touch b.txt)", "Skill(x)", "mcp__a__b"],
            disallowed_tools=["Bash(touch c.txt)"],
        )
        offered = {tool["function"]["name"] for tool in it.asked[0]["tools"]}

    assert sorted(path.name for path in project.glob("*.txt")) == ["a.txt", "b.txt"]
    assert messages[-1].permission_denials[0]["tool_input"] == {"command": "touch c.txt"}
    assert offered == {"Write", "Bash", "Read"}


async def test_no_tools_at_all(sdk: Any, project: Path) -> None:
    with ModelServer("Hello.").in_thread() as server:
        it = Harness(sdk, project, server)
        await it.query("hi", tools=[])

    assert not it.asked[0].get("tools")


# --- hooks ------------------------------------------------------------------------------------------------


async def test_hooks_of_all_kinds(sdk: Any, project: Path) -> None:
    heard: list[tuple[str, Any]] = []

    def answering(output: Any) -> Any:
        async def answer(given: Any, tool_use_id: Any, context: Any) -> Any:
            heard.append((given["hook_event_name"], given))
            return output(given) if callable(output) else output

        return answer

    def specific(event: str, **fields: Any) -> Any:
        return {"hookSpecificOutput": {"hookEventName": event, **fields}}

    def stop(given: Any) -> Any:
        return {} if given["stop_hook_active"] else {"decision": "block", "reason": "check it"}

    outputs: Any = {
        "UserPromptSubmit": specific("UserPromptSubmit", additionalContext="It is Tuesday."),
        "PreToolUse": specific("PreToolUse", permissionDecision="allow"),
        "PostToolUse": specific("PostToolUse", additionalContext="Well written."),
        "Stop": stop,
    }
    hooks = {name: [sdk.HookMatcher(hooks=[answering(output)])] for name, output in outputs.items()}
    with ModelServer([WRITE], "Done?", "Checked.").in_thread() as server:
        it = Harness(sdk, project, server)
        messages = await it.query("write it", hooks=hooks, include_hook_events=True)

    assert [name for name, _ in heard] == ["UserPromptSubmit", "PreToolUse", "PostToolUse", "Stop", "Stop"]
    told = dict(heard)
    assert told["UserPromptSubmit"]["prompt"] == "write it"
    assert told["PostToolUse"]["tool_response"]["success"] is True
    assert (project / "a.txt").exists()
    assert "It is Tuesday." in str(it.asked[0]["messages"])
    assert "Well written." in str(it.asked[1]["messages"])
    assert "check it" in str(it.asked[2]["messages"])
    assert messages[-1].result == "Checked."
    assert {message.hook_event_name for message in of_kind(messages, "HookEventMessage")} == set(outputs)


@pytest.mark.parametrize("on_failure", [None, "continue", "block"])
async def test_a_hook_that_raises(sdk: Any, project: Path, on_failure: str | None) -> None:
    async def broken(given: Any, tool_use_id: Any, context: Any) -> Any:
        raise RuntimeError("broken guard")

    matcher = sdk.HookMatcher(matcher="Write", hooks=[broken], on_failure=on_failure)
    with ModelServer([WRITE], "Done.").in_thread() as server:
        it = Harness(sdk, project, server)
        await it.query("write it", hooks={"PreToolUse": [matcher]}, permission_mode="acceptEdits")

    assert (project / "a.txt").exists() is (on_failure != "block")


async def test_a_hook_that_takes_too_long_guards(sdk: Any, project: Path) -> None:
    cancelled = asyncio.Event()

    async def slow(given: Any, tool_use_id: Any, context: Any) -> Any:
        try:
            await asyncio.sleep(60)
        finally:
            cancelled.set()

    matcher = sdk.HookMatcher(matcher="Write", hooks=[slow], timeout=0.2)
    with ModelServer([WRITE], "Done.").in_thread() as server:
        it = Harness(sdk, project, server)
        await it.query("write it", hooks={"PreToolUse": [matcher]}, permission_mode="acceptEdits")

    assert cancelled.is_set()
    assert not (project / "a.txt").exists()


# --- requests ---------------------------------------------------------------------------------------------


async def test_every_request_of_the_client(sdk: Any, project: Path) -> None:
    bash = call("Bash", command="sleep 60", run_in_background=True)
    with ModelServer([bash], "Running.", "Hi.").in_thread() as server:
        it = Harness(sdk, project, server)
        async with it.client(permission_mode="bypassPermissions") as client:
            info = await client.get_server_info()
            usage = await client.get_context_usage()
            servers = await client.get_mcp_status()
            first = await it.ask(client, "start it")
            started = of_kind(first, "TaskStartedMessage")[0]
            await client.stop_task(started.task_id)
            await client.set_model("other")
            await client.set_permission_mode("plan")
            second = await it.ask(client, "hi")
            for wrong in (
                client.set_permission_mode("yolo"),
                client.reconnect_mcp_server("x"),
                client.toggle_mcp_server("x", False),
                client.rewind_files("x"),
            ):
                with pytest.raises(Exception, match=r"yolo|'x'|checkpointing"):
                    await wrong
            await client.set_model(None)
            await client.interrupt()

    assert {"commands", "agents", "models", "pid"} <= set(info)
    assert usage["maxTokens"] > 0
    assert usage["percentage"] <= 100
    assert servers == {"mcpServers": []}
    assert of_kind(second, "TaskNotificationMessage")[0].status == "stopped"
    assert of_kind(second, "AssistantMessage")[0].model == "other"
    assert data_of(second, "init")[0]["permissionMode"] == "plan"


async def test_files_go_back(sdk: Any, project: Path) -> None:
    (project / "a.txt").write_text("before")
    read = call("Read", file_path="a.txt")
    with ModelServer([read], [WRITE], "Done.").in_thread() as server:
        it = Harness(sdk, project, server)
        more: Any = {"permission_mode": "acceptEdits", "enable_file_checkpointing": True}
        async with it.client(extra_args={"replay-user-messages": None}, **more) as client:
            messages = await it.ask(client, "write it")
            prompt = next(m for m in of_kind(messages, "UserMessage") if m.content == "write it")
            assert (project / "a.txt").read_text() == "hello"
            await client.rewind_files(prompt.uuid)

    assert (project / "a.txt").read_text() == "before"


async def test_an_interrupt_while_the_program_does_not_read(sdk: Any, project: Path) -> None:
    flood = [f"{number} " * 20 for number in range(3000)]
    with ModelServer([*flood, Stall()]).in_thread() as server:
        it = Harness(sdk, project, server)
        async with it.client(include_partial_messages=True) as client:
            await client.query("go")
            stopping = asyncio.create_task(client.interrupt())
            messages = [message async for message in client.receive_response()]
            await stopping

    assert messages[-1].subtype == "error_during_execution"


# --- options ----------------------------------------------------------------------------------------------


async def test_partial_messages(sdk: Any, project: Path) -> None:
    with ModelServer(["Hel", "lo."]).in_thread() as server:
        messages = await Harness(sdk, project, server).query("hi", include_partial_messages=True)

    events = [message.event for message in of_kind(messages, "StreamEvent")]
    said = [event["delta"]["text"] for event in events if event.get("delta", {}).get("type") == "text_delta"]
    assert said == ["Hel", "lo."]
    assert (events[0]["type"], events[-1]["type"]) == ("message_start", "message_stop")


async def test_system_prompts(sdk: Any, project: Path, tmp_path: Path) -> None:
    file = tmp_path / "prompt.md"
    file.write_text("From a file.")
    given: list[Any] = [
        None,
        "-terse",
        {"type": "preset", "preset": "claude_code"},
        {"type": "preset", "preset": "claude_code", "append": "And be kind."},
        {"type": "file", "path": str(file)},
    ]
    with ModelServer(*["Ok."] * len(given)).in_thread() as server:
        it = Harness(sdk, project, server)
        for prompt in given:
            await it.query("hi", system_prompt=prompt)
        sent = [
            next((m["content"] for m in body["messages"] if m["role"] == "system"), "") for body in it.asked
        ]

    none, terse, preset, appended, from_file = sent
    assert none == ""
    assert terse.startswith("-terse")
    assert "And be kind." not in preset
    assert len(preset) > 1000
    assert "And be kind." in appended
    assert from_file.startswith("From a file.")


async def test_settings_and_sources(sdk: Any, project: Path) -> None:
    (project / ".robota").mkdir()
    (project / ".robota" / "settings.json").write_text('{"permissions": {"deny": ["Write"]}}')
    settings = '{"permissions": {"allow": ["Write"]}}'
    with ModelServer([WRITE], "Done.", [WRITE], "Done.").in_thread() as server:
        it = Harness(sdk, project, server)
        denied = await it.query("write", settings=settings)
        allowed = await it.query("write", settings=settings, setting_sources=[])

    assert len(denied[-1].permission_denials) == 1
    assert allowed[-1].permission_denials == []
    assert (project / "a.txt").exists()


async def test_another_directory_belongs_to_the_workspace(sdk: Any, project: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    write = call("Write", file_path=str(other / "x.txt"), content="x")
    with ModelServer([write], "Done.", [write], "Done.").in_thread() as server:
        it = Harness(sdk, project, server)
        outside = await it.query("write", permission_mode="acceptEdits")
        await it.query("write", permission_mode="acceptEdits", add_dirs=[other])

    assert len(outside[-1].permission_denials) == 1
    assert (other / "x.txt").exists()


async def test_agents_skills_and_the_words_of_subagents(sdk: Any, project: Path) -> None:
    for name in ("one", "two"):
        skill = project / ".claude" / "skills" / name
        skill.mkdir(parents=True)
        (skill / "SKILL.md").write_text(f"---\nname: {name}\ndescription: Skill {name}.\n---\nDo {name}.\n")
    agent = sdk.AgentDefinition(description="Looks.", prompt="You are the looker.", tools=["Glob"])
    task = call("Agent", prompt="look", subagent_type="looker")
    with ModelServer([task], [call("Glob", pattern="*")], "Seen.", "It saw.").in_thread() as server:
        it = Harness(sdk, project, server)
        messages = await it.query(
            "delegate",
            agents={"looker": agent},
            skills=["one"],
            forward_subagent_text=True,
            permission_mode="bypassPermissions",
            extra_args={"trust": None},
        )

    inside = [message for message in messages if getattr(message, "parent_tool_use_id", None) == "call_Agent"]
    assert texts(inside) == ["Seen."]
    assert len(results_of_tools(inside)) == 1
    (init,) = data_of(messages, "init")
    assert "looker" in init["agents"]
    assert init["skills"] == ["one"]
    assert "You are the looker." in str(it.asked[1]["messages"][0])


async def test_verbatim_prompts(sdk: Any, project: Path) -> None:
    (project / "notes.txt").write_text("secret words")
    with ModelServer("Heard.", "Heard.").in_thread() as server:
        it = Harness(sdk, project, server)
        command = await it.query("/help")
        await it.query("see @notes.txt")
        await it.query("/help @notes.txt", verbatim_prompts=True)

    assert "/clear" in command[-1].result
    assert "secret words" in str(it.asked[0]["messages"][-1])
    assert it.asked[1]["messages"][-1]["content"] == "/help @notes.txt"


async def test_options_without_an_effect_and_those_with_one(sdk: Any, project: Path, tmp_path: Path) -> None:
    plugin = tmp_path / "plugin"
    plugin.mkdir()

    @sdk.tool("add", "Adds", {"a": int, "b": int})
    async def add(given: Any) -> Any:
        return {"content": [{"type": "text", "text": "5"}]}

    with ModelServer("Hi.").in_thread() as server:
        it = Harness(sdk, project, server)
        async with it.client(
            effort="high",
            fallback_model="m2",
            betas=["context-1m-2025-08-07"],
            thinking={"type": "disabled"},
            plugins=[{"type": "local", "path": str(plugin)}],
            mcp_servers={"calc": sdk.create_sdk_mcp_server("calc", tools=[add])},
            sandbox={"enabled": False},
        ) as client:
            status = await client.get_mcp_status()
            messages = await it.ask(client, "hi")

    assert messages[-1].result == "Hi."
    assert it.asked[0]["reasoning_effort"] == "high"
    told = " ".join(data["content"] for data in data_of(messages, "informational"))
    assert all(name in told for name in ("--fallback-model", "--betas", "--thinking"))
    assert (status["mcpServers"][0]["name"], status["mcpServers"][0]["status"]) == ("calc", "connected")


async def test_a_server_inside_the_client_is_called_by_the_model(sdk: Any, project: Path) -> None:
    given: list[Any] = []

    @sdk.tool("add", "Adds", {"a": int, "b": int})
    async def add(arguments: Any) -> Any:
        given.append(arguments)
        return {"content": [{"type": "text", "text": str(arguments["a"] + arguments["b"])}]}

    @sdk.tool("fail", "Fails", {})
    async def fail(arguments: Any) -> Any:
        raise ValueError("the sum is off")

    calls = [call("mcp__calc__add", a=2, b=3), call("mcp__calc__fail")]
    with ModelServer(calls, "Five.").in_thread() as server:
        it = Harness(sdk, project, server)
        async with it.client(
            mcp_servers={"calc": sdk.create_sdk_mcp_server("calc", tools=[add, fail])},
            allowed_tools=["mcp__calc"],
        ) as client:
            messages = await it.ask(client, "add")
            status = await client.get_mcp_status()
            await client.reconnect_mcp_server("calc")
            await client.toggle_mcp_server("calc", False)
            after = await client.get_mcp_status()
    first = data_of(messages, "init")[0]
    assert {"name": "calc", "status": "connected"} in first["mcp_servers"]
    assert "mcp__calc__add" in first["tools"]
    assert messages[-1].result == "Five."
    assert given == [{"a": 2, "b": 3}]
    told = str(it.asked[1]["messages"])
    assert "5" in told
    assert "the sum is off" in told
    assert [each["name"] for each in status["mcpServers"][0]["tools"]] == ["add", "fail"]
    assert after["mcpServers"][0]["status"] == "disabled"


# --- sessions ---------------------------------------------------------------------------------------------


async def test_sessions_are_named_continued_resumed_and_forked(sdk: Any, project: Path) -> None:
    named = str(uuid.uuid4())
    with ModelServer(*["Ok."] * 4).in_thread() as server:
        it = Harness(sdk, project, server)
        ids = [
            (await it.query("go", **more))[-1].session_id
            for more in (
                {"session_id": named},
                {"resume": named},
                {"resume": named, "fork_session": True},
                {"continue_conversation": True},
            )
        ]
        sizes = [len(body["messages"]) for body in it.asked]

    assert ids[:2] == [named, named]
    assert ids[2] == ids[3] != named
    assert sizes == [1, 3, 5, 7]
    listed = {info.session_id: info for info in sdk.list_sessions(directory=str(project))}
    assert set(listed) == {named, ids[2]}
    assert listed[named].first_prompt == "go"
    messages = sdk.get_session_messages(ids[2], directory=str(project))
    assert [message.type for message in messages] == ["user", "assistant"] * 4


async def test_a_branch_from_an_earlier_point(sdk: Any, project: Path) -> None:
    with ModelServer("One.", "Two.", "Three.").in_thread() as server:
        it = Harness(sdk, project, server)
        async with it.client() as client:
            first = await it.ask(client, "first")
            await it.ask(client, "second")
        kept = of_kind(first, "AssistantMessage")[-1].uuid
        session = first[-1].session_id
        dropped = [m.uuid for m in sdk.get_session_messages(session, directory=str(project))][2]
        more: Any = {"resume": session, "fork_session": True, "resume_session_at": kept}
        await it.query("third", **more, resume_drops_turn=dropped)
        with pytest.raises(sdk.ClaudeSDKError, match="Resume rejected by --resume-drops-turn"):
            await it.query("never", **more, resume_drops_turn=str(uuid.uuid4()))

    assert [message["content"] for message in it.asked[2]["messages"]] == ["first", "One.", "third"]


async def test_a_store_of_the_program_mirrors_a_session_and_gives_it_back(
    sdk: Any, project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = sdk.InMemorySessionStore()
    with ModelServer([call("Glob", pattern="*")], "One.", "Two.").in_thread() as server:
        it = Harness(sdk, project, server)
        first = await it.query("first", session_store=store)
        session = first[-1].session_id
        mirrored = await sdk.get_session_messages_from_store(store, session, directory=str(project))
        monkeypatch.setenv("ROBOTA_HOME", str(tmp_path / "another machine"))
        second = await it.query("second", session_store=store, resume=session)
        after = await sdk.get_session_messages_from_store(store, session, directory=str(project))

    assert [message.type for message in mirrored] == ["user", "assistant", "user", "assistant"]
    assert second[-1].session_id == session
    assert [message["role"] for message in it.asked[2]["messages"]] == [
        "user", "assistant", "tool", "assistant", "user",
    ]  # fmt: skip
    assert len(after) == 6
    assert data_of(second, "mirror_error") == []
