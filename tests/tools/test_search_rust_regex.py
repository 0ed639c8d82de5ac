from __future__ import annotations

import subprocess

import pytest

from robota.tools.search.engine import find_engine
from robota.tools.search.rust_regex import RegexError, translate_regex


@pytest.mark.parametrize(
    ("pattern", "literals"),
    [
        ("needle", (b"needle",)),
        (r"ab\s+longer\d", (b"longer",)),
        ("one|two", (b"one", b"two")),
        ("(one|two)suffix", (b"suffix",)),
        ("colou?r", (b"colo",)),
        ("ab*", (b"a",)),
        ("one|.*", ()),
        ("(?i)needle", ()),
        (r"a\.b", (b"a.b",)),
        ("é+ß", ("ß".encode(),)),
        (".*", ()),
    ],
)
def test_a_text_that_every_match_needs_is_found(pattern, literals):
    assert translate_regex(pattern).literals == literals


def test_ignoring_case_no_text_is_needed():
    assert translate_regex("needle", ignore_case=True).literals == ()


@pytest.mark.parametrize(
    ("pattern", "text", "matched"),
    [
        ("a(?i)b|c", "aB", "aB"),
        ("a(?i)b|c", "C", "C"),
        ("a(?i)b|c", "AB", None),
        ("(?i)a(?-i)b", "Ab", "Ab"),
        ("(?i)a(?-i)b", "AB", None),
        ("(?:x(?i)a)b", "xAb", "xAb"),
        ("(?:x(?i)a)b", "xAB", None),
        ("a++", "aaa", "aaa"),
        ("a{2}{2}", "aaaa", "aaaa"),
        ("x{ 2 }", "xx", "xx"),
        ("]}", "]}", "]}"),
        ("[]a]+", "]a", "]a"),
        ("[a-]+", "-a", "-a"),
        ("[^-a]", "b", "b"),
        (r"[\]\[]+", "[]", "[]"),
        (r"\u{e9}\x{df}\x41", "éßA", "éßA"),
        (r"\<b\>", "a b c", "b"),
        ("^b$", "a\nb\nc", "b"),
        (r"\s", "\x1c", None),
        (r"\S", "\x1c", "\x1c"),
        ("[^a]", "\n", None),
        (r"\D\W", "a\n", None),
        ("[[:punct:]]", "a;", ";"),
        ("(?P<first>a)(?<second>b)", "ab", "ab"),
    ],
)
def test_patterns_mean_what_they_mean_in_rust(pattern, text, matched):
    match = translate_regex(pattern).expression.search(text)
    assert (match[0] if match else None) == matched


def ripgrep_accepts(pattern: str) -> bool:
    command = [*find_engine().command, "--no-config", f"--regexp={pattern}", "-"]
    return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=False).returncode < 2


@pytest.mark.parametrize(
    "pattern",
    [
        *[r"\pL", r"\p{Greek}", "[a&&b]", "[a--b]", "[a~~b]", "[[a]b]", "(?x) a", "(?U)a", "(?-u)a"],
        *[r"\A", r"\z", r"\b{start}"],
    ],
)
def test_what_only_rust_has_is_refused_by_name(pattern):
    assert ripgrep_accepts(pattern)
    with pytest.raises(RegexError, match="need"):
        translate_regex(pattern)


@pytest.mark.parametrize(
    "pattern",
    [
        *["(", ")", "[", "[^]", "{", "a{,2}", "a{3,2}", "a|*", "?", "(?", "(?)", "(?q)", "(?<!a)", "(?P=n)"],
        *["\\", r"\e", r"\1", r"\8", r"\é", r"\x4", r"\u{110000}", r"\u{d800}", r"[\d-z]", r"[a-\d]"],
        *[r"[\b]", "[b-a]", "\n", r"\n", r"[\n]", "(?P<n>a)(?P<n>b)"],
    ],
)
def test_what_rust_refuses_is_refused(pattern):
    assert not ripgrep_accepts(pattern)
    with pytest.raises(RegexError):
        translate_regex(pattern)


def test_groups_within_groups_have_an_end():
    with pytest.raises(RegexError, match="nested too deeply"):
        translate_regex("(" * 200 + ")" * 200)


@pytest.mark.parametrize(
    ("pattern", "spans"),
    [
        ("a\\nb", True),
        ("a.b", True),
        ("a\\s", True),
        ("[^a]", True),
        ("\\W", True),
        ("abc\\d", False),
        ("(?-s).", False),
    ],
)
def test_it_is_known_whether_a_match_may_span_lines(pattern, spans):
    assert translate_regex(pattern, multiline=True).spans_lines is spans
