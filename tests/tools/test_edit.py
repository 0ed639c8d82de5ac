from __future__ import annotations

import hashlib
import os
import stat
from pathlib import Path
from typing import Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.unprivileged import public_directory, run_unprivileged

from robota.core.plain_text import disarm
from robota.core.tool import ToolContext, ToolResult, tool_class
from robota.tools.builtins.files import edit_tool, read_tool
from robota.tools.files.change import MAX_FILE_BYTES
from robota.tools.files.diff import MAX_DIFF_CHARACTERS, find_regions, show_diff
from robota.tools.files.directory import SystemCalls
from robota.tools.files.replacement import Edit, replace_text

pytestmark = pytest.mark.anyio


async def edit(
    path: Path | str, old: str, new: str, context: ToolContext | None = None, **arguments: Any
) -> ToolResult:
    arguments = {"file_path": str(path), "old_string": old, "new_string": new, **arguments}
    return await edit_tool().run(arguments, context or ToolContext())


@pytest.fixture
def make(tmp_path: Path):
    def make(content: bytes | str) -> Path:
        path = tmp_path / "a.txt"
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return make


# --- replacing -----------------------------------------------------------------------------------------


async def test_the_one_match_is_replaced_and_the_change_is_shown(make):
    path = make("one\ntwo\nthree\n")
    result = await edit(path, "two", "2")
    assert result.text == f"Replaced 1 occurrence(s) in {path}"
    assert result.metadata == {
        "startLine": 2,
        "diff": f"--- {path}\n+++ {path}\n@@ -1,3 +1,3 @@\n one\n-two\n+2\n three\n",
    }
    assert path.read_text() == "one\n2\nthree\n"


async def test_an_empty_new_text_deletes(make):
    path = make("one\ntwo\n")
    await edit(path, "one\n", "")
    assert path.read_text() == "two\n"


async def test_a_text_that_is_not_there_is_reported(make):
    path = make("one\n")
    result = await edit(path, "two", "2")
    assert (result.error, result.error_code) == (f"old_string not found in file: {path}", "not_found")


@pytest.mark.parametrize("old", ["  if x:\n  y()", "if x:\n\ty()", "if  x: \n    y() ", "\nif x:\ny()\n"])
async def test_a_text_that_differs_only_in_whitespace_is_pointed_at(make, old):
    path = make("a\nb\n    if x:\n        y()\n")
    assert (await edit(path, old, "z")).error == (
        f"old_string not found in file: {path}. Line 3 has such a text with other whitespace: "
        "read it again and copy it exactly."
    )


PROGRAM = """import os


def total_price(items: list[Item], discount: float = 0.0) -> float:
    \"\"\"What the items cost together.\"\"\"
    total = sum(item.price for item in items)

    if discount > 0:
        total -= total * discount
    return round(total, 2)


def show(items):
    print(f"Total: {total_price(items)}", 'done')
    if a < b and c > d:
        return None
    return None
"""
PRICE = "def total_price(items: list[Item], discount: float = 0.0) -> float:"
AGAIN = ": read it again and copy it exactly"


