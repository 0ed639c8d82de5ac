from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from robota.sdk.places import Places, find_places
from robota.sdk.settings import Settings, load_settings

FILES = {
    "local": "project/.robota/settings.local.json",
    "project": "project/.robota/settings.json",
    "claude_local": "project/.claude/settings.local.json",
    "claude": "project/.claude/settings.json",
    "user": "home/.robota/settings.json",
    "claude_user": "home/.claude/settings.json",
}


class House:
    """A home and a project, with settings where a test writes them."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.cwd = root / "project"
        self.cwd.mkdir()
        (root / "home").mkdir()
        self.environment = {"HOME": str(root / "home")}

    @property
    def places(self) -> Places:
        return find_places(self.cwd, self.environment)

    def path(self, layer: str) -> Path:
        return self.root / FILES[layer]

    def write(self, **layers: Any) -> House:
        """Each layer as an object, or as the text of the file."""
        for layer, content in layers.items():
            path = self.path(layer)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content if isinstance(content, str) else json.dumps(content, indent=2))
        return self

    def load(self, *, trusted: bool = True, **options: Any) -> Settings:
        return load_settings(self.places, trusted=trusted, environment=self.environment, **options)


@pytest.fixture
def house(tmp_path: Path) -> House:
    return House(tmp_path)
