"""What a session lets its tools do, from the model's call to the model's answer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.sessions.enforced_agent import Person
from tests.sessions.live_session import Studio

from robota.core.errors import ConfigurationError, ValidationError
from robota.core.events import ToolEnded
from robota.core.messages import ToolMessage
from robota.core.questions import ChoiceAnswer, ChoiceQuestion, PermissionAnswer
from robota.core.tool import ToolContext, ToolResult
from robota.core.tool_call import PreparedCall, invoke_tool
from robota.sessions.files import Files
from robota.sessions.permissions.live_rules import PermissionRules
from robota.testing import call
from robota.tools.builtins.bash import bash_tool
from robota.tools.builtins.files import read_tool, write_tool
from robota.tools.function_tool import tool

pytestmark = pytest.mark.anyio

TOOLS = (read_tool(), write_tool(), bash_tool())
WRITE = call("Write", file_path="made.txt", content="x")


def write(name: str) -> Any:
    return call("Write", f"call-{name}", file_path=f"{name}.txt", content="x")


def results(studio: Studio) -> list[str]:
    return [message.content for message in studio.session.messages if isinstance(message, ToolMessage)]


# --- modes ------------------------------------------------------------------------------------------------


async def test_without_anybody_to_ask_a_question_is_a_no(tmp_path: Path) -> None:
    studio = Studio(tmp_path, [WRITE], "I may not.", tools=TOOLS)

    assert await studio.session.run("write") == "I may not."

    assert results(studio)[0].startswith("Error: Permission denied.")
    assert not (studio.project / "made.txt").exists()


async def test_a_new_mode_counts_from_the_next_call(tmp_path: Path) -> None:
    studio = Studio(tmp_path, [WRITE], "no", [WRITE], "yes", [WRITE], "no again", tools=TOOLS)
    assert studio.session.permission_mode == "default"

    await studio.session.run("1")
    studio.session.permission_mode = "acceptEdits"
    await studio.session.run("2")
    studio.session.permission_mode = "plan"
    await studio.session.run("3")

    assert [text.startswith("Error") for text in results(studio)] == [True, False, True]
    assert (studio.project / "made.txt").read_text() == "x"
    changes = [record["value"] for record in studio.records if record["event"] == "session_change"]
    assert changes == ["acceptEdits", "plan"]


async def test_the_mode_of_the_options_is_where_it_begins(tmp_path: Path) -> None:
    studio = Studio(tmp_path, [WRITE], "done", tools=TOOLS, rules=PermissionRules(mode="acceptEdits"))
    assert studio.session.permission_mode == "acceptEdits"
    await studio.session.run("go")
    assert (studio.project / "made.txt").exists()


async def test_a_mode_that_does_not_exist_is_refused_by_name(tmp_path: Path) -> None:
    studio = Studio(tmp_path, tools=TOOLS)
    with pytest.raises((ConfigurationError, ValidationError), match="yolo"):
        studio.session.permission_mode = "yolo"  # type: ignore[assignment]  # that is the point
    assert studio.session.permission_mode == "default"


# --- answers ----------------------------------------------------------------------------------------------


async def test_yes_counts_once(tmp_path: Path) -> None:
    person = Person(True)
    studio = Studio(tmp_path, [WRITE], [WRITE], "done", tools=TOOLS, handler=person)

    await studio.session.run("go")

    assert [request.tool_name for request in person.asked] == ["Write", "Write"]
    assert person.asked[0].cwd == str(studio.project)
    assert studio.session.session_allowed_tools == ()


async def test_yes_for_the_session_covers_what_was_shown_and_nothing_else(tmp_path: Path) -> None:
    person = Person("allow-session", False)
    studio = Studio(
        tmp_path, [write("one")], "a", [write("one")], "b", [write("two")], "c", tools=TOOLS, handler=person
    )

    for prompt in ("1", "2", "3"):
        await studio.session.run(prompt)

    assert [request.tool_input["file_path"] for request in person.asked] == ["one.txt", "two.txt"]
    assert len(studio.session.session_allowed_tools) == 1
    assert not (studio.project / "two.txt").exists()


async def test_what_was_allowed_for_the_session_can_be_taken_back(tmp_path: Path) -> None:
    person = Person("allow-session", False)
    studio = Studio(tmp_path, [WRITE], "a", [WRITE], "b", tools=TOOLS, handler=person)

    await studio.session.run("1")
    studio.session.clear_session_allowed_tools()
    await studio.session.run("2")

    assert len(person.asked) == 2
    assert studio.session.session_allowed_tools == ()


async def test_yes_for_the_project_hands_the_rule_to_whoever_keeps_rules(tmp_path: Path) -> None:
    saved: list[str] = []
    studio = Studio(
        tmp_path, [WRITE], "a", tools=TOOLS, handler=Person("allow-project"), save_rule=saved.append
    )

    await studio.session.run("1")

    assert len(saved) == 1
    assert saved[0].startswith("Write(")


async def test_a_no_with_a_comment_reaches_the_model(tmp_path: Path) -> None:
    answer = PermissionAnswer(allow=False, message="use the other directory")
    studio = Studio(tmp_path, [WRITE], "ok", tools=TOOLS, handler=Person(answer))

    await studio.session.run("go")

    sent = studio.provider.requests[1].messages[-1].content
    assert "use the other directory" in sent
    [ended] = studio.told(ToolEnded)
    assert ended.outcome == "denied"


async def test_a_changed_input_is_what_runs(tmp_path: Path) -> None:
    answer = PermissionAnswer(allow=True, updated_input={"file_path": "else.txt", "content": "y"})
    studio = Studio(tmp_path, [WRITE], "ok", tools=TOOLS, handler=Person(answer))

    await studio.session.run("go")

    assert (studio.project / "else.txt").read_text() == "y"
    assert not (studio.project / "made.txt").exists()


async def test_a_handler_that_raises_denies(tmp_path: Path) -> None:
    async def broken(request: object) -> bool:
        raise RuntimeError("no terminal")

    studio = Studio(tmp_path, [WRITE], "ok", tools=TOOLS, handler=broken)

    assert await studio.session.run("go") == "ok"
    assert not (studio.project / "made.txt").exists()


async def test_a_handler_may_be_a_plain_function(tmp_path: Path) -> None:
    studio = Studio(tmp_path, [WRITE], "ok", tools=TOOLS, handler=lambda request: True)

    await studio.session.run("go")

    assert (studio.project / "made.txt").exists()


async def test_whoever_runs_tools_comes_after_the_permission(tmp_path: Path) -> None:
    ran: list[str] = []

    async def undoable(prepared: PreparedCall, context: ToolContext) -> ToolResult:
        ran.append(prepared.request.name)
        return await invoke_tool(prepared, context)

    person = Person(False, True)
    studio = Studio(tmp_path, [WRITE], [WRITE], "ok", tools=TOOLS, handler=person, run_tool=undoable)
    await studio.session.run("go")
    assert ran == ["Write"]


# --- questions of tools -------------------------------------------------------------------------------------


async def test_what_a_tool_asks_the_user_is_answered_and_written_down(tmp_path: Path) -> None:
    async def ask(question: Any) -> Any:
        assert question.call_id
        return "Blue."

    @tool
    async def paint(ctx: ToolContext) -> str:
        """Ask for a colour."""
        assert ctx.ask is not None
        answer = await ctx.ask(ChoiceQuestion(question="Which colour?"))
        assert isinstance(answer, ChoiceAnswer)
        return answer.chosen[0]

    rules = PermissionRules(mode="bypassPermissions")
    studio = Studio(tmp_path, [call("paint")], "ok", tools=[paint], rules=rules, ask=ask)
    await studio.session.run("go")

    assert results(studio) == ["Blue."]
    [asked] = [record for record in studio.records if record["event"] == "question_asked"]
    [closed] = [record for record in studio.records if record["event"] == "question_closed"]
    assert asked["question"]["question"] == "Which colour?"
    assert (closed["id"], closed["answer"]) == (asked["question"]["id"], {"chosen": ["Blue."]})


# --- before something changes in the world ------------------------------------------------------------------


class WatchedFiles(Files):
    """The real disk, and a list of what was written and synced in which order."""

    __slots__ = ("steps",)

    def __init__(self) -> None:
        self.steps: list[str] = []

    def write(self, fd: int, data: bytes) -> int:
        for line in data.splitlines():
            if line.startswith(b'{"crc"'):
                self.steps.append(line.split(b'"event":"', 1)[1].split(b'"', 1)[0].decode())
        return super().write(fd, data)

    def sync(self, fd: int) -> None:
        self.steps.append("SYNC")
        super().sync(fd)


def watched(home: Path, *replies: Any) -> tuple[Studio, list[str]]:
    files = WatchedFiles()

    async def noted(prepared: PreparedCall, context: ToolContext) -> ToolResult:
        files.steps.append("TOOL")
        return await invoke_tool(prepared, context)

    def asked(reply: Any) -> Any:
        return lambda _: (files.steps.append("REQUEST"), reply)[1]

    studio = Studio(
        home,
        *map(asked, replies),
        tools=TOOLS,
        files=files,
        rules=PermissionRules(mode="acceptEdits"),
        run_tool=noted,
    )
    return studio, files.steps


def between(steps: list[str], first: str, then: str) -> list[str]:
    start = steps.index(first)
    return steps[start + 1 : steps.index(then, start)]


async def test_the_prompt_is_on_the_disk_before_the_model_is_asked(tmp_path: Path) -> None:
    studio, steps = watched(tmp_path, "hi")
    await studio.session.run("hello")
    assert "SYNC" in between(steps, "user", "REQUEST")


async def test_an_intention_is_on_the_disk_before_a_tool_changes_anything(tmp_path: Path) -> None:
    studio, steps = watched(tmp_path, [WRITE], "done")
    await studio.session.run("write")
    assert "SYNC" in between(steps, "tool_start", "TOOL")


async def test_results_are_on_the_disk_before_the_model_hears_of_them(tmp_path: Path) -> None:
    studio, steps = watched(tmp_path, [WRITE], "done")
    await studio.session.run("write")
    after = steps[steps.index("tool_result") :]
    assert "SYNC" in between(after, "tool_result", "REQUEST")


async def test_many_tools_at_once_wait_for_one_sync(tmp_path: Path) -> None:
    studio, steps = watched(tmp_path, [write(f"file{number}") for number in range(20)], "done")
    await studio.session.run("write")
    begun = steps[steps.index("tool_start") :]
    last_tool = len(begun) - begun[::-1].index("TOOL")
    assert begun[:last_tool].count("TOOL") == 20
    assert begun[:last_tool].count("SYNC") == 1


async def test_a_tool_that_only_looks_waits_for_nothing(tmp_path: Path) -> None:
    studio, steps = watched(tmp_path, [call("Read", file_path="notes.txt")], "done")
    (studio.project / "notes.txt").write_text("milk")
    await studio.session.run("read")
    assert "TOOL" in steps
    first = steps.index("REQUEST")
    assert "SYNC" not in steps[first : steps.index("REQUEST", first + 1)]


async def test_the_end_of_a_run_is_on_the_disk_before_it_is_told(tmp_path: Path) -> None:
    studio, steps = watched(tmp_path, "hi")
    await studio.session.run("hello")
    assert steps[steps.index("run_end") + 1] == "SYNC"
