"""A session on a disk, or with a store, that does not play along."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import pytest
from tests.sessions.live_session import Studio

from robota.core.errors import StorageError
from robota.sessions.files import Files
from robota.sessions.permissions.live_rules import PermissionRules
from robota.sessions.session import Session
from robota.sessions.store.session_store import SessionStore
from robota.testing import ScriptedProvider, call
from robota.tools.builtins.files import write_tool

pytestmark = pytest.mark.anyio

ALLOWED = PermissionRules(mode="bypassPermissions")
ADDITION = [call("add", a=1, b=2)]


class UnwillingFiles(Files):
    """The real disk, while nobody says otherwise."""

    __slots__ = ("error",)

    def __init__(self) -> None:
        self.error = 0

    def _refuse(self) -> None:
        if self.error:
            raise OSError(self.error, os.strerror(self.error))

    def write(self, fd: int, data: bytes) -> int:
        self._refuse()
        return super().write(fd, data)

    def create(self, path: str) -> int:
        self._refuse()
        return super().create(path)

    def open_append(self, path: str) -> int:
        self._refuse()
        return super().open_append(path)

    def make_directory(self, path: str) -> None:
        self._refuse()
        super().make_directory(path)


async def test_a_disk_that_fills_up_in_mid_turn_is_said_and_survived(tmp_path: Path) -> None:
    files = UnwillingFiles()

    def fill_the_disk(request: object) -> list[Any]:
        files.error = errno.ENOSPC
        return ["Adding.", *ADDITION]

    studio = Studio(tmp_path, "one", fill_the_disk, "It is 3.", "more", "last", files=files, rules=ALLOWED)
    session = studio.session
    await session.run("first")
    assert session.trouble == ""
    on_disk = studio.path.read_bytes()

    assert await session.run("1+2?") == "It is 3."

    assert "the disk is full" in session.trouble
    assert len([text for text in studio.notices if "disk is full" in text]) == 1
    assert studio.path.read_bytes()[: len(on_disk)] == on_disk
    assert "It is 3." not in studio.path.read_text()

    assert await session.run("still?") == "more"
    files.error = 0
    assert await session.run("and now?") == "last"

    assert session.trouble == ""
    studio.assert_journal_is_good()
    await session.shutdown()
    studio.assert_journal_is_good()


async def test_what_could_not_be_saved_is_not_called_saved_at_the_end(tmp_path: Path) -> None:
    files = UnwillingFiles()
    studio = Studio(tmp_path, "one", "two", files=files)
    await studio.session.run("first")
    files.error = errno.ENOSPC
    await studio.session.run("second")

    await studio.session.shutdown()

    assert "the disk is full" in studio.session.trouble
    restored = studio.restored()
    assert [message.content for message in restored.messages] == ["You are terse.", "first", "one"]
    record = SessionStore(studio.kept).load("s-1")
    assert record is not None
    assert [message["content"] for message in record.messages] == ["You are terse.", "first", "one"]


@pytest.mark.parametrize("code", [errno.EROFS, errno.EACCES, errno.EDQUOT])
async def test_a_place_that_cannot_be_written_to_is_said_and_the_session_goes_on(
    tmp_path: Path, code: int
) -> None:
    files = UnwillingFiles()
    files.error = code
    studio = Studio(tmp_path, ADDITION, "3", files=files, rules=ALLOWED)

    assert await studio.session.run("1+2?") == "3"

    assert studio.session.trouble != ""
    assert str(studio.kept) in studio.session.trouble
    assert studio.notices != []
    await studio.session.shutdown()
    assert not studio.path.exists()


async def test_a_tool_runs_although_its_intention_could_not_be_written(tmp_path: Path) -> None:
    files = UnwillingFiles()
    reply = [call("Write", file_path="made.txt", content="x")]
    studio = Studio(tmp_path, reply, "done", tools=[write_tool()], files=files, rules=ALLOWED)
    files.error = errno.ENOSPC

    assert await studio.session.run("write") == "done"

    assert (studio.project / "made.txt").read_text() == "x"
    assert "the disk is full" in studio.session.trouble


@pytest.mark.parametrize("kind", [StorageError, OSError, RuntimeError])
async def test_a_store_that_fails_is_said_and_changes_nothing_else(
    tmp_path: Path, kind: type[Exception]
) -> None:
    class BrokenStore:
        def save(self, record: object) -> None:
            raise kind("The database is away.")

        def load(self, id: str) -> None:
            return None

        def list(self) -> tuple[()]:
            return ()

        def delete(self, id: str) -> None: ...

        def open_journal(self, id: str, **options: Any) -> None:
            return None

    notices: list[str] = []
    session = Session(provider=ScriptedProvider("one", "two"), store=BrokenStore(), cwd=str(tmp_path))
    session.events.subscribe(lambda event: notices.append(getattr(event, "message", "")))

    assert await session.run("first") == "one"
    assert await session.run("second") == "two"
    assert "The database is away." in session.trouble
    assert len([text for text in notices if "The database is away." in text]) == 1
    await session.shutdown()


async def test_a_store_without_a_journal_gets_a_record_after_each_prompt(tmp_path: Path) -> None:
    saved: list[Any] = []

    class MemoryStore:
        def save(self, record: Any) -> None:
            saved.append(record)

        def load(self, id: str) -> None:
            return None

        def list(self) -> tuple[()]:
            return ()

        def delete(self, id: str) -> None: ...

        def open_journal(self, id: str, **options: Any) -> None:
            return None

    session = Session(
        provider=ScriptedProvider("one", "two"), store=MemoryStore(), system_message="Terse.", session_id="s"
    )
    await session.run("first")
    await session.run("second")

    assert [len(record.messages) for record in saved] == [3, 5]
    assert saved[0].system_prompt == "Terse."
