from __future__ import annotations

import errno
import json
import os
from pathlib import Path

import pytest

from robota.sessions.files import Files
from robota.sessions.transcripts.files import find_claude_transcripts

CONFIG = Path(__file__).parent / "data" / "claude"


def keep(
    config: Path, directory: str, name: str, *, cwd: str | None, prompt: str = "hello", age: int = 0
) -> str:
    path = config / "projects" / directory / f"{name}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    record = {"type": "user", "uuid": "u", "message": {"role": "user", "content": prompt}}
    path.write_text(json.dumps(record | ({"cwd": cwd} if cwd else {})) + "\n")
    os.utime(path, (1_800_000_000 - age,) * 2)
    return str(path)


def found_in(config: Path, cwd: str) -> list[str]:
    return [transcript.path for transcript in find_claude_transcripts(cwd, config_dir=str(config))]


def test_the_transcripts_of_a_project_are_found_with_their_titles() -> None:
    (found,) = find_claude_transcripts("/home/ada/shop", config_dir=str(CONFIG))

    assert found.session_id == "5f0c1d2e-0000-4000-8000-00000000c0de"
    assert (found.cwd, found.title) == ("/home/ada/shop", "Prices for the shop")
    assert found.size == os.path.getsize(found.path)


def test_the_latest_comes_first_and_an_untitled_one_shows_its_first_prompt(tmp_path: Path) -> None:
    old = keep(tmp_path, "-p", "old", cwd="/p", age=60)
    new = keep(tmp_path, "-p", "new", cwd="/p", prompt="fix\n the   roof")
    keep(tmp_path, "-p", "agent-1", cwd="/p")

    assert found_in(tmp_path, "/p") == [new, old]
    assert find_claude_transcripts("/p", config_dir=str(tmp_path))[0].title == "fix the roof"


def test_two_projects_that_share_a_directory_are_told_apart_by_the_recorded_path(tmp_path: Path) -> None:
    one = keep(tmp_path, "-home-a-b", "one", cwd="/home/a-b")
    other = keep(tmp_path, "-home-a-b", "other", cwd="/home/a/b")
    silent = keep(tmp_path, "-home-a-b", "silent", cwd=None)

    assert found_in(tmp_path, "/home/a-b") == [one, silent]
    assert found_in(tmp_path, "/home/a/b") == [other, silent]


def test_a_session_that_was_moved_with_its_directory_is_found(tmp_path: Path) -> None:
    moved = keep(tmp_path, "-new-home", "moved", cwd="/old/home")

    assert found_in(tmp_path, "/new/home") == [moved]


def test_a_long_path_is_found_by_what_the_file_records(tmp_path: Path) -> None:
    cwd = "/" + "deep/" * 60 + "project"
    cut = cwd.replace("/", "-")[:200]
    mine = keep(tmp_path, f"{cut}-1x2y3z", "mine", cwd=cwd)
    keep(tmp_path, f"{cut}-9a8b7c", "another", cwd=f"{cwd}/other")
    keep(tmp_path, f"{cut}-9a8b7c", "silent", cwd=None)

    assert found_in(tmp_path, cwd) == [mine]


def test_a_directory_reached_through_a_link_has_the_transcripts_of_both_names(tmp_path: Path) -> None:
    real = tmp_path / "real"
    real.mkdir()
    (tmp_path / "link").symlink_to(real)
    spelled = "".join(letter if letter.isalnum() else "-" for letter in str(real))
    path = keep(tmp_path / "config", spelled, "one", cwd=str(real))

    assert found_in(tmp_path / "config", str(tmp_path / "link")) == [path]


def test_the_environment_moves_the_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path))
    path = keep(tmp_path, "-p", "one", cwd="/p")

    assert [found.path for found in find_claude_transcripts("/p")] == [path]


def test_a_transcript_that_cannot_be_read_is_listed_as_such(tmp_path: Path) -> None:
    class Refused(Files):
        def read_at(self, fd: int, size: int, offset: int) -> bytes:
            raise OSError(errno.EIO, "Input/output error")

    path = keep(tmp_path, "-p", "one", cwd="/p")
    (found,) = find_claude_transcripts("/p", config_dir=str(tmp_path), files=Refused())

    assert (found.path, found.title) == (path, "(cannot be read: Input/output error)")


def test_where_nothing_is_nothing_is_found(tmp_path: Path) -> None:
    (tmp_path / "projects").mkdir()
    (tmp_path / "projects" / "-p").write_text("a file, not a directory")

    assert found_in(tmp_path / "missing", "/p") == []
    assert found_in(tmp_path, "/p") == []
