from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest
from tests.support.processes import mark, read_fifo

from robota.core.errors import ConfigurationError
from robota.core.hooks import (
    CommandExecutor,
    HookDefinition,
    HookGroup,
    HookOutcome,
    HookResult,
    HttpExecutor,
    run_hooks,
)
from robota.core.messages import Json, JsonObject
from robota.http.address import AddressPolicy

__all__ = ["mark"]

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("mark")]

CALL: JsonObject = {"session_id": "s", "tool_name": "Bash", "tool_input": {"command": "ls"}}


@pytest.fixture
def fifo(tmp_path: Path) -> Path:
    path = tmp_path / "fifo"
    os.mkfifo(path)
    return path


async def run(*commands: str, event: str = "PreToolUse", timeout: float = 20, **more: Json) -> HookOutcome:
    hooks = [{"type": "command", "command": command, "timeout": timeout} for command in commands]
    return await run_hooks({event: [{"hooks": hooks}]}, event, {**CALL, **more})


# --- commands --------------------------------------------------------------------------------------


async def test_without_configuration_nothing_happens() -> None:
    assert await run_hooks(None, "PreToolUse", CALL) == HookOutcome(event="PreToolUse")
    other = {"PreToolUse": [{"matcher": "Edit", "hooks": [{"type": "command", "command": "exit 2"}]}]}
    assert await run_hooks(other, "PreToolUse", CALL) == HookOutcome(event="PreToolUse")


async def test_a_malformed_configuration_is_refused() -> None:
    with pytest.raises(ConfigurationError):
        await run_hooks({"PreToolUse": [{"hooks": "exit 2"}]}, "PreToolUse", CALL)


async def test_a_command_blocks_a_tool() -> None:
    outcome = await run("echo 'not that' >&2; exit 2")
    assert (outcome.blocked, outcome.reason) == (True, "not that")
    [hook_run] = outcome.runs
    assert (hook_run.type, hook_run.label) == ("command", "echo 'not that' >&2; exit 2")
    assert hook_run.result == HookResult(exit_code=2, stderr="not that\n")


async def test_a_command_reads_the_input_as_one_json_document(tmp_path: Path) -> None:
    outcome = await run("cat; pwd >&2", event="Stop", cwd=str(tmp_path), last_assistant_message="done ✓")
    assert outcome.runs[0].result.stderr.strip() == str(tmp_path)
    assert json.loads(outcome.runs[0].result.stdout) == {
        **CALL,
        "hook_event_name": "Stop",
        "cwd": str(tmp_path),
        "last_assistant_message": "done ✓",
        "response": "done ✓",
    }


async def test_a_command_gets_the_environment_that_the_page_promises(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ORDINARY", "kept")
    monkeypatch.setenv("SERVICE_TOKEN", "secret")
    show = (
        'printf "%s|" "$CLAUDE_PROJECT_DIR" "$CLAUDE_SESSION_ID" "$ORDINARY" "$SERVICE_TOKEN" "$A" "$B" "$C"'
    )
    hook = HookDefinition(type="command", command=show, env={"B": "own"})
    config = {"Stop": (HookGroup(hooks=(hook,), env={"A": "group", "B": "group"}),)}
    monkeypatch.chdir(tmp_path)
    outcome = await run_hooks(config, "Stop", {**CALL, "cwd": ".", "env": {"A": "input", "C": "input"}})
    assert outcome.stdout == f"{tmp_path}|s|kept||group|own|input|"


@pytest.mark.parametrize(
    ("event", "given", "also"),
    [
        ("PostToolUse", "tool_response", "tool_output"),
        ("PostToolUse", "tool_output", "tool_response"),
        ("UserPromptSubmit", "prompt", "user_message"),
        ("StopFailure", "error", "reason"),
    ],
)
async def test_values_are_known_under_both_names(event: str, given: str, also: str) -> None:
    received: list[Mapping[str, Json]] = []

    class Recorder:
        type = "recorder"

        async def execute(self, hook: HookDefinition, hook_input: Mapping[str, Json]) -> HookResult:
            received.append(hook_input)
            return HookResult()

    config = {event: [{"hooks": [{"type": "recorder"}]}]}
    await run_hooks(config, event, {given: "value"}, executors=[Recorder()])
    assert received == [{given: "value", also: "value", "hook_event_name": event}]


async def test_variables_of_the_session_and_the_group_reach_the_command(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("SOME_API_KEY", "secret")
    group = {
        "env": {"GROUP": "g"},
        "hooks": [
            {"type": "command", "command": 'echo "$CLAUDE_PROJECT_DIR $SESSION $GROUP $SOME_API_KEY."'}
        ],
    }
    outcome = await run_hooks({"Stop": [group]}, "Stop", {"cwd": "/", "env": {"SESSION": "s"}})
    assert outcome.stdout == "/ s g ."


async def test_with_arguments_no_shell_is_involved() -> None:
    hook = {"type": "command", "command": "printf", "args": ["%s|", "$HOME;ls", "${CLAUDE_PROJECT_DIR}/x"]}
    outcome = await run_hooks({"Stop": [{"hooks": [hook]}]}, "Stop", {"cwd": "/tmp"})
    assert outcome.stdout == "$HOME;ls|/tmp/x|"


async def test_a_command_that_hangs_blocks_and_is_ended() -> None:
    outcome = await run("cat; sleep 1000", timeout=0.5)
    assert (outcome.blocked, outcome.reason) == (True, "Hook 'cat; sleep 1000' timed out after 0.5 s")


async def test_the_executor_itself_keeps_the_time_limit() -> None:
    hook = HookDefinition(type="command", command="sleep 1000", timeout=0.3)
    result = await CommandExecutor().execute(hook, CALL)
    assert (result.exit_code, result.stderr) == (1, "Hook timed out")


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        ("kill -9 $$", "was ended by SIGKILL"),
        ("(sleep 1000 & kill -TERM $!; wait $!)", "was ended by SIGTERM"),
        ("/no/such/guard", "could not be started"),
        ("/etc", "could not be started"),
        ("echo '{'", "cannot be read"),
    ],
)
async def test_a_guard_that_breaks_blocks_the_tool(command: str, reason: str) -> None:
    outcome = await run(command)
    assert outcome.blocked
    assert reason in outcome.reason
    elsewhere = await run(command, event="PostToolUse")
    assert not elsewhere.blocked
    assert reason in elsewhere.warnings[0]


