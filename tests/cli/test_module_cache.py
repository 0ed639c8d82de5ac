"""The file of compiled modules: what a start takes from it, and when it does not."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from robota.cli import module_cache
from robota.testing import ModelServer

MODULES = module_cache.WORTH_WRITING + 5
PROGRAM = """
import json, os, sys
sys.path.insert(1, sys.argv[1])
if len(sys.argv) > 3:
    sys.path.insert(1, sys.argv[3])
if "EARLY" in os.environ:
    import many
from robota.cli.module_cache import ModuleCache
cache = ModuleCache(sys.argv[2], "v")
sys.meta_path.insert(0, cache)
import colorsys, lone, many
from many import sub
words = [module.WORD for name, module in sorted(sys.modules.items()) if name.startswith("many.m")]
cached = [
    name
    for name, module in sys.modules.items()
    if type(getattr(module.__spec__, "loader", None)).__name__ == "_Loader"
]
print(json.dumps([cached, words, sub.__file__, many.__path__, lone.WORD, sub.__cached__]))
cache.update()
"""


class Answer(NamedTuple):
    """What a program found."""

    cached: list[str]
    words: list[str]
    sub: str
    path: list[str]
    lone: str
    compiled: str
    """Where Python keeps what it compiled of a module."""


class Start:
    """Python programs that load a package of many modules through the cache."""

    def __init__(self, directory: Path) -> None:
        self.root, self.kept, self.elsewhere = (directory / name for name in ("root", "kept", "elsewhere"))
        for path in (self.root / "many" / "sub", self.kept, self.elsewhere):
            path.mkdir(parents=True)
        names = [f"m{number:03}" for number in range(MODULES)]
        (self.root / "many" / "__init__.py").write_text(f"from many import {', '.join(names)}\n")
        (self.root / "many" / "sub" / "__init__.py").write_text("")
        for name in names:
            (self.root / "many" / f"{name}.py").write_text("WORD = 'first'\n")
        self.write_lone("here")

    def write_lone(self, word: str) -> None:
        """A module of the directory the program is started in."""
        (self.elsewhere / "lone.py").write_text(f"WORD = {word!r}\n")

    def __call__(self, *, shadow: Path | None = None, writes: bool = True, early: bool = False) -> Answer:
        environment = {"PATH": os.environ["PATH"]} | ({} if writes else {"PYTHONDONTWRITEBYTECODE": "1"})
        environment |= {"EARLY": "1"} if early else {}
        program = self.elsewhere / "program.py"
        program.write_text(PROGRAM)
        done = subprocess.run(
            [sys.executable, str(program), str(self.root), str(self.kept), *filter(None, [shadow])],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
        assert not done.stderr
        return Answer(*json.loads(done.stdout))

    @property
    def files(self) -> list[Path]:
        return sorted(self.kept.iterdir())


@pytest.fixture
def start(tmp_path: Path) -> Start:
    return Start(tmp_path)


def test_the_second_start_takes_its_modules_from_the_file(start: Start) -> None:
    assert start().cached == []
    second = start()
    assert {"many", "many.sub", "many.m000", "colorsys"} <= set(second.cached)
    assert second.words == ["first"] * MODULES
    assert second.sub == str(start.root / "many" / "sub" / "__init__.py")
    assert second.path == [str(start.root / "many")]
    assert (
        Path(second.compiled)
        == start.root / "many" / "sub" / "__pycache__" / f"__init__.{sys.implementation.cache_tag}.pyc"
    )


def test_a_module_that_changed_is_loaded_as_it_is_now(start: Start) -> None:
    start()
    (start.root / "many" / "m001.py").write_text("WORD = 'second'\n")
    again = start()
    assert again.words[:3] == ["first", "second", "first"]
    assert "many.m001" not in again.cached
    (start.root / "many" / "m001.py").unlink()
    (start.root / "many" / "__init__.py").write_text("")
    assert start().words == []


def test_it_is_written_anew_when_much_has_changed(start: Start) -> None:
    start()
    for number in range(MODULES):
        (start.root / "many" / f"m{number:03}.py").write_text("WORD = 'another'\n")
    assert "many.m000" not in start().cached
    last = start()
    assert "many.m000" in last.cached
    assert set(last.words) == {"another"}


def test_modules_that_were_loaded_before_it_are_no_reason_to_write_it_anew(start: Start) -> None:
    start()
    [written] = start.files
    first = written.stat()
    assert "many.m000" not in start(early=True).cached
    assert written.stat().st_ino == first.st_ino
    assert written.stat().st_mtime_ns == first.st_mtime_ns


def test_what_lies_beside_the_program_is_never_kept(start: Start) -> None:
    start()
    start.write_lone("there")
    assert start().lone == "there"
    assert "lone" not in start().cached


def test_another_path_has_another_file(start: Start, tmp_path: Path) -> None:
    """A directory that comes first may hold another module of the same name."""
    start()
    shadow = tmp_path / "shadow"
    (shadow / "many" / "sub").mkdir(parents=True)
    (shadow / "many" / "__init__.py").write_text("")
    (shadow / "many" / "sub" / "__init__.py").write_text("")
    assert start(shadow=shadow).path == [str(shadow / "many")]
    assert start().path == [str(start.root / "many")]


def test_few_environments_keep_one(start: Start, tmp_path: Path) -> None:
    for number in range(6):
        (path := tmp_path / f"path{number}").mkdir()
        start(shadow=path)
    assert len(start.files) == 4


@pytest.mark.parametrize("damage", ["empty", "garbage", "cut", "huge", "noise"])
def test_a_damaged_file_does_no_harm(start: Start, damage: str) -> None:
    start()
    [file] = start.files
    whole = file.read_bytes()
    damaged = {
        "empty": b"",
        "garbage": b"\xff" * 64,
        "cut": whole[: len(whole) // 2],
        "huge": (2**40).to_bytes(8, "little") + whole[8:],
        "noise": whole[:8] + os.urandom(64),
    }
    file.write_bytes(damaged[damage])
    assert start().words == ["first"] * MODULES


def test_nothing_is_written_where_python_may_not(start: Start) -> None:
    start(writes=False)
    assert start.files == []
    start.kept.rmdir()
    assert start().words == ["first"] * MODULES


WHERE_FROM = """
import atexit, sys
def tell():
    loaded = [type(m.__spec__.loader).__name__ for n, m in sys.modules.items() if n.startswith("robota.")]
    sys.__stderr__.write(f"\\n{loaded.count('_Loader')} of {len(loaded)}")
atexit.register(tell)
from robota.__main__ import main
main()
"""


def test_the_command_starts_from_it(tmp_path: Path) -> None:
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path),
        "ROBOTA_API_KEY": "k",
        "PYTHONPYCACHEPREFIX": str(tmp_path / "compiled"),
    }

    def answer() -> tuple[int, int]:
        with ModelServer("Hello.").in_thread() as server:
            arguments = ["-p", "Hello", "--base-url", server.url, "--model", "m"]
            done = subprocess.run(
                [sys.executable, "-c", WHERE_FROM, *arguments],
                cwd=tmp_path,
                env=environment,
                capture_output=True,
                text=True,
                check=True,
            )
        assert done.stdout == "Hello.\n"
        found, all_of_them = done.stderr.rpartition("\n")[2].split(" of ")
        return int(found), int(all_of_them)

    assert answer()[0] == 0
    found, loaded = answer()
    assert loaded - found < 10, "what is loaded before it: __main__, _version, _lazy, cli, itself"
