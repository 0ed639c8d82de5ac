"""Redaction is pure, idempotent and total; a stream is redacted as the whole text would be (L-07, L-08)."""

from __future__ import annotations

import copy
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from robota.sessions.redaction import REDACTED, Redactor, StreamRedactor, redact

OWN = "held-value-" + "0123456789abcdef" * 20
SECRETS = [
    "ghp_16C7e42F292c6912E7710c838347Ae178B4a",
    "sk-ant-api03-" + "Qm9vdGhzIGFyZSBvcGVu1" * 18,
    "eyJhbGciOiJIUzI1NiJ9." + "eyJzdWIiOiIxMjM0NTY3ODkwIn0" * 30 + ".dozjgNryP4J3jVmNHl0w5N",
    "-----BEGIN RSA PRIVATE KEY-----\n"
    + "MIIEowIBAAKCAQEAx7fGh2k9aHcW8dd1\n" * 40
    + "-----END RSA PRIVATE KEY-----",
    OWN,
]
TYING = [
    "DB_PASSWORD={}\n",
    '"password": "{}", ',
    '{{\\"apiKey\\":\\"{}\\"}}',
    "Cookie: sid={}; theme=dark\n",
    "Authorization: Bearer {}\n",
    "https://u:{}@host/x ",
    "--password {} ",
]
FILLING = [
    "the token of the key ",
    "\n",
    "x" * 200,
    "def f(token): return token\n",
    '{"a": 1}, ',
    "\\n",
    "=",
    '"',
    "é",
]

words = st.text("abcxyzABC 019.,\nß漢", max_size=12)
planted = st.sampled_from(SECRETS) | st.builds(str.format, st.sampled_from(TYING), st.just("Pl4nted" * 60))
parts = st.lists(st.sampled_from(FILLING) | planted | words, max_size=8)
texts = parts.map("".join)
lines = parts.map("\n".join)


def stream(redactor: Redactor, text: str, sizes: list[int]) -> list[str]:
    """The pieces as they are taken, with the hold-back checked on the way."""
    redacting, taken, pieces, position = StreamRedactor(redactor), [], [], 0
    for size in sizes * (len(text) // max(1, sum(sizes)) + 1):
        pieces.append(text[position : position + size])
        position += size
        redacting.push(pieces[-1])
        taken += redacting.take()
        assert len("".join(pieces[len(pieces) - redacting.held + 1 :])) <= 256
    taken += redacting.take(final=True)
    assert (len(taken), redacting.held) == (len(pieces), 0)
    return taken


@given(texts, st.lists(st.integers(1, 300), min_size=1, max_size=6))
@settings(max_examples=300, deadline=None)
def test_a_stream_is_redacted_as_the_whole_text_for_any_splitting(text: str, sizes: list[int]) -> None:
    redactor = Redactor([OWN])
    assert "".join(stream(redactor, text, sizes)) == redactor.text(text)


def test_a_secret_that_spans_pieces_is_replaced_in_the_piece_where_it_began() -> None:
    redacting = StreamRedactor(Redactor())
    for piece in ("my key is sk-ant", "-api03-Qm9vdGhzIGF", "yZSBvcGVu, keep it"):
        redacting.push(piece)
    assert redacting.take() == []
    assert redacting.take(final=True) == [f"my key is {REDACTED}", "", ", keep it"]


@given(lines)
@settings(max_examples=300, deadline=None)
def test_planted_secrets_do_not_survive_and_twice_changes_nothing_more(text: str) -> None:
    redactor = Redactor([OWN])
    once = redactor.text(text)
    assert redactor.text(once) == once
    assert not any(secret in once for secret in SECRETS)


def test_a_doubled_quote_is_one_of_the_secret_wherever_it_stands() -> None:
    redactor = Redactor()
    for length in range(1, 400):
        text = f"user: jane\npassword: 'a{'b' * length}''s end of it' # last\n"
        assert redactor.text(text) == f"user: jane\npassword: '{REDACTED}' # last\n"
        assert "".join(stream(redactor, text, [1, 7, length])) == redactor.text(text)


scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | words
names = st.sampled_from(["a", "tokens", "key", "author", "id", "path", "max_tokens", "count"]) | words
plain_values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(names, inner, max_size=4),
    max_leaves=20,
)


@given(plain_values)
@settings(max_examples=200, deadline=None)
def test_values_without_secrets_come_back_as_they_are(value: Any) -> None:
    assert redact(value) is value


@given(plain_values, planted)
@settings(max_examples=200, deadline=None)
def test_the_argument_is_never_changed(value: Any, secret: str) -> None:
    holder = {"x": value, "note": secret, "password": [secret]}
    before = copy.deepcopy(holder)
    redacted = redact(holder)
    assert holder == before
    assert redacted["password"] == REDACTED
    assert redact(redacted) == redacted


def test_depth_cycles_and_foreign_objects_are_survived() -> None:
    deep: Any = "x"
    for _ in range(5000):
        deep = {"a": [deep]}
    assert redact(deep) is deep
    cycle: Any = {"password": "hunter2", "list": []}
    cycle["list"].append(cycle)
    redacted = redact(cycle)
    assert redacted["password"] == REDACTED
    assert redacted["list"][0] is redacted
    marker = object()
    odd = {
        1: "a",
        None: marker,
        ("t",): b"password=hunter2",
        "s": {"DB_PASSWORD=hunter2"},
        "t": ({"pwd": "x1y2z3"},),
    }
    assert redact(odd) == {
        1: "a",
        None: marker,
        ("t",): b"password=[REDACTED]",
        "s": {f"DB_PASSWORD={REDACTED}"},
        "t": ({"pwd": REDACTED},),
    }


def test_two_redacted_keys_keep_both_their_values() -> None:
    value = {SECRETS[0]: 1, SECRETS[1]: 2}
    assert redact(value) == {REDACTED: 1, f"{REDACTED} (2)": 2}
