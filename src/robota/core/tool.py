"""What a tool is, what it gets and what it gives back.

A tool has a name, a description, a JSON schema and `run(arguments, context)`. It reports failure by raising
or by returning `ToolResult(ok=False)`; either reaches the model as an error result, never as an exception.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias, runtime_checkable
from weakref import WeakValueDictionary

from msgspec import Struct, field

from robota.core.errors import ConfigurationError, ToolExecutionError
from robota.core.messages import Json, JsonObject, Part
from robota.core.provider import ToolSchema
from robota.core.questions import Answer, Question

if TYPE_CHECKING:
    from robota.core.robota import Robota
    from robota.core.run import RunResult

ToolClass: TypeAlias = Literal["inspect", "modify", "execute"]
"""What a tool of ours does to the world. MCP and third-party tools stay unclassified whatever they claim."""

INTERRUPTED = "Execution interrupted by user"
MAX_NAME = 128


class ToolResult(Struct, frozen=True, kw_only=True):
    """What the model gets to see of a call, and what the program may need besides."""

    content: str = ""
    ok: bool = True
    denied: bool = False
    """A person or a rule refused the call; it did not run."""
    error: str | None = None
    error_code: str | None = None
    parts: tuple[Part, ...] = ()
    """Images or files for models that can see them."""
    metadata: Mapping[str, Json] = field(default_factory=dict)
    response: Json = None
    """What hooks hear in the place of the words, where they know another form; it is kept nowhere."""

    @classmethod
    def failure(cls, error: str, code: str | None = None, **metadata: Json) -> ToolResult:
        return cls(ok=False, error=error, error_code=code, metadata=metadata)

    def as_error(self, tool_name: str) -> ToolExecutionError:
        """The failure as an exception, for those who collect errors."""
        return ToolExecutionError(self.error or "the tool failed without saying why", tool_name=tool_name)

    @property
    def text(self) -> str:
        """The words for the model: the content, or the error marked as one."""
        if self.ok:
            return self.content
        marked = f"Error: {self.error or 'the tool failed without saying why'}"
        return f"{self.content}\n{marked}" if self.content else marked


class FileVersions(Struct, eq=False):
    """Which version of each file this conversation has read: path to content hash.

    A tool that changes a file compares, so that an edit made meanwhile by somebody else is never overwritten.
    """

    _hashes: dict[str, str] = {}

    def remember(self, path: str, content_hash: str) -> None:
        self._hashes[path] = content_hash

    def forget(self, path: str) -> None:
        self._hashes.pop(path, None)

    def get(self, path: str) -> str | None:
        return self._hashes.get(path)


Ask: TypeAlias = Callable[[Question], Awaitable[Answer | None]]


class Delegate(Protocol):
    """Runs an agent on a task, under a name."""

    async def __call__(self, worker: Robota, agent_id: str, task: str, /) -> RunResult: ...


def _no_progress(text: str) -> None:
    """Nobody watches this call."""


class CallRules(Protocol):
    """What a call was judged by, for tools that come upon more than their arguments name."""

    def path_filter(self, cwd: str) -> Callable[[str], bool] | None:
        """What knows which absolute paths must not be read; `None` when there are none."""
        ...

    def allows_url(self, url: str, cwd: str) -> bool:
        """Whether a link may be followed without a question."""
        ...


class ToolContext(Struct, frozen=True, kw_only=True):
    """What a call may know of its surroundings. A tool function gets it by taking a `ctx: ToolContext`."""

    call_id: str = ""
    tool_call_id: str = ""
    tool_name: str = ""
    execution_id: str = ""
    session_id: str = ""
    cwd: str = ""
    files: FileVersions = field(default_factory=FileVersions)
    resolved: Mapping[str, str] = field(default_factory=dict)
    """Where the paths among the arguments led when the call was judged, by how they were given. A tool that
    opens one refuses if it leads elsewhere by now: nobody has approved that."""
    rules: CallRules | None = None
    """`None` without a session."""
    deps: Any = None
    """The caller's own object, handed through untouched."""
    progress: Callable[[str], None] = _no_progress
    """Show a line of progress to whoever watches."""
    ask: Ask | None = None
    """Ask the user; `None` where nobody can be asked. The answer is `None` when nobody gave one."""
    timeout: float | None = None
    """Seconds after which the call is given up."""
    delegate: Delegate | None = None
    """Let another agent do something as a part of this run, in a session as its child; `None` outside."""


