from __future__ import annotations

import errno
import hashlib
import os
import socket
import stat
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import anyio
import anyio.from_thread
import pytest
from tests.support.unprivileged import public_directory, run_unprivileged

from robota.core.tool import ToolContext, ToolResult, tool_class
from robota.tools.builtins.files import read_tool, write_tool
from robota.tools.files.change import MAX_FILE_BYTES
from robota.tools.files.directory import SystemCalls

pytestmark = pytest.mark.anyio


async def write(
    path: Path | str, content: str = "new\n", context: ToolContext | None = None, **options: Any
) -> ToolResult:
    arguments = {"file_path": str(path), "content": content}
    return await write_tool(**options).run(arguments, context or ToolContext())


async def having_read(path: Path) -> ToolContext:
    context = ToolContext()
    assert (await read_tool().run({"file_path": str(path)}, context)).ok
    return context


@pytest.fixture
def old(tmp_path: Path) -> Path:
    path = tmp_path / "old.txt"
    path.write_text("old\n")
    return path


# --- writing -------------------------------------------------------------------------------------------


async def test_a_new_file_is_written_with_the_directories_above_it(tmp_path):
    path = tmp_path / "a" / "b" / "c.txt"
    assert (await write(path, "grüß\n")).text == f"Written 7 bytes to {path}"
    assert path.read_bytes() == "grüß\n".encode()


async def test_an_empty_text_makes_an_empty_file(tmp_path):
    assert (await write(tmp_path / "e", "")).text == f"Written 0 bytes to {tmp_path / 'e'}"
    assert (tmp_path / "e").read_bytes() == b""


async def test_a_relative_path_starts_at_the_working_directory(tmp_path):
    result = await write("x/y.txt", "1", ToolContext(cwd=str(tmp_path)))
    assert result.text == f"Written 1 bytes to {tmp_path / 'x' / 'y.txt'}"
    assert (tmp_path / "x" / "y.txt").read_text() == "1"


async def test_the_camel_case_spelling_is_accepted(tmp_path):
    await write_tool().run({"filePath": str(tmp_path / "f"), "content": "x"}, ToolContext())
    assert (tmp_path / "f").read_text() == "x"


async def test_a_file_that_was_read_is_replaced(old):
    context = await having_read(old)
    assert (await write(old, "new\n", context)).text == f"Written 4 bytes to {old}"
    assert (old.read_text(), os.listdir(old.parent)) == ("new\n", ["old.txt"])


async def test_the_mode_of_the_old_file_is_kept(old):
    old.chmod(0o4751)
    await write(old, context=await having_read(old))
    assert stat.S_IMODE(old.stat().st_mode) == 0o4751


async def test_a_new_file_gets_the_mode_that_the_umask_leaves(tmp_path):
    before = os.umask(0o027)
    try:
        await write(tmp_path / "new")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o640


async def test_a_link_stays_a_link_and_its_target_is_written(old, tmp_path):
    (tmp_path / "link").symlink_to(old)
    await write(tmp_path / "link", "new\n", await having_read(old))
    assert ((tmp_path / "link").readlink(), old.read_text()) == (old, "new\n")


async def test_a_dangling_link_inside_is_filled(tmp_path):
    (tmp_path / "link").symlink_to("target")
    await write("link", "x", ToolContext(cwd=str(tmp_path)))
    assert (tmp_path / "target").read_text() == "x"


@pytest.mark.parametrize("path", ["link", "link/below/f.txt"])
async def test_a_dangling_link_that_leads_outside_is_refused(tmp_path, path):
    workspace = tmp_path / "w"
    workspace.mkdir()
    (workspace / "link").symlink_to(tmp_path / "elsewhere")
    result = await write(path, "x", ToolContext(cwd=str(workspace)))
    assert result.error.startswith(f"File cannot be written: {workspace / path} (a link in it leads to ")
    assert not (tmp_path / "elsewhere").exists()


