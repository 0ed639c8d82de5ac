from __future__ import annotations

import errno
import os
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from robota.core.tool import ToolContext, ToolResult
from robota.tools.files.change import change_file, hash_content
from robota.tools.files.directory import Directory, SystemCalls
from robota.tools.files.path import contained
from robota.tools.files.text import TextFormat, decode

OLD, NEW = b"old content\n", b"new content, longer\n" * 100


# --- inside or outside ---------------------------------------------------------------------------------


@pytest.fixture
def places(tmp_path: Path) -> Path:
    for name in ("app/src", "app-2", "other"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "app" / "out").symlink_to(tmp_path / "other")
    (tmp_path / "app" / "dangling").symlink_to(tmp_path / "other" / "none")
    (tmp_path / "app" / "inward").symlink_to(tmp_path / "app" / "src" / "none")
    (tmp_path / "app" / "loop").symlink_to(tmp_path / "app" / "loop")
    (tmp_path / "door").symlink_to(tmp_path / "app")
    return tmp_path


@pytest.mark.parametrize(
    ("path", "inside"),
    [
        ("app", True),
        ("app/src/new/file", True),
        ("app/inward", True),
        ("door/src/x", True),
        ("app/src/../x", True),
        ("app-2/x", False),
        ("app/../app-2", False),
        ("app/out/x", False),
        ("app/out/../x", False),
        ("app/dangling", False),
        ("app/loop", False),
        ("app/a\0b", False),
    ],
)
def test_a_path_is_contained_where_it_really_leads(places, path, inside):
    assert contained(f"{places}/{path}", [str(places / "app")]) is inside
    assert contained(f"{places}/{path}", [str(places / "none"), str(places / "door")]) is inside


def test_everything_is_inside_the_root_and_nothing_inside_no_root(tmp_path):
    assert contained(str(tmp_path), ["/"])
    assert not contained(str(tmp_path), [])


# --- encodings -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "text", "format"),
    [
        (b"", "", TextFormat()),
        ("ü\n".encode(), "ü\n", TextFormat()),
        (b"\xef\xbb\xbfa", "a", TextFormat("utf-8", b"\xef\xbb\xbf")),
        (b"\xff\xfea\0", "a", TextFormat("utf-16-le", b"\xff\xfe")),
        (b"\xfe\xff\0a", "a", TextFormat("utf-16-be", b"\xfe\xff")),
        (b"\xff\xfe\x3d\xd8\x00\xde", "😀", TextFormat("utf-16-le", b"\xff\xfe")),
        (b"caf\xe9", "café", TextFormat("latin-1")),
        (b"\xe9\xc3\xbc", "éÃ¼", TextFormat("latin-1")),
    ],
)
def test_text_is_decoded_and_encoded_back_to_the_same_bytes(data, text, format):
    decoded = decode(data)
    assert (decoded.text, decoded.format, decoded.invalid_at) == (text, format, None)
    assert format.encode(text) == data


def test_utf_8_with_a_broken_place_is_not_taken_for_latin_1():
    decoded = decode("grüß übt".encode() + b"\xff")
    assert (decoded.text, decoded.format.encoding, decoded.invalid_at) == ("grüß übt\ufffd", "utf-8", 11)


@pytest.mark.parametrize("data", [b"\0", b"a" * 8_191 + b"\0", b"\xff\xfe\0\0a\0\0\0", b"\xef\xbb\xbf\0"])
def test_a_nul_near_the_beginning_makes_a_file_binary(data):
    assert decode(data) is None


@pytest.mark.parametrize("data", ["aü€".encode(), "\ufeffaü€😀".encode("utf-16-le")])
def test_a_cut_through_a_character_is_no_error(data):
    whole = decode(data).text
    for length in range(4, len(data)):
        cut = decode(data[:length], cut=True)
        assert (cut.invalid_at, whole.startswith(cut.text)) == (None, True)


def test_a_cut_does_not_hide_that_a_text_is_no_utf_8():
    assert decode(b"caf\xe9 au lait", cut=True).format == TextFormat("latin-1")


# --- all or nothing ------------------------------------------------------------------------------------


class CountedCalls(SystemCalls):
    """Real calls; before the n-th of them, something happens."""

    def __init__(self, turn: int | None, happen: Callable[..., None], relative: bool = True) -> None:
        self.turn, self.happen, self.relative = turn, happen, relative
        self.names: list[str] = []

    def __getattribute__(self, name: str) -> Any:
        value = super().__getattribute__(name)
        if name not in vars(SystemCalls) or not callable(value):
            return value

        def call(*args: Any, **kwargs: Any) -> Any:
            self.names.append(name)
            if len(self.names) == self.turn:
                self.happen(name, *args)
            return value(*args, **kwargs)

        return call


