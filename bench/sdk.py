"""What `InteractiveSession` costs beside the same work by hand: its start, a request, a turn.

    python bench/sdk.py [--quick]

The sides take turns in one process, and the smallest sample counts. The start is CPU time, its threads
included; the rest is wall time. A missed goal is no failure.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import tempfile
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from pathlib import Path

import yaml
from msgspec.structs import replace

from robota import InteractiveSession, Robota, Session
from robota.core.messages import ToolCall
from robota.core.provider import Capabilities, ChatRequest, Chunk, StopChunk, TextChunk
from robota.sessions.store.session_store import SessionStore

SKILLS, AGENTS, RULES, FILES = 50, 30, 20, 1_000
PROMPT = "Look at the notes and say what is in them."
HEAD = "---\nname: {name}\ndescription: Does the thing number {number}, when it is asked for.\n---\n"


class Instant:
    """Answers at once, from memory; notes when it was asked."""

    name = "instant"
    capabilities = Capabilities()

    def __init__(self, *replies: Chunk) -> None:
        self.replies = replies
        self.asked = 0.0

    async def stream(self, request: ChatRequest) -> AsyncGenerator[Chunk, None]:
        self.asked = time.perf_counter()
        last = request.messages[-1]
        chunk: Chunk = self.replies[0] if last.role == "user" else self.replies[-1]
        yield chunk
        yield StopChunk("tool_use" if isinstance(chunk, ToolCall) else "end_turn")


def make_project(root: Path) -> tuple[Path, Path]:
    """A project of a thousand files with everything that is read at the start, and a home."""
    project, home = root / "project", root / "home"
    for number in range(FILES):
        path = project / "src" / f"package_{number // 50}" / f"module_{number}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"VALUE = {number}\n" * 20)
    texts = {
        project / "AGENTS.md": "Use four blanks.\n" * 100,
        project / "CLAUDE.md": "Run the tests.\n" * 100,
        home / ".claude/CLAUDE.md": "Be short.\n" * 20,
        project / "notes.txt": "milk\n",
        project / "pyproject.toml": '[project]\nname = "demo"\n',
    }
    rules = {"allow": [f"Bash(tool{number} *)" for number in range(40)], "deny": ["Read(.env)"]}
    for place in (home / ".claude", home / ".robota", project / ".claude", project / ".robota"):
        texts[place / "settings.json"] = json.dumps({"permissions": rules, "env": {"A": "b"}}, indent=2)
    for number in range(SKILLS):
        body = HEAD.format(name=f"skill-{number}", number=number) + "Do it step by step.\n" * 60
        texts[project / f".claude/skills/skill-{number}/SKILL.md"] = body
    for number in range(AGENTS):
        body = HEAD.format(name=f"agent-{number}", number=number) + "You are careful.\n" * 40
        texts[project / f".claude/agents/agent-{number}.md"] = body
    for number in range(RULES):
        texts[project / f".claude/rules/rule-{number}.md"] = "Mind the gap.\n" * 20
    for path, text in texts.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return project, home


def read_by_hand(project: Path, home: Path) -> int:
    """The floor: the same files, read and parsed, and nothing made of them."""
    found = 0
    for place in (home / ".claude", home / ".robota", project / ".claude", project / ".robota"):
        found += len(json.loads((place / "settings.json").read_text()))
    for path in (project / "AGENTS.md", project / "CLAUDE.md", home / ".claude/CLAUDE.md"):
        found += len(path.read_text())
    for folder in ("skills", "agents", "rules"):
        for place, directories, files in os.walk(project / ".claude" / folder):
            directories.sort()
            for name in sorted(files):
                text = Path(place, name).read_text()
                if text.startswith("---\n"):
                    head, _, body = text[4:].partition("\n---\n")
                    found += len(yaml.load(head, yaml.CSafeLoader)) + len(body)
    return found


async def measure_start(project: Path, home: Path, repeats: int) -> tuple[float, float]:
    environment = {"HOME": str(home)}
    floor, ours = [], []
    for _ in range(repeats):
        began = time.process_time()
        read_by_hand(project, home)
        floor.append(time.process_time() - began)
        session = InteractiveSession(
            cwd=project, provider=Instant(TextChunk("x")), trust_project=True, environment=environment
        )
        began = time.process_time()
        await session.ready()
        ours.append(time.process_time() - began)
        await session.shutdown()
    return min(floor), min(ours)


async def measure_request(project: Path, home: Path, repeats: int) -> tuple[float, float]:
    provider = Instant(TextChunk("x"))
    session = InteractiveSession(
        cwd=project, provider=provider, trust_project=True, environment={"HOME": str(home)}
    )
    inner = await session.ready()
    agent = Robota(
        provider, model=inner.model, tools=inner.agent.tools, system_message=inner.agent.system_message
    )
    floor, ours = [], []
    for number in range(repeats):
        for submit, times in ((agent.run, floor), (session.submit, ours)):
            began = time.perf_counter()
            await submit(PROMPT)  # type: ignore[operator]
            times.append(provider.asked - began)
        if number % 50 == 49:
            agent.clear()
            inner.clear_history()
    await session.shutdown()
    return min(floor), min(ours)


async def measure_turn(project: Path, home: Path, repeats: int, kept: Path | None) -> tuple[float, float]:
    """A turn with one tool call, with the same tools, rules and hooks on both sides."""
    arguments = json.dumps({"file_path": str(project / "notes.txt")})
    provider = Instant(ToolCall(id="c", name="Read", arguments=arguments), TextChunk("Milk."))
    store = None if kept is None else SessionStore(str(kept))
    session = InteractiveSession(
        cwd=project,
        provider=provider,
        trust_project=True,
        environment={"HOME": str(home)},
        session_store=store,
    )
    made = await session.ready()
    plain = Session(
        provider=provider,
        model=made.model,
        tools=made.agent.tools,
        system_message=made.agent.system_message,
        cwd=str(project),
        store=store,
        options=replace(made.options, events=None, questions=None),
    )
    sides: list[tuple[Callable[[str], Awaitable[object]], list[float]]] = [
        (plain.run, floor := []),
        (session.submit, ours := []),
    ]
    for number in range(repeats):
        for run, times in sides if number % 2 else reversed(sides):
            began = time.perf_counter()
            await run(PROMPT)
            times.append(time.perf_counter() - began)
        if number % 50 == 49:
            plain.clear_history()
            made.clear_history()
    await plain.shutdown()
    await session.shutdown()
    return median(floor), median(ours)


def median(times: list[float]) -> float:
    return sorted(times)[len(times) // 2]


def show(name: str, figures: tuple[float, float], goal: float) -> None:
    floor, ours = figures
    print(f"{name:<58} {floor * 1000:9.3f} ms {ours * 1000:9.3f} ms {ours / floor:6.2f}x  (goal {goal}x)")


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    quick = parser.parse_args().quick
    with tempfile.TemporaryDirectory() as directory:
        project, home = make_project(Path(directory))
        print(f"{'':<58} {'by hand':>12} {'robota':>12}")
        show(
            "start: settings, context, skills, agents, 1,000 files",
            await measure_start(project, home, 5 if quick else 20),
            3,
        )
        show(
            "submit to request, beside Robota.run",
            await measure_request(project, home, 50 if quick else 300),
            2,
        )
        show(
            "turn with a tool, beside Session.run",
            await measure_turn(project, home, 60 if quick else 400, None),
            1.15,
        )
        kept = Path(directory) / "sessions"
        show("the same with a store", await measure_turn(project, home, 40 if quick else 200, kept), 1.15)


if __name__ == "__main__":
    asyncio.run(main())
