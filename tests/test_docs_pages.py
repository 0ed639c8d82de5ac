"""The reference pages name everything they are about."""

from __future__ import annotations

import re
from typing import get_args

import pytest
from tests.support.documented import ROOT

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
