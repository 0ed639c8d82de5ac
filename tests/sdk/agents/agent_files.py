"""Agents in real files, in a project and a home below a test's directory."""

from __future__ import annotations

from pathlib import Path

from msgspec.structs import replace

from robota.sdk.agents.loader import Agents, find_unknown_names, load_agents
from robota.sdk.places import Places, find_places
from robota.sdk.skills.loader import load_skills

TOOLS = ("Read", "Write", "Edit", "Glob", "Grep", "Bash", "KillBash", "Agent")


def make_places(tmp_path: Path) -> Places:
    for name in ("project", "home"):
        (tmp_path / name).mkdir(exist_ok=True)
    return find_places(tmp_path / "project", {"HOME": str(tmp_path / "home")})


def write_agent(directory: Path | str, name: str, *lines: str, body: str = "Look closely.") -> Path:
    path = Path(directory) / f"{name}.md"
    path.parent.mkdir(parents=True, exist_ok=True)
    head = "\n".join(lines or (f"name: {name}", f"description: Does {name}."))
    path.write_text(f"---\n{head}\n---\n{body}\n")
    return path


def load(places: Places, *, trusted: bool = True) -> Agents:
    """As for a session with these tools and the skills that are there."""
    agents = load_agents(places, trusted=trusted)
    unknown = find_unknown_names(agents, TOOLS, load_skills(places, trusted=trusted))
    return replace(agents, problems=(*agents.problems, *unknown))
