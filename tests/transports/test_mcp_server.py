"""`robota mcp serve` as a process, and the server in this one, driven by the official client."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp import Client, StdioServerParameters, types
from mcp.client.streamable_http import streamable_http_client
from tests.support.command import environment, place, robota

from robota import InteractiveSession, create_project_session_store
from robota.testing import ScriptedProvider, Stall, call
from robota.testing.model_server import ModelServer
from robota.transports import create_agent_mcp_server

pytestmark = [pytest.mark.anyio, pytest.mark.system]
WRITE = call("Write", file_path="a.txt", content="hello\n")


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "home"
    path.mkdir()
    monkeypatch.setenv("HOME", str(path))
    return path


@pytest.fixture
def project(tmp_path: Path) -> Path:
    path = tmp_path / "project"
    path.mkdir()
    return path


@asynccontextmanager
async def served(server: ModelServer, cwd: Path, *options: str, **client: Any) -> AsyncIterator[Client]:
    parameters = StdioServerParameters(
        command=sys.executable,
        args=["-m", "robota", "mcp", "serve", *options],
        cwd=cwd,
        env=environment(**place(server)),
    )
    async with Client(parameters, **client) as connected:
        yield connected


def text(result: types.CallToolResult) -> str:
    (block,) = result.content
    assert isinstance(block, types.TextContent)
    return block.text


async def test_a_prompt_over_stdio_is_answered_with_progress_and_facts(project: Path) -> None:
    (project / "notes.txt").write_text("buy milk")
    told: list[str] = []

    async def progress(done: float, total: float | None, message: str | None) -> None:
        told.append(message or "")

    look = ["Let me look.", call("Read", file_path="notes.txt")]
    async with ModelServer(look, "You need milk.") as model, served(model, project) as client:
        names = [tool.name for tool in (await client.list_tools()).tools]
        result = await client.call_tool("submit", {"prompt": "what?"}, progress_callback=progress)
        more = await client.call_tool("command_context", {})

    assert names[0] == "submit"
    assert {"command_help", "command_cost", "command_context"} <= set(names)
    assert not {"command_mode", "command_trust", "command_exit"} & set(names)
    assert result.is_error is False
    assert text(result) == "You need milk."
    facts = result.structured_content
    assert facts is not None
    assert facts["success"] is True
    assert facts["usage"]["inputTokens"] >= 0
    assert "Read notes.txt" in told
    assert any("milk" in each for each in told)
    assert more.structured_content is not None
    assert more.structured_content["sessionId"] == facts["sessionId"]


async def test_what_rules_do_not_allow_is_refused_and_named(project: Path) -> None:
    async with ModelServer([WRITE], "I may not.") as model, served(model, project) as client:
        result = await client.call_tool("submit", {"prompt": "write"})

    assert not (project / "a.txt").exists()
    assert result.structured_content is not None
    assert result.structured_content["denied"] == ["Write"]
    assert "Not allowed: Write" in text(result)


@pytest.mark.parametrize("mode", ["auto", "legacy"])
@pytest.mark.parametrize(("decision", "written"), [("allow", True), ("reject", False)])
async def test_a_client_with_a_user_is_asked(project: Path, mode: Any, decision: str, written: bool) -> None:
    asked: list[str] = []

    async def elicit(context: Any, params: Any) -> types.ElicitResult:
        asked.append(params.message)
        return types.ElicitResult(action="accept", content={"decision": decision})

    async with (
        ModelServer([WRITE], "Over.") as model,
        served(model, project, mode=mode, elicitation_callback=elicit) as client,
    ):
        result = await client.call_tool("submit", {"prompt": "write"})

    assert (project / "a.txt").exists() is written
    assert "Write" in asked[0]
    assert "a.txt" in asked[0]
    assert text(result).startswith("Over.")
    assert result.structured_content is not None
    assert result.structured_content["denied"] == ([] if written else ["Write"])


async def test_mistakes_are_results_with_one_sentence(project: Path) -> None:
    async with ModelServer("Hi.") as model, served(model, project) as client:
        for name, arguments in (
            ("submit", {}),
            ("submit", {"prompt": "  "}),
            ("submit", {"prompt": "hi", "session_id": "no-such-session"}),
            ("command_nothing", {}),
            ("nothing", {}),
        ):
            result = await client.call_tool(name, arguments)
            assert result.is_error is True, name
            assert "Traceback" not in text(result)
            assert len(text(result).splitlines()) == 1
        assert (await client.call_tool("submit", {"prompt": "hi"})).is_error is False


async def test_several_sessions_are_kept_apart(project: Path) -> None:
    async with ModelServer("One.", "Two.", "Again one.") as model, served(model, project) as client:
        first = (await client.call_tool("submit", {"prompt": "a"})).structured_content
        second = (await client.call_tool("submit", {"prompt": "b", "session_id": "new"})).structured_content
        assert first is not None
        assert second is not None
        arguments = {"prompt": "c", "session_id": first["sessionId"]}
        third = (await client.call_tool("submit", arguments)).structured_content

    assert third is not None
    assert first["sessionId"] == third["sessionId"] != second["sessionId"]
    store = create_project_session_store()
    kept = {each.id: each for each in store.list()}
    assert {first["sessionId"], second["sessionId"]} <= set(kept)
    messages = store.load(first["sessionId"])
    assert messages is not None
    assert [m["content"] for m in messages.messages if m["role"] == "user"] == ["a", "c"]


async def test_cancelling_a_call_stops_the_run(project: Path) -> None:
    session = InteractiveSession(provider=ScriptedProvider(["Well", Stall()], "Next."), cwd=project)
    begun = asyncio.Event()
    session.on("text_delta", lambda text: begun.set())
    ended = asyncio.Event()
    session.on("interrupted", lambda result: ended.set())
    server = create_agent_mcp_server(name="mine", version="2", session=session)
    async with Client(server) as client:
        calling = asyncio.create_task(client.call_tool("submit", {"prompt": "go"}))
        await begun.wait()
        calling.cancel()
        async with asyncio.timeout(30):
            await ended.wait()
        again = await client.call_tool("submit", {"prompt": "again"})
    await session.shutdown()

    assert text(again) == "Next."


async def test_a_command_line_of_the_protocol_survives_nonsense(project: Path) -> None:
    async with ModelServer("Hi.") as model:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            *("-m", "robota", "mcp", "serve"),
            cwd=project,
            env=environment(**place(model)),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        lines = b'nonsense\n[1]\n{"jsonrpc":"2.0","id":1,"method":"no/such","params":{}}\n'
        out, err = await process.communicate(lines)

    assert process.returncode == 0
    assert b"Traceback" not in err
    assert all(line.startswith(b"{") for line in out.splitlines())


@asynccontextmanager
async def served_over_http(model: ModelServer, cwd: Path, *options: str) -> AsyncIterator[tuple[str, str]]:
    """The address and the token of a real server."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-m", "robota", "mcp", "serve", "--http", "--port", "0", "--json", *options),
        cwd=cwd,
        env=environment(**place(model)),
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdout is not None
    where = json.loads(await process.stdout.readline())
    try:
        yield where["url"], where["token"]
    finally:
        process.terminate()
        assert await process.wait() == 143


