"""Patterns that are compiled when they are first used."""

from __future__ import annotations

import re

import pytest

from robota._lazy_pattern import lazy_pattern


def test_it_does_what_the_compiled_pattern_does() -> None:
    words = lazy_pattern(r"(?P<first>\w)\w*", re.ASCII)
    assert words.findall("one two") == ["o", "t"]
    assert [found["first"] for found in words.finditer("one two")] == ["o", "t"]
    assert words.sub("-", "one two") == "- -"
    assert words.pattern == r"(?P<first>\w)\w*"
    assert words.groupindex["first"] == 1
    assert lazy_pattern(rb"\d").search(b"a1") is not None


def test_a_mistake_is_told_when_it_is_used() -> None:
    broken = lazy_pattern("(")
    with pytest.raises(re.error):
        broken.search("")
