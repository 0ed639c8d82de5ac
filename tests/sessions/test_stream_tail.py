"""What may be seen of a stream before it is clear how it goes on."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.sessions.test_redaction_corpus import SECRETS, Case

from robota.sessions.redaction import REDACTED, Redactor, StreamRedactor

LONGEST = 1000
FRAGMENT = 12


def seen_at_every_cut(text: str, redactor: Redactor, step: int = 3) -> list[str]:
    """What would be on record if nothing came after each piece."""
    stream, taken, seen = StreamRedactor(redactor), "", []
    for at in range(0, len(text), step):
        stream.push(text[at : at + step])
        taken += "".join(stream.take())
        seen.append(taken + stream.tail())
    return seen


@given(st.lists(st.sampled_from(("river", "of", "a\n", "漢字", "mountain,", "(so)", "문장")), max_size=60))
@settings(max_examples=100, deadline=None)
def test_of_plain_words_only_the_last_may_be_missing(words: list[str]) -> None:
    text = " ".join(words)
    for at, seen in enumerate(seen_at_every_cut(text, Redactor()), 1):
        arrived = text[: at * 3]
        assert arrived.startswith(seen)
        assert not any(letter.isspace() for letter in arrived[len(seen) :])


def fragment(secret: str) -> str:
    """The longest word: the head of a private key is none of it."""
    return max(secret.split(), key=len)[:FRAGMENT]


@pytest.mark.parametrize("cases", SECRETS.values(), ids=SECRETS)
def test_no_secret_is_seen_at_any_cut(cases: list[Case]) -> None:
    leaked = []
    for case in cases:
        if not isinstance(case.input, str) or len(case.input) > LONGEST:
            continue
        redactor = Redactor(case.own)
        whole = redactor.text(case.input)
        hidden = [each for secret in case.secrets if (each := fragment(secret)) not in whole]
        for seen in seen_at_every_cut(case.input, redactor):
            leaked += [f"{case.name}: {seen[-60:]!r}" for each in hidden if each in seen]
    assert leaked == []


def test_of_a_secret_that_we_hold_not_even_its_first_words_are_seen() -> None:
    stream = StreamRedactor(Redactor(["correct horse battery staple"]))
    stream.push("My phrase: correct horse ")
    assert stream.tail() == "My phrase: "
    stream.push("battery staple, you see.\nNow\nlet us go ")
    assert stream.tail() == f"My phrase: {REDACTED}, you see.\nNow\nlet us go "


def test_inside_a_secret_that_goes_on_nothing_is_seen() -> None:
    stream = StreamRedactor(Redactor())
    stream.push("-----BEGIN RSA PRIVATE KEY-----\n" + "MIIEowIBAAKCAQEAx7fGh2k9aHcW8dd1\n" * 40)
    assert stream.take() == []
    stream.push("MIIEowIBAAKCAQEAx7fGh2k9aHcW8dd1\n and then ")
    assert stream.tail() == ""
