from __future__ import annotations

import pytest

from robota.core.errors import ConfigurationError
from robota.core.modules import (
    MODULE_EVENTS,
    Module,
    ModuleEvent,
    ModuleRegistry,
    WorkflowConverter,
    WorkflowProblem,
    WorkflowValidator,
)

pytestmark = pytest.mark.anyio


class Counter:
    def __init__(self, name: str, *, breaks: str = "") -> None:
        self.name = name
        self.breaks = breaks

    async def initialize(self) -> None:
        self._maybe_break("initialize")

    async def execute(self, context: int) -> int:
        self._maybe_break("execute")
        return context + 1

    async def dispose(self) -> None:
        self._maybe_break("dispose")

    def _maybe_break(self, phase: str) -> None:
        if self.breaks == phase:
            raise RuntimeError(f"{self.name} broke")


async def test_a_module_is_started_when_registered_and_run_by_name() -> None:
    registry = ModuleRegistry()
    module = Counter("a")
    await registry.register(module)
    assert isinstance(module, Module)
    assert (registry.get("a"), registry.get("b"), registry.names) == (module, None, ["a"])
    assert await registry.execute("a", 41) == 42


async def test_a_listener_hears_of_every_step_of_a_life() -> None:
    seen: list[ModuleEvent] = []
    registry = ModuleRegistry(seen.append)
    await registry.register(Counter("a"))
    await registry.execute("a", 1)
    await registry.dispose()
    assert [event.name for event in seen] == [
        "module.initialize.start",
        "module.initialize.complete",
        "module.registered",
        "module.execution.start",
        "module.execution.complete",
        "module.dispose.start",
        "module.dispose.complete",
        "module.unregistered",
    ]
    assert {event.name for event in seen} <= set(MODULE_EVENTS)


async def test_modules_are_closed_in_reverse_order() -> None:
    seen: list[ModuleEvent] = []
    registry = ModuleRegistry(seen.append)
    for name in "abc":
        await registry.register(Counter(name))
    assert await registry.dispose() == []
    assert [event.module for event in seen if event.name == "module.unregistered"] == ["c", "b", "a"]
    assert registry.names == []


async def test_a_module_that_cannot_start_is_not_kept() -> None:
    seen: list[ModuleEvent] = []
    registry = ModuleRegistry(seen.append)
    with pytest.raises(RuntimeError, match="a broke"):
        await registry.register(Counter("a", breaks="initialize"))
    assert registry.names == []
    assert seen[-1] == ModuleEvent("module.initialize.error", "a", "RuntimeError: a broke")


async def test_a_failing_run_is_told_to_the_listener_and_raised() -> None:
    seen: list[ModuleEvent] = []
    registry = ModuleRegistry(seen.append)
    await registry.register(Counter("a", breaks="execute"))
    with pytest.raises(RuntimeError, match="a broke"):
        await registry.execute("a", 1)
    assert seen[-1] == ModuleEvent("module.execution.error", "a", "RuntimeError: a broke")


async def test_a_module_that_cannot_be_closed_does_not_keep_the_others_open() -> None:
    seen: list[ModuleEvent] = []
    registry = ModuleRegistry(seen.append)
    for name in "abc":
        await registry.register(Counter(name, breaks="dispose" if name == "b" else ""))
    assert [str(error) for error in await registry.dispose()] == ["b broke"]
    assert registry.names == []
    assert ModuleEvent("module.dispose.error", "b", "RuntimeError: b broke") in seen


async def test_a_name_can_be_taken_only_once() -> None:
    registry = ModuleRegistry()
    await registry.register(Counter("a"))
    with pytest.raises(ConfigurationError, match="module 'a' is already registered"):
        await registry.register(Counter("a"))
    await registry.unregister("a")
    await registry.register(Counter("a"))


async def test_an_unknown_module_is_refused_with_the_names_there_are() -> None:
    registry = ModuleRegistry()
    with pytest.raises(ConfigurationError, match="no module 'x'; registered: none"):
        await registry.execute("x")


def test_workflow_roles_are_met_by_plain_objects() -> None:
    class Upper:
        name = "upper"

        def convert(self, workflow: str) -> str:
            return workflow.upper()

        def validate(self, workflow: str) -> list[WorkflowProblem]:
            return [] if workflow else [WorkflowProblem("The workflow is empty.")]

    tool = Upper()
    assert isinstance(tool, WorkflowConverter)
    assert isinstance(tool, WorkflowValidator)
    assert (tool.convert("a"), tool.validate("")) == ("A", [WorkflowProblem("The workflow is empty.")])
