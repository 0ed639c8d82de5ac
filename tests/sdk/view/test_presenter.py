"""What is shown of a session."""

from __future__ import annotations

import asyncio
import os
import subprocess
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from robota.core import events as told
from robota.core.background import TaskFailure, TaskSnapshot
from robota.core.errors import ProviderError
from robota.core.provider import ReasoningChunk as Thought
from robota.core.questions import ChoiceAnswer, ChoiceQuestion, PlanAnswer, PlanQuestion, QuestionOption
from robota.sdk.interactive import InteractiveSession
from robota.sdk.view.model import Block, Live, Status
from robota.sdk.view.presenter import Presenter
from robota.sdk.view.status import read_status
from robota.testing import Fail, ScriptedProvider, call
from robota.tui.words import load_words

pytestmark = pytest.mark.anyio

ENGLISH = load_words("en")


class Shown:
    """A view that keeps everything."""

    def __init__(self) -> None:
        self.blocks: list[Block] = []
        self.lives: list[Live] = []
        self.statuses: list[Status] = []
        self._changed = asyncio.Event()

    async def until(self, seen: Callable[[], object]) -> None:
        while not seen():
            self._changed.clear()
            await self._changed.wait()

    def block(self, block: Block) -> None:
        self.blocks.append(block)
        self._changed.set()

    def live(self, live: Live) -> None:
        self.lives.append(live)
        self._changed.set()

    def status(self, status: Status) -> None:
        self.statuses.append(status)

    @property
    def rows(self) -> list[tuple[str, str]]:
        return [(block.kind, block.text or block.about) for block in self.blocks]


@asynccontextmanager
async def showing(
    provider: ScriptedProvider, cwd: Path, **options: Any
) -> AsyncIterator[tuple[InteractiveSession, Presenter, Shown]]:
    mode = options.pop("permission_mode", "bypassPermissions")
    options |= {"cwd": cwd, "model": "gpt-4o", "permission_mode": mode}
    async with InteractiveSession(provider=provider, **options) as session:
        view = Shown()
        presenter = Presenter(
            session, view, ENGLISH, frame_seconds=0.001, status=partial(read_status, session)
        )
        yield session, presenter, view
        presenter.close()


async def present(provider: ScriptedProvider, cwd: Path, *prompts: str, **options: Any) -> Shown:
    async with showing(provider, cwd, **options) as (session, _, view):
        for prompt in prompts:
            await session.submit(prompt)
    return view


async def tell(cwd: Path, *events: told.TurnEvent) -> Shown:
    async with showing(ScriptedProvider(), cwd) as (session, _, view):
        for event in events:
            session.events.emit(event)
    return view


async def test_a_turn_is_shown_in_order(tmp_path: Path) -> None:
    provider = ScriptedProvider(
        ["I look. ", "Then **act**.\n\nSee", call("Bash", command="printf 'a\\nb\\nc\\nd\\ne\\nf\\n'")],
        "# Done\nAll *fine*.",
    )
    view = await present(provider, tmp_path, "Go")
    assert [kind for kind, _ in view.rows] == ["user", "answer", "answer", "tool", "answer", "answer"]
    assert [block.text for block in view.blocks if block.kind == "answer"] == [
        "I look. Then **act**.", "See", "# Done", "All *fine*.",
    ]  # fmt: skip
    tool = view.blocks[3]
    assert (tool.title, tool.state, tool.about) == ("Bash", "success", "printf 'a\\nb\\nc\\nd\\ne\\nf\\n'")
    assert tool.text.split("\n") == ["a", "b", "c", "d", "... +2 lines"]
    assert tool.full.split("\n") == list("abcdef")
    assert tool.seconds is not None
    assert [block.id for block in view.blocks] == list(range(1, 7))
    assert view.lives[-1] == Live(since=view.lives[-1].since, tokens=view.lives[-1].tokens)
    assert view.statuses[-1].model == "gpt-4o"
    assert view.statuses[-1].mode == "bypassPermissions"


async def test_a_command_that_failed_is_shown_so_with_the_line_that_says_how(tmp_path: Path) -> None:
    provider = ScriptedProvider(
        [call("Bash", command="printf '1\\n2\\n3\\n4\\n5\\n6\\n'; exit 3")],
        [call("Bash", command="true")],
        "So.",
    )
    view = await present(provider, tmp_path, "Go")
    failed, fine = (block for block in view.blocks if block.kind == "tool")

    assert [failed.state, fine.state] == ["error", "success"]
    lines = failed.text.split("\n")
    assert lines[:4] == ["1", "2", "3", "4"]
    assert lines[4].startswith("... +")
    assert lines[5:] == ["[exit code 3]"]