@runtime_checkable
class Tool(Protocol):
    """What the engine needs of a tool; `@tool` makes one of a function."""

    @property
    def name(self) -> str: ...
    @property
    def description(self) -> str: ...
    @property
    def parameters(self) -> JsonObject:
        """JSON schema of the arguments; its root is an object."""
        ...

    async def run(self, arguments: JsonObject, context: ToolContext) -> ToolResult: ...


def tool_class(tool: Tool) -> ToolClass | None:
    """The class a tool declares, `None` for an unclassified one."""
    declared = getattr(tool, "tool_class", None)
    return declared if declared in ("inspect", "modify", "execute") else None


def tool_schema(tool: Tool) -> ToolSchema:
    """The tool as the model sees it; a tool without a usable schema is refused by name."""
    parameters, known = getattr(tool, "parameters", None), _schemas.get(id(tool))
    if (
        known is not None
        and known.parameters is parameters
        and known.name == tool.name
        and known.description == tool.description
    ):
        return known
    if not isinstance(parameters, dict) or parameters.get("type") != "object":
        raise ConfigurationError(
            f"Tool {tool.name!r} has no usable schema: `parameters` must be a JSON schema of type 'object'. "
            "Decorate a typed function with @tool, or write the schema."
        )
    known = _schemas[id(tool)] = ToolSchema(tool.name, tool.description, parameters)
    return known


class Toolset(Struct, frozen=True):
    """Tools by name and as the model sees them: one value, so that a round offers and runs the same."""

    tools: Mapping[str, Tool] = field(default_factory=dict)
    schemas: tuple[ToolSchema, ...] = ()
    hidden: frozenset[str] = frozenset()
    """Names that are not offered; a model that calls such a tool all the same hears why it must not."""

    @classmethod
    def of(cls, tools: Iterable[Tool], hidden: frozenset[str] = frozenset()) -> Toolset:
        """A set of these tools; each needs a name of its own."""
        named = name_tools(tools)
        offered = (tool for name, tool in named.items() if name not in hidden)
        return cls(named, tuple(map(tool_schema, offered)), hidden)

    def renew(self, tools: Iterable[Tool]) -> Toolset:
        """Other tools, of which the same names are hidden."""
        return Toolset.of(tools, self.hidden)

    def plus(self, *more: Tool) -> Toolset:
        """With these behind the others: what services have cached of the earlier ones stays usable."""
        new = name_tools(tool for tool in more if tool.name not in self.tools)
        if not new:
            return self
        schemas = (*self.schemas, *map(tool_schema, new.values()))
        return Toolset({**self.tools, **new}, schemas, self.hidden)


def check_tool_name(name: str) -> None:
    plain = name.replace("_", "a").replace("-", "a")
    if not (plain.isascii() and plain.isalnum() and len(name) <= MAX_NAME):
        raise ConfigurationError(
            f"Tool name {name!r} cannot be used: take 1 to {MAX_NAME} letters, digits, `_` or `-`."
        )


def name_tools(tools: Iterable[Tool]) -> dict[str, Tool]:
    """The tools by their names; what is not a tool, and a name that comes twice, is refused."""
    named: dict[str, Tool] = {}
    given: object = tools
    if isinstance(given, str) or not hasattr(given, "__iter__"):
        raise ConfigurationError(f"tools must be a list of tools, not {tools!r}.")
    checked: type | None = None
    for tool in tools:
        kind = type(tool)
        if kind is not checked:  # most tools of an agent are of one class
            if isinstance(tool, type) or not hasattr(tool, "run"):
                raise _no_tool(tool)
            checked = kind if hasattr(kind, "run") else None
        try:
            name = tool.name
        except AttributeError:
            raise _no_tool(tool) from None
        if not name or not isinstance(name, str):
            raise _no_tool(tool)
        if name in named:
            raise ConfigurationError(f"Two tools have the name {name!r}; rename one of them.")
        named[name] = tool
    return named


def _no_tool(given: object) -> ConfigurationError:
    name = getattr(given, "__qualname__", None)
    if name is None:
        return ConfigurationError(f"{given!r} is not a tool: decorate a function with @tool.")
    return ConfigurationError(f"{name} is not a tool: decorate it with @tool, or call it if it makes one.")


_schemas: WeakValueDictionary[int, ToolSchema] = WeakValueDictionary()
"""Agents with the same tools share what the model sees of them."""
