from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from robota.core.questions import (
    ChoiceAnswer,
    ChoiceQuestion,
    FormAnswer,
    FormQuestion,
    PermissionAnswer,
    PermissionQuestion,
    PlanAnswer,
    PlanQuestion,
    Question,
    answer_to_plain,
    read_answer,
)

CALL = PermissionQuestion(tool_name="Bash", tool_input={}, cwd="/")


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        (True, PermissionAnswer(allow=True)),
        (False, PermissionAnswer(allow=False)),
        ("allow-session", PermissionAnswer(allow=True, scope="session")),
        ("allow-project", PermissionAnswer(allow=True, scope="project")),
        (PermissionAnswer(allow=False, message="no"), PermissionAnswer(allow=False, message="no")),
    ],
)
def test_each_answer_has_one_meaning(given: object, meant: PermissionAnswer) -> None:
    assert read_answer(CALL, given) == meant


@pytest.mark.parametrize(
    "given",
    [
        1,
        0,
        "allow",
        "yes",
        "",
        b"allow-session",
        ["allow-session"],
        {"allow": "yes"},
        {"allow": True, "for": "ever"},
        {},
        None,
        PermissionAnswer,
        PermissionAnswer(allow=1),  # type: ignore[arg-type]
        PermissionAnswer(allow="yes"),  # type: ignore[arg-type]
        PermissionAnswer(allow=True, scope="ever"),  # type: ignore[arg-type]
        PermissionAnswer(allow=True, scope=["once"]),  # type: ignore[arg-type]
        PermissionAnswer(allow=True, message=None),  # type: ignore[arg-type]
        PermissionAnswer(allow=True, updated_input="rm"),  # type: ignore[arg-type]
    ],
)
def test_nothing_else_is_an_answer(given: object) -> None:
    assert read_answer(CALL, given) is None


ANSWERS = st.builds(
    PermissionAnswer,
    allow=st.booleans(),
    scope=st.sampled_from(["once", "session", "project"]),
    message=st.text(max_size=20),
    updated_input=st.none() | st.dictionaries(st.text(max_size=5), st.integers(), max_size=3),
)


@given(ANSWERS)
def test_an_answer_comes_back_from_its_record(answer: PermissionAnswer) -> None:
    assert read_answer(CALL, answer_to_plain(answer)) == answer


@pytest.mark.parametrize(
    ("question", "given", "meant"),
    [
        (ChoiceQuestion(question="?"), "a", ChoiceAnswer(chosen=("a",))),
        (ChoiceQuestion(question="?"), ["a", "b"], ChoiceAnswer(chosen=("a", "b"))),
        (ChoiceQuestion(question="?"), {"dismissed": True}, ChoiceAnswer(dismissed=True)),
        (ChoiceQuestion(question="?"), [1], None),
        (ChoiceQuestion(question="?"), True, None),
        (PlanQuestion(plan="1."), True, PlanAnswer(approve=True)),
        (PlanQuestion(plan="1."), "shorter", PlanAnswer(approve=False, feedback="shorter")),
        (PlanQuestion(plan="1."), {"approve": True, "mode": "plan"}, PlanAnswer(approve=True, mode="plan")),
        (PlanQuestion(plan="1."), PermissionAnswer(allow=True), None),
        (
            FormQuestion(message="?", schema={}),
            {"action": "accept", "content": {"n": 1}},
            FormAnswer(action="accept", content={"n": 1}),
        ),
        (FormQuestion(message="?", schema={}), {"action": "maybe"}, None),
        (FormQuestion(message="?", schema={}), True, None),
    ],
)
def test_every_kind_of_question_has_its_answers(question: Question, given: object, meant: object) -> None:
    assert read_answer(question, given) == meant