# --- what the old file was like ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("before", "content", "after", "note"),
    [
        (b"\xef\xbb\xbfa", "b", b"\xef\xbb\xbfb", "UTF-8 with a byte order mark"),
        (b"\xef\xbb\xbfa", "\ufeffb", b"\xef\xbb\xbfb", "UTF-8 with a byte order mark"),
        ("\ufeffa".encode("utf-16-le"), "ü", "\ufeffü".encode("utf-16-le"), "UTF-16 with a byte order mark"),
        ("\ufeffa".encode("utf-16-be"), "ü", "\ufeffü".encode("utf-16-be"), "UTF-16 with a byte order mark"),
        ("grüß".encode("latin-1"), "süß", "süß".encode("latin-1"), "Latin-1"),
        (b"a\r\nb\r\n", "1\n2", b"1\r\n2", "CRLF line ends"),
        ("\ufeffa\r\n".encode("utf-16-le"), "b\n", "\ufeffb\r\n".encode("utf-16-le"),
         "UTF-16 with a byte order mark, CRLF line ends"),
    ],
)  # fmt: skip
async def test_encoding_mark_and_line_ends_are_kept_and_that_is_said(old, before, content, after, note):
    old.write_bytes(before)
    result = await write(old, content, await having_read(old))
    assert result.text == f"Written {len(after)} bytes to {old}\n[Kept as the file had it: {note}.]"
    assert old.read_bytes() == after


@pytest.mark.parametrize(
    ("before", "content"),
    [(b"a\r\nb\n", "1\n2\n"), (b"a\r\n", "1\r\n2\n"), (b"a\n", "1\r\n"), (b"", "1\n")],
)
async def test_other_line_ends_are_written_as_they_are_given(old, before, content):
    old.write_bytes(before)
    result = await write(old, content, await having_read(old))
    assert (old.read_bytes(), result.text) == (content.encode(), f"Written {len(content)} bytes to {old}")


async def test_text_that_latin_1_cannot_hold_makes_the_file_utf_8(old):
    old.write_bytes("grüß".encode("latin-1"))
    result = await write(old, "süß €", await having_read(old))
    assert result.text.endswith("\n[The file was Latin-1, which has no U+20AC; it is UTF-8 now.]")
    assert old.read_bytes() == "süß €".encode()


async def test_half_a_surrogate_pair_is_refused_and_leaves_nothing_behind(tmp_path):
    result = await write(tmp_path / "dir" / "f", "ab\ud800")
    assert result.error == (
        "The content is not valid text: its character 3 is half of a surrogate pair (U+D800). "
        "Nothing was written."
    )
    assert os.listdir(tmp_path) == []


# --- knowing what is overwritten -----------------------------------------------------------------------


async def test_a_file_that_was_not_read_is_refused(old):
    result = await write(old)
    assert (result.error, result.error_code) == (
        f"File exists and has not been read yet: {old}. Read it first, then write it again; "
        "if Read cannot show it and it is not needed, remove it first.",
        "not_read",
    )
    assert old.read_text() == "old\n"


async def test_a_file_that_changed_since_it_was_read_is_refused(old):
    context = await having_read(old)
    before = old.stat()
    old.write_text("NEW\n")
    os.utime(old, ns=(before.st_atime_ns, before.st_mtime_ns))
    result = await write(old, "mine\n", context)
    assert (result.error, result.error_code) == (
        f"File has changed on disk since it was last read: {old}. Read it again, then repeat the change.",
        "changed",
    )
    assert old.read_text() == "NEW\n"


async def test_a_file_touched_but_not_changed_counts_as_read(old):
    context = await having_read(old)
    os.utime(old, (1, 1))
    assert (await write(old, "new\n", context)).ok


async def test_a_file_written_in_this_conversation_counts_as_read(tmp_path):
    context = ToolContext()
    for text in ("one", "two", "three"):
        assert (await write(tmp_path / "f", text, context)).ok
    assert context.files.get(str(tmp_path / "f")) == hashlib.sha256(b"three").hexdigest()


async def test_a_file_that_vanished_since_it_was_read_is_made_anew(old):
    context = await having_read(old)
    old.unlink()
    assert (await write(old, "new\n", context)).ok


async def test_a_change_that_comes_while_the_new_file_is_prepared_is_not_overwritten(old):
    class Meddled(SystemCalls):
        def fsync(self, descriptor: int) -> None:
            old.write_text("somebody else\n")

    result = await write(old, "mine\n", await having_read(old), system=Meddled())
    assert (result.error_code, old.read_text()) == ("changed", "somebody else\n")
    assert os.listdir(old.parent) == ["old.txt"]


