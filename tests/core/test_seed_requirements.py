"""Requirements of the seeds on the engine as a whole; the others are marked `§20.n` in their own files."""

from __future__ import annotations

import ast
import asyncio
import subprocess
import sys
from pathlib import Path

import pytest

import robota.core
from robota.core import events as event_module
from robota.core.events import EVENT_TYPES, TextDelta
from robota.core.provider import ChatRequest, Provider
from robota.core.robota import Robota
from robota.core.transport import SessionLike
from robota.testing import Delay, ScriptedProvider, call
from robota.tools.function_tool import tool

pytestmark = pytest.mark.anyio

CORE = Path(robota.core.__file__).parent
VENDORS = (
    "anthropic",
    "claude",
    "openai",
    "gpt",
    "gemini",
    "google",
    "qwen",
    "deepseek",
    "bytedance",
    "ollama",
)


def sources() -> list[tuple[Path, ast.Module]]:
    return [(path, ast.parse(path.read_text())) for path in sorted(CORE.rglob("*.py"))]


def test_core_depends_on_no_sibling_package() -> None:  # §20.39; the HTTP client is below it
    offenders = []
    for path, tree in sources():
        for node in ast.walk(tree):
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            offenders += [
                f"{path.name}: {name}"
                for name in names
                if name.startswith("robota.")
                and not name.startswith(("robota.core", "robota.http", "robota._"))
            ]
    assert offenders == []


def test_a_whole_run_loads_nothing_beyond_core_and_its_provider() -> None:  # §20.39
    program = (
        "import asyncio, sys\n"
        "from robota.core import Robota\n"
        "from robota.providers.scripted import ScriptedProvider\n"
        "print(asyncio.run(Robota(ScriptedProvider('Hi')).run('go')).text)\n"
        "siblings = {name.split('.')[1] for name in sys.modules if name.startswith('robota.')}\n"
        "print(sorted(name for name in siblings if not name.startswith('_')))\n"
        "print([name for name in ('pydantic', 'httpx2', 'rich', 'click', 'yaml') if name in sys.modules])\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["Hi", "['core', 'providers']", "[]"]


def test_core_never_decides_by_the_name_of_a_provider_or_model() -> None:  # §20.39
    offenders = []
    tables = ("models.py",)  # facts looked up by whoever asks; `CLAUDE_MODELS` is a view of them
    for path, tree in sources():
        for node in ast.walk(tree) if path.name not in tables else ():
            decides = isinstance(node, ast.Compare | ast.MatchValue) or (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Attribute)
                and node.func.attr in ("startswith", "endswith", "find", "match", "search")
            )
            if not decides:
                continue
            words = [leaf.value for leaf in ast.walk(node) if isinstance(leaf, ast.Constant)]
            offenders += [
                f"{path.name}:{word}"
                for word in words
                if isinstance(word, str)
                and any(vendor in word.lower() for vendor in VENDORS)
                and not word.startswith(".")  # a directory
            ]
    assert offenders == []


async def test_two_agents_are_independent_though_they_share_a_provider_and_tools() -> None:  # §20.40
    @tool
    async def add(a: int, b: int) -> int:
        """Add two numbers."""
        await asyncio.sleep(0)
        return a + b

    def reply(request: ChatRequest) -> list[object]:
        name = request.messages[0].content
        if len(request.messages) > 1:
            return [name, Delay(0), " done"]
        return [name, Delay(0), call("add", "call_0", a=1, b=len(name))]

    provider = ScriptedProvider(reply, repeat=True)  # type: ignore[arg-type]  # a list of steps
    agents = [Robota(provider, tools=[add], max_rounds=limit) for limit in (5, 7)]
    heard: list[list[str]] = [[], []]
    for agent, texts in zip(agents, heard, strict=True):
        agent.events.on(TextDelta, lambda event, texts=texts: texts.append(event.text))
    results = await asyncio.gather(agents[0].run("one"), agents[1].run("three"))
    assert [result.text for result in results] == ["one done", "three done"]
    assert heard == [["one", "\n\n", "one", " done"], ["three", "\n\n", "three", " done"]]
    assert [agent.messages[2].content for agent in agents] == ["4", "6"]
    assert agents[0].conversation_id != agents[1].conversation_id
    assert [agent.events.seq for agent in agents] == [len(heard[0]) + 4] * 2


def test_event_types_are_exported_and_the_bus_is_not() -> None:  # §20.41
    exported = set(dir(robota.core))
    assert {kind.__name__ for kind in EVENT_TYPES.values()} <= exported
    for name in ("EventBus", "EventStream", "bus"):
        assert name not in robota.core._HOMES  # type: ignore[attr-defined]  # the stub hides the table
    for kind in EVENT_TYPES.values():
        assert getattr(robota.core, kind.__name__) is getattr(event_module, kind.__name__)


async def test_text_reaches_listeners_of_the_run_and_no_listener_of_the_provider() -> None:  # §20.42
    provider = ScriptedProvider("Hello", "World")
    assert not {name for name in dir(Provider) if name.startswith("on_")}
    assert not {name for name in ChatRequest.__struct_fields__ if name.startswith("on_")}
    heard: list[str] = []
    agent, other = Robota(provider), Robota(provider)
    agent.events.on(TextDelta, lambda event: heard.append(event.text))
    await agent.run("go")
    await other.run("go")
    assert heard == ["Hello"]


def test_a_transport_needs_only_the_smallest_idea_of_a_session() -> None:  # §20.104
    assert SessionLike.__module__ == "robota.core.transport"

    class Mine:
        session_id = "s-1"

    session: SessionLike = Mine()
    assert session.session_id == "s-1"
