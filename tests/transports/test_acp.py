"""`robota acp` as a process, driven by the official client of the protocol."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from acp.client.connection import ClientSideConnection
from acp.exceptions import RequestError
from acp.schema import (
    EmbeddedResourceContentBlock,
    FileSystemCapabilities,
    ImageContentBlock,
    McpServerStdio,
    ResourceContentBlock,
    TextResourceContents,
)
from tests.support.acp_client import Editor, FormEditor, FullEditor, connected, words
from tests.support.command import environment, model_requests, place
from tests.support.mcp_server import definition

from robota.core.provider import ReasoningChunk
from robota.testing import Stall, call
from robota.testing.model_server import ModelServer

pytestmark = [pytest.mark.anyio, pytest.mark.system]


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


async def test_a_prompt_streams_asks_for_permission_and_ends(project: Path) -> None:
    editor = Editor()
    write = ["I will write it.", call("Write", file_path="a.txt", content="hello\n")]
    async with ModelServer(write, "It is done.") as server, connected(editor, server, project) as agent:
        session = await agent.new_session(str(project), mcp_servers=[])
        answer = await agent.prompt(session.session_id, words("write a.txt"))

    assert answer.stop_reason == "end_turn"
    assert (project / "a.txt").read_text() == "hello\n"
    assert editor.text() == "I will write it.\n\nIt is done."
    (asked, options) = editor.asked[0]
    assert [each.kind for each in options] == ["allow_once", "allow_always", "allow_always", "reject_once"]
    assert "Write(a.txt)" in options[1].name
    (begun,) = editor.shown("tool_call")
    assert asked.tool_call_id == begun.tool_call_id
    assert (begun.kind, begun.status) == ("edit", "in_progress")
    assert begun.locations[0].path == str(project / "a.txt")
    ended = editor.shown("tool_call_update")[-1]
    assert ended.status == "completed"
    diff = ended.content[0]
    assert (diff.type, diff.path, diff.old_text, diff.new_text) == (
        "diff", str(project / "a.txt"), None, "hello\n",
    )  # fmt: skip


# --- prompts and answers ----------------------------------------------------------------------------------


async def test_thoughts_calls_and_plans_are_told_as_what_they_are(project: Path) -> None:
    (project / "notes.txt").write_text("one\ntwo\n")
    todos = [
        {"content": "Look", "status": "completed", "activeForm": "Looking"},
        {"content": "Write", "status": "in_progress", "activeForm": "Writing"},
    ]
    replies = (
        [ReasoningChunk("Hm."), call("Read", file_path="notes.txt", offset=2)],
        [call("TodoWrite", todos=todos)],
        [call("Bash", command="echo hello; exit 3")],
        "Done.",
    )
    editor = Editor()
    async with ModelServer(*replies) as server, connected(editor, server, project) as agent:
        session = await agent.new_session(str(project), mcp_servers=[])
        answer = await agent.prompt(session.session_id, words("go"))

    assert answer.stop_reason == "end_turn"
    assert editor.text("agent_thought_chunk").endswith("Hm.")
    assert editor.text() == "Done."
    read, todo, bash = editor.shown("tool_call")
    assert (read.kind, read.title, read.locations[0].line) == ("read", "Read notes.txt", 2)
    assert (todo.kind, bash.kind, bash.title) == ("think", "execute", "echo hello; exit 3")
    (plan,) = editor.shown("plan")
    assert [(entry.content, entry.status) for entry in plan.entries] == [
        ("Look", "completed"), ("Write", "in_progress"),
    ]  # fmt: skip
    ended = [each for each in editor.shown("tool_call_update") if each.status == "completed"]
    assert [each.tool_call_id for each in ended] == [each.tool_call_id for each in (read, todo, bash)]
    assert "hello" in ended[-1].content[0].content.text
    assert ended[-1].raw_output["exitCode"] == 3
    assert editor.shown("usage_update")


async def test_a_command_shows_what_it_prints_while_it_runs(project: Path) -> None:
    editor = Editor()
    wait = "echo begun; until [ -e go ]; do sleep 0.05; done; echo over"
    async with (
        ModelServer([call("Bash", command=wait)], "Done.") as server,
        connected(editor, server, project, "--sandbox", "off") as agent,
    ):
        session = await agent.new_session(str(project), mcp_servers=[])
        turn = asyncio.create_task(agent.prompt(session.session_id, words("go")))
        await editor.until(
            lambda: any(
                each.status == "in_progress" and each.content and "begun" in each.content[0].content.text
                for each in editor.shown("tool_call_update")
            )
        )
        (project / "go").touch()
        await turn

    assert "over" in editor.shown("tool_call_update")[-1].content[0].content.text


async def test_images_files_and_links_are_part_of_a_prompt(project: Path) -> None:
    pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg=="
    blocks: list[Any] = [
        *words("Compare "),
        ResourceContentBlock(type="resource_link", name="b.py", uri="file:///x/b.py"),
        *words(" with "),
        EmbeddedResourceContentBlock(
            type="resource", resource=TextResourceContents(uri="file:///x/a.py", text="print(1)")
        ),
        ImageContentBlock(type="image", data=pixel, mime_type="image/png"),
    ]
    editor = Editor()
    async with ModelServer("I see.") as server, connected(editor, server, project) as agent:
        session = await agent.new_session(str(project), mcp_servers=[])
        await agent.prompt(session.session_id, blocks)
        sent = json.dumps(model_requests(server)[-1].body["messages"][-1])

    assert "Compare [b.py](file:///x/b.py) with" in sent
    assert "print(1)" in sent
    assert "image/png" in sent  # whether it is shown to the model is its provider's business


async def test_commands_are_offered_and_answer(project: Path) -> None:
    editor = Editor()
    async with ModelServer("Hi.") as server, connected(editor, server, project) as agent:
        session = await agent.new_session(str(project), mcp_servers=[])
        await editor.until(lambda: bool(editor.shown("available_commands_update")))
        await agent.prompt(session.session_id, words("/context"))

    (offered,) = editor.shown("available_commands_update")
    names = [command.name for command in offered.available_commands]
    assert {"context", "compact", "model"} <= set(names)
    assert not {"exit", "resume"} & set(names)
    assert "%" in editor.text()


# --- permissions, modes, options --------------------------------------------------------------------------


async def test_what_is_allowed_for_the_session_is_asked_once_and_a_no_is_told(project: Path) -> None:
    write = call("Write", file_path="a.txt", content="1")
    again = call("Write", file_path="a.txt", content="2")
    other = call("Write", file_path="b.txt", content="3")
    answers = iter(("allow-session", "reject"))
    editor = Editor(lambda options: next(answers))
    async with (
        ModelServer([write], [again], [other], "Done.") as server,
        connected(editor, server, project) as agent,
    ):
        session = await agent.new_session(str(project), mcp_servers=[])
        await agent.prompt(session.session_id, words("write"))

    assert [tool.title for tool, _ in editor.asked] == ["Write a.txt", "Write b.txt"]
    assert (project / "a.txt").read_text() == "2"
    assert not (project / "b.txt").exists()
    assert [each.status for each in editor.shown("tool_call_update") if each.status != "in_progress"] == [
        "completed", "completed", "failed",
    ]  # fmt: skip


async def test_modes_and_the_model_can_be_chosen_and_a_plan_is_approved(project: Path) -> None:
    plan = call("ExitPlanMode", plan="# Plan\n\nWrite a.txt")
    write = call("Write", file_path="a.txt", content="1")
    editor = Editor(lambda options: "acceptEdits")
    async with (
        ModelServer([plan], [write], "Done.", "Yes.") as server,
        connected(editor, server, project) as agent,
    ):
        session = await agent.new_session(str(project), mcp_servers=[])
        await agent.set_session_mode(session.session_id, "plan")
        with pytest.raises(RequestError, match="permission mode"):
            await agent.set_session_mode(session.session_id, "nonsense")
        await agent.prompt(session.session_id, words("plan it"))
        changed = await agent.set_config_option("model", session.session_id, "other-model")
        await agent.prompt(session.session_id, words("again"))
        asked = model_requests(server)[-1].body["model"]

    assert session.modes is not None
    assert session.modes.current_mode_id == "default"
    assert [mode.id for mode in session.modes.available_modes] == [
        "default", "acceptEdits", "plan", "bypassPermissions",
    ]  # fmt: skip
    (question, options) = editor.asked[0]
    assert (question.kind, question.content[0].content.text) == ("switch_mode", "# Plan\n\nWrite a.txt")
    assert [each.kind for each in options] == ["allow_always", "allow_once", "reject_once"]
    assert len(editor.asked) == 1
    assert (project / "a.txt").read_text() == "1"
    assert editor.shown("current_mode_update")[-1].current_mode_id == "acceptEdits"
    assert changed is not None
    assert changed.config_options[0].current_value == asked == "other-model"


# --- sessions ---------------------------------------------------------------------------------------------


async def test_cancelling_ends_the_turn_as_cancelled_and_the_session_goes_on(project: Path) -> None:
    editor = Editor()
    async with (
        ModelServer(["Well", Stall()], "Next.") as server,
        connected(editor, server, project) as agent,
    ):
        session = await agent.new_session(str(project), mcp_servers=[])
        turn = asyncio.create_task(agent.prompt(session.session_id, words("go")))
        await editor.until(lambda: "Well" in editor.text())
        await agent.cancel(session.session_id)
        answer = await turn
        after = await agent.prompt(session.session_id, words("again"))

    assert answer.stop_reason == "cancelled"
    assert after.stop_reason == "end_turn"
    assert editor.text().endswith("Next.")


def story(editor: Editor) -> list[tuple[str, str]]:
    told = []
    for _, update in editor.updates:
        if update.session_update.endswith("_chunk"):
            told.append((update.session_update, update.content.text))
        elif update.session_update == "tool_call":
            told.append(("tool_call", update.title))
    return told


async def test_a_session_of_a_killed_process_is_loaded_with_its_conversation(project: Path) -> None:
    (project / "notes.txt").write_text("milk")
    first, second = Editor(), Editor()
    replies = (["Look.", call("Read", file_path="notes.txt")], "You need milk.", ["And", Stall()], "Bye.")
    async with ModelServer(*replies) as server:
        async with connected(first, server, project) as agent:
            session = await agent.new_session(str(project), mcp_servers=[])
            await agent.prompt(session.session_id, words("what?"))
            turn = asyncio.create_task(agent.prompt(session.session_id, words("more")))
            await first.until(lambda: first.text().endswith("And"))
            process_of(agent).kill()
            with pytest.raises((ConnectionError, RequestError)):
                await turn
        async with connected(second, server, project) as agent:
            listed = await agent.list_sessions(cwd=str(project))
            loaded = await agent.load_session(str(project), session.session_id, mcp_servers=[])
            answer = await agent.prompt(session.session_id, words("bye"))

    assert [each.session_id for each in listed.sessions] == [session.session_id]
    assert listed.sessions[0].title == "what?"
    assert loaded is not None
    assert loaded.modes is not None
    assert story(second)[:5] == [
        ("user_message_chunk", "what?"),
        ("agent_message_chunk", "Look."),
        ("tool_call", "Read notes.txt"),
        ("agent_message_chunk", "You need milk."),
        ("user_message_chunk", "more"),
    ]
    assert answer.stop_reason == "end_turn"


def process_of(agent: ClientSideConnection) -> asyncio.subprocess.Process:
    process: asyncio.subprocess.Process = agent.process  # type: ignore[attr-defined]
    return process


async def test_sessions_are_resumed_forked_closed_and_deleted(project: Path) -> None:
    editor = Editor()
    async with ModelServer("One.", "Two.", "Three.") as server, connected(editor, server, project) as agent:
        session = await agent.new_session(str(project), mcp_servers=[])
        await agent.prompt(session.session_id, words("first"))
        fork = await agent.fork_session(session.session_id, str(project), mcp_servers=[])
        await agent.prompt(fork.session_id, words("aside"))
        await agent.close_session(session.session_id)
        with pytest.raises(RequestError, match="no open session"):
            await agent.prompt(session.session_id, words("closed"))
        before = len(editor.updates)
        await agent.resume_session(session.session_id, str(project), mcp_servers=[])
        await agent.prompt(session.session_id, words("second"))
        told = [each for _, each in editor.updates[before:] if each.session_update == "user_message_chunk"]
        sent = [each["content"] for each in model_requests(server)[-1].body["messages"][1:]]
        delete = {"sessionId": fork.session_id}
        await agent._conn.send_request("session/delete", delete)
        left = [each.session_id for each in (await agent.list_sessions(cwd=str(project))).sessions]
        with pytest.raises(RequestError, match="no session"):
            await agent._conn.send_request("session/delete", delete)

    assert told == []
    assert sent == ["first", "One.", "second"]
    assert left == [session.session_id]


def results(server: ModelServer) -> list[str]:
    messages = model_requests(server)[-1].body["messages"]
    return [each["content"] for each in messages if each["role"] == "tool"]


async def test_unsaved_buffers_are_what_read_and_edit_see(project: Path) -> None:
    path = project / "a.txt"
    path.write_text("on the disk\n")
    edit = call("Edit", file_path="a.txt", old_string="buffer", new_string="editor")
    editor = FullEditor()
    editor.buffers[str(path)] = "in the buffer\n"
    files = FileSystemCapabilities(read_text_file=True, write_text_file=True)
    async with (
        ModelServer([call("Read", file_path="a.txt")], [edit], "Done.") as server,
        connected(editor, server, project, fs=files) as agent,
    ):
        session = await agent.new_session(str(project), mcp_servers=[])
        await agent.prompt(session.session_id, words("change"))
        seen = results(server)
        await agent.prompt(session.session_id, words("/undo"))

    assert "in the buffer" in seen[0]
    assert editor.written == {str(path): "in the editor\n"}
    assert path.read_text() == "on the disk\n"  # what undo has saved
    assert len(editor.asked) == 1


async def test_a_deny_rule_holds_for_buffers_too(project: Path) -> None:
    (project / "secret.txt").write_text("x")
    editor = FullEditor()
    editor.buffers[str(project / "secret.txt")] = "the buffer"
    files = FileSystemCapabilities(read_text_file=True, write_text_file=True)
    async with (
        ModelServer([call("Read", file_path="secret.txt")], "No.") as server,
        connected(editor, server, project, "--deny", "Read(secret.txt)", fs=files) as agent,
    ):
        session = await agent.new_session(str(project), mcp_servers=[])
        await agent.prompt(session.session_id, words("look"))
        sent = json.dumps(model_requests(server)[-1].body)

    assert "the buffer" not in sent


async def test_commands_run_in_the_terminal_of_the_editor(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ROBOTA_TEST_MARK", "seen")
    editor = FullEditor()
    run = call("Bash", command="echo out; echo err >&2; echo key=$OPENAI_API_KEY; exit 2")
    slow = call("Bash", command="sleep 60", timeout=200)
    async with (
        ModelServer([run], [slow], "Done.") as server,
        connected(editor, server, project, "--sandbox", "off", terminal=True) as agent,
    ):
        session = await agent.new_session(str(project), mcp_servers=[])
        await agent.prompt(session.session_id, words("run"))
        first, second = results(server)

    assert "out\nerr\nkey=\n" in first
    assert "[exit code 2]" in first
    assert "timed out" in second
    assert len(editor.asked) == 2
    shown = [each.content[0].terminal_id for each in editor.shown("tool_call_update") if each.content]
    assert set(shown) == {"term-0", "term-1"}
    assert editor.released == ["term-0", "term-1"]


async def test_mcp_servers_of_the_editor_are_connected(project: Path) -> None:
    editor = Editor()
    known = definition()
    server_of_editor = McpServerStdio(name="stub", command=known["command"], args=known["args"], env=[])
    replies = ([call("ToolSearch", query="add numbers")], [call("mcp__stub__add", a=2, b=3)], "Five.")
    async with ModelServer(*replies) as server, connected(editor, server, project) as agent:
        session = await agent.new_session(str(project), mcp_servers=[server_of_editor])
        await agent.prompt(session.session_id, words("add"))
        last = results(server)[-1]

    assert last == "5"
    assert editor.text() == "Five."


# --- what else is asked ------------------------------------------------------------------------------------


async def test_trust_is_asked_with_the_first_prompt_and_a_yes_counts_at_once(project: Path) -> None:
    (project / ".claude").mkdir()
    hook = {"UserPromptSubmit": [{"hooks": [{"type": "command", "command": "touch ran"}]}]}
    (project / ".claude" / "settings.json").write_text(json.dumps({"hooks": hook}))
    answers = iter(("reject", "trust"))
    editor = Editor(lambda options: next(answers))
    ran = []
    async with ModelServer("One.", "Two.", "Three.") as server, connected(editor, server, project) as agent:
        for _ in range(2):
            session = await agent.new_session(str(project), mcp_servers=[])
            await agent.prompt(session.session_id, words("go"))
            ran.append((project / "ran").exists())
        await agent.prompt(session.session_id, words("again"))

    assert ran == [False, True]
    assert len(editor.asked) == 2
    (asked, options) = editor.asked[0]
    assert "Do you trust" in asked.title
    assert "touch ran" in asked.content[0].content.text
    assert [each.kind for each in options] == ["allow_always", "reject_once"]


async def test_questions_are_forms_requests_are_cancelled_and_the_provider_is_chosen_again(
    project: Path,
) -> None:
    editor = FormEditor({"choice": ["red", "blue"]}, {"words": "neither of them"})
    options = [{"label": "red", "description": "warm"}, {"label": "blue", "description": "cold"}]
    question = {"question": "Which?", "header": "Colour", "multiSelect": True, "options": options}
    asks = [call("AskUserQuestion", questions=[question])]
    async with (
        ModelServer(asks, "One.", asks, "Two.", ["Well", Stall()], "Last.") as server,
        connected(editor, server, project, elicitation={"form": {}}, auth={"terminal": True}) as agent,
    ):
        session = await agent.new_session(str(project), mcp_servers=[])
        for _ in range(2):
            await agent.prompt(session.session_id, words("ask me"))
        number = agent._conn._next_request_id
        turn = asyncio.create_task(agent.prompt(session.session_id, words("go")))
        await editor.until(lambda: "Well" in editor.text())
        await agent._conn.send_notification("$/cancel_request", {"requestId": number})
        with pytest.raises(RequestError) as cancelled:
            await turn
        await agent.authenticate("setup")
        with pytest.raises(RequestError) as unknown:
            await agent.authenticate("nonsense")
        after = await agent.prompt(session.session_id, words("again"))
        told = [json.loads(request.raw)["messages"][-1]["content"] for request in model_requests(server)]

    assert [form.requested_schema.properties.keys() for form in editor.forms] == [{"choice", "words"}] * 2
    assert "red" in told[1]
    assert "blue" in told[1]
    assert "neither of them" in told[3]
    assert (cancelled.value.code, unknown.value.code) == (-32800, -32602)
    assert after.stop_reason == "end_turn"
    assert editor.text().endswith("Last.")


# --- bad input --------------------------------------------------------------------------------------------


async def test_bad_frames_and_unknown_sessions_are_answered_in_one_sentence(project: Path) -> None:
    async with ModelServer("Hi.") as server:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            *("-m", "robota", "acp"),
            cwd=project,
            env=environment(**place(server)),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        frames = [
            b"nonsense",
            b"[1, 2]",
            b'"text"',
            b'{"id": 1, "method": "no/such"}',
            b'{"id": 2, "method": "session/prompt", "params": {"sessionId": "x", "prompt": []}}',
            b'{"id": 3, "method": "session/new", "params": {"cwd": "relative", "mcpServers": []}}',
            b'{"id": 4, "method": "session/new", "params": {"cwd": "/no/such/place", "mcpServers": []}}',
            b'{"id": 5, "method": "session/resume", "params": {"cwd": "/", "sessionId": "x"}}',
            b'{"id": 6, "method": "session/new", "params": {}}',
            b'{"id": 7, "method": "initialize", "params": [1]}',
            b'{"method": "session/cancel", "params": {"sessionId": "x"}}',
            b'{"id": 99, "result": {}}',
            b'{"id": 8, "method": "initialize", "params": {"protocolVersion": 1}}',
        ]
        out, err = await process.communicate(b"\n".join(frames) + b"\n")

    answers = [json.loads(line) for line in out.splitlines()]
    errors = {each["id"]: each["error"]["code"] for each in answers if "error" in each and each["id"]}
    assert errors == {1: -32601, 2: -32002, 3: -32602, 4: -32603, 5: -32002, 6: -32602, 7: -32602}
    assert [each["error"]["code"] for each in answers if each.get("id") is None] == [-32700, -32600, -32600]
    (greeting,) = [each["result"] for each in answers if "result" in each]
    assert greeting["agentInfo"]["name"] == "robota"
    assert all("\n" not in each["error"]["message"] for each in answers if "error" in each)
    assert (process.returncode, err) == (0, b"")


async def test_a_client_that_leaves_in_mid_turn_leaves_a_session_behind(project: Path) -> None:
    first, second = Editor(), Editor()
    async with ModelServer(["Well", Stall()], "Back.") as server:
        async with connected(first, server, project) as agent:
            session = await agent.new_session(str(project), mcp_servers=[])
            turn = asyncio.create_task(agent.prompt(session.session_id, words("go")))
            await first.until(lambda: "Well" in first.text())
        await asyncio.gather(turn, return_exceptions=True)
        assert process_of(agent).returncode == 0
        async with connected(second, server, project) as agent:
            await agent.load_session(str(project), session.session_id, mcp_servers=[])

    assert story(second)[:2] == [("user_message_chunk", "go"), ("agent_message_chunk", "Well")]
