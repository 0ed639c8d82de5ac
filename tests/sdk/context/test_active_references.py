"""Files that the user keeps in the conversation: told once, told again when they change, never lost."""

from __future__ import annotations

from pathlib import Path

import pytest

from robota.core.errors import ValidationError
from robota.core.messages import UserMessage
from robota.sdk.context.active_references import MAX_BYTES, ContextReferences
from robota.sessions.options import CompactionOptions, SessionOptions
from robota.sessions.permissions.live_rules import PermissionRules
from robota.sessions.replay.session_replay import replay_session
from robota.sessions.session import Session
from robota.sessions.start import restore
from robota.sessions.store.session_store import SessionStore
from robota.testing import ScriptedProvider

pytestmark = pytest.mark.anyio


def make_session(project: Path, *replies: str, deny: tuple[str, ...] = (), **more: object) -> Session:
    found: list[ContextReferences] = []
    session = Session(
        provider=ScriptedProvider(*replies),
        system_message="You are terse.",
        cwd=str(project),
        store=SessionStore(project.parent / "kept"),
        options=SessionOptions(
            permissions=PermissionRules(deny=deny),
            compaction=CompactionOptions(sections=lambda: found[0].sections()),
            context_window=100_000,
        ),
        **more,  # type: ignore[arg-type]
    )
    found.append(ContextReferences(session))
    return session


@pytest.fixture
def project(tmp_path: Path) -> Path:
    place = tmp_path / "project"
    place.mkdir()
    (place / "style.md").write_text("Tabs, never spaces.\n")
    return place


def told(session: Session) -> list[str]:
    return [
        message.content
        for message in session.messages
        if isinstance(message, UserMessage) and message.metadata.get("origin") == "reminder"
    ]


async def test_the_model_is_told_a_file_once_and_again_when_it_has_changed(project: Path) -> None:
    session = make_session(project, "One.", "Two.", "Three.")
    references = ContextReferences(session)
    added = references.add("style.md")
    assert (added.path, added.size) == ("style.md", 20)
    assert references.add("./style.md") == added
    await session.submit("Go.")
    assert references.refresh() == []
    await session.submit("Go on.")
    (project / "style.md").write_text("Spaces, never tabs.\n")
    assert references.refresh() == ["style.md"]
    await session.submit("And now?")
    first, second = told(session)
    assert '<file path="style.md">\nTabs, never spaces.\n</file>' in first
    assert '<file path="style.md">\nSpaces, never tabs.\n</file>' in second
    await session.shutdown()


async def test_they_survive_a_resume_and_a_replay(project: Path) -> None:
    session = make_session(project, "One.")
    ContextReferences(session).add("style.md")
    await session.submit("Go.")
    await session.shutdown()
    store = SessionStore(project.parent / "kept")
    again = make_session(project, "Two.", start=restore(store, session.session_id))
    references = ContextReferences(again)
    assert [reference.path for reference in references.active] == ["style.md"]
    assert references.refresh() == []
    (project / "style.md").write_text("Nothing.\n")
    assert references.refresh() == ["style.md"]
    await again.submit("Go on.")
    await again.shutdown()
    assert len(told(again)) == 2
    record = store.load(session.session_id)
    assert record is not None
    assert record.context_references == [{"path": "style.md", "size": 9}]
    report = await replay_session(store.journal_path(session.session_id))
    assert report.identical, report.divergence


async def test_they_stand_behind_a_summary_word_for_word(project: Path) -> None:
    session = make_session(project, "One.", "We spoke of style.")
    ContextReferences(session).add("style.md")
    await session.submit("Go.")
    store = SessionStore(project.parent / "kept")
    await session.shutdown()
    again = make_session(project, "We spoke of style.", start=restore(store, session.session_id))
    summary = await again.compact()
    assert summary is not None
    assert '<file path="style.md">\nTabs, never spaces.\n</file>' in summary
    await again.shutdown()


async def test_a_file_that_is_gone_is_told_once_and_comes_back(project: Path) -> None:
    session = make_session(project)
    references = ContextReferences(session)
    references.add("style.md")
    (project / "style.md").unlink()
    assert references.refresh() == ["style.md"]
    assert references.refresh() == []
    assert "[It cannot be read any more. style.md does not exist.]" in references.sections()[0].text
    (project / "style.md").write_text("Tabs, never spaces.\n")
    assert references.refresh() == ["style.md"]
    assert len(session.inbox) == 3


async def test_a_conversation_that_begins_anew_is_told_again(project: Path) -> None:
    session = make_session(project, "One.", "Two.")
    references = ContextReferences(session)
    references.add("style.md")
    await session.submit("Go.")
    session.clear_history()
    assert references.refresh() == ["style.md"]
    await session.submit("Go on.")
    assert len(told(session)) == 1
    await session.shutdown()


async def test_removing_and_clearing(project: Path) -> None:
    references = ContextReferences(make_session(project))
    (project / "other.md").write_text("x")
    references.add("style.md")
    references.add(str(project / "other.md"))
    assert references.remove("style.md").path == "style.md"
    with pytest.raises(ValidationError, match=r"style.md is not among the files that are kept: other.md\."):
        references.remove("style.md")
    assert references.clear() == 1
    assert references.active == ()
    assert references.clear() == 0


async def test_what_cannot_be_added_is_refused_with_a_sentence(project: Path) -> None:
    (project / "secret.md").write_text("x")
    (project / "blob").write_bytes(b"\0\1\2")
    (project / "big.txt").write_bytes(b"x" * (MAX_BYTES + 1))
    (project / "half.txt").write_bytes(b"x" * (MAX_BYTES // 2 + 1))
    (project / "other.txt").write_bytes(b"x" * (MAX_BYTES // 2 + 1))
    (project.parent / "outside.md").write_text("x")
    (project / "link.md").symlink_to(project.parent / "outside.md")
    (project / "loop.md").symlink_to(project / "loop.md")
    references = ContextReferences(make_session(project, deny=("Read(secret.md)",)))
    references.add("half.txt")
    for path, reason in {
        "none.md": "none.md does not exist.",
        "secret.md": "secret.md may not be read: a deny rule of the settings covers it.",
        "blob": "blob is not text.",
        ".": "project is a directory.",
        "big.txt": "big.txt has 262,145 bytes, and no more than 262,144 can be kept.",
        "../outside.md": "lies outside the workspace: add its directory with --add-dir first.",
        "link.md": "link.md lies outside the workspace",
        "loop.md": "loop.md lies outside the workspace",
        "other.txt": "all files together may have 262,144: add a smaller one, or remove others.",
    }.items():
        with pytest.raises(ValidationError) as raised:
            references.add(path)
        assert reason in str(raised.value)


async def test_no_more_than_eight(project: Path) -> None:
    references = ContextReferences(make_session(project))
    for number in range(9):
        (project / f"{number}.md").write_text("x")
    for number in range(8):
        references.add(f"{number}.md")
    with pytest.raises(ValidationError, match="8 files are kept already"):
        references.add("8.md")
