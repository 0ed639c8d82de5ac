"""What the tests of the server share."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory to work in, with a home that nobody has been to."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    path = tmp_path / "project"
    path.mkdir()
    return path
