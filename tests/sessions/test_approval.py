from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from robota.sessions.permissions.approval import (
    PermissionAnswer,
    answer_from_record,
    answer_to_record,
    read_answer,
)


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
    assert read_answer(given) == meant


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
        {"allow": True},
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
    assert read_answer(given) is None


ANSWERS = st.builds(
    PermissionAnswer,
    allow=st.booleans(),
    scope=st.sampled_from(["once", "session", "project"]),
    message=st.text(max_size=20),
    updated_input=st.none() | st.dictionaries(st.text(max_size=5), st.integers(), max_size=3),
)


@given(ANSWERS)
def test_an_answer_comes_back_from_its_record(answer: PermissionAnswer) -> None:
    assert answer_from_record(answer_to_record(answer)) == answer


def test_a_record_of_something_else_holds_no_answer() -> None:
    assert answer_from_record({"allow": "yes"}) is None
    assert answer_from_record({}) is None