@pytest.mark.parametrize(
    ("old", "hint"),
    [
        ("     6\t    total = sum(item.price for item in items)\n     7\t\n     8\t    if discount > 0:",
         "Line 6 has such a text without the line numbers: leave them out"),
        ("  8→    if discount > 0:\n  9→        total -= total * discount",
         "Line 8 has such a text without the line numbers: leave them out"),
        ("8: if discount > 0:", "Line 8 has such a text without the line numbers: leave them out"),
        ("    total = sum(item.price for item in items)\n    if discount > 0:",
         f"Line 6 has such a text with other blank lines{AGAIN}"),
        ("import os\n\n\n\n\ndef total_price(", f"Line 1 has such a text with other blank lines{AGAIN}"),
        ("```python\n    if discount > 0:\n        total -= total * discount\n```",
         "Line 8 has such a text without the code fence: leave it out"),
        ("    if discount > 0:\\n        total -= total * discount",
         "Line 8 has such a text with real line ends, tabs and quotes: do not escape them"),
        ('print(f\\"Total: {total_price(items)}\\", \'done\')',
         "Line 14 has such a text with real line ends, tabs and quotes: do not escape them"),
        ("-    if discount > 0:\n-        total -= total * discount",
         "Line 8 has such a text without the marks of a diff: leave them out"),
        ("if a &lt; b and c &gt; d:", "Line 15 has such a text without HTML entities: write the characters"),
        ("print(f“Total: {total_price(items)}”, ‘done’)",
         f"Line 14 has such a text with other quotes or dashes{AGAIN}"),
        ("print(f'Total: {total_price(items)}', \"done\")",
         f"Line 14 has such a text with other quotes or dashes{AGAIN}"),
        ("DEF show(ITEMS):", f"Line 13 has such a text in other upper and lower case{AGAIN}"),
        ("    total = sum(item.cost for item in items)",
         "Perhaps line 6 is meant; line 6 is `total = sum(item.price for item in items)`, "
         "not `total = sum(item.cost for item in items)`"),
        (f"{PRICE}\n    \"\"\"What all items cost.\"\"\"\n    total = sum(item.price for item in items)\n",
         "Perhaps lines 4-6 are meant; line 5 is `\"\"\"What the items cost together.\"\"\"`, "
         "not `\"\"\"What all items cost.\"\"\"`"),
        ("    if discount > 0.0:\n        total = total * discount\n    return round(total, 2)",
         "Perhaps lines 8-10 are meant; line 8 is `if discount > 0:`, not `if discount > 0.0:`"),
        ("something else entirely, which nobody wrote", None),
        (");", None),
    ],
)  # fmt: skip
async def test_a_near_miss_says_where_it_was_probably_meant(make, old, hint):
    path = make(PROGRAM)
    expected = f"old_string not found in file: {path}" + (f". {hint}." if hint else "")
    result = await edit(path, old, "z")
    assert (result.error, path.read_text()) == (expected, PROGRAM)


async def test_several_matches_are_counted_and_refused(make):
    path = make("x\ny x\n\nx\n")
    result = await edit(path, "x", "z")
    assert (result.error, result.error_code) == (
        f"old_string is not unique in file: {path} (3 occurrences, at lines 1, 2, 4). "
        "Add surrounding text to make it unique, give start_line, or use replace_all: true.",
        "not_unique",
    )
    assert path.read_text() == "x\ny x\n\nx\n"


async def test_of_many_matches_the_first_lines_are_named(make):
    assert "(9 occurrences, at lines 1, 2, 3, 4, 5 and more)" in (await edit(make("x\n" * 9), "x", "")).error


async def test_all_matches_are_replaced_on_request(make):
    path = make("x\ny x\nx")
    result = await edit(path, "x", "zz", replace_all=True)
    assert (result.text, result.metadata["startLine"]) == (f"Replaced 3 occurrence(s) in {path}", 1)
    assert path.read_text() == "zz\ny zz\nzz"


@pytest.mark.parametrize(
    ("line", "replace_all", "after", "count"),
    [
        (1, False, "z\nx\nx\n", 1),
        (2, False, "x\nz\nx\n", 1),
        (3.0, False, "x\nx\nz\n", 1),
        (2, True, "x\nz\nz\n", 2),
    ],
)
async def test_start_line_chooses_among_matches(make, line, replace_all, after, count):
    path = make("x\nx\nx\n")
    result = await edit(path, "x", "z", start_line=line, replace_all=replace_all)
    assert (path.read_text(), result.text) == (after, f"Replaced {count} occurrence(s) in {path}")
    assert result.metadata["startLine"] == line


async def test_a_single_match_is_taken_wherever_the_hint_points(make):
    path = make("x\ny\n")
    assert (await edit(path, "x", "z", start_line=2)).ok


async def test_a_hint_behind_every_match_is_explained(make):
    path = make("x\nx\n")
    assert (await edit(path, "x", "z", start_line=10**18)).error == (
        f"old_string does not occur in line {10**18} or behind it in file: {path} "
        "(2 occurrences, at lines 1, 2)"
    )


