"""Blocks as lines of a terminal."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

from robota.sdk.view.markdown import BlockSplitter
from robota.sdk.view.model import Block
from robota.tui.blocks import render_block, render_text
from robota.tui.theme import DARK, LIGHT, Theme, choose_theme

PLAIN = choose_theme("dark", {"NO_COLOR": "1"})
SGR = re.compile(r"\x1b\[[0-9;]*m")
ROOT = Path(__file__).parents[2]


def block(kind: Any, text: str = "", **fields: Any) -> Block:
    return Block(id=1, kind=kind, text=text, **{"gap": False, **fields})


def draw(kind: Any, text: str = "", width: int = 60, theme: Theme = DARK, **fields: Any) -> list[str]:
    return render_block(block(kind, text, **fields), width, theme)


def bare(lines: list[str]) -> list[str]:
    return [SGR.sub("", line) for line in lines]


def markdown(text: str, width: int = 60, theme: Theme = DARK) -> list[str]:
    return draw("answer", text, width, theme, format="markdown")


def test_markdown_has_no_padding_and_few_sequences() -> None:
    assert markdown("# Title") == ["\x1b[1;4mTitle\x1b[0m"]
    assert markdown("Some *words* and `code` here.") == [
        "Some \x1b[3mwords\x1b[0m and \x1b[36mcode\x1b[0m here."
    ]
    assert markdown("- one\n- two") == [" • one", " • two"]
    assert bare(markdown("1. one\n2. two")) == [" 1 one", " 2 two"]
    assert markdown("---") == [f"\x1b[2m{'─' * 40}\x1b[0m"]
    assert markdown("~~old~~") == ["\x1b[9mold\x1b[0m"]


def test_nothing_of_a_text_vanishes() -> None:
    shown = "\n".join(bare(markdown("Use List<String> & <br/>.\n\n<div>\n\n![chart](http://x/y.png)")))
    for part in ("List<String> & <br/>", "<div>", "chart", "http://x/y.png"):
        assert part in shown
    assert bare(markdown("See <https://example.org>.")) == ["See https://example.org."]
    assert bare(markdown("See [docs](https://example.org).")) == ["See docs (https://example.org)."]
    reference = block("answer", "See [docs].", format="markdown", before="[docs]: <https://example.org>")
    assert bare(render_block(reference, 60, DARK)) == ["See docs (https://example.org)."]


def test_definitions_of_links_take_no_line() -> None:
    assert render_block(block("answer", "[a]: https://x", format="markdown", gap=True), 60, DARK) == []


def test_tables_keep_their_columns_with_wide_characters() -> None:
    lines = bare(markdown("| 이름 | n |\n|---|---|\n| 日本語 | 1 |\n| é | 22 |"))
    rows = [line for line in lines if line.strip() and "─" not in line]
    ends = {cell_len(row[: max(row.find("n"), row.find("1"), row.find("22"))]) for row in rows}
    assert len(rows) == 3
    assert len(ends) == 1


@pytest.mark.parametrize(
    "text", ["漢字" * 40, "한국어 문장입니다 " * 12, "word " * 40, "x" * 200, "👩‍💻" * 30]
)
@pytest.mark.parametrize("width", [5, 10, 33, 60])
def test_no_line_is_wider_than_the_screen(text: str, width: int) -> None:
    for lines in (
        markdown(text, width),
        draw("tool", text, width, title="Bash"),
        draw("notice", text, width),
    ):
        assert lines
        assert all(cell_len(line) <= width for line in bare(lines))
        assert "".join(text.split()) in "".join("".join(bare(lines)).split()).replace("·", "")


@pytest.mark.parametrize("width", [1, 2, 3, 4])
@pytest.mark.parametrize("theme", [DARK, LIGHT, PLAIN])
def test_tiny_screens_break_nothing(width: int, theme: Theme) -> None:
    text = "# T\n\n- a *b*\n\n| a | b |\n|--|--|\n| 1 | 2 |\n\n> q\n\n---\n\n漢 `c`"
    kinds = ("user", "thinking", "tool", "diff", "notice", "error", "command", "todo")
    for lines in (markdown(text, width, theme), *(draw(kind, "漢 ab", width, theme) for kind in kinds)):
        assert "".join(lines).strip()
    assert draw("answer", "x = '漢'", width, theme, format="code", language="python")


def test_code_is_highlighted_on_the_terminals_own_background() -> None:
    line = draw("answer", "import os  # why", format="code", language="python")[0]
    assert SGR.sub("", line) == "import os  # why"
    assert "\x1b[94mimport" in line
    assert not re.search(r"\x1b\[[0-9;]*\b(4[0-9]|48;|38;)", line)
    assert draw("answer", "no *language*", format="code") == ["no *language*"]
    assert draw("answer", "odd", format="code", language="no-such-language") == ["odd"]
    assert draw("answer", "\n\ta\n", format="code", language="c") == ["    a"]


def test_a_part_of_a_fence_knows_what_is_above() -> None:
    above, text = '"""A docstring\nbegins', 'import os\n"""\nimport re'
    alone = draw("answer", text, format="code", language="python")
    inside = draw("answer", text, format="code", language="python", before=above)
    assert bare(alone) == bare(inside) == text.split("\n")
    assert "\x1b[94mimport" not in inside[0]
    assert "\x1b[94mimport" in inside[2]


def test_a_fence_in_a_list_is_code_too() -> None:
    lines = markdown("- item\n  ```python\n  import os\n  ```")
    assert "\x1b[94mimport" in "".join(lines)
    assert not any(line != line.rstrip() for line in bare(lines))


def test_calls_show_how_they_ended() -> None:
    done = draw("tool", "a\nb", title="Bash", about="ls -l", state="success", seconds=1.25)
    assert bare(done) == ["✓ Bash(ls -l)  1.2s", "  a", "  b"]
    assert done[0].startswith("\x1b[32m✓")
    assert bare(draw("tool", "no such file", title="Read", state="error")) == ["✗ Read", "  no such file"]
    refused = draw("tool", title="Bash", about="rm x", state="denied")
    assert bare(refused) == ["⊘ Bash(rm x)"]
    assert "9" in (SGR.findall(refused[0])[-2])


def test_changes_have_signs_and_colours() -> None:
    lines = draw("diff", "  same\n- old\n+ new\n... and 3 more lines", format="diff", title="a.py")
    assert bare(lines) == ["    same", "  - old", "  + new", "  ... and 3 more lines"]
    assert lines[1] == "\x1b[31m  - old\x1b[0m"
    assert lines[2] == "\x1b[32m  + new\x1b[0m"


def test_wrapped_rows_stand_below_the_beginning_of_their_line() -> None:
    said = draw(
        "tool", "first\n    of many words\n    https://host/a-long-word", 24, title="Bash", state="success"
    )
    assert bare(said) == ["✓ Bash", "  first", "      of many words", "      https://host/a-lon", "  g-word"]
    assert bare(draw("user", "one two three four five\nsix", 20)) == [
        "> one two three four",
        "  five",
        "> six",
    ]
    assert bare(draw("notice", "one two three four five\nsix", 20)) == [
        "· one two three four",
        "  five",
        "  six",
    ]
    assert bare(draw("todo", "[x] one two three four", 20)) == ["[x] one two", "    three four"]
    assert bare(draw("diff", "+ 한글 한글 한글 한글 한글", 20)) == ["  + 한글 한글 한글", "    한글 한글"]
    assert bare(draw("user", "one two three four five", 12)) == ["> one two", "three four", "five"]


def test_other_blocks() -> None:
    assert bare(draw("user", "two\nlines")) == ["> two", "> lines"]
    assert bare(draw("notice", "Hm.", agent="explorer")) == ["· [explorer] Hm."]
    assert bare(draw("error", "Oh.")) == ["✗ Oh."]
    assert bare(draw("todo", "[x] a\n[>] b\n[ ] c")) == ["[x] a", "[>] b", "[ ] c"]
    assert bare(draw("thinking", "Thought for 2.0s")) == ["✻ Thought for 2.0s"]
    assert render_text("plain", "", 20, DARK) == ["plain"]


def test_a_block_stands_apart_from_the_one_above() -> None:
    assert render_block(block("notice", "x", gap=True), 20, PLAIN)[0] == ""
    assert len(render_block(block("notice", "x"), 20, PLAIN)) == 1


def test_what_was_left_out_can_be_shown() -> None:
    cut = block("tool", "1\n... +1 lines", full="1\n2", title="Bash", state="success")
    assert bare(render_block(cut, 20, DARK, expanded=True)) == ["✓ Bash", "  1", "  2"]
    whole = block("tool", "1", title="Bash", state="success")
    assert render_block(whole, 20, DARK, expanded=True) == render_block(whole, 20, DARK)


def test_without_colours_only_attributes_remain() -> None:
    text = "# T\n\n`code` *i* **b**\n\n```python\nimport os\n```"
    codes = {code for line in markdown(text, theme=PLAIN) for code in SGR.findall(line)}
    assert codes == {"\x1b[1;4m", "\x1b[0m", "\x1b[3m", "\x1b[1m"}
    assert "+" in draw("diff", "+ new", theme=PLAIN)[0]


@pytest.mark.parametrize(
    ("wanted", "environment", "expected"),
    [
        (None, {}, DARK),
        ("light", {}, LIGHT),
        ("dark", {"COLORFGBG": "0;15"}, DARK),
        (None, {"COLORFGBG": "0;15"}, LIGHT),
        ("auto", {"COLORFGBG": "15;0"}, DARK),
        ("nonsense", {}, DARK),
        (None, {"NO_COLOR": ""}, DARK),
        (None, {"NO_COLOR": "1"}, PLAIN),
    ],
)
def test_themes(wanted: str | None, environment: dict[str, str], expected: Theme) -> None:
    assert choose_theme(wanted, environment) == expected


@given(st.text(st.characters(codec="utf-8", exclude_categories=["Cc"]), max_size=200), st.integers(1, 100))
@settings(max_examples=150, deadline=None)
def test_any_text_can_be_drawn(text: str, width: int) -> None:
    for each in ("markdown", "plain", "code"):
        for line in bare(draw("answer", text, width, format=each)):
            assert "\x1b" not in line
            assert "\n" not in line


def sizes(document: str) -> tuple[float, float]:
    """How many bytes a terminal gets for one of prose, and for one of code."""
    splitter = BlockSplitter()
    sums = {False: [0, 0], True: [0, 0]}
    for piece in [*splitter.feed(document), *splitter.finish()]:
        form = {"format": "code" if piece.is_code else "markdown", "language": piece.language}
        lines = draw("answer", piece.text, 90, before=piece.before, **form)
        sums[piece.is_code][0] += len("\r\n".join(lines).encode())
        sums[piece.is_code][1] += len(piece.text.encode())
    (prose, words), (code, source) = sums[False], sums[True]
    return prose / max(words, 1), code / max(source, 1)


@pytest.mark.parametrize("name", ["docs/sdk.md", "docs/commands.md", "docs/tools.md", "README.md"])
def test_finished_text_stays_small(name: str) -> None:
    prose, code = sizes((ROOT / name).read_text("utf-8"))
    assert prose <= 1.8
    assert code <= 2.7
