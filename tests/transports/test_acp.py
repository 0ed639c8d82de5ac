"""`robota acp` as a process, driven by the official client of the protocol."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.acp_client import Editor, connected, words

from robota.testing import call
from robota.testing.model_server import ModelServer

pytestmark = pytest.mark.anyio


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
