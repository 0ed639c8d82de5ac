from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from _pytest.mark import ParameterSet
from tests.tools.undo_repository import (
    QUESTIONS,
    ask_git,
    build_repository,
    differences,
    run_bash,
    take_picture,
)

from robota.tools.files.directory import SystemCalls
from robota.tools.undo.plan import plan_command
from robota.tools.undo.store import UndoStore

TABLE = (Path(__file__).parent / "destructive_commands.txt").read_text().splitlines()
COMMANDS = [line for line in TABLE if line and not line.startswith("#")]
_NEEDS = re.compile(r"\[([a-z0-9]+)\] ")


class QuickCalls(SystemCalls):
    """The disk is trusted: durability is not what these tests are about."""

    fsync = staticmethod(lambda descriptor: None)
    sync_disk = staticmethod(lambda descriptor: None)


class Playground:
    """A repository that one command after the other destroys; each starts with what the last one left."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.work = place / "copy" / "work"
        build_repository(place / "work")
        self.picture: dict[bytes, Any] = take_picture(place / "work")
        self.answers = ask_git(place / "work")
        self.store = UndoStore(place / "undo", system=QuickCalls())
        self.is_whole = False

    def prepare(self) -> None:
        """Begin with a fresh copy, unless the last test left all as it was."""
        if not self.is_whole:
            shutil.rmtree(self.work.parent, ignore_errors=True)
            self.work.parent.mkdir()
            subprocess.run(["cp", "-a", "work", "remote.git", "copy"], cwd=self.place, check=True)
        self.is_whole = False


@pytest.fixture(scope="module")
def playground(tmp_path_factory: pytest.TempPathFactory) -> Playground:
    return Playground(tmp_path_factory.mktemp("playground"))


def test_the_table_has_more_than_two_hundred_commands():
    assert len(set(COMMANDS)) == len(COMMANDS) > 200


def by_need(command: str) -> ParameterSet:
    """A row that needs a program which not every machine has is a system test."""
    marks = (pytest.mark.system,) if _NEEDS.match(command) else ()
    return pytest.param(_NEEDS.sub("", command), marks=marks)


@pytest.mark.parametrize("command", [by_need(command) for command in COMMANDS])
def test_a_destructive_command_is_undone_and_done_again_byte_for_byte(command, playground):
    playground.prepare()
    work, store = playground.work, playground.store

    plan = plan_command(command, str(work), [str(work)], home=str(work.parent))
    assert plan is not None
    saved = store.save(plan, command)
    assert saved.entry_id is not None
    assert not saved.unprotected
    run_bash(command, work)
    assert store.finish(saved.entry_id).files > 0
    spoiled = take_picture(work)
    changed = differences(playground.picture, spoiled)
    assert changed

    undone = store.undo(saved.entry_id)

    assert not undone.kept
    assert differences(playground.picture, take_picture(work)) == {}
    # What is not kept in the work tree is asked for where a command wrote beside it.
    questions = QUESTIONS if any(b".git" in path for path in changed) else QUESTIONS[:1]
    assert ask_git(work, questions) == {each: playground.answers[each] for each in questions}

    assert undone.entry_id is not None
    again = store.undo(undone.entry_id)

    assert not again.kept
    assert differences(spoiled, take_picture(work)) == {}

    assert again.entry_id is not None
    assert not store.undo(again.entry_id).kept
    assert differences(playground.picture, take_picture(work)) == {}
    playground.is_whole = True
