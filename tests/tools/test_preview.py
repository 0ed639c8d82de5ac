"""What Edit and Write show of a call before it runs."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from robota.tools.builtins.files import edit_tool, write_tool
from robota.tools.files.change import MAX_FILE_BYTES
from robota.tools.files.diff import MAX_DIFF_CHARACTERS


def preview_edit(cwd: Path, **arguments: Any) -> str:
    return edit_tool().preview({"file_path": "a.txt", **arguments}, str(cwd))


def preview_write(cwd: Path, content: str, name: str = "a.txt") -> str:
    return write_tool().preview({"file_path": name, "content": content}, str(cwd))


def test_an_edit_is_shown_as_a_diff_and_nothing_changes(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("one\ntwo\nthree\n")
    diff = f"--- {path}\n+++ {path}\n@@ -1,3 +1,3 @@\n one\n-two\n+2\n three\n"
    assert preview_edit(tmp_path, old_string="two", new_string="2") == diff
    spelled = {"filePath": str(path), "oldString": "two", "newString": "2", "startLine": 1.0}
    assert edit_tool().preview(spelled, "/") == diff
    assert path.read_text() == "one\ntwo\nthree\n"


def test_a_new_file_is_shown_whole(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    diff = f"--- {path}\n+++ {path}\n@@ -0,0 +1,2 @@\n+one\n+two\n"
    assert preview_write(tmp_path, "one\ntwo\n") == diff
    assert preview_edit(tmp_path, old_string="", new_string="one\ntwo\n") == diff
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_is_written_anew_shows_only_what_differs(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b"one\r\ntwo\r\n")
    assert preview_write(tmp_path, "one\n2\n") == f"--- {path}\n+++ {path}\n@@ -1,2 +1,2 @@\n one\n-two\n+2\n"
    assert preview_write(tmp_path, "one\ntwo\n") == ""


@pytest.mark.parametrize(
    "arguments",
    [
        {"old_string": "absent", "new_string": "x"},
        {"old_string": "one", "new_string": "one"},
        {"old_string": "", "new_string": "x"},
        {"old_string": "o", "new_string": "x"},
        {"old_string": "one"},
        {"old_string": 1, "new_string": "x"},
        {"file_path": "absent", "old_string": "one", "new_string": "x"},
        {"file_path": "a.txt/b", "old_string": "one", "new_string": "x"},
        {"file_path": "nul\0", "old_string": "one", "new_string": "x"},
        {"file_path": "fifo", "old_string": "one", "new_string": "x"},
        {"file_path": "huge", "old_string": "\0", "new_string": "x"},
    ],
)
def test_an_edit_that_would_fail_has_no_preview(tmp_path: Path, arguments: dict[str, Any]) -> None:
    (tmp_path / "a.txt").write_text("one\no\n")
    os.mkfifo(tmp_path / "fifo")
    with (tmp_path / "huge").open("wb") as file:
        file.truncate(MAX_FILE_BYTES + 1)
    assert preview_edit(tmp_path, **arguments) == ""


@pytest.mark.parametrize("name", ["", ".", "nul\0", "fifo", "huge"])
def test_a_write_that_would_fail_has_no_preview(tmp_path: Path, name: str) -> None:
    os.mkfifo(tmp_path / "fifo")
    with (tmp_path / "huge").open("wb") as file:
        file.truncate(MAX_FILE_BYTES + 1)
    assert preview_write(tmp_path, "x", name) == ""


def test_a_binary_file_is_shown_as_replaced_by_the_text(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"\0\1\2")
    assert preview_write(tmp_path, "x\n").endswith("@@ -0,0 +1 @@\n+x\n")


def test_a_preview_is_bounded(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("a\n" * 100_000)
    diff = preview_write(tmp_path, "b\n" * 100_000)
    assert len(diff) < MAX_DIFF_CHARACTERS + 500
    assert diff.endswith("[The diff goes on; the rest was left out.]\n")


ARGUMENTS = st.dictionaries(
    st.sampled_from(
        ["file_path", "filePath", "old_string", "new_string", "content", "replace_all", "start_line"]
    ),
    st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.just([]) | st.just({}),
)


@given(ARGUMENTS)
def test_any_arguments_have_a_preview(arguments: dict[str, Any]) -> None:
    assert isinstance(edit_tool().preview(arguments, "/nowhere"), str)
    assert isinstance(write_tool().preview(arguments, "/nowhere"), str)