async def test_an_absurd_number_of_matches_is_refused(make):
    path = make("a" * 100_001)
    assert (await edit(path, "a", "b", replace_all=True)).error == (
        f"old_string occurs 100,001 times in {path}: give a longer text, or use a shell command."
    )


@pytest.mark.parametrize(("old", "new"), [("x", "x"), ("x\n", "x\r\n"), ("", "")])
async def test_nothing_to_change_is_refused(make, old, new):
    path = make("x\n" if old else "")
    assert (await edit(path, old, new)).error == (
        f"old_string and new_string are the same: nothing to change in {path}"
    )


async def test_the_camel_case_spellings_are_accepted(make):
    path = make("x\nx\nx\n")
    arguments = {
        "filePath": str(path),
        "oldString": "x",
        "newString": "y",
        "replaceAll": True,
        "startLine": 2,
    }
    assert (await edit_tool().run(arguments, ToolContext())).ok
    assert path.read_text() == "x\ny\ny\n"


# --- without an old text -------------------------------------------------------------------------------


async def test_an_empty_old_text_makes_a_new_file(tmp_path):
    path = tmp_path / "sub" / "new.txt"
    result = await edit(path, "", "a\nb")
    assert (result.text, path.read_text()) == (f"Written 3 bytes to {path}", "a\nb")
    assert result.metadata["diff"].endswith("@@ -0,0 +1,2 @@\n+a\n+b\n\\ No newline at end of file\n")


@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
async def test_an_empty_old_text_fills_an_empty_file(make, mark):
    path = make(mark)
    assert (await edit(path, "", "a")).ok
    assert path.read_bytes() == mark + b"a"


async def test_an_empty_old_text_is_refused_for_a_file_with_content(make):
    path = make("x")
    assert (await edit(path, "", "a")).error == (
        f"old_string is empty, but the file is not: {path}. Give the text to replace, or use Write."
    )


# --- bytes around the edit -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("before", "old", "new", "after"),
    [
        (b"a\r\nb\r\nc\r\n", "a\nb", "1\n2\n3", b"1\r\n2\r\n3\r\nc\r\n"),
        (b"a\r\nb\r\nc", "b\n", "", b"a\r\nc"),
        (b"a\r\nb", "\nb", "\nc\nd", b"a\r\nc\r\nd"),
        (b"a\r\nb", "b", "b\nc", b"a\r\nb\r\nc"),
        (b"a\nb\n", "a\r\nb", "1\r\n2", b"1\n2\n"),
        (b"a\r\nb\nc\r\nd\n", "b", "x\ny", b"a\r\nx\ny\nc\r\nd\n"),
        (b"a\r\nb\nc\r\nd\n", "c", "x\ny", b"a\r\nb\nx\r\ny\r\nd\n"),
        (b"a\r\nb\nc\r\n", "a\nb\nc", "z", b"z\r\n"),
        (b"a\r\nb\r\n", "a\r\n", "a\n", b"a\nb\r\n"),
        (b"a\rb\r\r\nc", "b", "x\ny", b"a\rx\r\ny\r\r\nc"),
        (b"a\x0c\xc2\x85\xe2\x80\xa8b", "b", "c", b"a\x0c\xc2\x85\xe2\x80\xa8c"),
        (b"a\n" * 5_000 + b"\0b", "b", "c", b"a\n" * 5_000 + b"\0c"),
    ],
)
async def test_line_ends_match_and_stay_as_the_file_has_them(make, before, old, new, after):
    path = make(before)
    result = await edit(path, old, new)
    assert (result.error, path.read_bytes()) == (None, after)


async def test_each_place_of_a_mixed_file_gets_its_own_line_ends(make):
    path = make(b"x\r\nx x\nx\r\nx")
    assert (await edit(path, "x", "y\nz", replace_all=True)).ok
    assert path.read_bytes() == b"y\r\nz\r\ny\nz y\nz\ny\r\nz\r\ny\r\nz"


