"""What a project may do by itself when somebody works in it with the command."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from tests.support.command import model_requests, robota
from tests.support.terminal import Terminal

from robota.sdk.places import find_places
from robota.sdk.project import ProjectOptions, load_project
from robota.sdk.trust import TrustStore
from robota.testing.model_server import ModelServer

HOOK = {"hooks": {"UserPromptSubmit": [{"hooks": [{"type": "command", "command": "touch fired"}]}]}}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    path = tmp_path / "project"
    (path / ".claude").mkdir(parents=True)
    (path / ".claude" / "settings.json").write_text(json.dumps(HOOK))
    return path


def test_one_prompt_in_an_untrusted_project_runs_without_its_hooks_and_says_so(
    project: Path, tmp_path: Path
) -> None:
    with ModelServer("Hello.").in_thread() as server:
        done = robota("-p", "hi", cwd=project, server=server, ROBOTA_HOME=str(tmp_path / "robota"))

    assert (done.returncode, done.stdout) == (0, "Hello.\n")
    assert "This directory is not trusted" in done.stderr
    assert not (project / "fired").exists()


def test_a_flag_trusts_for_this_one_call(project: Path, tmp_path: Path) -> None:
    home = str(tmp_path / "robota")
    with ModelServer("Hello.", "Again.").in_thread() as server:
        done = robota("-p", "hi", "--trust", cwd=project, server=server, ROBOTA_HOME=home)
        assert (done.returncode, done.stdout) == (0, "Hello.\n")
        assert "not trusted" not in done.stderr
        assert (project / "fired").exists()
        (project / "fired").unlink()

        again = robota("-p", "hi", cwd=project, server=server, ROBOTA_HOME=home)

    assert "This directory is not trusted" in again.stderr
    assert not (project / "fired").exists()


def test_a_worktree_is_trusted_as_its_checkout_is(project: Path, tmp_path: Path) -> None:
    home = tmp_path / "robota"
    places = find_places(project, {"HOME": str(tmp_path), "ROBOTA_HOME": str(home)})
    TrustStore(str(home)).trust(str(project), load_project(ProjectOptions(places=places)).trust.wishes)
    git = ["git", "-c", "user.name=n", "-c", "user.email=e@example.org"]
    for command in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "first"]):
        subprocess.run([*git, *command], cwd=project, check=True)
    with ModelServer("Hello.", "Hello.").in_thread() as server:
        done = robota("-p", "hi", "--worktree", "try", cwd=project, server=server, ROBOTA_HOME=str(home))
        [tree] = [path for path in (project / ".robota" / "worktrees").iterdir() if path.is_dir()]
        fired = (tree / "fired").exists()
        (project / ".claude" / "settings.json").write_text(json.dumps(HOOK).replace("touch", "rm -f"))
        subprocess.run([*git, "commit", "-qam", "more"], cwd=project, check=True)
        asked = robota("-p", "hi", "--worktree", "no", cwd=project, server=server, ROBOTA_HOME=str(home))

    assert (done.returncode, fired) == (0, True)
    assert "not trusted" not in done.stderr
    assert "not trusted" in asked.stderr


def test_imports_from_outside_are_asked_about_at_the_start(tmp_path: Path) -> None:
    project, outside = tmp_path / "project", tmp_path / "rules.md"
    project.mkdir()
    outside.write_text("Always whisper.\n")
    project.joinpath("AGENTS.md").write_text(f"See @{outside}\n")
    with ModelServer("Hello.").in_thread() as server:
        place = {"ROBOTA_BASE_URL": f"{server.url}/v1", "ROBOTA_MODEL": "scripted"}
        terminal = Terminal(project, ROBOTA_HOME=str(tmp_path / "robota"), **place)
        terminal.wait_for(str(outside))
        terminal.wait_for("Read these files, too? [y/N] ")
        terminal.type("y\n")
        terminal.wait_for("robota> ")
        terminal.type("hi\n")
        terminal.wait_for("Hello.")
        terminal.wait_for("robota> ")
        terminal.type("/exit\n")
        assert terminal.leave() == 0
        assert "Always whisper." in str(model_requests(server)[0].body["messages"][0])