async def test_nothing_that_was_said_is_missing_whatever_its_pieces(tmp_path: Path) -> None:
    text = "".join(f"Paragraph {number} is *here*.\n\n- item {number}\n" for number in range(300))
    pieces = [text[at : at + 5] for at in range(0, len(text), 5)]
    view = await present(ScriptedProvider(pieces), tmp_path, "Go")
    said = "\n".join(block.text for block in view.blocks if block.kind == "answer")
    assert said.split() == text.split()


async def test_an_edit_is_shown_as_a_diff(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("".join(f"{number}\n" for number in range(40)))
    old = "".join(f"{number}\n" for number in range(20))
    provider = ScriptedProvider(
        [call("Read", file_path="a.txt")],
        [call("Edit", file_path="a.txt", old_string="3\n4\n", new_string="3\nfour\n")],
        [call("Edit", file_path="a.txt", old_string=old.replace("4\n", "four\n", 1), new_string="short\n")],
        "Done.",
    )
    view = await present(provider, tmp_path, "Go")
    small, large = (block for block in view.blocks if block.kind == "diff")
    assert (small.title, small.text, small.gap) == ("a.txt", "  3\n- 4\n+ four", False)
    assert large.text.split("\n")[-1] == "... and 11 more lines"
    assert len(large.text.split("\n")) == 11
    assert len(large.full.split("\n")) == 21


async def test_an_edit_that_changes_nothing_shows_no_diff(tmp_path: Path) -> None:
    same = {"file_path": "a", "old_string": "x", "new_string": "x"}
    ended = told.ToolEnded(
        call_id="1", tool_call_id="1", tool_name="Edit", outcome="success", arguments=same, content="ok"
    )
    view = await tell(tmp_path, ended)
    assert view.rows == [("tool", "ok")]


async def test_what_was_refused_and_what_failed_say_why(tmp_path: Path) -> None:
    provider = ScriptedProvider(
        [call("Bash", command="rm -r x"), call("Read", file_path="none.txt")], "So be it."
    )
    view = await present(provider, tmp_path, "Go", permission_mode="default")
    tools = {block.title: block for block in view.blocks if block.kind == "tool"}
    assert tools["Bash"].state == "denied"
    assert tools["Read"].state == "error"
    assert "none.txt" in tools["Read"].text


async def test_a_running_command_shows_its_last_lines(tmp_path: Path) -> None:
    command = "for n in 1 2 3 4 5 6 7; do echo line $n; done; read x < fifo"
    os.mkfifo(tmp_path / "fifo")
    provider = ScriptedProvider([call("Bash", command=command)], "Done.")
    async with showing(provider, tmp_path) as (session, presenter, view):
        turn = asyncio.ensure_future(session.submit("Go"))
        await view.until(lambda: view.lives[-1:] and "line 7" in str(view.lives[-1].tools))
        running = next(live for live in view.lives if live.tools and "line 7" in live.tools[0].lines)
        assert running.activity == "tools"
        assert running.tools[0].lines == tuple(f"line {number}" for number in (3, 4, 5, 6, 7))
        assert running.tools[0].name == "Bash"
        (tmp_path / "fifo").write_text("x\n")
        await turn
        presenter.flush()
        assert view.lives[-1].tools == ()


async def test_thinking_is_kept_for_whoever_wants_to_see_it(tmp_path: Path) -> None:
    provider = ScriptedProvider([Thought("Hm, \x1b[31m"), Thought("yes."), "Yes."])
    view = await present(provider, tmp_path, "Go")
    thought = next(block for block in view.blocks if block.kind == "thinking")
    assert (thought.text, thought.full) == ("Thought for 0.0s", "Hm, ␛[31myes.")
    assert [kind for kind, _ in view.rows] == ["user", "thinking", "answer"]


async def test_an_abort_keeps_what_was_said(tmp_path: Path) -> None:
    provider = ScriptedProvider(["Half a sen", call("Bash", command="sleep 60")])
    async with showing(provider, tmp_path) as (session, presenter, view):
        session.on("tool_start", lambda state: session.abort())
        await session.submit("Go")
        presenter.flush()
        assert view.rows[1] == ("answer", "Half a sen")
        assert view.rows[-1] == ("notice", "Interrupted by user.")
        assert view.lives[-1].activity == "idle"


async def test_a_retry_in_the_middle_of_an_answer_is_told(tmp_path: Path) -> None:
    retry = told.ProviderRetried(attempt=2, max_attempts=5, delay=1.5, message="connection\x07 lost")
    view = await tell(
        tmp_path,
        told.RunStarted(conversation_id="c"),
        told.TextDelta("First.\n\nSecond is cut", sequence=1),
        retry,
        told.TextDelta("First again.", sequence=2),
        told.RunCompleted(text="First again."),
    )
    assert view.rows == [
        ("answer", "First."),
        ("notice", "Retrying: connection␇ lost Trying again in 1.5 s (attempt 2). The answer starts again."),
        ("answer", "First again."),
    ]


async def test_a_failing_model_is_an_error(tmp_path: Path) -> None:
    view = await present(
        ScriptedProvider([Fail(ProviderError("the service is \x1b]0;gone\x07"))]), tmp_path, "Go"
    )
    kind, text = view.rows[-1]
    assert kind == "error"
    assert "gone" in text
    assert "\x1b" not in text


async def test_an_answer_that_was_not_streamed_is_shown(tmp_path: Path) -> None:
    start = told.RunStarted(conversation_id="c")
    view = await tell(tmp_path, start, told.RunCompleted(text="At once."))
    assert view.rows == [("answer", "At once.")]
    full = told.RunCompleted(text="Too long.", stop_reason="context_overflow")
    assert (await tell(tmp_path, start, full)).rows == [("notice", "Too long.")]


async def test_questions_are_part_of_the_record(tmp_path: Path) -> None:
    async with showing(ScriptedProvider(), tmp_path) as (session, presenter, view):
        await session.ready()

        async def answer(question: object) -> object:
            await asyncio.sleep(0)
            presenter.flush()
            return (
                PlanAnswer(approve=True)
                if isinstance(question, PlanQuestion)
                else ChoiceAnswer(chosen=("B",))
            )

        session.questions.attach(answer)
        options = (QuestionOption("A"), QuestionOption("B"))
        await session.questions.ask(ChoiceQuestion(question="Which\x1b?", options=options))
        await session.questions.ask(PlanQuestion(plan="1. *Do* it"))
        presenter.flush()
    assert any(live.activity == "waiting" for live in view.lives)
    assert view.rows == [
        ("notice", "Which␛?\n> B"),
        ("notice", "The plan:"),
        ("answer", "1. *Do* it"),
        ("notice", "Plan approved."),
    ]


async def test_todos_are_a_list(tmp_path: Path) -> None:
    todos = [{"content": "One\nline", "status": "completed"}, {"content": "Two", "status": "in_progress"}]
    view = await present(ScriptedProvider([call("TodoWrite", todos=todos)], "Ok."), tmp_path, "Go")
    assert ("todo", "[x] One line\n[>] Two") in view.rows
    assert [todo.state for todo in view.lives[-1].todos] == ["completed", "in_progress"]


async def test_work_in_the_background_is_told_and_listed(tmp_path: Path) -> None:
    def changed(change: Any, **fields: Any) -> told.BackgroundTaskChanged:
        task = TaskSnapshot(task_id="t1", kind="process", command="make\tall", **fields)
        return told.BackgroundTaskChanged(change=change, task=task, text="word\n")

    broken = TaskFailure(category="process", message="It died.")
    async with showing(ScriptedProvider(), tmp_path) as (session, presenter, view):
        session.events.emit(changed("started", state="running"))
        session.events.emit(changed("text_delta", state="running"))
        presenter.flush()
        assert [(task.label, task.doing) for task in view.lives[-1].tasks] == [("make all", "word")]
        session.events.emit(changed("failed", state="failed", error=broken))
        presenter.flush()
        assert view.lives[-1].tasks == ()
    assert view.rows == [
        ("notice", "Background task make all (t1) has started."),
        ("error", "Background task make all (t1) failed. It died."),
    ]


async def test_subagents_show_what_they_are_at(tmp_path: Path) -> None:
    def inner(event: Any) -> told.SubagentEvent:
        return told.SubagentEvent(agent_id="a1", inner=event)

    started = told.ToolStarted(call_id="1", tool_call_id="1", tool_name="Grep", arguments={"pattern": "x"})
    ended = told.ToolEnded(call_id="1", tool_call_id="1", tool_name="Grep", outcome="success")
    async with showing(ScriptedProvider(), tmp_path) as (session, presenter, view):
        session.events.emit(told.RunStarted(conversation_id="c"))
        session.events.emit(inner(told.RunStarted(conversation_id="d", agent_name="explorer")))
        session.events.emit(inner(started))
        presenter.flush()
        assert [(tool.agent, tool.name, tool.about) for tool in view.lives[-1].tools] == [
            ("explorer", "Grep", "x")
        ]
        session.events.emit(inner(told.TextDelta("aside", sequence=1)))
        session.events.emit(inner(ended))
        session.events.emit(inner(inner(told.Noticed("deep"))))
        presenter.flush()
        assert view.lives[-1].tools == ()
    assert [(block.kind, block.text) for block in view.blocks] == [("notice", "deep")]


async def test_a_command_is_shown_with_its_answer(tmp_path: Path) -> None:
    async with showing(ScriptedProvider(), tmp_path) as (session, presenter, view):
        result = await session.execute_command("rename", "notes\x1b[2J")
        assert result is not None
        presenter.show_command("/rename notes", result)
        presenter.flush()
    assert view.rows == [("user", "/rename notes"), ("command", 'Session renamed to "notes␛[2J".')]


async def test_a_skill_says_that_it_wrote_the_prompt(tmp_path: Path) -> None:
    view = await present(ScriptedProvider("Nothing to object."), tmp_path, "/review the last commit")
    assert view.rows[:2] == [
        ("user", "/review the last commit"),
        ("notice", "/review wrote this prompt."),
    ]


async def test_a_resumed_session_shows_where_it_was(tmp_path: Path) -> None:
    provider = ScriptedProvider([call("Bash", command="true")], "Answer *one*.\n\n- a\n- b", "Answer two.")
    async with showing(provider, tmp_path) as (session, presenter, view):
        await session.submit("one")
        await session.submit("two")
        presenter.flush()
        view.blocks.clear()
        presenter.show_history(session.full_history)
        presenter.flush()
    assert view.rows == [
        ("user", "one"), ("tool", "true"), ("answer", "Answer *one*."), ("answer", "- a\n- b"),
        ("user", "two"), ("answer", "Answer two."), ("notice", "The conversation continues here."),
    ]  # fmt: skip


async def test_of_a_long_conversation_the_end_is_shown(tmp_path: Path) -> None:
    provider = ScriptedProvider(*[f"answer {number}" for number in range(60)])
    async with showing(provider, tmp_path) as (session, presenter, view):
        for number in range(60):
            await session.submit(f"prompt {number}")
        presenter.flush()
        view.blocks.clear()
        presenter.show_history(session.full_history)
        presenter.flush()
    assert view.rows[0] == ("notice", "... 20 earlier entries are not shown")
    assert view.rows[1] == ("user", "prompt 10")
    assert len(view.rows) == 102


async def test_a_view_that_fails_does_not_stop_the_next_block(tmp_path: Path) -> None:
    class Broken(Shown):
        def block(self, block: Block) -> None:
            super().block(block)
            if block.text == "one":
                raise RuntimeError("no space")

    failed: list[Any] = []
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: failed.append(context))
    async with InteractiveSession(provider=ScriptedProvider(), cwd=tmp_path) as session:
        view = Broken()
        presenter = Presenter(session, view, ENGLISH, frame_seconds=0, status=partial(read_status, session))
        presenter.notice("one")
        presenter.notice("two")
        await view.until(lambda: len(view.blocks) == 2)
        presenter.close()
    assert len(failed) == 1


