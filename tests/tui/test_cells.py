from __future__ import annotations

import prompt_toolkit.utils
import pytest
from hypothesis import given
from hypothesis import strategies as st
from prompt_toolkit.utils import get_cwidth

from robota.tui.cells import count_cells, cut, cut_front, tail_height, tail_page, wrap, wrap_line

texts = st.text(alphabet="ab 漢字한é\u0301\t-", max_size=200)


@given(texts, st.integers(2, 40))
def test_no_wrapped_line_is_wider_than_the_screen_and_nothing_is_lost(text: str, width: int) -> None:
    pieces = wrap_line(text, width)

    assert all(get_cwidth(piece) <= width for piece in pieces)
    assert "".join("".join(pieces).split()) == "".join(text.split())


@given(texts, st.integers(1, 40))
def test_a_cut_line_fits(text: str, width: int) -> None:
    assert get_cwidth(cut(text, width)) <= max(width, 1)
    assert get_cwidth(cut_front(text, width)) <= max(width, 1)


def test_of_a_path_the_name_of_the_file_stays() -> None:
    assert cut_front("src/robota/tui/cells.py", 10) == "…/cells.py"
    assert cut("src/robota/tui/cells.py", 10) == "src/robot…"


@pytest.mark.parametrize(("rows", "height"), [(1, 0), (4, 0), (6, 1), (24, 4), (30, 6), (100, 6)])
def test_the_tail_leaves_room_on_small_screens(rows: int, height: int) -> None:
    assert tail_height(rows) == height


def test_a_full_tail_turns_by_half_a_page() -> None:
    lines = [f"line {number}" for number in range(12)]
    pages = [tail_page("\n".join(lines[: count + 1]), 80, 6) for count in range(12)]

    firsts = [page[0] for page in pages]
    assert firsts == ["line 0"] * 6 + ["line 3"] * 3 + ["line 6"] * 3
    assert all(page[-1] == f"line {count}" for count, page in enumerate(pages))


def test_only_the_end_of_a_long_text_is_looked_at() -> None:
    page = tail_page("x" * 1_000_000, 80, 6)

    assert 1 <= len(page) <= 6
    assert set("".join(page)) == {"x"}


def test_a_wide_character_that_does_not_fit_goes_to_the_next_line() -> None:
    assert wrap("漢字漢", 5) == ["漢字", "漢"]


@pytest.mark.parametrize(
    ("line", "rows"),
    [
        ("aaaa    bbbb", ["aaaa", "bbbb"]),
        ("aa  bbbb", ["aa", "bbbb"]),
        ("aaa      b", ["aaa", "b"]),
        ("漢字    漢字", ["漢字", "漢字"]),
        ("aaaa    ", ["aaaa"]),
        ("        aa", ["aa"]),
        ("        ", [""]),
        (" a bcd", [" a", "bcd"]),
    ],
)
def test_blanks_at_the_edge_make_no_rows_of_their_own(line: str, rows: list[str]) -> None:
    assert wrap_line(line, 4) == rows


def test_measuring_text_remembers_letters_and_no_texts() -> None:
    known = prompt_toolkit.utils._CHAR_SIZES_CACHE
    for number in range(50):
        wrap_line(f"{number} 漢字 " * 12, 30)
        cut(f"{number} 한글 " * 9, 20)
        cut_front(f"{number} 한글 " * 9, 20)
    assert all(len(text) == 1 for text in known if text.startswith(tuple("0123456789")))
    assert count_cells("漢字 a") == 6
