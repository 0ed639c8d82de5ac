from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from robota.sdk.commands.effects import CommandResult
from robota.sdk.interactive import InteractiveSession
from robota.sessions.permissions.live_rules import PermissionRules
from robota.testing import ScriptedProvider, call

pytestmark = pytest.mark.anyio


@pytest.fixture
def project(tmp_path: Path) -> Path:
    path = tmp_path / "work"
    path.mkdir()
    (path / "notes.txt").write_text("milk\n")
    return path


def commit(project: Path) -> None:
    who = ["-c", "user.name=n", "-c", "user.email=e@example.org"]
    for words in (["init", "-q"], ["add", "."], [*who, "commit", "-qm", "first"]):
        subprocess.run(["git", *words], cwd=project, check=True)


def make(project: Path, *script: Any, **options: Any) -> InteractiveSession:
    return InteractiveSession(
        cwd=project,
        provider=ScriptedProvider(*script),
        model="m",
        permission_mode="bypassPermissions",
        environment={"HOME": str(project.parent / "home")},
        **options,
    )


async def run(session: InteractiveSession, args: str = "") -> CommandResult:
    result = await session.execute_command("diff", args)
    assert result is not None
    return result


def rewrite(project: Path, text: str) -> list[Any]:
    """A script: the file is read, then written."""
    path = str(project / "notes.txt")
    return [[call("Read", file_path=path)], [call("Write", file_path=path, content=text)], "done"]


SESSION = "--- notes.txt\n+++ notes.txt\n@@ -1 +1 @@\n-milk\n+eggs"


async def test_the_working_tree_is_compared_with_the_last_commit(project: Path) -> None:
    commit(project)
    (project / "notes.txt").write_text("bread\n")
    (project / "new.txt").write_text("x")
    async with make(project, trust_project=True) as session:
        lines = (await run(session)).message.split("\n")

        assert lines[-3:] == ["-milk", "+bread", "new: new.txt"]
        (project / "notes.txt").write_text("milk\n")
        (project / "new.txt").unlink()
        assert (await run(session)).message == "Nothing differs from the last commit."
        assert (await run(session, "session")).message == "This session has changed no files."


async def test_what_the_session_changed_is_shown_without_a_repository(project: Path) -> None:
    async with make(project, *rewrite(project, "eggs\n"), trust_project=True) as session:
        await session.submit("eggs, please")

        assert (await run(session)).message == SESSION
        assert not (await run(session, "yesterday")).success


async def test_git_is_not_run_in_a_project_that_is_not_trusted(project: Path) -> None:
    commit(project)
    trap = project.parent / "sprung"
    (project / ".gitattributes").write_text("* filter=trap\n")
    (project / ".git" / "config").write_text(f'[filter "trap"]\n\tclean = "touch {trap}; cat"\n')
    async with make(project, *rewrite(project, "eggs\n")) as session:
        await session.submit("eggs, please")

        assert (await run(session)).message == f"{SESSION}\n[Git was not run: this project is not trusted.]"
        assert not trap.exists()
    async with make(project, trust_project=True) as session:
        assert "+eggs" in (await run(session)).message
        assert not trap.exists()


async def test_a_rule_that_denies_git_binds_the_command_too(project: Path) -> None:
    commit(project)
    (project / "notes.txt").write_text("bread\n")
    async with make(project, trust_project=True) as session:
        await session.ready()
        session.session.reload(rules=PermissionRules(deny=("Bash(git *)",)))

        assert (await run(session)).message == (
            "This session has changed no files.\n[Git was not run: a deny rule forbids it.]"
        )
