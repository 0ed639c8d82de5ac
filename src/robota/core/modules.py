"""Modules: named parts an application plugs in beside its agent, and the roles around workflows.

The engine itself uses none of this. The registry starts modules when they are registered, runs them by name
and closes them in reverse order, and tells a listener about every step.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Protocol, TypeAlias, TypeVar, runtime_checkable

from msgspec import Struct

from robota.core.errors import ConfigurationError, describe_exception
from robota.core.messages import Json

T = TypeVar("T")

MODULE_EVENTS = (
    "module.initialize.start", "module.initialize.complete", "module.initialize.error",
    "module.execution.start", "module.execution.complete", "module.execution.error",
    "module.dispose.start", "module.dispose.complete", "module.dispose.error",
    "module.registered", "module.unregistered",
)  # fmt: skip


class ModuleEvent(Struct, frozen=True):
    """Something that happened to a module."""

    name: str
    """One of `MODULE_EVENTS`."""
    module: str
    error: str | None = None


ModuleListener: TypeAlias = Callable[[ModuleEvent], object]


@runtime_checkable
class Module(Protocol):
    """Something with a life of its own that an agent uses: initialised, executed, disposed of."""

    @property
    def name(self) -> str: ...

    async def initialize(self) -> None: ...
    async def execute(self, context: Any, /) -> Any: ...
    async def dispose(self) -> None: ...


@runtime_checkable
class WorkflowConverter(Protocol):
    """Turns a workflow of one notation into another."""

    @property
    def name(self) -> str: ...

    def convert(self, workflow: Json, /) -> Json: ...


class WorkflowProblem(Struct, frozen=True):
    """What is wrong with a workflow, and where."""

    message: str
    path: str = ""
    """Where in the workflow, such as `nodes.2.next`."""


@runtime_checkable
class WorkflowValidator(Protocol):
    """Finds what is wrong with a workflow; nothing found means it is valid."""

    @property
    def name(self) -> str: ...

    def validate(self, workflow: Json, /) -> list[WorkflowProblem]: ...


def _ignore(event: ModuleEvent) -> None:
    """Nobody listens."""


class ModuleRegistry(Struct, eq=False):
    """The modules of one application, in the order they were registered."""

    listener: ModuleListener = _ignore
    _modules: dict[str, Module] = {}

    @property
    def names(self) -> list[str]:
        return list(self._modules)

    def get(self, name: str) -> Module | None:
        return self._modules.get(name)

    async def register(self, module: Module) -> None:
        """Start the module and keep it; one that cannot start is not kept."""
        if module.name in self._modules:
            raise ConfigurationError(f"A module {module.name!r} is already registered; unregister it first.")
        await self._watch("initialize", module, module.initialize())
        self._modules[module.name] = module
        self.listener(ModuleEvent("module.registered", module.name))

    async def unregister(self, name: str) -> None:
        """Close the module and forget it."""
        module = self._find(name)
        del self._modules[name]
        try:
            await self._watch("dispose", module, module.dispose())
        finally:
            self.listener(ModuleEvent("module.unregistered", name))

    async def execute(self, name: str, context: Any = None) -> Any:
        module = self._find(name)
        return await self._watch("execution", module, module.execute(context))

    async def dispose(self) -> list[Exception]:
        """Close all modules, the last one first. A failure stops nothing; the failures are returned."""
        failures: list[Exception] = []
        for name in reversed(self.names):
            try:
                await self.unregister(name)
            except Exception as error:  # noqa: BLE001 - the other modules must still be closed
                failures.append(error)
        return failures

    def _find(self, name: str) -> Module:
        module = self._modules.get(name)
        if module is None:
            known = ", ".join(self._modules) or "none"
            raise ConfigurationError(f"There is no module {name!r}; registered: {known}.")
        return module

    async def _watch(self, phase: str, module: Module, work: Awaitable[T]) -> T:
        self.listener(ModuleEvent(f"module.{phase}.start", module.name))
        try:
            result = await work
        except Exception as error:
            self.listener(ModuleEvent(f"module.{phase}.error", module.name, describe_exception(error)))
            raise
        self.listener(ModuleEvent(f"module.{phase}.complete", module.name))
        return result