async def test_controls_are_signs_wherever_they_come_from(tmp_path: Path) -> None:
    evil = "\x1b]0;title\x07\x1b[2J\u202e\x9b"
    provider = ScriptedProvider(
        [f"Said {evil}", call("Bash", command=f"echo '{evil}'"), call(f"No{evil}")], f"More {evil}"
    )
    view = await present(provider, tmp_path, f"Do {evil}", session_name=f"Name {evil}")
    shown = [str(value) for each in (*view.blocks, *view.lives, *view.statuses) for value in _texts(each)]
    assert any("␛]0;title␇␛[2J\\u202e\\x9b" in text for text in shown)
    assert not [text for text in shown if set(text) & set("\x1b\x07\u202e\x9b")]


def _texts(value: Any) -> Sequence[object]:
    return [getattr(value, name) for name in value.__struct_fields__]


def test_the_branch_is_found_without_git(tmp_path: Path) -> None:
    from robota.sdk.view.status import find_branch

    assert find_branch(str(tmp_path / "gone")) == ""
    subprocess.run(["git", "init", "-q", "-b", "ünique", tmp_path], check=True)
    (tmp_path / "below").mkdir()
    assert find_branch(str(tmp_path / "below")) == "ünique"
    (tmp_path / ".git" / "HEAD").write_text("0123456789abcdef\n")
    assert find_branch(str(tmp_path)) == "0123456"
    (tmp_path / ".git" / "HEAD").write_bytes(b"\xff")
    assert find_branch(str(tmp_path)) == ""
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree" / ".git").write_text(f"gitdir: {tmp_path}/.git/worktrees/tree\n")
    (tmp_path / ".git" / "worktrees" / "tree").mkdir(parents=True)
    (tmp_path / ".git" / "worktrees" / "tree" / "HEAD").write_text("ref: refs/heads/side\n")
    assert find_branch(str(tmp_path / "tree")) == "side"


@pytest.mark.parametrize("text", ["a\r\nb", "a\nb"])
async def test_line_ends_may_be_cut_in_two(tmp_path: Path, text: str) -> None:
    view = await present(ScriptedProvider(list(text)), tmp_path, "Go")
    assert view.rows[-1] == ("answer", "a\nb")
