"""A home and a project on disk, for tests of what is read from them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from robota.sdk.context.instructions import Reading
from robota.sdk.context.loading import ProjectContext, load_context
from robota.sdk.places import Places, find_places


class Disk:
    """`root/home` and `root/home/work/project`."""

    def __init__(self, root: Path) -> None:
        self.home = root / "home"
        self.project = self.home / "work" / "project"
        self.project.mkdir(parents=True)

    def write(self, files: Mapping[str, str | bytes]) -> None:
        """Paths are relative to the project, or begin with `~/`."""
        for name, content in files.items():
            path = self.path(name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content if isinstance(content, bytes) else content.encode())

    def path(self, name: str) -> Path:
        return self.home / name[2:] if name.startswith("~/") else self.project / name

    @property
    def places(self) -> Places:
        return find_places(self.project, {"HOME": str(self.home)})

    def load(self, **options: Any) -> ProjectContext:
        return load_context(Reading(places=self.places, **options))

    def texts(self, **options: Any) -> dict[str, str]:
        """What the model is told, by path from the home directory."""
        return {str(Path(file.path).relative_to(self.home)): file.text for file in self.load(**options).files}

    def problems(self, **options: Any) -> list[str]:
        return [str(problem).replace(str(self.home), "~") for problem in self.load(**options).problems]
