"""Who answers: the question of the first start, `robota setup`, and `robota doctor`."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path

import pytest
from tests.support.command import model_requests, robota
from tests.support.scripted_gguf import write_scripted_gguf
from tests.support.terminal import Terminal

from robota import InteractiveSession
from robota.testing import ScriptedProvider
from robota.testing.model_server import ModelServer

KEY = "key-that-nobody-may-show-4711"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    directory = tmp_path / "project"
    directory.mkdir()
    return directory


def settings(home: Path) -> dict[str, object]:
    found: dict[str, object] = json.loads((home / "settings.json").read_text())
    return found


def test_an_address_and_a_piped_key_are_tried_kept_and_used(project: Path, home: Path) -> None:
    with ModelServer("Hello.", models=("m-1",)).in_thread() as server:
        address = f"{server.url}/v1"
        done = robota(
            "setup", "--base-url", address, "--model", "m-1",
            cwd=project, stdin=f"{KEY}\n", ROBOTA_HOME=str(home),
        )  # fmt: skip
        answered = robota("-p", "hi", cwd=project, ROBOTA_HOME=str(home))
        asked = model_requests(server)[0]

    assert done.returncode == 0, done.stderr
    assert settings(home) == {
        "providers": {"m-1": {"type": "openai-compatible", "model": "m-1", "baseURL": address}},
        "currentProvider": "m-1",
    }
    assert KEY not in done.stdout + done.stderr
    assert answered.stdout == "Hello.\n"
    assert asked.headers["authorization"] == f"Bearer {KEY}"
    assert asked.body["model"] == "m-1"


def test_what_does_not_work_is_not_kept(project: Path, home: Path) -> None:
    with ModelServer(models=("other",)).in_thread() as server:
        done = robota(
            "setup", "--provider", "openai-compatible", "--base-url", f"{server.url}/v1", "--model", "m",
            cwd=project, stdin=f"{KEY}\n", ROBOTA_HOME=str(home),
        )  # fmt: skip

    assert done.returncode == 1
    assert "nothing was kept" in done.stderr
    assert KEY not in done.stderr
    assert not (home / "settings.json").exists()
    assert not (home / "auth.json").exists()


def test_an_address_that_is_none_is_wrong_usage_before_a_key_is_read(project: Path, home: Path) -> None:
    done = robota(
        "setup", "--base-url", "nonsense", "--model", "m",
        cwd=project, stdin=f"{KEY}\n", ROBOTA_HOME=str(home),
    )  # fmt: skip

    assert done.returncode == 2
    assert "'nonsense' is not a web address" in done.stderr
    assert not (home / "settings.json").exists()


def test_the_first_start_asks_once_and_goes_on_with_what_was_decided(project: Path, home: Path) -> None:
    with ModelServer("I am here.", models=("m-1",)).in_thread() as server:
        terminal = Terminal(project, ROBOTA_HOME=str(home))
        terminal.wait_for("Nobody answers yet")
        terminal.wait_for("none is kept, and no\r\nmodel is here.")  # no word is broken
        terminal.wait_for("3  Another service")
        terminal.wait_for("to leave")
        terminal.type("9\n")
        terminal.wait_for("'9' is none of 1 to 4.")
        terminal.wait_for("to leave")
        terminal.type("3\n")
        terminal.wait_for("Base URL")
        terminal.type("\n")
        terminal.wait_for("Base URL")
        terminal.type("nonsense\n")
        terminal.wait_for("'nonsense' is not a web address")
        terminal.wait_for("Base URL")
        terminal.type(f"{server.url.removeprefix('http://')}/v1\n")
        terminal.wait_for("not shown")
        terminal.type(f"{KEY}\n")
        terminal.wait_for("Model")
        terminal.type("\n")
        terminal.wait_for("answers from now on with m-1")
        terminal.wait_for("> ")
        terminal.type("hello\n")
        terminal.wait_for("I am here.")
        terminal.wait_for("> ")
        terminal.type("/exit\n")
        code = terminal.leave()

    assert code == 0
    assert KEY not in terminal.seen


def test_whoever_leaves_the_first_question_has_changed_nothing(project: Path, home: Path) -> None:
    terminal = Terminal(project, ROBOTA_HOME=str(home))
    terminal.wait_for("to leave")
    terminal.type("3\n")
    terminal.wait_for("Base URL")
    terminal.type("q\n")

    assert terminal.leave() == 0
    assert not (home / "settings.json").exists()


def test_a_model_that_is_here_makes_setup_unnecessary(project: Path, home: Path, tmp_path: Path) -> None:
    (home / "models").mkdir(parents=True)
    write_scripted_gguf(home / "models" / "mine.gguf", '{"answer": "Yes."}')
    done = robota("setup", "--local", "--if-needed", cwd=project, ROBOTA_HOME=str(home))

    assert (done.returncode, done.stderr) == (0, "")
    assert not (home / "settings.json").exists()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("setup",), "name what to set up with --provider or --local"),
        (("setup", "--provider", "nobody"), "'nobody' is none of anthropic"),
        (("setup", "--local", "--model", "nothing"), "There is no model 'nothing' to pull"),
        (("tour",), "in a terminal"),
    ],
)
def test_what_cannot_be_set_up_is_said_in_one_sentence(
    project: Path, home: Path, arguments: tuple[str, ...], said: str
) -> None:
    done = robota(*arguments, cwd=project, ROBOTA_HOME=str(home))

    assert done.returncode != 0
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_the_doctor_names_what_is_wrong_and_the_command_that_mends_it(project: Path, home: Path) -> None:
    home.mkdir()
    (home / "settings.json").write_text('{"permissions": {"alow": []}}')
    done = robota("doctor", cwd=project, ROBOTA_HOME=str(home))

    assert done.returncode == 1
    assert "FAIL  Nobody can answer: no key, no address, no model\n      robota setup\n" in done.stdout
    assert "alow" in done.stdout
    assert "settings.json" in done.stdout


def test_the_doctor_finds_nothing_broken_in_a_directory_that_is_not_trusted_yet(
    project: Path, home: Path
) -> None:
    (project / ".mcp.json").write_text('{"mcpServers": {"calc": {"command": "calc"}}}')
    with ModelServer("unused", models=("scripted",)).in_thread() as server:
        done = robota("doctor", cwd=project, server=server, ROBOTA_HOME=str(home))

    assert done.returncode == 0, done.stdout
    assert "FAIL" not in done.stdout
    assert done.stdout.count("is not trusted") == 1
    assert "      robota, which asks; or robota --trust for one call\n" in done.stdout


async def trust(project: Path, home: Path) -> None:
    variables = {"HOME": str(home), "ROBOTA_HOME": str(home)}
    async with InteractiveSession(cwd=project, provider=ScriptedProvider(), environment=variables) as session:
        await session.ready()
        session.describe_trust()
        await session.trust_project()


@pytest.mark.parametrize("directory", [".claude", ".robota"])
def test_a_status_line_of_a_project_is_a_note_of_the_doctor_and_no_notice(
    project: Path, home: Path, directory: str
) -> None:
    line = {"type": "command", "command": "touch status-ran"}
    (project / directory).mkdir()
    (project / directory / "settings.json").write_text(
        json.dumps({"statusLine": line, "notifications": "bell", "keybindings": {"abort": "c-x"}})
    )
    asyncio.run(trust(project, home))
    with ModelServer("Hello.").in_thread() as server:
        examined = robota("doctor", cwd=project, server=server, ROBOTA_HOME=str(home))
        done = robota("-p", "x", cwd=project, server=server, ROBOTA_HOME=str(home))

    assert examined.returncode == 0, examined.stdout
    for name in ("statusLine", "notifications", "keybindings"):
        assert f":1: {name}: a project may not choose this" in examined.stdout
    assert "FAIL" not in examined.stdout
    assert (done.returncode, done.stdout) == (0, "Hello.\n")
    assert "may not choose" not in done.stderr
    assert not (project / "status-ran").exists()


def test_the_doctor_goes_on_when_the_settings_cannot_be_read(project: Path, home: Path) -> None:
    home.mkdir(exist_ok=True)
    (home / "settings.json").write_text('{"model":')

    done = robota("doctor", "--offline", cwd=project, ROBOTA_HOME=str(home))

    assert done.returncode == 1
    assert "ok    robota" in done.stdout
    assert done.stdout.count("settings.json") == 1
    assert "      robota config edit\n" in done.stdout


def test_the_doctor_tries_the_service_without_asking_a_model(project: Path, home: Path) -> None:
    with ModelServer("unused", models=("scripted",)).in_thread() as server:
        done = robota("doctor", "--json", cwd=project, server=server, ROBOTA_HOME=str(home))
        asked = model_requests(server)
    found = [json.loads(line) for line in done.stdout.splitlines()]

    assert done.returncode == 0, done.stdout
    assert asked == []
    assert found[-1]["state"] == "ok"
    assert "scripted" in found[-1]["what"]


def test_the_doctor_says_when_a_service_does_not_answer(project: Path, home: Path) -> None:
    done = robota(
        "doctor",
        cwd=project,
        ROBOTA_HOME=str(home),
        ROBOTA_BASE_URL="http://127.0.0.1:9/v1",
        ROBOTA_MODEL="m",
    )

    assert done.returncode == 1
    assert "does not answer" in done.stdout


def test_a_home_that_cannot_be_written_is_named(project: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    done = robota("doctor", "--offline", cwd=project, ROBOTA_HOME=os.fspath(tmp_path / "file" / "home"))

    assert done.returncode == 1
    assert "cannot be written" in done.stdout
    assert "Traceback" not in done.stdout + done.stderr
