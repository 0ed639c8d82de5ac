from __future__ import annotations

import json
from itertools import pairwise

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from robota.core.provider import TextChunk, ToolInputChunk
from robota.providers.local.reply import ChoiceReader, TextDecoder

TEXTS = [
    "",
    "Hello",
    'quote " slash \\ line\nend',
    "żółw 🐢 漢字",
    "\\u0041 \\",
    "tab\tand 🐢🐢",
    '{"answer": "x"}',
]


def read(*pieces: str) -> tuple[str, ChoiceReader, str]:
    reader, text, arguments = ChoiceReader(), "", ""
    for piece in pieces:
        for chunk in reader.feed(piece):
            if isinstance(chunk, TextChunk):
                text += chunk.text
            if isinstance(chunk, ToolInputChunk):
                arguments += chunk.delta
    return text, reader, arguments


def spellings(value: object) -> list[str]:
    return [
        json.dumps(value),
        json.dumps(value, ensure_ascii=False),
        json.dumps(value, separators=(",", ":")),
        json.dumps(value, indent=2),
    ]


@pytest.mark.parametrize("text", TEXTS)
def test_an_answer_is_the_same_wherever_it_is_cut_in_three(text: str) -> None:
    for written in spellings({"answer": text}):
        for first in range(len(written) + 1):
            for second in range(first, len(written) + 1):
                said, reader, _ = read(written[:first], written[first:second], written[second:])
                assert said == text
                assert reader.call() is None


def test_an_answer_is_given_out_as_far_as_it_has_come() -> None:
    assert read('{"answer": "Hel')[0] == "Hel"
    assert read('{"answer": "Hel', "lo\\")[0] == "Hello"
    assert read('{"answer": "Hel', "lo\\", "nyou")[0] == "Hello\nyou"


ARGUMENTS = [
    {},
    {"pattern": "**/*.py"},
    {"text": 'say "}" and \\', "deep": {"list": [1, [2], {"x": "]"}]}},
    {"\\": "\\\\", "🐢": None},
]


@pytest.mark.parametrize("arguments", ARGUMENTS)
def test_a_call_is_the_same_wherever_it_is_cut_in_three(arguments: dict[str, object]) -> None:
    for written in spellings({"name": "Glob", "arguments": arguments}):
        for first in range(len(written) + 1):
            for second in range(first, len(written) + 1):
                said, reader, streamed = read(written[:first], written[first:second], written[second:])
                call = reader.call()
                assert call is not None
                assert (said, call.name, call.arguments) == ("", "Glob", streamed)
                assert msgspec.json.decode(call.arguments) == arguments


def test_a_call_that_is_not_whole_is_none() -> None:
    written = '{"name": "Glob", "arguments": {"a": {"b": "}"}}'
    for end in range(len(written)):
        assert read(written[:end])[1].call() is None


@pytest.mark.parametrize("value", [{"a": [1, "}"]}, [1, 2], 42, True, None, -1.5])
def test_an_answer_that_is_no_text_is_given_out_as_json(value: object) -> None:
    for written in spellings({"answer": value}):
        for cut in range(len(written) + 1):
            assert msgspec.json.decode(read(written[:cut], written[cut:])[0]) == value


def test_half_a_character_does_not_swallow_what_follows() -> None:
    for written in ('\\ud83dabc"', '\\ud83d\\n"', '\\ud83d\\u0041"', '\\ud83d"'):
        whole = TextDecoder().feed(written)
        assert whole.startswith("\ufffd")
        for cut in range(len(written) + 1):
            decoder = TextDecoder()
            assert decoder.feed(written[:cut]) + decoder.feed(written[cut:]) == whole
            assert decoder.over


@given(st.text(), st.booleans(), st.lists(st.integers(0, 60)))
def test_any_text_survives_any_cuts(text: str, ascii_only: bool, cuts: list[int]) -> None:
    written = json.dumps({"answer": text}, ensure_ascii=ascii_only)
    places = [0, *sorted(min(cut, len(written)) for cut in cuts), len(written)]
    pieces = [written[a:b] for a, b in pairwise(places)]
    assert read(*pieces)[0] == text
