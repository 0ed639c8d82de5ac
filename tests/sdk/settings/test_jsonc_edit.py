"""Changes to the text of settings files: what is changed, and everything that is not."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from robota.sdk.settings.jsonc import read_jsonc
from robota.sdk.settings.jsonc_edit import add_item, remove_item, remove_value, set_value

KEYS = ["a", "b", "permissions", 'q"//']
BLANKS = st.sampled_from(["", "", " ", "\n", "\n  ", "\t", "\r\n", "/* c{} */", " // c},\n", "\n /* x\n*/ "])
PLAIN = st.none() | st.booleans() | st.integers(-99, 99) | st.text('ab/*\\"{},\n é', max_size=5)
VALUES = st.recursive(
    PLAIN,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=3),
    max_leaves=6,
)


@st.composite
def objects(draw: st.DrawFn, depth: int = 2) -> str:
    """An object as somebody may have written it: any blanks, comments, trailing commas, keys given twice."""
    members = []
    for key in draw(st.lists(st.sampled_from(KEYS), max_size=4)):
        value = (
            draw(objects(depth - 1) | lists(depth - 1))
            if depth and draw(st.booleans())
            else json.dumps(draw(PLAIN))
        )
        members.append(f"{draw(BLANKS)}{json.dumps(key)}{draw(BLANKS)}:{draw(BLANKS)}{value}{draw(BLANKS)}")
    return draw(enclosed(members, "{}"))


@st.composite
def lists(draw: st.DrawFn, depth: int = 1) -> str:
    items = [json.dumps(value) for value in draw(st.lists(PLAIN, max_size=4))]
    return draw(enclosed([f"{draw(BLANKS)}{item}{draw(BLANKS)}" for item in items], "[]"))


@st.composite
def enclosed(draw: st.DrawFn, parts: list[str], brackets: str) -> str:
    comma = "," + draw(BLANKS) if parts and draw(st.booleans()) else ""
    inner = ",".join(parts) + comma if parts else draw(BLANKS)
    return brackets[0] + inner + brackets[1]


@st.composite
def documents(draw: st.DrawFn) -> str:
    return draw(BLANKS) + draw(objects()) + draw(st.sampled_from(["", "\n", " // end", "\n\n"]))


PATHS = st.lists(st.sampled_from(KEYS), min_size=1, max_size=3)
COMMENT = re.compile(r'"(?:[^"\\]|\\.)*"|(//[^\n]*|/\*.*?\*/)', re.DOTALL)


def comments(text: str) -> list[str]:
    return [found[1].rstrip() for found in COMMENT.finditer(text) if found[1]]


def holder(value: Any, path: list[str]) -> Any:
    """The object that has the last key of the path, made as far as it is missing."""
    for key in path[:-1]:
        value = value.setdefault(key, {})
        if not isinstance(value, dict):
            raise ValueError
    return value


def changed_or_refused(change: Callable[[], Any]) -> Any:
    try:
        return change()
    except ValueError:
        return ValueError


@given(documents(), PATHS, VALUES)
def test_a_value_that_is_set_is_the_only_thing_that_changes(text: str, path: list[str], value: Any) -> None:
    before = read_jsonc(text)

    def expect() -> Any:
        holder(before, path)[path[-1]] = copy.deepcopy(value)
        return before

    after = changed_or_refused(lambda: set_value(text, path, value))

    assert (after if after is ValueError else read_jsonc(after)) == changed_or_refused(expect)
    if after is not ValueError:
        assert set_value(after, path, value) == after
        assert not set(comments(after)) - set(comments(text))
        assert after.endswith("\n") == text.endswith("\n")


@given(documents(), PATHS)
def test_a_key_that_is_removed_leaves_all_comments_outside_of_it(text: str, path: list[str]) -> None:
    before = read_jsonc(text)
    expected = copy.deepcopy(before)
    inside: Any = expected
    for key in path[:-1]:
        inside = inside.get(key) if isinstance(inside, dict) else None
    there = isinstance(inside, dict) and path[-1] in inside
    if isinstance(inside, dict):
        inside.pop(path[-1], None)

    after = remove_value(text, path)

    assert read_jsonc(after) == expected
    if not there:
        assert after == text


@given(documents(), PATHS, PLAIN)
def test_an_item_is_added_once_behind_the_others_and_comments_stay(
    text: str, path: list[str], item: Any
) -> None:
    before = read_jsonc(text)

    def expect() -> Any:
        found = holder(before, path).setdefault(path[-1], [])
        if not isinstance(found, list):
            raise ValueError
        if item not in found:
            found.append(item)
        return before

    after = changed_or_refused(lambda: add_item(text, path, item))

    assert (after if after is ValueError else read_jsonc(after)) == changed_or_refused(expect)
    if after is not ValueError:
        assert comments(after) == comments(text)
        gone = remove_item(after, path, item)
        found = read_jsonc(gone)
        for key in path:
            found = found[key]
        assert item not in found


SETTINGS = """{
    // my model
    "model": "one", // the fast one
    "permissions": {
        "deny": ["Read(.env)"],
        "allow": [
            "Bash(ls *)", // harmless
            "Read"
        ]
    },
    "unknown": {"kept": true}
}
"""


def test_people_find_their_file_as_they_laid_it_out() -> None:
    text = set_value(SETTINGS, ["model"], "two")
    text = add_item(text, ["permissions", "allow"], "Bash(git status)")
    text = add_item(text, ["permissions", "deny"], "Read(*.pem)")
    text = set_value(text, ["memory", "enabled"], True)
    text = set_value(text, ["unknown", "more"], 1)

    assert (
        text
        == """{
    // my model
    "model": "two", // the fast one
    "permissions": {
        "deny": ["Read(.env)", "Read(*.pem)"],
        "allow": [
            "Bash(ls *)", // harmless
            "Read",
            "Bash(git status)"
        ]
    },
    "unknown": {"kept": true, "more": 1},
    "memory": {
        "enabled": true
    }
}
"""
    )


def test_what_is_removed_takes_its_line_along() -> None:
    text = remove_value(SETTINGS, ["unknown"])
    text = remove_value(text, ["permissions", "deny"])
    text = remove_item(text, ["permissions", "allow"], "Read")

    assert (
        text
        == """{
    // my model
    "model": "one", // the fast one
    "permissions": {
        "allow": [
            "Bash(ls *)" // harmless
        ]
    }
}
"""
    )


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", '{\n  "a": 1\n}\n'),
        ("{}", '{\n  "a": 1\n}'),
        ('{"b":2}', '{"b":2, "a": 1}'),
        ('{\r\n\t"b": 2,\r\n}\r\n', '{\r\n\t"b": 2,\r\n\t"a": 1,\r\n}\r\n'),
        ("{ // nothing yet\n}\n", '{ // nothing yet\n  "a": 1\n}\n'),
    ],
)
def test_a_new_key_follows_the_style_of_the_file(before: str, after: str) -> None:
    assert set_value(before, ["a"], 1) == after
