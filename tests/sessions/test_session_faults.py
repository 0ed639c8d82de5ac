"""A whole session on a disk on which each file operation fails in turn."""

from __future__ import annotations

import errno
from pathlib import Path
from typing import Any

import pytest
from tests.sessions.live_session import Studio
from tests.support.faulty_files import Fault, FaultyFiles, SimulatedCrash

from robota.sessions.permissions.live_rules import PermissionRules
from robota.testing import call

pytestmark = pytest.mark.anyio

REPLIES: tuple[Any, ...] = (
    ["Adding. ", *["and adding. "] * 40, call("add", a=1, b=2)],
    "It is 3.",
    "what was said so far",
    "x" * 40_000,
    "Bye.",
)


class Life:
    """Prompts, a tool, a compaction and an end; remembers what was promised to be on the disk."""

    def __init__(self, home: Path, fail_at: int, fault: Fault, **options: Any) -> None:
        home.mkdir()
        kept = home / "sessions"
        kept.mkdir()
        self.files = FaultyFiles(str(kept), fail_at=fail_at, fault=fault, **options)
        self.studio = Studio(
            home, *REPLIES, files=self.files, rules=PermissionRules(mode="bypassPermissions")
        )
        self.answers: list[str | None] = []
        self.promised: list[str] = []

    async def live(self) -> None:
        session = self.studio.session
        for step in (
            lambda: session.run("1+2?"),
            session.compact,
            lambda: session.run("long"),
            lambda: session.run("bye"),
            session.shutdown,
        ):
            self.answers.append(await step())  # type: ignore[operator]  # each is a coroutine function
            if not session.trouble:
                self.promised = [message.id for message in session.messages]


ANSWERS = ["It is 3.", "what was said so far", "x" * 40_000, "Bye.", None]


@pytest.mark.parametrize("fault", ["error", "short"])
async def test_no_failing_operation_disturbs_a_session_and_what_is_promised_is_there(
    tmp_path: Path, fault: Fault
) -> None:
    fail_at = 0
    while True:
        life = Life(tmp_path / f"run-{fail_at}", fail_at, fault, error=errno.ENOSPC)
        await life.live()
        assert life.answers == ANSWERS, fail_at
        if not life.files.fired:
            break
        studio = life.studio
        restored = studio.restored()
        assert [message.id for message in restored.messages] == life.promised, fail_at
        assert restored.problems == (), fail_at
        fail_at += 1
    assert fail_at > 25


async def test_a_disk_that_fails_for_good_from_some_operation_on_is_said(tmp_path: Path) -> None:
    fail_at = 0
    while True:
        life = Life(tmp_path / f"run-{fail_at}", fail_at, "error", error=errno.ENOSPC, lasting=True)
        await life.live()
        assert life.answers == ANSWERS, fail_at
        if not life.files.fired:
            break
        studio = life.studio
        if studio.path.exists() and studio.path.stat().st_size:
            ids = [message.id for message in studio.restored().messages]
            assert ids[: len(life.promised)] == life.promised, fail_at
        if life.promised != [message.id for message in studio.session.messages]:
            assert "the disk is full" in "".join(studio.notices), fail_at
            assert studio.session.trouble, fail_at
        fail_at += 3
    assert fail_at > 25


async def test_a_power_cut_at_any_operation_loses_nothing_that_was_promised(tmp_path: Path) -> None:
    fail_at = 0
    while True:
        life = Life(tmp_path / f"run-{fail_at}", fail_at, "crash")
        try:
            await life.live()
        except SimulatedCrash:
            pass
        else:
            break
        for seed in range(2):
            life.files.after_crash(seed)
            if life.studio.path.exists() and life.studio.path.stat().st_size:
                ids = [message.id for message in life.studio.restored().messages]
            else:
                ids = []
            assert ids[: len(life.promised)] == life.promised, (fail_at, seed)
        fail_at += 1
    assert fail_at > 25
