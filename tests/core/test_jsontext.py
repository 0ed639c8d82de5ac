from __future__ import annotations

import pytest

from robota.core.jsontext import decode, decode_leniently, encode


def test_what_is_encoded_is_compact_and_comes_back() -> None:
    value = {"a": [1, 2.5, None, True], "ü": "🙂"}
    assert encode(value) == '{"a":[1,2.5,null,true],"ü":"🙂"}'.encode()
    assert decode(encode(value)) == value


def test_half_characters_are_written_as_question_marks() -> None:
    assert encode({"name": "caf\udce9"}) == b'{"name":"caf?"}'


@pytest.mark.parametrize("text", [b"", b"{", b"NaN", b'"\\ud83d"', b'"\xff"', b"1 2", b"[" * 100_000])
def test_what_is_no_json_is_a_value_error(text: bytes) -> None:
    with pytest.raises(ValueError, match=r".*"):
        decode(text)


def test_lenient_reading_takes_what_servers_send() -> None:
    assert decode_leniently(b'\xef\xbb\xbf{"a":"\\ud83d\\ude42 \\ud83d \xff","b":[Infinity]}') == {
        "a": "🙂 � �",
        "b": [float("inf")],
    }


@pytest.mark.parametrize("text", [b"", b"{", b"[" * 100_000])
def test_lenient_reading_has_its_limits(text: bytes) -> None:
    with pytest.raises(ValueError, match=r".*"):
        decode_leniently(text)
