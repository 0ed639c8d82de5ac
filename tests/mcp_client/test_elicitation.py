"""Forms of servers: hooks are asked before the user and hear of the answer."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.support.mcp_server import definition
from tests.support.mcp_session import ends, notices, opened, write_servers

from robota.core.questions import FormAnswer, FormQuestion
from robota.sessions import SessionStore
from robota.sessions.replay.session_replay import replay_session
from robota.testing import ScriptedProvider, call

pytestmark = pytest.mark.anyio


def answering(event: str, server: str = "stub", **answer: Any) -> dict[str, Any]:
    """A hook that keeps what it was told beside the project's files, and answers."""
    said = json.dumps({"hookSpecificOutput": {"hookEventName": event, **answer}}) if answer else ""
    command = f"cat > {event}.json; printf '%s' '{said}'"
    return {event: [{"matcher": server, "hooks": [{"type": "command", "command": command}]}]}


async def fill_in(project: Path, hooks: dict[str, Any], **options: Any) -> tuple[Any, list[str]]:
    """What the server got, and what the user was told."""
    write_servers(project, stub=definition())
    provider = ScriptedProvider([call("mcp__stub__ask")], "Done.")
    async with opened(project, provider, settings={"hooks": hooks}, **options) as session:
        heard, told = ends(session), notices(session)
        await session.submit("Go.")
    return json.loads(heard[0].content), told


async def choose_green(question: FormQuestion) -> FormAnswer:
    return FormAnswer(action="accept", content={"colour": "green"})


async def test_a_hook_fills_a_form_in_and_nobody_is_asked(project: Path) -> None:
    hooks = answering("Elicitation", action="accept", content={"colour": "red"})
    got, _ = await fill_in(project, hooks)  # there is nobody
    assert got == {"action": "accept", "content": {"colour": "red"}}
    asked = json.loads((project / "Elicitation.json").read_text())
    assert (asked["mcp_server_name"], asked["message"], asked["mode"]) == ("stub", "Which colour?", "form")
    assert asked["requested_schema"]["required"] == ["colour"]


async def test_a_hook_hears_of_the_users_answer_and_may_change_it(project: Path) -> None:
    hooks = answering("Elicitation") | answering("ElicitationResult", action="decline")
    got, _ = await fill_in(project, hooks, ask_handler=choose_green)
    assert got == {"action": "decline"}
    told = json.loads((project / "ElicitationResult.json").read_text())
    assert (told["action"], told["content"]) == ("accept", {"colour": "green"})
    assert told["mcp_server_name"] == "stub"


async def test_exit_code_two_declines_and_another_servers_hooks_are_silent(project: Path) -> None:
    no = {"matcher": "stub", "hooks": [{"type": "command", "command": "echo no >&2; exit 2"}]}
    got, _ = await fill_in(project, {"Elicitation": [no]}, ask_handler=choose_green)
    assert got == {"action": "decline"}
    others = answering("Elicitation", server="other", action="cancel")
    got, _ = await fill_in(project, others, ask_handler=choose_green)
    assert got["content"] == {"colour": "green"}


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ({"action": "perhaps"}, "'perhaps' is none of accept, decline, cancel"),
        ({"action": "accept", "content": {"colour": 3}}, "colour"),
    ],
)
async def test_what_a_hook_says_in_vain_is_told_and_the_user_is_asked(
    project: Path, answer: dict[str, Any], said: str
) -> None:
    got, told = await fill_in(project, answering("Elicitation", **answer), ask_handler=choose_green)
    assert got["content"] == {"colour": "green"}
    assert any(said in each for each in told), told


async def test_a_session_whose_hooks_filled_forms_in_replays(project: Path, tmp_path: Path) -> None:
    hooks = answering("Elicitation") | answering("ElicitationResult", action="decline")
    store = SessionStore(tmp_path / "store")
    await fill_in(project, hooks, ask_handler=choose_green, session_store=store)
    [journal] = (tmp_path / "store").glob("*.jsonl")
    assert (await replay_session(journal)).divergence is None
