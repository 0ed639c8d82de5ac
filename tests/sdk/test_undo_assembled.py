"""Undo as every interactive session has it: where it keeps things, what it saves, what it says."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import pytest

from robota.core.messages import ToolMessage
from robota.sdk.interactive import InteractiveSession
from robota.sdk.places import find_places
from robota.sdk.undo import remove_unused_stores, undo_directory
from robota.testing import ScriptedProvider, call
from robota.tools.undo.store import UndoStore

pytestmark = pytest.mark.anyio


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("ROBOTA_HOME", str(tmp_path / "home" / ".robota"))
    path = tmp_path / "project"
    path.mkdir()
    (path / "notes.txt").write_text("milk\n")
    return path


async def run(project: Path, *calls: Any, **options: Any) -> InteractiveSession:
    session = InteractiveSession(
        cwd=project,
        provider=ScriptedProvider(*[[each] for each in calls], "Done."),
        permission_mode="bypassPermissions",
        **options,
    )
    result = await session.submit("Work")
    assert result.error is None
    return session


def results(session: InteractiveSession) -> list[ToolMessage]:
    return [each for each in session.session.messages if isinstance(each, ToolMessage)]


async def test_each_changing_call_is_saved_in_a_store_of_the_project(project: Path) -> None:
    session = await run(
        project,
        call("Write", file_path="fresh.txt", content="bread\n"),
        call("Read", file_path="notes.txt"),
        call("Bash", command="cat notes.txt"),
        call("Bash", command="rm notes.txt"),
    )
    store = UndoStore(undo_directory(find_places(project)))
    assert os.path.dirname(store.base_dir) == str(project.parent / "home" / ".robota" / "undo")
    assert [(each.tool, each.files, each.session_id) for each in store.entries()] == [
        ("Write", 1, session.session_id),
        ("Bash", 1, session.session_id),
    ]
    assert [list(each.metadata.get("undo", {})) for each in results(session)] == [
        ["entry", "files"],
        [],
        [],
        ["entry", "files"],
    ]
    assert all("undo" not in each.content for each in results(session))
    await session.shutdown()


async def test_a_secret_in_a_command_is_not_shown_by_its_entry(project: Path) -> None:
    secret = "ghp_" + "a1B2c3D4e5F6" * 3
    session = await run(project, call("Bash", command=f"echo {secret} > token"))
    (entry,) = UndoStore(undo_directory(find_places(project))).entries()
    assert secret not in entry.label
    await session.shutdown()


async def test_a_setting_turns_it_off(project: Path) -> None:
    options = {"settings": {"fileCheckpointingEnabled": False}}
    session = await run(project, call("Write", file_path="fresh.txt", content="x"), **options)
    assert UndoStore(undo_directory(find_places(project))).entries() == []
    answer = await session.execute_command("undo")
    assert answer is not None
    assert "no call of it changed a file" in answer.message
    await session.shutdown()


async def test_a_home_that_cannot_be_used_is_said_and_costs_no_call(project: Path) -> None:
    home = project.parent / "home" / ".robota"
    home.mkdir(parents=True)
    (home / "undo").write_text("in the way")
    session = await run(project, call("Write", file_path="fresh.txt", content="bread\n"))
    (result,) = results(session)
    assert (project / "fresh.txt").read_text() == "bread\n"
    assert (
        "[Cannot be undone completely: The undo store failed: The undo store cannot be used" in result.content
    )
    await session.shutdown()


async def test_what_a_subagent_changes_belongs_to_the_turn_of_the_session(project: Path) -> None:
    provider = ScriptedProvider("Ready.", [call("Write", file_path="fresh.txt", content="x")], "Done.")
    session = InteractiveSession(cwd=project, provider=provider, permission_mode="bypassPermissions")
    await session.submit("Begin")
    async with session.session.child("helper") as child:
        await child.run("Write it")
    assert (project / "fresh.txt").exists()

    await session.kit.checkpoints.restore(1)

    assert not (project / "fresh.txt").exists()
    await session.shutdown()


async def test_old_stores_go_when_a_session_begins(project: Path) -> None:
    old = project.parent / "home" / ".robota" / "undo" / "old"
    old.mkdir(parents=True)
    (old / "journal.jsonl").write_text("")
    os.utime(old / "journal.jsonl", (1, 1))
    session = await run(project)
    assert not old.exists()
    await session.shutdown()


def test_stores_of_projects_that_nobody_works_in_are_removed(project: Path) -> None:
    places = find_places(project)
    base = Path(places.user("undo"))
    for name, days in (("old", 40), ("used", 1)):
        (base / name).mkdir(parents=True)
        (base / name / "journal.jsonl").write_text("")
        then = time.time() - days * 86_400
        os.utime(base / name / "journal.jsonl", (then, then))
    (base / "strange").mkdir()
    (base / "linked").symlink_to(base / "old")

    assert remove_unused_stores(places, 30.0) == ["old"]
    assert sorted(each.name for each in base.iterdir()) == ["linked", "strange", "used"]
