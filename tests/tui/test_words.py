"""The words of the interface."""

from __future__ import annotations

import ast
import json
import re
import string
from collections.abc import Iterator
from pathlib import Path

import pytest

import robota
from robota.tui.words import LANGUAGES, find_language, load_words

SOURCE = Path(robota.__file__).parent
CATALOGUES = {name: json.loads((SOURCE / f"tui/text/{name}.json").read_text("utf-8")) for name in LANGUAGES}
MODULES = [*(SOURCE / "tui").rglob("*.py"), *(SOURCE / "sdk" / "view").rglob("*.py")]


def fields(text: str) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(text) if name is not None}


def test_all_languages_have_the_same_keys_with_the_same_values() -> None:
    english = CATALOGUES["en"]
    shared = {key for key in english if not key.endswith(".one")}
    for name, texts in CATALOGUES.items():
        assert list(texts) == sorted(texts), f"{name}.json: in order"
        assert {key for key in texts if not key.endswith(".one")} == shared, f"{name}.json: the same keys"
        for key, text in texts.items():
            assert fields(text) == fields(english[key]), f"{name}.json, {key}"
            assert text.strip(), f"{name}.json, {key}"


def test_one_thing_is_not_several() -> None:
    english = load_words("en")
    assert english("view.more-output", count=1) == "... +1 line"
    assert english("view.more-output", count=2) == "... +2 lines"
    assert load_words("ko")("view.more-output", count=1) == load_words("ko")(
        "view.more-output", count=2
    ).replace("2", "1")
    for key, text in CATALOGUES["en"].items():
        if "{count}" in text and not key.endswith(".one"):
            assert f"{key}.one" in CATALOGUES["en"], key


def test_korean_is_korean() -> None:
    for key, text in CATALOGUES["ko"].items():
        words = re.sub(r"\{.*?\}", "", text)
        if any(letter.isalpha() for letter in re.sub(r"\{.*?\}", "", CATALOGUES["en"][key])):
            assert re.search("[가-힣]", words), key


def texts_in(module: Path) -> Iterator[tuple[int, str]]:
    """The texts that a module holds, without docstrings and without what an error or a type says."""
    tree = ast.parse(module.read_text("utf-8"))
    skipped: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant | ast.JoinedStr):
            skipped.update(id(each) for each in ast.walk(node))
        if isinstance(node, ast.Raise):
            skipped.update(id(each) for each in ast.walk(node))
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in skipped:
            yield node.lineno, node.value


SENTENCE = re.compile(r"[A-Za-z]{2,} [A-Za-z]{2,}")
"""Two words with a blank between them are for people."""
COLOURS = {"red", "green", "yellow", "blue", "magenta", "cyan", "black", "white"}
ATTRIBUTES = {"bold", "dim", "italic", "underline", "reverse", "strike", "none", "no"}


def is_style(text: str) -> bool:
    """Whether a text is the name of a style and not a sentence."""
    words = [re.sub(r"^(?:fg:|bg:)?(?:ansi)?(?:bright_?)?", "", word) for word in text.split()]
    return all(word in COLOURS | ATTRIBUTES for word in words)


@pytest.mark.parametrize("module", MODULES, ids=lambda module: str(module.relative_to(SOURCE)))
def test_no_sentence_stands_in_the_code(module: Path) -> None:
    found = [(line, text) for line, text in texts_in(module) if SENTENCE.search(text)]
    assert not [each for each in found if not is_style(each[1])]


def test_every_key_is_in_the_catalogue_and_used() -> None:
    text = "\n".join(module.read_text("utf-8") for module in MODULES)
    for key in CATALOGUES["ko"]:
        group, _, rest = key.rpartition(".")
        beginnings = [f'"{group}.{rest[:size]}' for size in range(len(rest) + 1)] if group else []
        made = any(f"f{start}{{" in text for start in beginnings)
        assert f'"{key}"' in text or f"'{key}'" in text or made, key
    for used in re.findall(r'\b(?:say|words)\(\s*"([a-z.-]+)"', text):
        assert used in CATALOGUES["en"], used


@pytest.mark.parametrize(
    ("wanted", "environment", "language"),
    [
        (None, {}, "en"),
        (None, {"LANG": "ko_KR.UTF-8"}, "ko"),
        (None, {"LANG": "ko_KR.UTF-8", "LC_ALL": "C"}, "en"),
        (None, {"LANG": "de_DE.UTF-8"}, "en"),
        ("ko", {"LANG": "en_US.UTF-8"}, "ko"),
        ("Korean", {}, "ko"),
        ("en", {"LANG": "ko_KR"}, "en"),
        ("\x1b[2J", {}, "en"),
    ],
)
def test_the_language_is_found(wanted: str | None, environment: dict[str, str], language: str) -> None:
    assert find_language(wanted, environment) == language
    assert load_words(language).language == language


def test_values_are_put_in_as_they_are() -> None:
    assert load_words("en")("view.retry", reason="{x} {0}") == "Retrying: {x} {0}"