async def test_a_guard_in_a_missing_directory_blocks_the_tool() -> None:
    outcome = await run("exit 0", cwd="/no/such/directory")
    assert outcome.blocked
    assert "No such file or directory: '/no/such/directory'" in outcome.reason


async def test_a_command_that_never_reads_ten_megabytes_of_input_is_fine() -> None:
    outcome = await run("exec 0<&-; exit 0", tool_input={"content": "x" * 10_000_000})
    assert not outcome.blocked
    assert outcome.warnings == ()


async def test_ten_megabytes_of_output_are_cut() -> None:
    outcome = await run(f"{sys.executable} -c \"print('x' * 10_000_000)\"", event="SessionStart")
    assert outcome.stdout.startswith("x" * 10_000 + "\n[... ")
    assert len(outcome.stdout) < 10_100
    assert len(outcome.runs[0].result.stdout) < 10_100


async def test_a_json_answer_may_be_long_but_not_endless(tmp_path: Path) -> None:
    for name, size in (("fits", 300_000), ("flood", 3_000_000)):
        answer = {"hookSpecificOutput": {"updatedInput": {"content": "x" * size}}}
        await anyio.Path(tmp_path / name).write_text(json.dumps(answer))
    fits = await run("cat fits", cwd=str(tmp_path))
    assert fits.updated_input == {"content": "x" * 300_000}
    flood = await run("cat flood", cwd=str(tmp_path))
    assert flood.blocked
    assert "cannot be read" in flood.reason


async def test_hooks_start_together_and_are_folded_in_configuration_order(fifo: Path) -> None:
    # The first waits for the second, so one after the other would never end.
    first, second = f"cat {fifo}; echo first", f"echo go > {fifo}; echo second"
    outcome = await run(first, second, event="SessionStart")
    assert outcome.stdout == "go\nfirst\nsecond"


async def test_one_broken_hook_does_not_silence_the_others() -> None:
    outcome = await run("kill -9 $$", "echo fine", "exit 3", event="SessionStart")
    assert outcome.stdout == "fine"
    assert len(outcome.warnings) == 2


async def test_cancelling_ends_the_hooks(fifo: Path) -> None:
    async with anyio.create_task_group() as group:
        group.start_soon(run, f"echo ready > {fifo}; sleep 1000", "sleep 1000")
        await read_fifo(fifo)
        group.cancel_scope.cancel()


# --- executors from outside ------------------------------------------------------------------------


class PromptDouble:
    type = "prompt"

    def __init__(self, result: HookResult | Exception | None) -> None:
        self._result = result

    async def execute(self, hook: HookDefinition, hook_input: Mapping[str, Json]) -> HookResult:
        if self._result is None:
            await anyio.sleep_forever()
        if isinstance(self._result, Exception):
            raise self._result
        assert isinstance(self._result, HookResult)
        return self._result


BOTH = {
    "PreToolUse": [
        {
            "hooks": [
                {"type": "prompt", "prompt": "ok?", "timeout": 0.2},
                {"type": "command", "command": "echo ran"},
            ]
        }
    ]
}


async def test_added_executors_join_the_built_in_ones() -> None:
    outcome = await run_hooks(BOTH, "PreToolUse", CALL, executors=[PromptDouble(HookResult(stdout="judged"))])
    assert outcome.stdout == "judged\nran"
    as_map = {"prompt": PromptDouble(HookResult(exit_code=2, stderr="no"))}
    assert (await run_hooks(BOTH, "PreToolUse", CALL, executors=as_map)).reason == "no"