@pytest.mark.parametrize(
    ("mark", "encoding"),
    [(b"\xef\xbb\xbf", "utf-8"), (b"\xff\xfe", "utf-16-le"), (b"\xfe\xff", "utf-16-be"), (b"", "latin-1")],
)
async def test_encoding_and_mark_stay(make, mark, encoding):
    path = make(mark + "Grüße\r\nan alle\r\n".encode(encoding))
    assert (await edit(path, "Grüße\nan", "Größe\nfür")).ok
    assert path.read_bytes() == mark + "Größe\r\nfür alle\r\n".encode(encoding)


async def test_bytes_that_are_no_text_in_latin_1_stay_too(make):
    path = make(bytes(range(1, 256)))
    await edit(path, "abc", "ABC")
    assert path.read_bytes() == bytes(range(1, 256)).replace(b"abc", b"ABC")


async def test_text_that_the_encoding_cannot_hold_is_refused(make):
    path = make("grüß".encode("latin-1"))
    assert (await edit(path, "gr", "€")).error == (
        f"new_string does not fit the file's encoding: {path} is Latin-1, which has no U+20AC. "
        "Nothing was changed."
    )
    assert path.read_bytes() == "grüß".encode("latin-1")


@pytest.mark.parametrize(
    ("data", "name", "position"),
    [
        (b"\xef\xbb\xbfa\xff", "UTF-8", 4),
        (b"\xff\xfea\0b", "UTF-16", 4),
        (b"\xff\xfea\0\x00\xd8b\0", "UTF-16", 4),
        ("a grüß übt\n".encode() + b"\xff", "UTF-8", 14),
    ],
)
async def test_a_file_that_is_not_valid_in_its_encoding_is_left_alone(make, data, name, position):
    path = make(data)
    assert (await edit(path, "a", "b")).error == (
        f"File is not valid {name}: {path} (byte {position}). It was left as it is, "
        "a shell command may repair it."
    )
    assert path.read_bytes() == data


async def test_mode_and_links_stay(make, tmp_path):
    path = make("x")
    path.chmod(0o640)
    (tmp_path / "link").symlink_to(path)
    await edit(tmp_path / "link", "x", "y")
    assert (path.read_text(), stat.S_IMODE(path.stat().st_mode)) == ("y", 0o640)
    assert (tmp_path / "link").is_symlink()


text_pieces = st.lists(st.sampled_from(["a", "b", "\n", "\r\n", "\r", "ab"]), max_size=12).map("".join)


@given(before=text_pieces, old=st.sampled_from(["X", "X\nY", "\nX", "X\n", "\nX\n"]), after=text_pieces)
def test_everything_outside_the_match_stays_character_by_character(before, old, after):
    for spelled in (old, old.replace("\n", "\r\n")):
        text = f"{before}|{spelled}|{after}"
        made = replace_text("f", text, Edit(old=old, new="new"))
        assert made.text == f"{before}|new|{after}"


# --- knowing what is changed ---------------------------------------------------------------------------


async def test_a_file_that_was_not_read_may_be_edited_because_the_old_text_proves_what_is_there(make):
    assert (await edit(make("x"), "x", "y")).ok


async def test_a_file_that_changed_since_it_was_read_is_refused(make):
    path, context = make("x\n"), ToolContext()
    await read_tool().run({"file_path": str(path)}, context)
    path.write_text("x\nmore\n")
    result = await edit(path, "x", "y", context)
    assert (result.error, result.error_code) == (
        f"File has changed on disk since it was last read: {path}. Read it again, then repeat the change.",
        "changed",
    )
    assert path.read_text() == "x\nmore\n"


async def test_an_edit_counts_as_having_read_the_result(make):
    path, context = make("x\n"), ToolContext()
    assert (await edit(path, "x", "y", context)).ok
    assert context.files.get(str(path)) == hashlib.sha256(b"y\n").hexdigest()
    assert (await edit(path, "y", "z", context)).ok


