from __future__ import annotations

import os
import sys
import sysconfig
from pathlib import Path

import pytest

from robota.core.tool import ToolContext
from robota.tools.builtins.search import grep_tool
from robota.tools.search.engine import SearchError, find_engine

RIPGREP = os.path.join(sysconfig.get_path("scripts"), "rg")


@pytest.fixture(autouse=True)
def forget():
    find_engine.cache_clear()
    yield
    find_engine.cache_clear()


@pytest.fixture
def program(tmp_path):
    def program(text: str, name: str = "rg") -> Path:
        path = tmp_path / "bin" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(0o755)
        return path

    return program


def look_only_on_path(monkeypatch, directory: Path | str) -> None:
    monkeypatch.setattr(sysconfig, "get_path", lambda name: "/nonexistent")
    monkeypatch.setenv("PATH", str(directory))


def test_ripgrep_beside_the_interpreter_comes_first(monkeypatch, program):
    monkeypatch.setenv("PATH", str(program("echo ripgrep 99.0.0").parent))
    assert find_engine().command == (RIPGREP,)


def test_then_the_one_on_the_path(monkeypatch, program):
    found = program("echo ripgrep 99.0.0")
    look_only_on_path(monkeypatch, found.parent)
    assert find_engine().command == (str(found),)


@pytest.mark.parametrize("text", ["echo ripgrep 12.1.1", "echo something else", "exit 1", "kill -9 $$"])
def test_a_program_that_is_no_recent_ripgrep_is_passed_over(monkeypatch, program, text):
    look_only_on_path(monkeypatch, program(text).parent)
    assert find_engine().command[0] == sys.executable


def test_a_program_in_the_directory_that_is_searched_is_never_taken(monkeypatch, program):
    found = program("echo ripgrep 99.0.0")
    monkeypatch.chdir(found.parent)
    look_only_on_path(monkeypatch, ".")
    assert find_engine().command[0] == sys.executable


def test_it_is_looked_for_once(monkeypatch, program, tmp_path):
    look_only_on_path(monkeypatch, program(f"echo >> {tmp_path}/runs; echo ripgrep 99.0.0").parent)
    assert find_engine() is find_engine()
    assert (tmp_path / "runs").read_text() == "\n"


def test_a_given_program_must_work(program):
    assert find_engine(RIPGREP).command == (RIPGREP,)
    with pytest.raises(SearchError, match="is not a ripgrep 13 or later that runs"):
        find_engine(str(program("exit 1")))


@pytest.mark.anyio
async def test_a_given_program_that_does_not_work_is_an_error_result(tmp_path):
    tool = grep_tool(ripgrep=str(tmp_path / "rg"))
    result = await tool.run({"pattern": "x"}, ToolContext(cwd=str(tmp_path)))
    assert (result.ok, result.error_code) == (False, "unavailable")
    assert f"{tmp_path / 'rg'} is not a ripgrep" in result.text


@pytest.mark.anyio
async def test_a_program_that_breaks_down_is_an_error_result(tmp_path, program):
    broken = program('case "$*" in *--version) echo ripgrep 99.0.0;; *) echo oh no >&2; exit 9;; esac')
    result = await grep_tool(ripgrep=str(broken)).run({"pattern": "x"}, ToolContext(cwd=str(tmp_path)))
    assert result.text == "Error: The search failed: oh no"


def test_an_application_without_an_interpreter_says_what_to_install(monkeypatch):
    monkeypatch.setattr(sys, "frozen", True, raising=False)
    with pytest.raises(SearchError, match="install ripgrep"):
        find_engine(False)
