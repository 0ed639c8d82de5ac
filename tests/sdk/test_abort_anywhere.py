"""An abort before any line of ours, as a signal handler may bring it: the turn ends there, and only there."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

import anyio
import pytest
from tests.support.forms import some_of
from tests.support.lines import Line, before_each_line, lines_of, source_files

from robota.core.events import AssistantMessageCommitted, ToolEnded, ToolStarted, TurnEvent
from robota.core.run_task import RunTask
from robota.sdk.interactive import InteractiveSession
from robota.testing import ScriptedProvider, call

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

WAY = (
    "sdk/interactive.py", "sdk/prompt_queue.py", "sdk/turn.py", "sessions/session.py", "sessions/log.py",
    "sessions/turn_steps.py", "sessions/permissions/permission_enforcer.py", "core/robota.py",
    "core/run_task.py", "core/loop.py", "core/model_call.py", "core/tool_round.py", "core/tool_call.py",
    "core/process.py", "tools/processes.py", "tools/builtins/bash.py",
)  # fmt: skip
"""What an abort and a prompt meet on their way through."""
FILES = source_files(*WAY)
BEFORE = source_files(*WAY[:4])
"""Those of them that do something else for the first prompt."""
LAST_LOOK = lines_of(RunTask.check)
REPLIES = ([call("Bash", command="true")], "Done.")
TURNS_OF_ONE_SESSION = 40
PARTS = 3
"""Of the lines of a later turn, each with a time limit of its own."""


class Stage:
    """A session, and what it does after an abort."""

    def __init__(self, project: Path) -> None:
        self.provider = ScriptedProvider(*REPLIES, repeat=True)
        self.session = InteractiveSession(
            cwd=project, provider=self.provider, permission_mode="bypassPermissions"
        )
        self.ends: list[str] = []
        self.answered = False
        for name in ("complete", "interrupted", "error"):
            self.session.on(name, lambda _, name=name: self.ends.append(name))
        self.session.events.on(AssistantMessageCommitted, self.hear_answer)

    def hear_answer(self, event: AssistantMessageCommitted) -> None:
        self.answered = not event.message.tool_calls

    async def stop_before(self, line: Line, asking: Collection[Line]) -> None:
        """A turn that is aborted there; `asking` are the lines that ask the model."""
        self.ends.clear()
        self.answered = False
        asked: int | None = None
        wanted: tuple[str, ...] = ("complete",)
        late: set[str] = set()

        def act(now: Line) -> None:
            nonlocal asked, wanted
            if now != line or asked is not None:
                return
            asked = len(self.provider.requests)
            if not self.answered:  # before the turn is taken there need not be anything to stop
                wanted = ("interrupted",) if self.session.is_executing else ("interrupted", "complete")
            self.session.abort()

        def hear(event: TurnEvent) -> None:
            if isinstance(event, ToolStarted) and asked is not None:
                late.add(event.call_id)
            elif isinstance(event, ToolEnded) and event.outcome != "error":
                ran.append(event.call_id)

        ran: list[str] = []
        stop = self.session.events.subscribe(hear)
        with before_each_line(FILES, act, only=line), anyio.fail_after(30):
            result = await self.session.submit("go")
        stop()
        [end] = self.ends
        assert end in wanted, line
        assert result.interrupted == (end == "interrupted"), line
        if end == "interrupted":
            assert asked is not None
            assert asked <= len(self.provider.requests) <= asked + (line in asking), line
            assert late.isdisjoint(ran), line
        self.provider.requests.clear()  # the script begins anew


async def find_lines(stage: Stage) -> tuple[list[Line], set[Line]]:
    """The lines of a whole turn, in the order of their first time; and those of them that ask the model, from
    the last look whether it should be asked."""
    found: dict[Line, None] = {}
    asking: set[Line] = set()
    since: set[Line] = set()
    asked = 0

    def act(line: Line) -> None:
        nonlocal asked
        if len(stage.provider.requests) > asked:
            asked += 1
            asking.update(since)
        if line in LAST_LOOK:
            since.clear()
        since.add(line)
        found.setdefault(line)

    with before_each_line(FILES, act):
        await stage.session.submit("go")
    stage.provider.requests.clear()
    assert asking
    return list(found), asking


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    path = tmp_path / "project"
    path.mkdir()
    return path


async def test_an_abort_before_any_line_ends_the_first_turn(project: Path) -> None:
    stage = Stage(project)
    async with stage.session:
        lines, asking = await find_lines(stage)
    for line in some_of([line for line in lines if line.file in BEFORE]):
        stage = Stage(project)
        async with stage.session:
            await stage.stop_before(line, asking)


@pytest.mark.parametrize("part", some_of(range(PARTS)))
async def test_an_abort_before_any_line_ends_that_turn_and_no_other(project: Path, part: int) -> None:
    stage = Stage(project)
    async with stage.session:
        await stage.session.submit("first")
        stage.provider.requests.clear()
        lines, asking = await find_lines(stage)
    assert len(lines) > 500
    for at, line in enumerate(lines[part::PARTS]):
        if at % TURNS_OF_ONE_SESSION == 0:
            await stage.session.shutdown()
            stage = Stage(project)
        await stage.stop_before(line, asking)
    await stage.session.shutdown()
