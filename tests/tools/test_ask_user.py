from __future__ import annotations

from typing import Any

import anyio
import msgspec
import pytest

from robota.core.questions import ChoiceAnswer, ChoiceQuestion, QuestionOption, read_answer
from robota.core.tool import Tool, ToolContext, ToolResult, tool_class
from robota.tools.builtins.ask_user import NOBODY, ask_user_tool

pytestmark = pytest.mark.anyio


class Person:
    """Answers from a list, and remembers what was asked."""

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)
        self.asked: list[ChoiceQuestion] = []

    async def ask(self, question: ChoiceQuestion) -> Any:
        self.asked.append(question)
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return read_answer(question, answer)


async def ask(person: Person | None, *questions: dict[str, Any], **more: Any) -> ToolResult:
    context = ToolContext() if person is None else ToolContext(ask=person.ask)
    return await ask_user_tool().run({"questions": list(questions), **more}, context)


def said(result: ToolResult) -> Any:
    assert result.ok
    return msgspec.json.decode(result.text)


def test_it_is_a_tool_that_inspects() -> None:
    tool = ask_user_tool()
    assert isinstance(tool, Tool)
    assert (tool.name, tool_class(tool)) == ("AskUserQuestion", "inspect")
    assert "multiSelect" in tool.description


async def test_a_question_reaches_the_user_with_its_options() -> None:
    person = Person("Postgres")
    result = await ask(
        person,
        {
            "question": "Which database?",
            "header": "Database",
            "options": ["SQLite", {"label": "Postgres", "description": "A server"}],
        },
    )
    assert said(result) == {"answers": {"Which database?": "Postgres"}}
    assert person.asked == [
        ChoiceQuestion(
            question="Which database?",
            header="Database",
            options=(QuestionOption("SQLite"), QuestionOption("Postgres", "A server")),
        )
    ]


async def test_several_options_can_be_chosen_where_that_is_wanted() -> None:
    person = Person(["a", "b"], "c")
    result = await ask(
        person,
        {"question": "Which?", "options": ["a", "b"], "multiSelect": True},
        {"question": "And?", "options": ["c"], "multiSelect": True},
    )
    assert said(result) == {"answers": {"Which?": ["a", "b"], "And?": ["c"]}}
    assert person.asked[0].multi_select


async def test_the_users_own_words_are_an_answer() -> None:
    person = Person("neither, use files")
    result = await ask(person, {"question": "Which?", "options": ["a", "b"]})
    assert said(result) == {"answers": {"Which?": "neither, use files"}}
    assert person.asked[0].allow_free_text


async def test_free_text_can_be_excluded_unless_there_is_no_option() -> None:
    person = Person("a", "words")
    await ask(
        person,
        {"question": "1?", "options": ["a"], "allowFreeText": False},
        {"question": "2?", "allowFreeText": False},
    )
    assert [question.allow_free_text for question in person.asked] == [False, True]


async def test_a_dismissed_question_cancels_the_rest() -> None:
    person = Person("yes", ChoiceAnswer(dismissed=True))
    result = await ask(person, {"question": "1?"}, {"question": "2?"}, {"question": "3?"})
    assert said(result) == {"answers": {"1?": "yes"}, "dismissed": "2?", "cancelled": ["3?"]}
    assert len(person.asked) == 2


async def test_nobody_attached_is_said() -> None:
    result = await ask(None, {"question": "1?"})
    assert said(result) == {"unavailable": True, "reason": NOBODY}


async def test_a_front_end_that_fails_counts_as_nobody() -> None:
    result = await ask(Person(RuntimeError("no screen")), {"question": "1?"})
    assert said(result) == {"unavailable": True, "reason": "Asking failed: RuntimeError: no screen"}


async def test_answers_that_came_with_the_call_are_not_asked_for() -> None:
    person = Person("b")
    result = await ask(person, {"question": "1?"}, {"question": "2?"}, answers={"1?": "a"})
    assert said(result) == {"answers": {"1?": "a", "2?": "b"}}
    assert said(await ask(None, {"question": "1?"}, answers={"1?": "a"})) == {"answers": {"1?": "a"}}


async def test_cancelling_passes_through() -> None:
    asked = anyio.Event()

    async def wait_for_ever(_: ChoiceQuestion) -> None:
        asked.set()
        await anyio.sleep_forever()

    async with anyio.create_task_group() as group:
        group.start_soon(
            ask_user_tool().run, {"questions": [{"question": "1?"}]}, ToolContext(ask=wait_for_ever)
        )
        await asked.wait()
        group.cancel_scope.cancel()
    assert group.cancel_scope.cancelled_caught


@pytest.mark.parametrize(
    ("questions", "field"),
    [
        ([], "questions"),
        ([{"question": "?"}] * 5, "questions"),
        ([{"header": "x"}], "question"),
        ([{"question": "?", "options": [5]}], "options"),
        ([{"question": "?", "options": [{"description": "x"}]}], "label"),
        ([{"question": "?", "multiSelect": "yes"}], "multiSelect"),
    ],
)
async def test_wrong_questions_are_named(questions: list[dict[str, Any]], field: str) -> None:
    result = await ask(Person(), *questions)
    assert not result.ok
    assert field in (result.error or "")