async def test_a_file_that_appears_while_a_new_one_is_prepared_is_not_overwritten(tmp_path):
    class Meddled(SystemCalls):
        def fsync(self, descriptor: int) -> None:
            (tmp_path / "f").write_text("somebody else\n")

    result = await write(tmp_path / "f", "mine\n", system=Meddled())
    assert (result.error_code, (tmp_path / "f").read_text()) == ("changed", "somebody else\n")


async def test_a_file_too_long_to_be_read_whole_is_refused(tmp_path):
    path = tmp_path / "huge"
    with path.open("wb") as file:
        file.truncate(MAX_FILE_BYTES + 1)
    result = await write(path)
    assert result.error == (
        f"File is too large to be changed here: {path} (10,485,761 bytes; at most 10,485,760). "
        "Use a shell command."
    )


# --- what it refuses -----------------------------------------------------------------------------------


async def test_a_directory_is_no_file(tmp_path):
    assert (await write(tmp_path)).error == (
        f"Path is not a file: {tmp_path} (it is a directory; use Glob to list it)"
    )


@pytest.mark.parametrize("name", ["new/", "new/.", "new/..", ""])
async def test_a_path_that_names_a_directory_is_refused(tmp_path, name):
    result = await write(f"{tmp_path}/{name}")
    assert result.error == f"Path is not a file: {tmp_path}/{name} (it names a directory)"
    assert os.listdir(tmp_path) == []


async def test_a_fifo_is_refused_at_once(tmp_path):
    os.mkfifo(tmp_path / "fifo")
    assert (await write(tmp_path / "fifo")).error == f"Path is not a file: {tmp_path / 'fifo'} (it is a FIFO)"


async def test_a_socket_is_refused(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # the path of a socket must be short
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("s")
        assert (await write("s")).error == f"Path is not a file: {tmp_path / 's'} (it is a socket)"


@pytest.mark.parametrize("path", ["/dev/null", "/dev/tty", "link"])
async def test_a_device_is_refused(tmp_path, path):
    (tmp_path / "link").symlink_to("/dev/null")
    result = await write(path, "x", ToolContext(cwd=str(tmp_path)))
    assert result.error.endswith("(it is a device)")
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)


async def test_links_in_a_circle_are_explained(tmp_path):
    (tmp_path / "a").symlink_to(tmp_path / "b")
    (tmp_path / "b").symlink_to(tmp_path / "a")
    assert (await write(tmp_path / "a")).error.startswith(
        f"File not found: {tmp_path / 'a'} (its links lead in a circle"
    )


async def test_a_file_among_the_parents_is_explained(old):
    assert (await write(old / "below" / "f")).error == (
        f"File cannot be written: {old / 'below' / 'f'} (a part of its path is a file, not a directory)"
    )


async def test_a_name_that_is_too_long_is_refused_and_makes_no_directories(tmp_path):
    path = tmp_path / "made" / ("x" * 300)
    assert (await write(path)).error == f"File cannot be written: {path} (File name too long)"
    assert os.listdir(tmp_path) == []


async def test_the_longest_name_can_be_written(tmp_path):
    path = tmp_path / ("x" * 255)
    assert (await write(path)).ok


@pytest.mark.parametrize("name", ["a\0b", "\ud800"])
async def test_an_impossible_name_is_an_error_result(tmp_path, name):
    assert (await write(name, "x", ToolContext(cwd=str(tmp_path)))).error_code == "unwritable"


def test_a_directory_without_permission_is_refused():
    with public_directory() as directory:
        directory.chmod(0o555)
        path = directory / "new.txt"
        assert (
            run_unprivileged("Write", file_path=str(path), content="x") == f"Error: Permission denied: {path}"
        )


def test_a_read_only_file_is_refused_although_its_directory_may_be_written():
    with public_directory() as directory:
        path = directory / "f"
        path.write_text("old")
        path.chmod(0o444)
        assert (
            run_unprivileged("Write", file_path=str(path), content="x") == f"Error: Permission denied: {path}"
        )
        assert path.read_text() == "old"