@pytest.mark.parametrize(
    ("double", "reason"),
    [
        (PromptDouble(RuntimeError("model gone")), "Hook 'prompt' failed: RuntimeError: model gone"),
        (PromptDouble(None), "Hook 'prompt' timed out after 0.2 s"),
        (None, "Hook 'prompt' has the type 'prompt', which nothing here can execute"),
    ],
)
async def test_an_executor_that_breaks_hangs_or_is_missing_blocks(
    double: PromptDouble | None, reason: str
) -> None:
    outcome = await run_hooks(BOTH, "PreToolUse", CALL, executors=[double] if double else [])
    assert (outcome.blocked, outcome.reason) == (True, reason)


# --- http ------------------------------------------------------------------------------------------


@asynccontextmanager
async def server(status: str, body: str, *, hang: bool = False) -> AsyncIterator[tuple[str, list[str]]]:
    requests: list[str] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        length = int(head.lower().split("content-length: ")[1].split("\r\n")[0])
        requests.append(head + (await reader.readexactly(length)).decode())
        if hang:
            await reader.read()
        else:
            encoded = body.encode()
            writer.write(f"HTTP/1.1 {status}\r\nContent-Length: {len(encoded)}\r\n\r\n".encode() + encoded)
            await writer.drain()
        writer.close()

    listener = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with listener:
        yield f"http://localhost:{listener.sockets[0].getsockname()[1]}/hook", requests


async def post(
    url: str, *, event: str = "PreToolUse", allowed: str = "localhost", **more: Json
) -> HookOutcome:
    hook = {"type": "http", "url": url, **more}
    executor = HttpExecutor(policy=AddressPolicy((allowed,)))
    return await run_hooks({event: [{"hooks": [hook]}]}, event, CALL, executors=[executor])


async def test_the_input_is_posted_as_json(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOOK_KEY", "k")
    monkeypatch.setenv("OTHER", "o")
    headers = {"X-A": "Bearer $HOOK_KEY ${HOOK_KEY} $OTHER $UNSET"}
    async with server("200 OK", "") as (url, requests):
        outcome = await post(url, headers=headers, allowedEnvVars=["HOOK_KEY", "UNSET"])
    assert not outcome.blocked
    [request] = requests
    head, _, body = request.partition("\r\n\r\n")
    assert head.startswith("POST /hook HTTP/1.1\r\nHost: localhost:")
    assert "X-A: Bearer k k $OTHER $UNSET\r\nContent-Type: application/json" in head
    assert json.loads(body) == {**CALL, "hook_event_name": "PreToolUse"}


@pytest.mark.parametrize(
    ("status", "body", "blocked", "reason"),
    [
        ("200 OK", '{"ok": true}', False, ""),
        ("200 OK", '{"ok": false, "reason": "no"}', True, "no"),
        ("200 OK", '{"ok": false}', True, "Blocked by hook"),
        ("201 Created", '{"decision": "block", "reason": "protocol"}', True, "protocol"),
        ("204 No Content", "", False, ""),
        ("200 OK", "fine", False, ""),
        ("200 OK", "{broken", True, "cannot be read"),
        ("500 Internal Server Error", '{"ok": false}', False, ""),
        ("302 Found", '{"ok": false}', False, ""),
    ],
)
async def test_only_a_good_answer_decides(status: str, body: str, blocked: bool, reason: str) -> None:
    async with server(status, body) as (url, _):
        outcome = await post(url)
    assert outcome.blocked is blocked
    assert reason in outcome.reason
    if not status.startswith("20"):
        assert outcome.warnings[0].endswith(f"ended with exit code 1: HTTP {status}")


async def test_a_server_that_hangs_blocks_the_tool() -> None:
    async with server("200 OK", "", hang=True) as (url, _):
        outcome = await post(url, timeout=0.3)
    assert outcome.blocked
    assert "timed out after 0.3 s" in outcome.reason


async def test_a_server_that_is_not_there_blocks_the_tool_and_only_warns_elsewhere() -> None:
    async with server("200 OK", "") as (url, _):
        pass
    assert "could not be reached" in (await post(url)).reason
    elsewhere = await post(url, event="Stop")
    assert not elsewhere.blocked
    assert "could not be reached" in elsewhere.warnings[0]


async def test_a_local_address_needs_the_users_consent() -> None:
    async with server("200 OK", '{"ok": true}') as (url, requests):
        outcome = await post(url, allowed="elsewhere.example")
    assert outcome.blocked
    assert "leads to this machine" in outcome.reason
    assert requests == []


async def test_the_wrapped_form_of_a_hooks_file_runs_like_the_bare_one() -> None:
    groups = [{"matcher": "", "hooks": [{"type": "command", "command": "echo no >&2; exit 2"}]}]
    given = {"session_id": "s", "cwd": ".", "tool_name": "Bash", "tool_input": {}}

    outcome = await run_hooks({"hooks": {"PreToolUse": groups}}, "PreToolUse", given)

    assert (outcome.blocked, outcome.reason) == (True, "no")


async def test_an_event_that_does_not_exist_is_named() -> None:
    with pytest.raises(ConfigurationError, match="Nope"):
        await run_hooks({}, "Nope", CALL)
