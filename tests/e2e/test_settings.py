"""The command goes by settings files."""

from __future__ import annotations

import json
import os
import stat
import subprocess
from pathlib import Path
from typing import Any

import pytest
from tests.support.command import model_requests
from tests.support.fork_server import run

from robota.testing import call
from robota.testing.model_server import ModelServer

KEY = "key-that-nobody-may-write-down"


class Home:
    def __init__(self, root: Path) -> None:
        self.project = root / "project"
        self.project.mkdir()
        self.home = root / "home"
        (self.home / ".robota").mkdir(parents=True)

    def write(self, settings: dict[str, Any]) -> None:
        (self.home / ".robota" / "settings.json").write_text(json.dumps(settings))

    def run(self, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
        env = {"PATH": os.environ["PATH"], "HOME": str(self.home), "PYTHONIOENCODING": "utf-8", **variables}
        return run(["-p", "hello", *arguments], cwd=self.project, env=env)


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)


def profiles(url: str, **more: Any) -> dict[str, Any]:
    work = {"type": "openai", "model": "work-model", "apiKey": KEY, "baseURL": f"{url}/v1"}
    lab = {"type": "openai", "model": "lab-model", "apiKey": "$ENV:LAB_WORD", "baseURL": f"{url}/v1"}
    return {"providers": {"work": work, "lab": lab}, **more}


@pytest.mark.parametrize(
    ("arguments", "variables", "model", "key"),
    [
        ((), {}, "work-model", KEY),
        (("--provider", "lab"), {}, "lab-model", "lab-key"),
        ((), {"ROBOTA_PROVIDER": "lab"}, "lab-model", "lab-key"),
        (("--model", "other"), {}, "other", KEY),
        (("--provider", "lab", "--model", "other"), {}, "other", "lab-key"),
    ],
)
def test_a_profile_of_the_settings_answers(
    home: Home, arguments: tuple[str, ...], variables: dict[str, str], model: str, key: str
) -> None:
    with ModelServer("Hello from there.").in_thread() as server:
        home.write(profiles(server.url, currentProvider="work"))
        done = home.run(*arguments, LAB_WORD="lab-key", **variables)
        asked = model_requests(server)[0]

    assert (done.returncode, done.stdout) == (0, "Hello from there.\n"), done.stderr
    assert asked.body["model"] == model
    assert asked.headers["authorization"] == f"Bearer {key}"
    written = "".join(path.read_text() for path in (home.home / ".robota").rglob("*.json*") if path.is_file())
    assert key not in written.replace(json.dumps(profiles(server.url, currentProvider="work")), "")


def test_a_profile_that_does_not_exist_has_no_substitute(home: Home) -> None:
    home.write({"currentProvider": "gone", "providers": {}})

    done = home.run(OPENAI_API_KEY=KEY)

    assert done.returncode != 0
    assert 'There is no provider profile "gone"' in done.stderr


def test_rules_and_the_language_of_the_settings_count(home: Home) -> None:
    (home.project / "secret.txt").write_text("4711")
    with ModelServer([call("Read", file_path="secret.txt")], "done").in_thread() as server:
        more = {"language": "Korean", "permissions": {"deny": ["Read(secret.txt)"]}}
        home.write(profiles(server.url, currentProvider="work", **more))
        done = home.run()
        first, second = (json.dumps(asked.body) for asked in model_requests(server))

    assert done.returncode == 3, done.stderr  # something was not allowed
    assert "Korean" in first
    assert "4711" not in second


def test_a_file_that_does_not_parse_is_named(home: Home) -> None:
    (home.home / ".robota" / "settings.json").write_text('{"model": ')

    done = home.run()

    assert done.returncode != 0
    assert "settings.json: the text ends too early (line 1)" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_variable_says_where_the_log_goes(home: Home) -> None:
    log = home.home / "robota.log"
    with ModelServer("fine", repeat=True).in_thread() as server:
        home.write(profiles(server.url, currentProvider="work"))
        done = home.run(ROBOTA_LOG=str(log))
        level = home.run(ROBOTA_LOG="debug")
        refused = home.run(ROBOTA_LOG="/nowhere/robota.log")

    assert (done.returncode, level.returncode) == (0, 0)
    assert stat.S_IMODE(log.stat().st_mode) == 0o600
    assert refused.returncode != 0
    assert "The log cannot be written to" in refused.stderr


def test_a_setting_of_a_project_that_is_not_trusted_is_said_to_wait(home: Home) -> None:
    def do(*words: str) -> subprocess.CompletedProcess[str]:
        env = {"PATH": os.environ["PATH"], "HOME": str(home.home), "PYTHONIOENCODING": "utf-8"}
        return run([*words], cwd=home.project, env=env)

    mine = do("config", "set", "theme", "dark")
    waits = do("config", "set", "permissions.allow", '["Bash(make)"]', "--scope", "project")
    do("-p", "/trust yes")
    counts = do("config", "set", "theme", "light", "--scope", "project")

    assert (mine.stderr, counts.stderr) == ("", "")
    assert waits.stderr.startswith(
        "This directory is not trusted, so of its settings only deny and ask rules"
    )
    assert do("config", "get", "theme").stdout == "light\n"


def test_an_editor_that_fails_is_named(home: Home) -> None:
    env = {"PATH": os.environ["PATH"], "HOME": str(home.home), "EDITOR": "false"}
    done = run(["config", "edit"], cwd=home.project, env=env)

    assert done.returncode == 1
    assert done.stderr.startswith("robota: The editor 'false' ended with 1: look at ")


def test_what_nobody_said_on_the_command_line_is_not_told_as_said_there(home: Home) -> None:
    (home.project / ".robota").mkdir()
    (home.project / ".robota" / "settings.json").write_text('{"permissions": {"deny": ["Raed(x)"]}}')
    with ModelServer("Hi.").in_thread() as server:
        home.write(profiles(server.url, currentProvider="work"))
        done = home.run()

    assert ".robota/settings.json: deny rule Raed(x): there is no tool 'Raed'" in done.stderr
    assert "the command line" not in done.stderr