@asynccontextmanager
async def client_at(url: str, token: str, **more: Any) -> AsyncIterator[Client]:
    headers = {"authorization": f"Bearer {token}"}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=60) as http,
        Client(streamable_http_client(url, http_client=http), **more) as client,
    ):
        yield client


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_a_prompt_over_http_asks_tells_its_progress_and_is_answered(project: Path, mode: Any) -> None:
    told: list[str] = []

    async def progress(done: float, total: float | None, message: str | None) -> None:
        told.append(message or "")

    async def elicit(context: Any, params: Any) -> types.ElicitResult:
        return types.ElicitResult(action="accept", content={"decision": "allow"})

    async with (
        ModelServer([WRITE], "Written.") as model,
        served_over_http(model, project) as (url, token),
        client_at(url, token, mode=mode, elicitation_callback=elicit) as client,
    ):
        result = await client.call_tool("submit", {"prompt": "write"}, progress_callback=progress)

    assert text(result) == "Written."
    assert (project / "a.txt").read_text() == "hello\n"
    assert "Write a.txt" in told


async def test_strangers_are_turned_away(project: Path) -> None:
    body = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    async with (
        ModelServer("Hi.") as model,
        served_over_http(model, project) as (url, token),
        httpx2.AsyncClient() as http,
    ):
        good = {"authorization": f"Bearer {token}"}
        statuses = [
            (await http.post(where, json=body, headers=headers)).status_code
            for where, headers in (
                (url, {}),
                (url, {"authorization": "Bearer wrong"}),
                (url, {**good, "origin": "https://evil.example"}),
                (url, {**good, "host": "evil.example"}),
                (url.replace("/mcp", "/other"), good),
            )
        ]

    assert statuses == [401, 401, 403, 403, 404]


async def test_a_server_that_others_can_reach_needs_a_token_of_its_users_choice(project: Path) -> None:
    async with ModelServer("Hi.") as model:
        refused = await asyncio.to_thread(
            robota, "mcp", "serve", "--http", "--host", "0.0.0.0", "--port", "0", cwd=project, server=model
        )

    assert refused.returncode == 1
    assert "choose a token" in refused.stderr
