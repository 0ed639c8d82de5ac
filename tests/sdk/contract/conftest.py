"""A project and a home of their own for each test of the contract."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "home"
    path.mkdir()
    monkeypatch.setenv("HOME", str(path))
    monkeypatch.setenv("ROBOTA_HOME", str(path / ".robota"))
    return path


@pytest.fixture
def project(tmp_path: Path, home: Path) -> Path:
    path = tmp_path / "project"
    path.mkdir()
    path.joinpath("notes.txt").write_text("milk\n")
    return path