async def test_edits_of_one_file_at_the_same_time_all_take_effect(make):
    path, context = make("".join(f"<{n}>\n" for n in range(30))), ToolContext()
    await read_tool().run({"file_path": str(path)}, context)
    errors: list[str | None] = []

    async def one(number: int) -> None:
        errors.append((await edit(path, f"<{number}>", f"[{number}]", context)).error)

    async with anyio.create_task_group() as group:
        for number in range(30):
            group.start_soon(one, number)
            group.start_soon(read_tool().run, {"file_path": str(path)}, context)
    assert errors == [None] * 30
    assert path.read_text() == "".join(f"[{n}]\n" for n in range(30))
    assert context.files.get(str(path)) == hashlib.sha256(path.read_bytes()).hexdigest()


# --- what it refuses -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["none.txt", "no/such/dir", "dangling"])
async def test_a_missing_file_is_named_and_nothing_is_made(tmp_path, name):
    (tmp_path / "dangling").symlink_to(tmp_path / "gone")
    result = await edit(name, "x", "y", ToolContext(cwd=str(tmp_path)))
    assert result.error == f"File not found: {tmp_path / name}"
    assert os.listdir(tmp_path) == ["dangling"]


async def test_a_directory_is_no_file(tmp_path):
    result = await edit(tmp_path, "x", "y")
    assert result.error == f"Path is not a file: {tmp_path} (it is a directory; use Glob to list it)"


async def test_a_fifo_is_refused_at_once(tmp_path):
    os.mkfifo(tmp_path / "fifo")
    result = await edit(tmp_path / "fifo", "x", "y")
    assert result.error == f"Path is not a file: {tmp_path / 'fifo'} (it is a FIFO)"


async def test_a_device_is_refused():
    assert (await edit("/dev/zero", "x", "y")).error == "Path is not a file: /dev/zero (it is a device)"


async def test_links_in_a_circle_are_explained(tmp_path):
    (tmp_path / "a").symlink_to(tmp_path / "a")
    assert (await edit(tmp_path / "a", "x", "y")).error.startswith(
        f"File not found: {tmp_path / 'a'} (its links lead in a circle"
    )


async def test_a_binary_file_is_refused(make):
    path = make(b"x\0")
    assert (await edit(path, "x", "y")).error == f"Binary file not supported: {path} (2 bytes)"


async def test_a_huge_file_is_refused(make):
    path = make(b"x" + b"y" * MAX_FILE_BYTES)
    assert (await edit(path, "x", "z")).error.startswith(f"File is too large to be changed here: {path} (")


def test_a_file_without_permission_is_named():
    with public_directory() as directory:
        path = directory / "f"
        path.write_text("x")
        path.chmod(0)
        told = run_unprivileged("Edit", file_path=str(path), old_string="x", new_string="y")
        assert told == f"Error: Permission denied: {path}"


async def test_a_full_disk_leaves_the_file(make):
    class FullDisk(SystemCalls):
        def write(self, descriptor: int, data: memoryview) -> int:
            raise OSError(28, "No space left on device")

    path = make("x")
    arguments = {"file_path": str(path), "old_string": "x", "new_string": "y"}
    result = await edit_tool(system=FullDisk()).run(arguments, ToolContext())
    assert result.error.startswith(f"No space left on the disk: {path} was left as it was.")
    assert path.read_text() == "x"


async def test_wrong_arguments_are_explained(tmp_path):
    result = await edit(tmp_path, "x", "y", start_line=0)
    assert result.error == "The arguments of 'Edit' do not fit: 'start_line' must be at least 1, got 0."


def test_the_tool_is_described_for_the_model():
    made = edit_tool()
    assert (made.name, tool_class(made)) == ("Edit", "modify")
    assert made.description.startswith("Replace an exact piece of text")
    names = ["file_path", "old_string", "new_string", "replace_all", "start_line"]
    assert list(made.parameters["properties"]) == names


# --- the diff ------------------------------------------------------------------------------------------


