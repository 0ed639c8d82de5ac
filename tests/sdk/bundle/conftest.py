from __future__ import annotations

from pathlib import Path

import pytest

from robota.sdk.places import Places, find_places


@pytest.fixture
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Places:
    """A project and a home, both empty."""
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("ROBOTA_HOME", str(home / ".robota"))
    monkeypatch.delenv("CLAUDE_CONFIG_DIR", raising=False)
    project = tmp_path / "project"
    project.mkdir()
    (project / "notes.txt").write_text("milk\n")
    return find_places(project)
