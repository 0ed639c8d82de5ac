"""JSON with comments: what is read, and where things stand."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from robota.sdk.settings.jsonc import JsoncError, find_line, parse_jsonc, read_jsonc

SETTINGS = """\ufeff// at the top
{
  "model": "a // no comment", /* here
  too */ "permissions": {
    "deny": ["Read(/*)", "Bash(rm \\"*\\")",], // trailing
  },
}
"""
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(alphabet=st.characters(exclude_categories=["Cs"]))
)
KEYS = st.text('ab/*"\\ ', max_size=4)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=12,
)


def test_comments_and_trailing_commas_are_read_and_texts_keep_their_slashes() -> None:
    assert read_jsonc(SETTINGS) == {
        "model": "a // no comment",
        "permissions": {"deny": ["Read(/*)", 'Bash(rm "*")']},
    }


@pytest.mark.parametrize(
    ("path", "line"),
    [
        (("model",), 3),
        (("permissions",), 4),
        (("permissions", "deny", 1), 5),
        (("permissions", "no"), 4),
        ((), 2),
    ],
)
def test_every_value_has_its_line(path: tuple[str | int, ...], line: int) -> None:
    assert find_line(SETTINGS, path) == line


@given(VALUES)
def test_whatever_is_json_reads_the_same_in_both_readers(value: object) -> None:
    for text in (json.dumps(value), json.dumps(value, indent=3, ensure_ascii=False)):
        assert parse_jsonc(text).value == read_jsonc(text) == value
        assert parse_jsonc(f"/* {chr(10)} */ {text} // end").value == value


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("", 1, "the text ends too early"),
        ('{\n "a": 1\n "b": 2}', 3, 'a comma or } is missing: " does not belong there'),
        ('{\n\n "a" 1}', 3, "a colon is missing behind the key 'a'"),
        ("{\n a: 1}", 2, "a key in double quotes is missing: a does not belong there"),
        ("[1,\n two]", 2, "two is not a value"),
        ("[1,\n , 2]", 2, ", does not belong there"),
        ('{"a": "b\n}', 1, "a text has no end"),
        ("[1] /* never", 1, "something behind the end"),
        ("[1,\n/* never", 2, "a comment has no end"),
        ("{}\n{}", 2, "something behind the end"),
        ("[" * 100_000, 1, "nested too deeply"),
        ('["\\x"]', 1, "is not a value"),
        ("[+1]", 1, "+1 is not a value"),
    ],
)
def test_what_is_not_json_is_named_with_its_line(text: str, line: int, message: str) -> None:
    with pytest.raises(JsoncError) as failure:
        read_jsonc(text)

    assert failure.value.line == line
    assert message in str(failure.value)
