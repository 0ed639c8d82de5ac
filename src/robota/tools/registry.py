"""`ToolRegistry`: tools by name, in the order they came, with errors that say what to do."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from robota.core.errors import ConfigurationError
from robota.core.given import nearest
from robota.core.provider import ToolSchema
from robota.core.tool import Tool, tool_schema


class ToolRegistry:
    """Tools by name."""

    __slots__ = ("_tools",)

    def __init__(self, tools: Iterable[Tool] = ()) -> None:
        self._tools: dict[str, Tool] = {}
        for tool in tools:
            self.register(tool)

    def register(self, tool: Tool) -> None:
        """Add a tool; a name is taken only once."""
        name = getattr(tool, "name", None)
        if not isinstance(name, str) or not hasattr(tool, "run"):
            raise ConfigurationError(f"{tool!r} is not a tool: decorate the function with @tool.")
        taken = self._tools.get(name)
        if taken is not None:
            raise ConfigurationError(
                f"Two tools have the name {name!r}: {taken!r} and {tool!r}. Rename or unregister one of them."
            )
        self._tools[name] = tool

    def unregister(self, name: str) -> Tool:
        """Take a tool out and return it."""
        tool = self.get(name)
        del self._tools[name]
        return tool

    def get(self, name: str) -> Tool:
        tool = self._tools.get(name)
        if tool is None:
            raise ConfigurationError(f"There is no tool {name!r}. {self._suggest(name)}")
        return tool

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._tools)

    @property
    def schemas(self) -> tuple[ToolSchema, ...]:
        """The tools as the model sees them."""
        return tuple(map(tool_schema, self._tools.values()))

    def __contains__(self, name: object) -> bool:
        return name in self._tools

    def __iter__(self) -> Iterator[Tool]:
        return iter(self._tools.values())

    def __len__(self) -> int:
        return len(self._tools)

    def _suggest(self, name: str) -> str:
        if not self._tools:
            return "No tools are registered."
        near = nearest(name, self._tools)
        return f"Did you mean {near!r}?" if near else f"Registered: {', '.join(sorted(self._tools))}."
