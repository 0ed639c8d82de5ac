from __future__ import annotations

import json
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from robota.core.errors import ConfigurationError, ValidationError
from robota.sdk.memory.files import START_BYTES, START_LINES, MemoryFiles, PendingNote
from robota.sdk.memory.note import Note, clean_text, make_slug, normalise, read_note
from robota.sdk.places import find_places

LINKS = [".robota", ".robota/memory", ".robota/memory/MEMORY.md", ".robota/memory/topics"]


@pytest.fixture
def files(tmp_path: Path) -> MemoryFiles:
    return MemoryFiles(find_places(tmp_path, {"HOME": str(tmp_path / "home")}))


def folder(files: MemoryFiles) -> Path:
    return Path(files.directory)


def test_a_note_is_a_line_of_its_topic_and_of_the_index(files: MemoryFiles) -> None:
    saved = files.save("project", "Test Runs", "Use two workers.")

    line = (folder(files) / "topics" / "test-runs.md").read_text().splitlines()[-1]
    assert re.fullmatch(r"- \[\d{4}-\d{2}-\d{2}\] \(project/test-runs\) Use two workers\.", line)
    assert (folder(files) / "MEMORY.md").read_text() == f"# Memory\n\n{line}\n"
    assert read_note(line) == saved.note
    assert not saved.deduplicated


def test_the_same_words_are_saved_once_per_topic(files: MemoryFiles) -> None:
    files.save("project", "tests", "Use two workers.")
    again = files.save("feedback", "tests", "use  TWO workers")
    elsewhere = files.save("project", "speed", "Use two workers.")

    assert (again.deduplicated, elsewhere.deduplicated) == (True, False)
    assert again.note.type == "project"
    assert (folder(files) / "MEMORY.md").read_text().count("two workers") == 2


def test_what_people_wrote_into_the_files_stays(files: MemoryFiles) -> None:
    (folder(files) / "topics").mkdir(parents=True)
    (folder(files) / "MEMORY.md").write_text("# Our notes\n\nRead this first.\n\n- a list of ours\n")
    (folder(files) / "topics" / "tests.md").write_text("Written by hand")
    files.save("user", "tests", "One.")
    files.save("user", "tests", "Two.")

    index = (folder(files) / "MEMORY.md").read_text()
    assert index.startswith("# Our notes\n\n- [")
    assert index.endswith("Read this first.\n\n- a list of ours\n")
    assert index.index("Two.") < index.index("One.")
    topic = (folder(files) / "topics" / "tests.md").read_text()
    assert topic.startswith("Written by hand\n- [")
    assert topic.index("One.") < topic.index("Two.")


def test_a_session_knows_the_beginning_of_the_index(files: MemoryFiles) -> None:
    folder(files).mkdir(parents=True)
    (folder(files) / "MEMORY.md").write_text("".join(f"line {number}\n" for number in range(500)))
    assert files.read_start().splitlines() == [f"line {number}" for number in range(START_LINES)]
    (folder(files) / "MEMORY.md").write_text(("x" * 999 + "\n") * 100)
    assert len(files.read_start().encode()) <= START_BYTES
    assert set(map(len, files.read_start().splitlines())) == {999}


def test_what_waits_is_kept_in_order_and_taken_once(files: MemoryFiles) -> None:
    assert files.queue(PendingNote(id="mem_1", text="one", topic="a", confidence=0.9))
    assert files.queue(PendingNote(id="mem_2", text="two"))
    assert not files.queue(PendingNote(id="mem_1", text="one"))

    written = json.loads((folder(files) / "pending.json").read_text())
    assert written["version"] == 1
    assert [each["id"] for each in written["records"]] == ["mem_1", "mem_2"]
    assert files.take("mem_1").text == "one"
    with pytest.raises(ValidationError, match="No note 'mem_1' is waiting"):
        files.take("mem_1")
    assert [each.id for each in files.pending()] == ["mem_2"]


@pytest.mark.parametrize("content", ["{", "[]", '{"version": 1, "records": [{}]}', '{"records": 3}'])
def test_a_broken_list_is_named_and_left_as_it_is(files: MemoryFiles, content: str) -> None:
    folder(files).mkdir(parents=True)
    (folder(files) / "pending.json").write_text(content)
    with pytest.raises(ConfigurationError, match=r"pending\.json cannot be read"):
        files.queue(PendingNote(id="mem_1", text="one"))
    assert (folder(files) / "pending.json").read_text() == content


@pytest.mark.parametrize("place", LINKS)
def test_no_link_is_followed(tmp_path: Path, place: str) -> None:
    project, elsewhere = tmp_path / "project", tmp_path / "elsewhere"
    project.mkdir()
    elsewhere.mkdir()
    (elsewhere / "key").write_text("secret")
    link = project / place
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to(elsewhere / "key" if place.endswith(".md") else elsewhere)
    files = MemoryFiles(find_places(project, {"HOME": str(tmp_path / "home")}))

    with pytest.raises(ConfigurationError, match="link"):
        files.save("project", "tests", "One.")
    with pytest.raises(ConfigurationError, match="link"):
        files.topics() if place.endswith("topics") else files.read_start()
    assert [(each.name, each.read_text()) for each in elsewhere.rglob("*")] == [("key", "secret")]


def test_many_who_save_at_once_lose_nothing(files: MemoryFiles) -> None:
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda number: files.save("project", "tests", f"Note {number}."), range(40)))
    notes = [read_note(line) for line in files.read_topic("tests").splitlines()]
    assert {each.text for each in notes if each is not None} == {f"Note {number}." for number in range(40)}


@pytest.mark.parametrize(
    ("topic", "slug"),
    [
        ("Test Runs", "test-runs"),
        ("", "general"),
        ("../../etc/passwd", "etc-passwd"),
        ("테스트 실행", "테스트-실행"),
        ("x" * 200, "x" * 80),
        ("a_b", "a-b"),
    ],
)
def test_a_topic_is_a_plain_name(topic: str, slug: str) -> None:
    assert make_slug(topic) == slug


@given(st.text())
def test_a_slug_is_always_a_safe_file_name(topic: str) -> None:
    slug = make_slug(topic)
    assert 1 <= len(slug) <= 80
    assert not set(slug) & set("/.\0\\ ")
    assert make_slug(slug) == slug


@given(st.text(min_size=1).map(clean_text).filter(bool), st.sampled_from(["user", "feedback"]))
def test_a_note_is_read_as_it_was_written(text: str, type: str) -> None:
    note = Note(date="2026-11-16", type=type, topic="a-b", text=text)  # type: ignore[arg-type]  # one of them
    assert read_note(note.line) == note
    assert len(text) <= 240
    assert normalise(normalise(text)) == normalise(text)
