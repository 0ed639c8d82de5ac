"""Redaction held against a corpus of invented secrets and of ordinary text that looks like them.

Every line of `redaction_corpus/*.jsonl` is a case; `ambiguous.jsonl` collects what reasonable people would
judge differently and is not asserted.
"""

from __future__ import annotations

import json
import random
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest

from robota.sessions.redaction import REDACTED, Redactor, StreamRedactor, redact

CORPUS = Path(__file__).parent / "redaction_corpus"
FRAGMENT = 12
HELD_BACK = 256


class Case(NamedTuple):
    input: Any
    secrets: tuple[str, ...]
    keep: tuple[str, ...]
    unchanged: bool
    own: tuple[str, ...]


def _read_cases() -> Iterator[tuple[str, Case]]:
    for path in sorted(CORPUS.glob("*.jsonl")):
        if path.stem == "ambiguous":
            continue
        for line in path.read_text("utf-8").splitlines():
            row = json.loads(line)
            own = tuple(row.get("own", ()))
            yield (
                row["id"],
                Case(row["input"], tuple(row["secrets"]), tuple(row["keep"]), row["unchanged"], own),
            )


CASES = dict(_read_cases())
SECRETS = [name for name, case in CASES.items() if not case.unchanged]
LOOK_ALIKES = [name for name, case in CASES.items() if case.unchanged]

# Names that the key rules know once the JSON is decoded, but that the rules for running text do not read.
ONLY_WHEN_DECODED = frozenset(
    {
        "headers/header-pairs-lower",
        "nested/json-key-escape",
        "plain_values/dict-secret-dotted",
        "plain_values/key-bracket",
        "plain_values/key-with-colon",
        "plain_values/key-with-slash",
        "punctuation_secrets/pairs-list-value",
        "wide_secrets/k8s-secret-json",
    }
)
STREAMED = [
    pytest.param(name, marks=pytest.mark.xfail(strict=True)) if name in ONLY_WHEN_DECODED else name
    for name in SECRETS
    if not CASES[name].own
]


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield key
            yield from _strings(item)
    elif isinstance(value, list):
        for item in value:
            yield from _strings(item)


def _everything_written(value: Any) -> str:
    return "\n".join([json.dumps(value, ensure_ascii=False), *_strings(value)])


def _fragments(secret: str) -> Iterator[str]:
    if len(secret) < FRAGMENT:
        yield secret
    for start in range(len(secret) - FRAGMENT + 1):
        yield secret[start : start + FRAGMENT]


def _same_shape(before: Any, after: Any, *, named: bool = False) -> bool:
    """`named`: the value stands under a name, so it may have been replaced whole."""
    if after == REDACTED and (named or isinstance(before, str)):
        return True
    if isinstance(before, dict) and isinstance(after, dict):
        keys = zip(before, after, strict=True) if len(before) == len(after) else ()
        return len(before) == len(after) and all(
            (old == new or REDACTED in new) and _same_shape(before[old], after[new], named=True)
            for old, new in keys
        )
    if isinstance(before, list) and isinstance(after, list):
        pair = len(before) == 2
        return len(before) == len(after) and all(
            _same_shape(old, new, named=pair and index == 1)
            for index, (old, new) in enumerate(zip(before, after, strict=True))
        )
    if isinstance(before, str):
        return isinstance(after, str)
    return type(before) is type(after) and before == after


def _split(text: str, cuts: random.Random, longest: int) -> list[str]:
    pieces = []
    start = 0
    while start < len(text):
        end = start + cuts.randint(1, longest)
        pieces.append(text[start:end])
        start = end
    return pieces


def _stream(redactor: Redactor, pieces: list[str]) -> list[str]:
    stream = StreamRedactor(redactor)
    taken: list[str] = []
    for count, piece in enumerate(pieces, 1):
        stream.push(piece)
        taken += stream.take()
        assert stream.held == count - len(taken)
        assert sum(map(len, pieces[len(taken) + 1 : count])) <= HELD_BACK
    return taken + stream.take(final=True)


def test_the_corpus_is_large_and_varied() -> None:
    assert len(SECRETS) >= 450
    assert len(LOOK_ALIKES) >= 450


@pytest.mark.parametrize("name", SECRETS)
def test_a_secret_goes_and_what_stands_beside_it_stays(name: str) -> None:
    case = CASES[name]
    written = _everything_written(redact(case.input, secrets=case.own))

    assert [part for secret in case.secrets for part in _fragments(secret) if part in written] == []
    assert [text for text in case.keep if text not in written] == []


@pytest.mark.parametrize("name", STREAMED)
def test_a_secret_goes_from_the_text_that_a_stream_carries(name: str) -> None:
    case = CASES[name]
    streamed = case.input if isinstance(case.input, str) else json.dumps(case.input, ensure_ascii=False)
    written = Redactor().text(streamed)

    assert [part for secret in case.secrets for part in _fragments(secret) if part in written] == []


@pytest.mark.parametrize("name", LOOK_ALIKES)
def test_a_look_alike_is_left_alone(name: str) -> None:
    case = CASES[name]

    assert redact(case.input, secrets=case.own) == case.input


@pytest.mark.parametrize("name", CASES)
def test_the_answer_keeps_its_shape_and_is_final(name: str) -> None:
    case = CASES[name]
    answer = redact(case.input, secrets=case.own)

    assert _same_shape(case.input, answer)
    assert redact(answer, secrets=case.own) == answer


@pytest.mark.parametrize("name", CASES)
def test_every_way_in_gives_the_same_answer(name: str) -> None:
    case = CASES[name]
    redactor = Redactor(case.own)
    answer = redact(case.input, secrets=case.own)
    cuts = random.Random(zlib.crc32(name.encode()))

    assert redactor.value(case.input) == answer
    assert msgspec.json.decode(redactor.json(msgspec.json.encode(case.input))) == answer
    for text in _strings(case.input):
        whole = redactor.text(text)
        for longest in (1, 5, 20, 90):
            pieces = _split(text, cuts, longest)
            taken = _stream(redactor, pieces)

            assert len(taken) == len(pieces)
            assert "".join(taken) == whole
