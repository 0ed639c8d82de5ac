"""The reference pages name everything they are about, and their programs pass strict type checkers."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import get_args

import pytest
from tests.test_docs import BLOCK, PAGES, ROOT

import robota.core
import robota.sessions
from robota import AgentConfig, ModelSettings, Plugin, RunLimits, SessionOptions, ToolContext, ToolResult
from robota.core import AnyEvent, RetryPolicy, RobotaError
from robota.core.plugin import HOOKS
from robota.sessions import (
    Budget,
    CompactionOptions,
    HookOptions,
    JournalOptions,
    PermissionOptions,
    PermissionRules,
)

OPTIONS = (
    ModelSettings, RunLimits, AgentConfig, SessionOptions, PermissionRules, PermissionOptions, HookOptions,
    CompactionOptions, JournalOptions, Budget, RetryPolicy,
)  # fmt: skip


def page(name: str) -> str:
    return (ROOT / "docs" / name).read_text()


def first_column(text: str) -> set[str]:
    return {
        name
        for row in re.findall(r"^\| (.+?) \|", text, re.MULTILINE)
        for name in re.findall(r"`([\w.]+)", row)
    }


def test_the_index_leads_to_every_page() -> None:
    linked = set(re.findall(r"\]\(([\w-]+\.md)", page("index.md")))
    assert linked == {path.name for path in (ROOT / "docs").glob("*.md")} - {"index.md"}


def test_every_event_is_described() -> None:
    assert {f"| `{kind.__name__}` | `{kind.name}` |" for kind in get_args(AnyEvent)} == {
        f"| `{name}` | `{tag}` |"
        for name, tag in re.findall(r"^\| `(\w+)` \| `(\w+)` \|", page("events.md"), re.MULTILINE)
    }


def test_every_error_is_described() -> None:
    errors = {
        f"{package.__name__}.{name}": value.code
        for package in (robota.core, robota.sessions)
        for name in package.__all__
        if isinstance(value := getattr(package, name), type) and issubclass(value, RobotaError)
    }
    described = dict(re.findall(r"^\| `([\w.]+)` \| `(\w+)` \|", page("errors.md"), re.MULTILINE))
    assert described == {name: code for name, code in errors.items() if name != "robota.core.RobotaError"}


@pytest.mark.parametrize("kind", OPTIONS, ids=lambda kind: kind.__name__)
def test_every_option_is_described(kind: type) -> None:
    section = page("options.md").partition(f"## `{kind.__name__}`")[2].partition("\n## ")[0]
    public = {name for name in kind.__struct_fields__ if not name.startswith("_")}  # type: ignore[attr-defined]
    assert first_column(section) == public


def test_every_plugin_method_is_described() -> None:
    assert first_column(page("plugins.md")) >= {*HOOKS, "initialize", "dispose"}
    assert all(hasattr(Plugin, name) for name in HOOKS)


@pytest.mark.parametrize("kind", [ToolContext, ToolResult], ids=lambda kind: kind.__name__)
def test_context_and_result_of_tools_are_described(kind: type) -> None:
    section = page("tools.md").partition(f"## `{kind.__name__}`")[2].partition("\n## ")[0]
    assert first_column(section) == set(kind.__struct_fields__)  # type: ignore[attr-defined]


VARIATION = """
from robota import Robota, tool
from robota.testing import ScriptedProvider
from robota.tools import bash_tool, read_tool


@tool
def add(a: int, b: int) -> int:
    return a + b


@tool(name="look_up")
async def search(text: str, limit: int = 10) -> list[str]:
    return [text][:limit]


class Shop:
    @tool
    def stock(self, item: str) -> int:
        return len(item)


agent = Robota(ScriptedProvider())
TOOLS = [add, search, Shop().stock, read_tool(), bash_tool()]
more = [*TOOLS, agent.as_tool("research", "Finds things.")]
Robota(ScriptedProvider(), tools=TOOLS)
Robota(ScriptedProvider(), tools=more)
total: int = add(1, 2)
items: int = Shop().stock("bolts")
"""
"""What people make of the programs: tools in lists that have names, methods, calls of a tool's function."""


def write_programs(directory: Path) -> None:
    (directory / "variation.py").write_text(VARIATION)
    for path in PAGES:
        for found in BLOCK.finditer(path.read_text()):
            line = path.read_text()[: found.start()].count("\n") + 1
            name = f"{path.stem}_{line}".lower().replace("-", "_")
            (directory / f"{name}.py").write_text(found.group(1))


def test_the_programs_of_the_pages_pass_mypy_strict(tmp_path: Path) -> None:
    write_programs(tmp_path)
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--config-file=", "."],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