def fail(name: str, *args: Any) -> None:
    if name == "close":
        os.close(*args)  # a failed close has closed all the same
    write_half(name, *args)
    raise OSError(errno.EIO, "Input/output error")


def die(name: str, *args: Any) -> None:
    write_half(name, *args)
    os._exit(9)


def write_half(name: str, *args: Any) -> None:
    if name == "write":
        os.write(args[0], args[1][: len(args[1]) // 2])


def let_pass(name: str, *args: Any) -> None:
    """Nothing happens."""


def replace_content(path: Path, system: SystemCalls) -> str | None:
    """What went wrong, in words."""
    context = ToolContext()
    context.files.remember(str(path), hash_content(OLD))
    done = change_file(context, str(path), lambda _path, _current: (NEW, ToolResult()), system=system)
    return done.error


def read_content(path: Path, system: SystemCalls) -> bytes | int | None:
    try:
        with Directory(str(path.parent), system=system) as directory:
            return directory.read(path.name, 100).data
    except OSError as error:
        return error.errno


def count_calls(path: Path, relative: bool) -> list[str]:
    counted = CountedCalls(None, let_pass, relative)
    assert replace_content(path, counted) is None
    return counted.names


def open_files() -> int:
    return len(os.listdir("/dev/fd"))


@pytest.mark.parametrize("relative", [True, False])
def test_whichever_call_fails_the_file_is_old_or_new_and_nothing_else_is_left(tmp_path, relative):
    path = tmp_path / "f"
    path.write_bytes(OLD)
    names = count_calls(path, relative)
    assert {"open", "write", "fchmod", "fchown", "fsync", "replace", "close"} <= set(names)
    for turn in range(1, len(names) + 1):
        path.write_bytes(OLD)
        path.chmod(0o640)
        before = open_files()
        problem = replace_content(path, CountedCalls(turn, fail, relative))
        done = problem is None or "File was written, but" in problem
        assert path.read_bytes() == (NEW if done else OLD), (turn, names[turn - 1])
        assert problem is None or str(path) in problem
        assert (os.listdir(tmp_path), stat.S_IMODE(path.stat().st_mode)) == (["f"], 0o640)
        assert open_files() == before


def test_whichever_call_fails_a_new_file_is_there_whole_or_leaves_no_trace(tmp_path):
    names = count_calls(tmp_path / "a" / "b" / "f", relative=True)
    assert names.count("mkdir") == 2
    for turn in range(1, len(names) + 1):
        root = tmp_path / str(turn)
        root.mkdir()
        path = root / "a" / "b" / "f"
        problem = replace_content(path, CountedCalls(turn, fail))
        if problem is None or "File was written, but" in problem:
            assert (path.read_bytes(), os.listdir(path.parent)) == (NEW, ["f"])
        else:
            assert os.listdir(root) == [], (turn, names[turn - 1])


def test_a_process_that_dies_at_any_call_leaves_the_old_or_the_new_file(tmp_path):
    script = """
import os, sys
from pathlib import Path
from tests.tools.test_files import NEW, OLD, CountedCalls, count_calls, die, replace_content

path = Path(sys.argv[1], "f")
path.write_bytes(OLD)
seen = []
for turn in range(1, len(count_calls(path, True)) + 1):
    path.write_bytes(OLD)
    child = os.fork()
    if not child:
        replace_content(path, CountedCalls(turn, die))
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 9 << 8
    seen.append({OLD: "old", NEW: "new"}[path.read_bytes()])
print(*seen)
"""
    done = subprocess.run(
        [sys.executable, "-c", script, tmp_path],
        capture_output=True,
        text=True,
        check=False,
        cwd=Path(__file__).parents[2],
    )
    seen = done.stdout.split()
    assert seen == sorted(seen, reverse=True), done.stderr
    assert set(seen) == {"old", "new"}


def test_a_directory_that_somebody_else_makes_at_the_same_time_is_used(tmp_path):
    path = tmp_path / "a" / "f"

    class Overtaken(SystemCalls):
        def mkdir(self, name: str, mode: int, *, dir_fd: int) -> None:
            path.parent.mkdir()
            os.mkdir(name, mode, dir_fd=dir_fd)

    assert replace_content(path, Overtaken()) is None
    assert path.read_bytes() == NEW


def test_new_directories_reach_the_disk_with_their_file(tmp_path):
    synced: list[int] = []

    class Watched(SystemCalls):
        def fsync(self, descriptor: int) -> None:
            synced.append(os.fstat(descriptor).st_ino)

    path = tmp_path / "a" / "b" / "f"
    replace_content(path, Watched())
    places = (path, tmp_path, tmp_path / "a", tmp_path / "a" / "b")
    assert synced == [place.stat().st_ino for place in places]


def test_a_file_system_that_cannot_sync_directories_is_no_obstacle(tmp_path):
    class NoDirectorySync(SystemCalls):
        def fsync(self, descriptor: int) -> None:
            if stat.S_ISDIR(os.fstat(descriptor).st_mode):
                raise OSError(errno.EINVAL, "Invalid argument")

    assert replace_content(tmp_path / "f", NoDirectorySync()) is None


def test_content_reaches_the_disk_before_the_name_and_the_name_before_the_answer(tmp_path):
    path = tmp_path / "f"
    path.write_bytes(OLD)
    names = count_calls(path, relative=True)
    order = [name for name in names if name in ("write", "fsync", "replace")]
    assert order == ["write", "fsync", "replace", "fsync"]


def test_the_temporary_file_is_private_until_it_has_the_mode_of_the_old_one(tmp_path):
    modes: list[int] = []

    class Watched(SystemCalls):
        def write(self, descriptor: int, data: bytes) -> int:
            modes.append(stat.S_IMODE(os.fstat(descriptor).st_mode))
            return os.write(descriptor, data)

    path = tmp_path / "f"
    path.write_bytes(OLD)
    path.chmod(0o600)
    assert replace_content(path, Watched()) is None
    assert (modes, stat.S_IMODE(path.stat().st_mode)) == ([0o600], 0o600)


@pytest.mark.parametrize(
    ("group_kept", "before", "after"), [(True, 0o6775, 0o775), (False, 0o6775, 0o755), (False, 0o660, 0o600)]
)
def test_a_file_whose_owner_cannot_be_kept_gives_nobody_more_rights(tmp_path, group_kept, before, after):
    class Stranger(SystemCalls):
        def fchown(self, descriptor: int, user: int, group: int) -> None:
            if user != -1 or not group_kept:
                raise PermissionError(errno.EPERM, "Operation not permitted")

    path = tmp_path / "f"
    path.write_bytes(OLD)
    path.chmod(before)
    assert replace_content(path, Stranger()) is None
    assert stat.S_IMODE(path.stat().st_mode) == after


def test_owner_and_group_are_handed_on(tmp_path):
    asked: list[tuple[int, int]] = []

    class Watched(SystemCalls):
        def fchown(self, descriptor: int, user: int, group: int) -> None:
            asked.append((user, group))

    path = tmp_path / "f"
    path.write_bytes(OLD)
    replace_content(path, Watched())
    assert asked == [(os.getuid(), path.stat().st_gid)]


# --- between looking and writing -----------------------------------------------------------------------


def test_a_directory_that_is_exchanged_for_a_link_is_not_followed(tmp_path):
    workspace, outside = tmp_path / "w", tmp_path / "outside"
    (workspace / "sub").mkdir(parents=True)
    outside.mkdir()

    def exchange(*call: Any) -> None:
        (workspace / "sub").rename(workspace / "moved")
        (workspace / "sub").symlink_to(outside)

    def restore() -> None:
        (workspace / "sub").unlink()
        (workspace / "moved").rename(workspace / "sub")

    names = count_calls(workspace / "sub" / "f", relative=True)
    for turn in range(1, len(names) + 1):
        (workspace / "sub" / "f").unlink(missing_ok=True)
        replace_content(workspace / "sub" / "f", CountedCalls(turn, exchange))
        assert os.listdir(outside) == [], (turn, names[turn - 1])
        restore()


def test_a_file_that_is_exchanged_for_a_link_is_neither_read_nor_written(tmp_path):
    secret, path = tmp_path / "secret", tmp_path / "f"
    secret.write_bytes(b"secret")

    def exchange(*call: Any) -> None:
        path.unlink()
        path.symlink_to(secret)

    path.write_bytes(OLD)
    names = count_calls(path, relative=True)
    for turn in range(1, len(names) + 1):
        path.unlink()
        path.write_bytes(OLD)
        assert read_content(path, CountedCalls(turn, exchange)) in (OLD, errno.ELOOP)
        path.unlink()
        path.write_bytes(OLD)
        replace_content(path, CountedCalls(turn, exchange))
        assert secret.read_bytes() == b"secret"