def test_directories_that_may_only_be_passed_through_are_no_obstacle():
    with public_directory() as directory:
        inner = directory / "inner"
        inner.mkdir()
        inner.chmod(0o777)
        directory.chmod(0o711)
        path = inner / "f"
        assert run_unprivileged("Write", file_path=str(path), content="x") == f"Written 1 bytes to {path}"


def test_a_directory_that_may_be_written_but_not_listed_is_no_obstacle():
    with public_directory() as directory:
        directory.chmod(0o733)
        path = directory / "f"
        assert run_unprivileged("Write", file_path=str(path), content="x") == f"Written 1 bytes to {path}"


async def test_a_full_disk_leaves_the_old_file_and_says_so(old):
    class FullDisk(SystemCalls):
        room = 3

        def write(self, descriptor: int, data: memoryview) -> int:
            if not self.room:
                raise OSError(errno.ENOSPC, "No space left on device")
            count = os.write(descriptor, data[: self.room])
            self.room -= count
            return count

    result = await write(old, "much longer than three bytes", await having_read(old), system=FullDisk())
    assert result.error == (
        f"No space left on the disk: {old} was left as it was. Free some space, then try again."
    )
    assert (old.read_text(), os.listdir(old.parent)) == ("old\n", ["old.txt"])


def test_a_limit_of_the_system_on_file_sizes_leaves_the_old_file(old):
    script = """
import resource, sys, anyio
from robota.core.tool import ToolContext
from robota.tools.builtins.files import read_tool
from robota.tools.builtins.files import write_tool

async def main(path):
    context = ToolContext()
    await read_tool().run({"file_path": path}, context)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
    print((await write_tool().run({"file_path": path, "content": "x" * 5000}, context)).error)

anyio.run(main, sys.argv[1])
"""
    # -B: what Python compiles below the limit would be cut there too, and taken for whole by the next process
    command = [sys.executable, "-B", "-c", script, old]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stdout == f"File cannot be written: {old} (File too large)\n", done.stderr
    assert (old.read_text(), os.listdir(old.parent)) == ("old\n", ["old.txt"])


async def test_wrong_arguments_are_explained(tmp_path):
    result = await write_tool().run({"file_path": str(tmp_path / "f")}, ToolContext())
    assert (result.error_code, "content" in result.error) == ("invalid_arguments", True)


# --- at the same time ----------------------------------------------------------------------------------


async def test_new_files_in_one_new_directory_are_written_at_the_same_time(tmp_path):
    results: list[ToolResult] = []

    async def one(number: int) -> None:
        results.append(await write(tmp_path / "a" / "b" / str(number), str(number)))

    async with anyio.create_task_group() as group:
        for number in range(20):
            group.start_soon(one, number)
    assert [result.error for result in results] == [None] * 20
    assert len(os.listdir(tmp_path / "a" / "b")) == 20


async def test_a_cancelled_write_is_over_when_the_call_returns(old):
    entered, release = anyio.Event(), threading.Event()

    class Slow(SystemCalls):
        def fsync(self, descriptor: int) -> None:
            if not release.is_set():
                anyio.from_thread.run_sync(entered.set)
                release.wait()

    context = await having_read(old)
    async with anyio.create_task_group() as group:
        group.start_soon(lambda: write(old, "new\n", context, system=Slow()))
        await entered.wait()
        group.cancel_scope.cancel()
        release.set()
    assert old.read_text() == "new\n"
    assert context.files.get(str(old)) == hashlib.sha256(b"new\n").hexdigest()


def test_the_tool_is_described_for_the_model():
    made = write_tool()
    assert (made.name, tool_class(made)) == ("Write", "modify")
    assert made.description.startswith("Write a whole file")
    assert list(made.parameters["properties"]) == ["file_path", "content"]


def test_making_the_tools_opens_and_loads_nothing():
    script = """
import sys
from robota.tools.builtins.files import edit_tool
from robota.tools.builtins.files import write_tool
edit_tool(), write_tool()
unwanted = ("anyio", "hashlib", "difflib", "threading", "robota.tools.signature", "robota.tools.files")
print([name for name in unwanted if name in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("[]\n", "")
