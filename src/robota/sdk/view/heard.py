"""What each event becomes: blocks, or a change of the moment."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from robota.core.events import (
    BackgroundTaskChanged,
    Compacted,
    ContextUpdated,
    Event,
    ModelChanged,
    Noticed,
    PromptSteered,
    ProviderRetried,
    QuestionAsked,
    QuestionClosed,
    ReasoningDelta,
    RunCompleted,
    RunFailed,
    RunInterrupted,
    RunStarted,
    ServerToolUsed,
    SettingsChanged,
    SubagentEvent,
    ToolEnded,
    ToolInputDelta,
    ToolProgressed,
    ToolStarted,
)
from robota.core.messages import UserMessage
from robota.core.questions import ChoiceQuestion, PlanQuestion
from robota.sdk.timeline import show_message
from robota.sdk.tool_states import ran_with
from robota.sdk.view.moment import task_label
from robota.sdk.view.neutral import neutral_line, neutralise
from robota.sdk.view.tool_view import about, change, has_failed, preview, read_todos

if TYPE_CHECKING:
    from robota.sdk.view.presenter import Presenter

TOLD_OTHERWISE = ("AskUserQuestion", "ExitPlanMode")
"""Calls whose question and answer are blocks already; what they give is for the model."""
_BOXES = {"pending": "[ ]", "in_progress": "[>]", "completed": "[x]"}


def show_prompt(to: Presenter, message: UserMessage) -> None:
    """A prompt as its author sees it, and whether a command made it."""
    shown = show_message(message)
    if shown is None:
        return
    show_words(to, shown.content, made=shown is not message)


def show_words(to: Presenter, words: str, *, made: bool = False) -> None:
    """What the user typed; `made` if the prompt is something else."""
    words = neutralise(words)
    to.emit("user", words)
    if made and words.startswith("/"):
        to.emit("notice", to.say("view.skill", name=words.split()[0]), gap=False)


def hear_start(to: Presenter, event: RunStarted) -> None:
    if words := event.display or event.prompt:
        show_words(to, words, made=bool(event.display))
    to.moment.begin()


def hear_steering(to: Presenter, event: PromptSteered) -> None:
    show_words(to, event.prompt)


def hear_thought(to: Presenter, event: ReasoningDelta) -> None:
    if not to.moment.thinking:
        to.end_text()
    to.moment.hear_thought(event.text)


def hear_input(to: Presenter, event: ToolInputDelta) -> None:
    to.moment.count(len(event.delta))


def hear_server_tool(to: Presenter, event: ServerToolUsed) -> None:
    given = event.input if isinstance(event.input, dict) else {"": event.input} if event.input else {}
    to.emit("tool", title=neutral_line(event.tool_name), about=about(given), state="success")


def hear_tool_start(to: Presenter, event: ToolStarted) -> None:
    to.end_text()
    to.moment.start_tool(event)


def hear_tool_progress(to: Presenter, event: ToolProgressed) -> None:
    to.moment.hear_progress(event)


def hear_tool_end(to: Presenter, event: ToolEnded) -> None:
    to.moment.end_tool(event.call_id)
    todos = read_todos(event)
    if todos is not None:
        to.moment.todos = todos
        to.emit("todo", "\n".join(f"{_BOXES[each.state]} {each.text}" for each in todos))
        return
    waited = to.moment.waited.pop(event.call_id, 0.0)
    if event.tool_name in TOLD_OTHERWISE and event.outcome == "success":
        return
    changed = change(event, to.say)
    result = None if changed else preview(event, to.say)
    to.emit(
        "tool",
        result.text if result else "",
        full=result.full if result else "",
        title=neutral_line(event.tool_name),
        about=about(ran_with(event)),
        state="error" if event.outcome == "success" and has_failed(event) else event.outcome,
        seconds=max(0.0, event.duration - waited),
    )
    if changed:
        file, lines = changed
        to.emit("diff", lines.text, full=lines.full, title=file, format="diff", gap=False)


def hear_retry(to: Presenter, event: ProviderRetried) -> None:
    """What was shown stays; the rest of a broken answer is forgotten."""
    began = to.drop_text()
    to.moment.begin_round()
    to.moment.retrying = True
    words = to.say("view.retry", reason=neutral_line(event.message))
    if event.delay:
        words += " " + to.say("view.retry-in", seconds=f"{event.delay:.1f}", attempt=event.attempt)
    to.emit("notice", f"{words} {to.say('view.again')}" if began else words)


def hear_compaction(to: Presenter, event: Compacted) -> None:
    before, after = (
        each.get("usedPercentage", 0) if isinstance(each, dict) else 0 for each in (event.before, event.after)
    )
    if event.trigger == "auto" or not to.answers_command:
        to.emit("notice", to.say("view.compacted", before=f"{before:.0f}", after=f"{after:.0f}"))
    to.refresh()


def hear_model(to: Presenter, event: ModelChanged) -> None:
    notes = [neutralise(note) for note in event.notes]
    to.emit("notice", "\n".join([to.say("view.model", model=neutral_line(event.model)), *notes]))
    to.refresh()


def hear_change(to: Presenter, event: Event) -> None:
    to.refresh()


def hear_question(to: Presenter, event: QuestionAsked) -> None:
    question = event.question
    to.moment.ask(question)
    to.end_text()
    if isinstance(question, PlanQuestion):
        to.emit("notice", to.say("view.plan"))
        to.emit("answer", neutralise(question.plan), format="markdown")


def hear_answer(to: Presenter, event: QuestionClosed) -> None:
    question = to.moment.end_question(event.id)
    given = event.answer if isinstance(event.answer, dict) else {}
    if isinstance(question, ChoiceQuestion):
        chosen = given.get("chosen") or ()
        said = ", ".join(map(str, chosen)) if isinstance(chosen, list | tuple) else ""
        to.emit(
            "notice", f"{neutralise(question.question)}\n> {neutralise(said) or to.say('view.no-answer')}"
        )
    elif isinstance(question, PlanQuestion) and given:
        to.emit("notice", to.say("view.plan-approved" if given.get("approve") else "view.plan-rejected"))


def hear_task(to: Presenter, event: BackgroundTaskChanged) -> None:
    to.moment.hear_task(event)
    task = event.task
    if task.mode != "background" or event.change not in ("started", "completed", "failed", "cancelled"):
        return
    words = to.say(f"view.task-{event.change}", label=task_label(task), id=neutral_line(task.task_id))
    why = "" if task.error is None else f" {neutral_line(task.error.message)}"
    to.emit("error" if event.change == "failed" else "notice", words + why)


def hear_notice(to: Presenter, event: Noticed) -> None:
    to.emit("notice", neutralise(event.message))


def hear_failure(to: Presenter, event: RunFailed) -> None:
    to.failures += 1
    to.emit("error", neutralise(event.message))
    _end(to)


def hear_interruption(to: Presenter, event: RunInterrupted) -> None:
    to.emit("notice", to.say("view.interrupted"))
    _end(to)


def hear_end(to: Presenter, event: RunCompleted) -> None:
    if event.text and event.stop_reason == "context_overflow":
        to.emit("notice", neutralise(event.text))  # the engine's own words are not an answer
    elif event.text.strip() and not to.moment.streamed:
        to.add_text(event.text)
    to.end_text()
    _end(to)


def _end(to: Presenter) -> None:
    to.moment.end()
    to.refresh()


def hear_subagent(to: Presenter, event: SubagentEvent) -> None:
    """Of a subagent the calls are shown while they run, and what its user should know."""
    agent, inner, moment = event.agent_id, event.inner, to.moment
    if isinstance(inner, SubagentEvent):
        hear_subagent(to, inner)
        return
    name = moment.agents.get(agent, neutral_line(agent))
    match inner:
        case RunStarted(agent_name=called) if called:
            moment.agents[agent] = neutral_line(called)
        case ToolStarted():
            moment.start_tool(inner, name)
        case ToolProgressed():
            moment.hear_progress(inner, name)
        case ToolEnded(call_id=call_id):
            moment.end_tool(call_id, name)
        case Noticed(message=message):
            to.emit("notice", neutralise(message), agent=name)
        case ProviderRetried(message=message):
            to.emit("notice", to.say("view.retry", reason=neutral_line(message)), agent=name)
        case RunFailed(message=message):
            to.emit("error", neutralise(message), agent=name)


HEARD: dict[type[Event], Callable[[Any, Any], object]] = {
    RunStarted: hear_start,
    PromptSteered: hear_steering,
    ReasoningDelta: hear_thought,
    ToolInputDelta: hear_input,
    ServerToolUsed: hear_server_tool,
    ToolStarted: hear_tool_start,
    ToolProgressed: hear_tool_progress,
    ToolEnded: hear_tool_end,
    ProviderRetried: hear_retry,
    Compacted: hear_compaction,
    ModelChanged: hear_model,
    ContextUpdated: hear_change,
    SettingsChanged: hear_change,
    QuestionAsked: hear_question,
    QuestionClosed: hear_answer,
    BackgroundTaskChanged: hear_task,
    Noticed: hear_notice,
    RunFailed: hear_failure,
    RunInterrupted: hear_interruption,
    RunCompleted: hear_end,
    SubagentEvent: hear_subagent,
}
"""The other turn events change nothing that is shown."""
