"""What a front end hears of a session, by the names of its events."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from robota import InteractiveSession

EVENTS = (
    "text_delta", "tool_start", "tool_end", "thinking", "complete", "error", "context_update", "interrupted",
)  # fmt: skip
CLOSING = ("complete", "error", "interrupted")


class Heard:
    def __init__(self, session: InteractiveSession) -> None:
        self.all: list[tuple[str, Any]] = []
        for name in EVENTS:
            session.on(name, lambda payload, name=name: self.all.append((name, payload)))

    def names(self) -> list[str]:
        return [name for name, _ in self.all]

    def of(self, name: str) -> list[Any]:
        return [payload for event, payload in self.all if event == name]

    def closings(self) -> list[str]:
        return [name for name in self.names() if name in CLOSING]


def write(path: Path, content: object) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


def hook(command: str, *, event: str, matcher: str = "") -> dict[str, Any]:
    return {"hooks": {event: [{"matcher": matcher, "hooks": [{"type": "command", "command": command}]}]}}


def entry_types(session: InteractiveSession) -> list[str]:
    return [entry.type for entry in session.full_history]