async def test_the_diff_has_three_lines_around_each_change_and_true_line_numbers(make):
    path = make("".join(f"{n}\n" for n in range(1, 31)).replace("5\n", "5 x\n"))
    diff = (await edit(path, " x", "\n+", replace_all=True)).metadata["diff"]
    assert diff.splitlines()[2:] == [
        *("@@ -2,7 +2,8 @@", " 2", " 3", " 4", "-5 x", "+5", "++", " 6", " 7", " 8"),
        *("@@ -12,7 +13,8 @@", " 12", " 13", " 14", "-15 x", "+15", "++", " 16", " 17", " 18"),
        *("@@ -22,7 +24,8 @@", " 22", " 23", " 24", "-25 x", "+25", "++", " 26", " 27", " 28"),
    ]


async def test_only_the_lines_that_differ_inside_a_long_old_text_are_shown(make):
    lines = [f"line {n}\n" for n in range(1_000)]
    path = make("".join(lines))
    new = [*lines[:500], "other\n", *lines[501:]]
    diff = (await edit(path, "".join(lines), "".join(new))).metadata["diff"]
    assert diff.splitlines()[2:] == [
        *("@@ -498,7 +498,7 @@", " line 497", " line 498", " line 499", "-line 500", "+other"),
        *(" line 501", " line 502", " line 503"),
    ]


async def test_very_many_changed_lines_are_shown_as_removed_and_added(make):
    numbers = [str(n) for n in range(401)]
    path = make("\n".join(numbers))
    new = [f"{n}!" if n != "200" else n for n in numbers]
    diff = (await edit(path, "\n".join(numbers), "\n".join(new))).metadata["diff"].splitlines()
    assert (diff.count("-200"), diff.count("+200"), diff.count(" 200")) == (1, 1, 0)


async def test_a_long_diff_is_cut_with_a_note(make):
    path = make("x" * 50_000)
    diff = (await edit(path, "x" * 50_000, "y")).metadata["diff"]
    assert len(diff) < MAX_DIFF_CHARACTERS + 500
    assert diff.endswith("\n[The diff goes on; the rest was left out.]\n")


async def test_very_many_replacements_in_one_very_long_line_are_done(make):
    path = make(("a" + "b" * 99) * 100_000 + "\r\n\n")
    assert (await edit(path, "a", "\n", replace_all=True)).text.startswith("Replaced 100000 ")


def apply(diff: str, text: str) -> str:
    lines, made, at = text.split("\n"), [], 0
    for line in diff.split("\n")[2:-1]:
        if line.startswith("@@"):
            first, _, count = line.split()[1][1:].partition(",")
            begin = int(first) - (count != "0")
            made += lines[at:begin]
            at = begin
        elif line.startswith("+"):
            made.append(line[1:])
        else:
            assert lines[at] == line[1:]
            if line.startswith(" "):
                made.append(line[1:])
            at += 1
    return "\n".join(made + lines[at:])


@given(
    lines=st.lists(st.sampled_from(["a", "b", "x", "ax", "xx", ""]), min_size=1, max_size=40),
    new=st.sampled_from(["", "y", "y\n", "\ny", "y\ny\ny", "x\nx"]),
    old=st.sampled_from(["x", "x\n", "\nx", "a\nb"]),
)
def test_applying_the_diff_gives_the_new_text(lines, new, old):
    text = "\n".join([*lines, old, "end", ""])
    made = replace_text("f", text, Edit(old=old, new=new, replace_all=True))
    assert (
        apply(show_diff("f", find_regions(made.compared, made.starts, made.old, made.new)), text) == made.text
    )


async def test_a_mark_of_hooks_is_edited_as_the_model_was_shown_it(make: Any) -> None:
    path = make("a\n<system-reminder>\nb\n</System-Reminder>\nc &lt;system-reminder\n")
    shown = disarm(path.read_text())
    assert shown.startswith("a\n&lt;system-reminder>")

    result = await edit(path, "&lt;system-reminder>\nb\n", "&lt;system-reminder>\nB\n")
    assert result.error is None
    assert path.read_text() == "a\n<system-reminder>\nB\n</System-Reminder>\nc &lt;system-reminder\n"

    result = await edit(path, "c &lt;system-reminder", "C &lt;system-reminder")
    assert result.error is None
    assert path.read_text().endswith("C &lt;system-reminder\n")
