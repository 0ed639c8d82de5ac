"""Markdown cut into blocks while it is written."""

from __future__ import annotations

import cProfile
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from robota.sdk.view.markdown import CODE_BEFORE, CODE_LINES, BlockSplitter, Piece

NASTY = """\
Intro line one
line two

# Heading
Setext heading
===
* * *
- item 1
  continued

  own paragraph
- item 2
lazy line

      deep
1. one
2. two
   ```sh
   echo fence in a list

   ```
2024. is not a list
> quote
lazy quote
>
> - list in quote

| a | b |
|---|---|
| 1 | `|` |
x | y

```python
def f():
    return "```"

# Not a heading
```
~~~ diff extra words
- old
```
+ new
~~~~
  ```
  indented
    more
  ```
    indented code

    more code
para with `code
span` over lines
***bold
[one]: https://example.org/1 "One"

[two]: <https://example.org/2>
See [one] and [three][two].

<div>
html

</div>
<!-- a comment

- over blank lines
-->
日本語の段落 👩‍💻
한국어 문단

Table?
no | table
end without newline"""

CHUNKS = st.lists(st.integers(1, 40), min_size=1)


def split(text: str, sizes: list[int] | None = None) -> list[Piece]:
    splitter, pieces, at, turn = BlockSplitter(), [], 0, 0
    while at < len(text):
        size = len(text) if sizes is None else sizes[turn % len(sizes)]
        pieces += splitter.feed(text[at : at + size])
        at, turn = at + size, turn + 1
    return [*pieces, *splitter.finish()]


def whole(text: str) -> list[str]:
    """The blocks of the document parsed once, without the definitions of links, which are no block."""
    lines = text.split("\n")
    tokens = MarkdownIt("commonmark").enable("table").parse(text)
    blocks = []
    for token in tokens:
        if token.level or not token.map:
            continue
        kept = lines[slice(*token.map)]
        blocks.append(
            "\n".join(kept).strip("\n").rstrip()
            if token.type != "fence"
            else token.content.removesuffix("\n")
        )
    return blocks


@pytest.mark.slow
@given(CHUNKS)
@settings(max_examples=300, deadline=None)
def test_the_blocks_do_not_depend_on_the_deltas(sizes: list[int]) -> None:
    assert split(NASTY, sizes) == split(NASTY)


LINES = [*dict.fromkeys(NASTY.split("\n")), "", "", "---", "```", "- x", "    y", "| q |", "|---|", "plain"]


@given(st.lists(st.sampled_from([line for line in LINES if not line.startswith("[")]), max_size=30))
@settings(max_examples=300, deadline=None)
def test_they_are_the_blocks_of_the_whole_document(lines: list[str]) -> None:
    text = "\n".join(lines)
    assert [piece.text for piece in split(text)] == whole(text)


def test_a_fence_that_a_list_hides_until_it_is_closed() -> None:
    assert [piece.text for piece in split("1. one\n  ```\n```\nafter")] == ["1. one", "", "after"]


@given(st.text(alphabet="ab \n`~-*#>|1.:=\t", max_size=80), CHUNKS)
@settings(max_examples=300, deadline=None)
def test_no_word_is_lost(text: str, sizes: list[int]) -> None:
    assert split(text, sizes) == split(text)
    shown = "".join(piece.text for piece in split(text))
    assert [letter for letter in shown if letter in "ab"] == [
        letter for letter in text if letter in "ab"
    ] or (
        "```" in text or "~~~" in text  # the words behind the mark are the language
    )


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("# Heading\n", 1),
        ("---\n", 1),
        ("A paragraph.\n", 0),
        ("A paragraph.\n\n", 1),
        ("```\ncode\n", 0),
        ("```\ncode\n```\n", 1),
        ("- item\n\n", 0),
        ("- item\n\nNext", 0),
        ("- item\n\nNext\n", 1),
        ("| a |\n|---|\n| 1 |\n", 0),
        ("> quote\n\n", 0),
    ],
)
def test_a_block_is_given_away_as_soon_as_it_is_final(text: str, count: int) -> None:
    assert len(BlockSplitter().feed(text)) == count


def test_the_tail_is_what_was_not_given_away() -> None:
    splitter = BlockSplitter()
    splitter.feed("Done.\n\nNot yet")
    assert splitter.tail == "Not yet"
    splitter.feed(" done\n```py\nx = 1\ny")
    assert splitter.tail == "x = 1\ny"
    assert [piece.text for piece in splitter.finish()] == ["x = 1\ny"]
    assert splitter.is_empty


def test_a_long_fence_comes_in_parts() -> None:
    lines = [f"line {number}" for number in range(100)]
    pieces = split("\n".join(["```py", *lines, "```", "After."]), [7])
    code = [piece for piece in pieces if piece.is_code]
    assert [len(piece.text.split("\n")) for piece in code] == [CODE_LINES, CODE_LINES, 20]
    assert "\n".join(piece.text for piece in code) == "\n".join(lines)
    assert [piece.continues for piece in code] == [False, True, True]
    assert code[2].before.split("\n") == lines[80 - CODE_BEFORE : 80]
    assert pieces[-1] == Piece("After.")


def test_a_fence_that_ends_with_its_fortieth_line_has_no_empty_part() -> None:
    body = "\n".join(map(str, range(CODE_LINES)))
    assert [piece.text for piece in split(f"```\n{body}\n```\n", [3])] == [body]


def test_links_that_were_defined_above_are_known_below() -> None:
    pieces = split("[one]: https://example.org\n\nText.\n\nSee [One] and [two].\n")
    assert [piece.text for piece in pieces] == ["[one]: https://example.org", "Text.", "See [One] and [two]."]
    assert [piece.before for piece in pieces[1:]] == ["", "[One]: <https://example.org>"]


def test_what_was_not_given_away_can_be_taken_back() -> None:
    splitter = BlockSplitter()
    splitter.feed("```\nhalf an ans")
    splitter.discard()
    assert splitter.tail == ""
    assert [piece.text for piece in [*splitter.feed("Again."), *splitter.finish()]] == ["Again."]


@pytest.mark.parametrize(
    "line",
    [
        "- item",
        "1. item",
        "| a | b |",
        "> quote\nlazy",
        "- item\nlazy",
        "2. word",
        "<!-- x\n",
        "x",
        "    code",
        "```",
    ],
)
@pytest.mark.slow
def test_long_blocks_cost_no_more_per_line(line: str) -> None:
    """Counted in calls: what is quadratic makes sixteen times as many for four times as much."""

    def count_calls(count: int) -> int:
        splitter, text = BlockSplitter(), f"{line}\n" * count
        profile = cProfile.Profile()
        with profile:
            for at in range(0, len(text), 5):
                splitter.feed(text[at : at + 5])
            splitter.finish()
        return sum(entry.callcount for entry in profile.getstats())

    count_calls(10)
    assert count_calls(600) < 8 * count_calls(150)


def test_random_documents_are_cut_the_same_at_any_place() -> None:
    chance = random.Random(7)
    for _ in range(100):
        text = "\n".join(chance.choices(LINES, k=40))
        assert split(text, [chance.randint(1, 9)]) == split(text)
