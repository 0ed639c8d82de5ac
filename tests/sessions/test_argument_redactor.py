from __future__ import annotations

import random

import pytest

from robota.core.jsontext import decode
from robota.sessions.journal.stream_run import ArgumentRedactor
from robota.sessions.redaction import Redactor

PLAIN = '{"file_path":"src/main.py","limit":20}'
SECRETS = [
    ('{"user[password]":"SunnyMeadow7"}', "SunnyMeadow7"),
    ('{"headers":[["x-api-key","k9Qz71mmPlum"]]}', "k9Qz71mmPlum"),
    ('{"command":"export DB_PASSWORD=SunnyMeadow7; run"}', "SunnyMeadow7"),
]


def split(text: str, seed: int) -> list[str]:
    chance = random.Random(seed)
    cuts = sorted(chance.sample(range(1, len(text)), 5))
    return [text[start:end] for start, end in zip([0, *cuts], [*cuts, len(text)], strict=True)]


def stream(pieces: list[str]) -> list[str]:
    redactor = ArgumentRedactor(Redactor())
    taken: list[str] = []
    for piece in pieces:
        redactor.push(piece)
        taken += redactor.take()
    assert taken == []
    return redactor.take(final=True)


def test_arguments_without_secrets_keep_their_pieces() -> None:
    pieces = split(PLAIN, 1)
    assert stream(pieces) == pieces


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(("arguments", "secret"), SECRETS)
def test_a_secret_in_arguments_never_shows_however_they_were_cut(
    arguments: str, secret: str, seed: int
) -> None:
    pieces = split(arguments, seed)
    shown = stream(pieces)
    assert len(shown) == len(pieces)
    assert secret not in "".join(shown)
    assert list(decode("".join(shown))) == list(decode(arguments))


def test_arguments_that_were_cut_are_text() -> None:
    assert "SunnyMeadow7" not in "".join(stream(split('{"command":"export DB_PASSWORD=SunnyMeadow7 ', 2)))
