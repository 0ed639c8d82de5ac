"""A project and a home of their own for sessions with MCP servers."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "home").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("ROBOTA_HOME", str(tmp_path / "home" / ".robota"))
    monkeypatch.delenv("ENABLE_TOOL_SEARCH", raising=False)
    path = tmp_path / "project"
    path.mkdir()
    return path
