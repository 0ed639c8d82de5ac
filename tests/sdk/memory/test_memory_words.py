"""What is worth remembering, what must not be, and what belongs to a prompt."""

from __future__ import annotations

import pytest

from robota.sdk.memory.extraction import find_candidates, make_id
from robota.sdk.memory.policy import decide, is_sensitive
from robota.sdk.memory.retrieval import MAX_CHARACTERS, recall
from robota.sessions.redaction import Redactor


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("Please remember that tests need two workers.", [("tests need two workers", "project", 0.9)]),
        ("remember to never push to main!", [("never push to main", "feedback", 0.9)]),
        ("Remember that I prefer tabs. Now fix it.", [("I prefer tabs", "user", 0.9)]),
        ("Remember that see https://x.example/a.b", [("see https://x.example/a.b", "reference", 0.9)]),
        ("Remember that setup.py is old. Remember that it goes.",
         [("setup.py is old", "project", 0.9), ("it goes", "project", 0.9)]),
        ("테스트는 두 개로 나눠서 돌린다고 기억해 줘", [("테스트는 두 개로 나눠서 돌린", "project", 0.9)]),
        ("기억해줘: 배포는 금요일에 하지 않는다", [("배포는 금요일에 하지 않는다", "project", 0.9)]),
        ("앞으로는 한국어로 답해줘", [("앞으로는 한국어로 답해줘", "feedback", 0.75)]),
        ("Do you remember the file?", []),
        ("I remember it well.", []),
        ("Remember that ...", []),
        ("", []),
    ],
)  # fmt: skip
def test_what_a_prompt_asks_to_remember(words: str, expected: list[tuple[str, str, float]]) -> None:
    assert [(each.text, each.type, each.confidence) for each in find_candidates(words)] == expected


def test_a_long_one_is_cut_and_the_same_words_have_one_id() -> None:
    (candidate,) = find_candidates("remember that " + "word " * 100)
    assert len(candidate.text) <= 240
    assert make_id("Use  two workers!") == make_id("use two workers")
    assert len(make_id("x")) == len("mem_") + 12


@pytest.mark.parametrize(
    "text",
    [
        "my password is hunter2",
        "the token: abc",
        "비밀번호는 1234",
        "ghp_" + "a1B2c3D4e5F6" * 3,
        "her number is 078-05-1120",
        "pay with 4111 1111 1111 1111",
    ],
)
def test_secrets_and_numbers_of_people_are_sensitive(text: str) -> None:
    assert is_sensitive(text, Redactor().text)


@pytest.mark.parametrize(
    "text", ["the build number is 1234567890123", "use a token bucket", "passwords are hashed with argon2"]
)
def test_ordinary_words_are_not(text: str) -> None:
    assert not is_sensitive(text, Redactor().text)


def test_the_mode_decides_what_becomes_of_it() -> None:
    assert decide("disabled", 1.0, sensitive=False) == "skip"
    assert decide("auto_save", 1.0, sensitive=True) == "skip"
    assert decide("approval_required", 1.0, sensitive=False) == "queue"
    assert decide("auto_save", 0.85, sensitive=False) == "save"
    assert decide("auto_save", 0.75, sensitive=False) == "queue"


def test_topics_are_chosen_by_their_names_and_then_by_their_notes() -> None:
    topics = [
        ("deploy", "# deploy\n- never on fridays"),
        ("tests", "# tests\n- two workers\n- the tests of deployments are slow"),
        ("style", "# style\n- tabs"),
    ]
    chosen = recall("Can we deploy on Fridays? It is up", topics)
    assert [(each.topic, each.score) for each in chosen] == [("deploy", 6), ("tests", 1)]
    assert chosen[0].text == "- never on fridays"
    assert recall("is it up?", topics) == []


def test_a_prompt_carries_five_topics_and_two_thousand_characters_at_most() -> None:
    body = f"- {'x' * 90}\n" * 5
    topics = [(f"deploy-{number}", f"- old\n{body}- new") for number in range(9)]
    chosen = recall("deploy", topics)
    assert [each.topic for each in chosen] == [f"deploy-{number}" for number in range(5)]
    assert sum(len(each.text) for each in chosen) <= MAX_CHARACTERS
    assert all(each.text.endswith("- new") for each in chosen)
