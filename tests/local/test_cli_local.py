"""`robota -p` with no key and no network: a model file on this machine does a real turn."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from tests.support.fork_server import run
from tests.support.scripted_gguf import tool_call, write_scripted_gguf

GLOB = tool_call("Glob", '{"pattern": "**/*.py"}')
ANSWER = '{"answer": "There are two python files, as Glob says."}'


@pytest.fixture
def project(tmp_path: Path) -> Path:
    directory = tmp_path / "project"
    (directory / "pkg").mkdir(parents=True)
    (directory / "main.py").write_text("")
    (directory / "pkg" / "util.py").write_text("")
    (directory / "notes.txt").write_text("")
    return directory


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return write_scripted_gguf(tmp_path / "scripted.gguf", GLOB, ANSWER)


def robota(*arguments: str, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG", "ROBOTA_HOME") if name in os.environ}
    return run(arguments, cwd=cwd, env={**kept, "PYTHONIOENCODING": "utf-8", **environment})


def assert_used_a_tool(done: subprocess.CompletedProcess[str]) -> None:
    assert (done.returncode, done.stdout) == (0, "There are two python files, as Glob says.\n"), done.stderr
    assert "Glob(**/*.py)" in done.stderr


def test_the_model_in_the_environment_makes_a_real_call_and_answers(project: Path, model: Path) -> None:
    done = robota("-p", "list the python files", cwd=project, ROBOTA_LOCAL_MODEL=str(model))

    assert_used_a_tool(done)
    assert "tiny offline model" in done.stderr


def test_the_model_answers_from_what_the_tool_found(project: Path, tmp_path: Path) -> None:
    told = {"pkg/util.py": '{"answer": "One of them is pkg/util.py."}'}
    model = write_scripted_gguf(tmp_path / "reader.gguf", GLOB, ANSWER, told=told)

    done = robota("-p", "list the python files", cwd=project, ROBOTA_LOCAL_MODEL=str(model))

    assert (done.returncode, done.stdout) == (0, "One of them is pkg/util.py.\n"), done.stderr
    (project / "pkg" / "util.py").unlink()
    assert_used_a_tool(robota("-p", "list the python files", cwd=project, ROBOTA_LOCAL_MODEL=str(model)))


@pytest.mark.parametrize("spelling", [("--model", "local:{}"), ("--provider", "local", "--model", "{}")])
def test_a_model_can_be_named_by_its_path(project: Path, model: Path, spelling: tuple[str, ...]) -> None:
    named = [word.format(model) for word in spelling]
    assert_used_a_tool(robota("-p", "list the python files", *named, cwd=project))


def test_a_pulled_model_is_used_when_there_is_no_key(project: Path, tmp_path: Path) -> None:
    (tmp_path / "home" / "models").mkdir(parents=True)
    write_scripted_gguf(tmp_path / "home" / "models" / "mine.gguf", GLOB, ANSWER)

    done = robota("-p", "list the python files", cwd=project, ROBOTA_HOME=str(tmp_path / "home"))

    assert_used_a_tool(done)
    assert "this is mine, a tiny offline model" in done.stderr


@pytest.mark.parametrize(
    ("named", "words"),
    [
        ("/nowhere/model.gguf", "There is no model file /nowhere/model.gguf"),
        ("smollm2-135m", "robota model pull smollm2-135m"),
        ("nope", "There is no model 'nope'"),
        (__file__, "it is not a GGUF file"),
    ],
)
def test_a_model_that_cannot_be_used_is_one_sentence(project: Path, named: str, words: str) -> None:
    done = robota("-p", "hello", "--model", f"local:{named}", cwd=project)

    assert done.returncode == 1
    assert words in done.stderr
    assert done.stderr.count("\n") == 1
