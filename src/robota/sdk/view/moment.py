"""What goes on at this moment: the things that a view shows until they change."""

from __future__ import annotations

import time
from collections.abc import Sequence

from msgspec.structs import replace

from robota.core.background import TaskSnapshot
from robota.core.events import BackgroundTaskChanged, ToolProgressed, ToolStarted
from robota.core.questions import Question
from robota.sdk.view.model import SHELL, Activity, Live, RunningTask, RunningTool, Todo
from robota.sdk.view.neutral import neutral_line, neutral_output, neutralise
from robota.sdk.view.tool_view import about

PROGRESS_LINES = 5
PROGRESS_WIDTH = 400
THINKING_SHOWN = 400
LABEL_SHOWN = 80
CHARACTERS_PER_TOKEN = 4


class Moment:
    """The state behind `Live`."""

    __slots__ = (
        "_asked", "_characters", "_since", "agents", "questions", "retrying", "said", "streamed", "tasks",
        "thinking", "thinking_since", "todos", "tools", "waited", "working",
    )  # fmt: skip

    def __init__(self) -> None:
        self.working = False
        self.retrying = False
        self.said = False
        """Whether the model has spoken in this round."""
        self.streamed = False
        """Whether it has spoken in this turn."""
        self.thinking: list[str] = []
        self.thinking_since = 0.0
        self.questions: dict[str, Question] = {}
        self._asked: dict[str, float] = {}
        self.waited: dict[str, float] = {}
        """How long calls have waited for their user, which is none of their own time."""
        self.tools: dict[str, RunningTool] = {}
        self.tasks: dict[str, RunningTask] = {}
        self.todos: Sequence[Todo] = ()
        self.agents: dict[str, str] = {}
        """The names of subagents by their ids."""
        self._characters = 0
        self._since = 0.0

    def live(self, tail: str, queued: str | None) -> Live:
        thinking = "".join(self.thinking[-THINKING_SHOWN:])[-THINKING_SHOWN:]
        return Live(
            activity=self._activity(),
            tail=tail,
            thinking=neutralise(thinking),
            since=self._since if self.working else min((call.since for call in self._calls()), default=0.0),
            tokens=self._characters // CHARACTERS_PER_TOKEN,
            tools=tuple(self.tools.values()),
            tasks=tuple(self.tasks.values()),
            todos=tuple(self.todos),
            queued=None if queued is None else neutralise(queued),
        )

    def _activity(self) -> Activity:
        if self.questions:
            return "waiting"
        if self._calls():
            return "tools"
        if not self.working:
            return "idle"
        if self.retrying:
            return "retrying"
        return "answering" if self.said else "thinking"

    def _calls(self) -> list[RunningTool]:
        """Those of the turn, or, between turns, what the user runs."""
        return [tool for tool in self.tools.values() if tool.is_shell is not self.working]

    def begin(self) -> None:
        self.working, self.streamed = True, False
        self._characters, self._since = 0, time.monotonic()
        self.begin_round()

    def begin_round(self) -> None:
        self.said = self.retrying = False

    def end(self) -> None:
        self.working = False
        self.begin_round()
        self.tools = {key: tool for key, tool in self.tools.items() if tool.is_shell}
        self.agents.clear()
        self.waited.clear()

    def hear_words(self, characters: int) -> None:
        self.said, self.streamed, self.retrying = True, True, False
        self._characters += characters

    def hear_thought(self, text: str) -> None:
        if not self.thinking:
            self.thinking_since = time.monotonic()
        self.thinking.append(text)
        self.count(len(text))

    def count(self, characters: int) -> None:
        """The model has written so much more, though not for the user."""
        self.retrying = False
        self._characters += characters

    def end_thought(self) -> tuple[str, float]:
        """What the model thought, and for how long."""
        thought = "".join(self.thinking)
        self.thinking.clear()
        return thought, time.monotonic() - self.thinking_since

    def ask(self, question: Question) -> None:
        self.questions[question.id] = question
        self._asked[question.id] = time.monotonic()

    def end_question(self, id: str) -> Question | None:
        question, asked = self.questions.pop(id, None), self._asked.pop(id, None)
        if question is not None and asked is not None and question.call_id:
            before = self.waited.get(question.call_id, 0.0)
            self.waited[question.call_id] = before + time.monotonic() - asked
        return question

    def start_tool(self, event: ToolStarted, agent: str = "") -> None:
        self.tools[agent + event.call_id] = RunningTool(
            call_id=event.call_id,
            name=neutral_line(event.tool_name),
            about=about(event.arguments),
            since=time.monotonic(),
            agent=agent,
        )

    def start_shell(self, command: str) -> str:
        """A command that the user runs; it goes on when a turn ends. Its key."""
        key = f"{SHELL}{time.monotonic()}"
        self.tools[key] = RunningTool(
            call_id=key, name=SHELL, about=neutral_line(command), since=time.monotonic()
        )
        return key

    def hear_progress(self, event: ToolProgressed, agent: str = "") -> None:
        self.hear_output(agent + event.call_id, event.text)

    def hear_output(self, key: str, text: str) -> None:
        tool = self.tools.get(key)
        if tool is not None:
            new = [line[:PROGRESS_WIDTH] for line in neutral_output(text).split("\n") if line.strip()]
            self.tools[key] = replace(tool, lines=(*tool.lines, *new)[-PROGRESS_LINES:])

    def end_tool(self, call_id: str, agent: str = "") -> None:
        self.tools.pop(agent + call_id, None)

    def hear_task(self, event: BackgroundTaskChanged) -> None:
        task = event.task
        if task.ended or event.change == "closed":
            self.tasks.pop(task.task_id, None)
            return
        known = self.tasks.get(task.task_id)
        doing = "" if known is None else known.doing
        if event.change in ("text_delta", "tool_start"):
            doing = neutral_line(event.text)[-LABEL_SHOWN:]
        self.tasks[task.task_id] = RunningTask(
            task_id=neutral_line(task.task_id),
            kind=task.kind,
            label=task_label(task),
            state=task.state,
            doing=doing,
        )


def task_label(task: TaskSnapshot) -> str:
    """What a task is called where there is one line for it."""
    return neutral_line(task.label or task.command or task.agent_type or task.prompt or task.task_id)[
        :LABEL_SHOWN
    ]
