"""Questions of a session: put to everybody, closed by the first answer, on record with their ids."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from tests.sessions.live_session import Studio

from robota.core.bus import EventBus
from robota.core.events import QuestionAsked, QuestionClosed, ToolEnded
from robota.core.messages import ToolMessage
from robota.core.questions import (
    ChoiceAnswer,
    ChoiceQuestion,
    PermissionAnswer,
    PermissionQuestion,
    PlanAnswer,
    PlanQuestion,
    Question,
)
from robota.sessions.questions import Questions, Settled
from robota.testing import call
from robota.tools.builtins.ask_user import ask_user_tool
from robota.tools.builtins.files import write_tool

pytestmark = pytest.mark.anyio

PLAN = PlanQuestion(plan="1. Look", call_id="x-r1-0")


class FrontEnd:
    """Shows questions; answers when it is told to, and knows which were taken from it."""

    def __init__(self) -> None:
        self.shown: asyncio.Queue[Question] = asyncio.Queue()
        self.answers: asyncio.Queue[object] = asyncio.Queue()
        self.withdrawn: list[str] = []

    async def __call__(self, question: Question) -> object:
        self.shown.put_nowait(question)
        try:
            return await self.answers.get()
        except asyncio.CancelledError:
            self.withdrawn.append(question.id)
            raise


def broker() -> tuple[Questions, list[Any]]:
    events, told = EventBus(), list[Any]()
    events.on(QuestionAsked, told.append)
    events.on(QuestionClosed, told.append)
    return Questions(events), told


async def test_two_front_ends_see_a_question_and_one_answer_closes_it(tmp_path: Path) -> None:
    terminal, page = FrontEnd(), FrontEnd()
    studio = Studio(
        tmp_path, [call("Write", file_path="made.txt", content="x")], "done", tools=(write_tool(),)
    )
    studio.session.questions.attach(terminal)
    studio.session.questions.attach(page)
    run = asyncio.create_task(studio.session.run("write"))
    shown = [await terminal.shown.get(), await page.shown.get()]
    page.answers.put_nowait(True)
    await run

    assert shown[0] == shown[1]
    assert isinstance(shown[0], PermissionQuestion)
    assert shown[0].id == shown[0].call_id
    [closed] = studio.told(QuestionClosed)
    assert (closed.id, closed.answer, closed.reason) == (shown[0].id, {"allow": True}, "answered")
    assert (terminal.withdrawn, page.withdrawn) == ([closed.id], [])
    assert (studio.project / "made.txt").read_text() == "x"
    assert studio.record_names.count("question_closed") == 1


async def test_an_abort_closes_every_question(tmp_path: Path) -> None:
    front = FrontEnd()
    asks = [call("AskUserQuestion", str(n), questions=[{"question": f"{n}?"}]) for n in range(3)]
    studio = Studio(tmp_path, asks, "done", tools=(ask_user_tool(),))
    studio.session.questions.attach(front)
    run = asyncio.create_task(studio.session.submit("ask"))
    shown = [await front.shown.get() for _ in range(3)]
    assert set(studio.session.questions.open) == {question.id for question in shown}
    studio.session.abort()
    result = await run

    assert result.interrupted
    assert not studio.session.questions.open
    assert sorted(front.withdrawn) == sorted(question.id for question in shown)
    closed = studio.told(QuestionClosed)
    assert [(event.reason, event.answer) for event in closed] == [("aborted", None)] * 3
    assert [event.error for event in studio.told(ToolEnded)] == ["Execution interrupted by user"] * 3


async def test_the_questions_of_a_call_have_ids_of_their_own_and_dismissing_one_is_an_answer(
    tmp_path: Path,
) -> None:
    front = FrontEnd()
    asked = call("AskUserQuestion", questions=[{"question": "1?"}, {"question": "2?"}, {"question": "3?"}])
    studio = Studio(tmp_path, [asked], "done", tools=(ask_user_tool(),))
    studio.session.questions.attach(front)
    front.answers.put_nowait("a")
    front.answers.put_nowait(ChoiceAnswer(dismissed=True))
    await studio.session.run("ask")

    first, second = (event.question for event in studio.told(QuestionAsked))
    assert (second.id, first.id) == (f"{first.call_id}.1", first.call_id)
    [result] = [each for each in studio.session.messages if isinstance(each, ToolMessage)]
    assert '"dismissed":"2?"' in result.content


async def test_an_answer_may_come_by_id_and_only_the_first_counts() -> None:
    questions, told = broker()
    front = FrontEnd()
    questions.attach(front)
    asking = asyncio.create_task(questions.settle(PLAN))
    shown = await front.shown.get()

    assert not questions.answer("nothing", True)
    assert not questions.answer(shown.id, 42)  # no answer to this question, which stays open
    assert questions.answer(shown.id, True, by="page")
    assert not questions.answer(shown.id, False, by="editor")
    assert await asking == Settled(answer=PlanAnswer(approve=True), by="page", reason="answered")
    assert [type(event) for event in told] == [QuestionAsked, QuestionClosed]
    assert not questions.answer(shown.id, False)


async def test_a_front_end_that_joins_is_shown_what_is_open_and_one_that_leaves_loses_it() -> None:
    questions, _ = broker()
    first, second = FrontEnd(), FrontEnd()
    leave = questions.attach(first)
    asking = asyncio.create_task(questions.ask(PLAN))
    await first.shown.get()
    questions.attach(second)
    assert (await second.shown.get()).id == "x-r1-0"
    leave()
    second.answers.put_nowait("shorter")
    assert await asking == PlanAnswer(approve=False, feedback="shorter")
    assert first.withdrawn == ["x-r1-0"]


async def test_without_anybody_there_is_no_question_and_no_answer() -> None:
    questions, told = broker()
    assert await questions.ask(PLAN) is None
    assert told == []


async def test_a_question_may_wait_for_somebody_to_come() -> None:
    questions, _ = broker()
    asking = asyncio.create_task(questions.ask(PLAN, wait=True))
    await asyncio.sleep(0)
    assert list(questions.open) == ["x-r1-0"]
    front = FrontEnd()
    front.answers.put_nowait(True)
    questions.attach(front)
    assert await asking == PlanAnswer(approve=True)


async def test_front_ends_that_break_or_do_not_answer_leave_it_to_the_others() -> None:
    questions, told = broker()

    async def breaks(question: Question) -> object:
        raise RuntimeError("no screen")

    async def shrugs(question: Question) -> object:
        return None

    async def answers(question: Question) -> object:
        return PermissionAnswer(allow=True) if isinstance(question, PermissionQuestion) else "blue"

    questions.attach(breaks)
    questions.attach(shrugs)
    assert await questions.settle(PLAN) == Settled(reason="fault", fault="RuntimeError: no screen")
    questions.attach(answers)
    colour = ChoiceQuestion(question="Which colour?", call_id="x-r1-1")
    assert await questions.ask(colour) == ChoiceAnswer(chosen=("blue",))
    assert [event.reason for event in told if isinstance(event, QuestionClosed)] == ["fault", "answered"]


async def test_whoever_wrote_a_handler_hears_that_its_word_is_no_answer(
    caplog: pytest.LogCaptureFixture,
) -> None:
    questions, _ = broker()

    async def handler(question: Question) -> object:
        return "allow_session"

    questions.attach(handler)
    settled = await questions.settle(PermissionQuestion(tool_name="Write", tool_input={}, cwd="/"))

    assert settled.fault == "it answered with str"
    [said] = caplog.messages
    assert said.startswith("The handler of a question returned 'allow_session', which is not an answer to it")
    assert "'allow-session'" in said


async def test_an_answer_that_a_journal_knows_is_not_asked_for_again() -> None:
    questions, told = broker()
    front = FrontEnd()
    questions.attach(front)
    questions.known["x-r1-0"] = {"approve": True, "feedback": "go"}
    assert await questions.ask(PLAN) == PlanAnswer(approve=True, feedback="go")
    assert front.shown.empty()
    assert [event.by for event in told if isinstance(event, QuestionClosed)] == ["journal"]


async def test_questions_that_belong_to_no_call_have_numbers() -> None:
    questions, told = broker()

    async def yes(question: Question) -> object:
        return True

    questions.attach(yes)
    for _ in range(2):
        await questions.ask(PlanQuestion(plan="1. Look"))
    ids = [event.question.id for event in told if isinstance(event, QuestionAsked)]
    assert ids == ["question-1", "question-3"]


async def test_a_front_end_that_leaves_before_it_could_look_keeps_nobody_waiting() -> None:
    questions, told = broker()
    first = FrontEnd()
    leave_first = questions.attach(first)
    asking = asyncio.create_task(questions.settle(PLAN))
    await first.shown.get()
    leave_second = questions.attach(FrontEnd())
    leave_second()  # its task has not begun
    leave_first()
    async with asyncio.timeout(5):
        assert await asking == Settled(reason="nobody")
    assert [type(event) for event in told] == [QuestionAsked, QuestionClosed]


async def test_a_handler_that_is_attached_twice_is_asked_twice_and_leaves_once_each() -> None:
    questions, _ = broker()
    seen: list[str] = []

    async def shrug(question: Question) -> object:
        seen.append(question.id)
        return None

    leave, _ = questions.attach(shrug), questions.attach(shrug)
    async with asyncio.timeout(5):
        assert await questions.settle(PLAN) == Settled(reason="nobody")
    assert len(seen) == 2
    leave()
    assert questions.attended
