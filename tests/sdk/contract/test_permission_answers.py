"""What a permission handler is asked, and what each of its answers does."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.sdk.contract.heard import Heard

from robota import InteractiveSession
from robota.core import PermissionAnswer
from robota.testing import ScriptedProvider, call

pytestmark = pytest.mark.anyio


class Asked:
    def __init__(self, answer: Any) -> None:
        self.answer = answer
        self.requests: list[Any] = []

    async def __call__(self, request: Any) -> Any:
        self.requests.append(request)
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


async def run(project: Path, handler: Asked, *commands: str, **more: Any) -> tuple[Heard, ScriptedProvider]:
    replies = [[call("Bash", command=command)] for command in commands]
    provider = ScriptedProvider(*replies, "Done.")
    session = InteractiveSession(cwd=project, provider=provider, permission_handler=handler, **more)
    async with session:
        heard = Heard(session)
        await session.submit("Go")
    return heard, provider


async def test_the_request_has_what_a_person_needs_to_decide(project: Path) -> None:
    handler = Asked(True)
    await run(project, handler, "touch made")
    (request,) = handler.requests
    assert request.tool_name == "Bash"
    assert request.tool_input["command"] == "touch made"
    assert Path(request.cwd) == project
    assert request.reason
    assert request.rule.startswith("Bash(touch")
    assert not request.agent_id


async def test_the_request_for_a_change_shows_the_difference(project: Path) -> None:
    handler = Asked(True)
    provider = ScriptedProvider([call("Write", file_path="new.txt", content="one\n")], "Done.")
    async with InteractiveSession(cwd=project, provider=provider, permission_handler=handler) as session:
        await session.submit("Go")
    assert "one" in str(handler.requests[0].diff)
    assert (project / "new.txt").read_text() == "one\n"


async def test_true_allows_once(project: Path) -> None:
    handler = Asked(True)
    heard, _ = await run(project, handler, "touch a", "touch a")
    assert len(handler.requests) == 2
    assert (project / "a").exists()
    assert [state.result for state in heard.of("tool_end")] == ["success", "success"]


async def test_false_denies_and_the_turn_goes_on(project: Path) -> None:
    heard, provider = await run(project, Asked(False), "touch a")
    assert not (project / "a").exists()
    assert [state.result for state in heard.of("tool_end")] == ["denied"]
    assert heard.closings() == ["complete"]
    assert "denied" in str(provider.requests[1].messages[-1].content).lower()


async def test_allow_session_is_not_asked_again_for_the_same(project: Path) -> None:
    handler = Asked("allow-session")
    await run(project, handler, "touch a", "touch a")
    assert len(handler.requests) == 1


async def test_allow_session_never_covers_the_whole_tool(project: Path) -> None:
    handler = Asked("allow-session")
    await run(project, handler, "touch a", "rm -r a")
    assert len(handler.requests) == 2


async def test_allow_session_shows_in_permissions(project: Path) -> None:
    handler = Asked("allow-session")
    provider = ScriptedProvider([call("Bash", command="touch a")], "Done.")
    async with InteractiveSession(cwd=project, provider=provider, permission_handler=handler) as session:
        await session.submit("Go")
        result = await session.execute_command("permissions", "")
        assert result is not None
        (rule,) = result.data["sessionAllowed"]
        assert rule.startswith("Bash(touch")
        assert rule in result.message


async def test_allow_project_is_written_down_and_counts_tomorrow(project: Path) -> None:
    handler = Asked("allow-project")
    await run(project, handler, "touch a", trust_project=True)
    saved = json.loads((project / ".robota/settings.local.json").read_text())
    assert any(rule.startswith("Bash(touch") for rule in saved["permissions"]["allow"])
    tomorrow = Asked(False)
    await run(project, tomorrow, "touch a", trust_project=True)
    assert tomorrow.requests == []


async def test_an_answer_may_change_the_input(project: Path) -> None:
    answer = PermissionAnswer(allow=True, updated_input={"command": "touch b"})
    await run(project, Asked(answer), "touch a")
    assert (project / "b").exists()
    assert not (project / "a").exists()


async def test_an_answer_may_say_no_with_a_word_to_the_model(project: Path) -> None:
    answer = PermissionAnswer(allow=False, message="Use the Makefile.")
    heard, provider = await run(project, Asked(answer), "touch a")
    assert "Use the Makefile." in str(provider.requests[1].messages[-1].content)
    assert [state.result for state in heard.of("tool_end")] == ["denied"]


async def test_a_changed_input_that_a_rule_denies_is_denied(project: Path) -> None:
    answer = PermissionAnswer(allow=True, updated_input={"command": "rm notes.txt"})
    settings = {"permissions": {"deny": ["Bash(rm *)"]}}
    heard, _ = await run(project, Asked(answer), "touch a", settings=settings)
    assert (project / "notes.txt").exists()
    assert [state.result for state in heard.of("tool_end")] == ["denied"]


async def test_a_handler_that_raises_denies(project: Path) -> None:
    heard, _ = await run(project, Asked(RuntimeError("broken")), "touch a")
    assert not (project / "a").exists()
    assert [state.result for state in heard.of("tool_end")] == ["denied"]
    assert heard.closings() == ["complete"]


@pytest.mark.parametrize("answer", [None, "yes", 1, "deny"])
async def test_an_answer_that_is_none_of_the_contract_does_not_allow(project: Path, answer: Any) -> None:
    heard, _ = await run(project, Asked(answer), "touch a")
    assert not (project / "a").exists()
    assert heard.closings() == ["complete"]


async def test_without_a_handler_a_question_is_a_no(project: Path) -> None:
    provider = ScriptedProvider([call("Write", file_path="a.txt", content="a")], "No.")
    async with InteractiveSession(cwd=project, provider=provider) as session:
        heard = Heard(session)
        await session.submit("Go")
    assert [state.result for state in heard.of("tool_end")] == ["denied"]
    assert not (project / "a.txt").exists()
