"""A line being typed on a terminal that can only go back by one cell."""

from __future__ import annotations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from robota.tui.line_editor import DrawnLine, Key, LineEditor, cells, split_keys, split_lines

NAMED = ["left", "right", "home", "end", "backspace", "delete", "kill-word", "kill-end", "kill-start",
         "word-left", "word-right", "up", "down"]  # fmt: skip


def typed(text: str, line: LineEditor | None = None) -> LineEditor:
    line = LineEditor() if line is None else line
    for key in split_keys(text)[0]:
        line.press(key)
    return line


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ("hello", "hello"),
        ("helo\x1b[Dl", "hello"),
        ("ab\x7fc", "ac"),
        ("한글\x7f", "한"),
        ("b\x01a\x05c", "abc"),
        ("one two three\x17\x17", "one "),
        ("one two\x1bb\x0b", "one "),
        ("one two\x1bb\x15", "two"),
        ("abc\x01\x1b[3~", "bc"),
        ("abc\x01\x04", "bc"),
        ("one two\x01\x1bf!", "one! two"),
        ("a\x00\x07\x1b[99~\x1b[200~b", "ab"),
        ("\U0001f468\u200d\U0001f469!", "\U0001f468\u200d\U0001f469!"),
        ("\u0645\u06cc\u200c\u062e", "\u0645\u06cc\u200c\u062e"),
        ("a\u202eb\x85", "ab"),
        ("\x7f\x17\x15\x1b[D\x1b[Cx", "x"),
    ],
)
def test_keys_edit_the_line(text: str, result: str) -> None:
    assert typed(text).text == result


def test_keys_may_come_in_pieces() -> None:
    assert split_keys("ab\x1b") == ([Key("text", "ab")], "\x1b")
    assert split_keys("\x1b[1;5") == ([], "\x1b[1;5")
    assert split_keys("\u200d\U0001f469") == ([Key("text", "\u200d\U0001f469")], "")
    assert split_keys("\x1b[1;5D") == ([Key("word-left")], "")


def test_earlier_lines_come_back_and_the_present_one_is_kept() -> None:
    line = LineEditor(history=["first", "second\nline"])
    typed("dra", line)
    typed("\x1b[A", line)
    assert line.text == "second line"
    typed("\x1b[A\x1b[A", line)
    assert line.text == "first"
    typed("\x1b[B\x1b[B\x1b[B", line)
    assert line.text == "dra"


def test_lines_of_a_pipe_are_taken_as_they_are() -> None:
    keys, rest = split_lines("a\tb\x04\r\n\nrest")
    assert keys == [Key("text", "a\tb\x04"), Key("enter"), Key("text", ""), Key("enter")]
    assert rest == "rest"


def test_a_huge_paste_is_one_key() -> None:
    line, drawn = LineEditor(), DrawnLine()
    for part in ("漢x" * 32_768,) * 40:
        for key in split_keys(part)[0]:
            line.press(key)
        assert len(drawn.draw("> ", line, 80)) < 400
    assert len(line.text) == 40 * 65_536


class Row:
    """A terminal that knows letters, backspace and line feed, and nothing else."""

    def __init__(self) -> None:
        self.cells: list[str] = []
        self.at = 0

    def write(self, text: str) -> None:
        for letter in text:
            if letter == "\b":
                assert self.at > 0, "it went back over the edge"
                self.at -= 1
                continue
            assert letter.isprintable()
            width = cells(letter)
            if not width:
                if self.at:
                    self.cells[self.at - 1] += letter
                continue
            self.cells += [" "] * (self.at + width - len(self.cells))
            self.cells[self.at : self.at + width] = [letter, *[""] * (width - 1)]
            self.at += width

    @property
    def text(self) -> str:
        return "".join(self.cells).rstrip()


@given(
    st.lists(st.sampled_from([*NAMED, "a", " ", "漢", "e\u0301", "한"]), max_size=60),
    st.integers(8, 40),
    st.sampled_from(["> ", "robota> ", "a long question? "]),
)
@example(["e\u0301"] * 4, 8, "> ")
@settings(max_examples=400, deadline=None)
def test_what_is_drawn_is_the_line(keys: list[str], width: int, prompt: str) -> None:
    line, drawn, row = LineEditor(history=["earlier", "漢字 line"]), DrawnLine(), Row()
    for key in keys:
        line.press(Key(key) if key in NAMED else Key("text", key))
        row.write(drawn.draw(prompt, line, width))
        assert cells(row.text) <= width
        whole = prompt + line.text
        if cells(whole) < width:
            assert row.text == whole.rstrip()
            assert row.at == cells(prompt + line.text[: line.at])
        else:
            assert line.text[max(0, line.at - 1) : line.at].rstrip() in "".join(row.cells[: row.at])
    row.write(drawn.erase())
    assert (row.text, row.at) == ("", 0)


def test_typing_at_the_end_only_adds() -> None:
    line, drawn = LineEditor(), DrawnLine()
    drawn.draw("> ", line, 80)
    typed("a", line)
    assert drawn.draw("> ", line, 80) == "a"
    typed("\x7f", line)
    assert drawn.draw("> ", line, 80) == "\b \b"
    assert drawn.leave() == "\n"
