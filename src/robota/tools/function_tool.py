"""`@tool`, `FunctionTool` and `create_function_tool`: a function as something a model can call.

Decorating costs next to nothing: schema and checks are worked out when they are first needed. Async functions
are awaited where they are, others run in a worker thread. Whatever the function does, the caller gets a
`ToolResult`; only cancellation passes through.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Mapping
from copy import copy
from types import FrameType
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar, cast, overload

from robota.core.errors import ConfigurationError, RobotaError, describe_exception
from robota.core.messages import Json, JsonObject
from robota.core.plain_text import own_words
from robota.core.tool import ToolClass, ToolContext, ToolResult, check_tool_name

if TYPE_CHECKING:
    from typing_extensions import TypeVar as TypeVarWithDefault

    from robota.core.permissions.subjects import Touches
    from robota.tools.signature import Binding

    F_co = TypeVarWithDefault("F_co", covariant=True, default=Callable[..., Any])
else:
    F_co = TypeVar("F_co", covariant=True)

F = TypeVar("F", bound=Callable[..., Any])
R = TypeVar("R")
Function: TypeAlias = Callable[..., Any]
Description: TypeAlias = str | Callable[[], str] | None
"""The text, a function that fetches it when it is first wanted, or `None` for the docstring."""

_RECEIVERS = (("self",), ("cls",))
_VARARGS, _GENERATOR = 0x04, 0x20 | 0x200  # flags of code objects, as `inspect` has them


class FunctionTool(Generic[F_co]):
    """A function, and what the model is told about it.

    Without `parameters` the schema comes from the signature. With them the schema is the whole contract:
    arguments are checked against it and handed over as they are, as keywords, or as one dict to a function of
    one parameter that the schema does not know. A parameter annotated `ToolContext` gets the context and is
    no part of the schema.
    """

    __slots__ = (
        "_aliases",
        "_binding",
        "_description",
        "_parameters",
        "_scope",
        "function",
        "name",
        "timeout",
        "tool_class",
        "touches",
    )

    validates_arguments = True

    def __init__(
        self,
        name: str,
        description: Description,
        parameters: JsonObject | None,
        function: F_co,
        *,
        tool_class: ToolClass | None = None,
        touches: tuple[Touches, ...] = (),
        timeout: float | None = None,
        aliases: Mapping[str, str] | None = None,
        scope: Mapping[str, object] | None = None,
    ) -> None:
        """`aliases`: other spellings of arguments. `scope`: names in annotations that the module lacks.

        `touches`: which arguments name files, commands or addresses, so that rules about those bind the tool.
        `timeout`: seconds after which a call is given up; a function in a thread runs on unheard.
        """
        given: Any = function.__func__ if isinstance(function, staticmethod) else function
        if not callable(given) and not isinstance(given, classmethod):
            raise ConfigurationError(f"Tool {name!r} needs a function, not {type(function).__name__}.")
        check_tool_name(name)
        if timeout is not None and (isinstance(timeout, bool) or not isinstance(timeout, int | float)):
            raise ConfigurationError(f"The timeout of tool {name!r} is a number of seconds, not {timeout!r}.")
        self.name = name
        self.function: Function = given
        self.tool_class = tool_class
        self.touches = touches
        self.timeout = timeout
        self._description = description
        self._parameters = parameters
        self._aliases = aliases
        self._scope = scope or {}
        self._binding: Binding | None = None
        _refuse_generator(name, given)
        if parameters is None and _looks_odd(given):
            self._bind()

    @property
    def description(self) -> str:
        if not isinstance(self._description, str):
            self._description = self._describe()
        return self._description

    @property
    def parameters(self) -> JsonObject:
        """JSON schema of the arguments."""
        return self._parameters if self._parameters is not None else self._bind().parameters

    async def run(self, arguments: JsonObject, context: ToolContext) -> ToolResult:
        binding = self._binding or self._bind()
        try:
            values = binding.bind(arguments if self._aliases is None else self._respell(arguments))
        except Exception as error:  # noqa: BLE001 - types may run code of their own when they are made
            return self._refuse(error)
        for name in binding.contexts:
            values[name] = context
        try:
            value = await self.function(**values) if binding.is_async else await self._run_in_thread(values)
        except Exception as error:  # noqa: BLE001 - a tool is foreign code; the model is told what went wrong
            return ToolResult.failure(f"Tool {self.name!r} failed: {_explain(error)}")
        if type(value) is str:
            return ToolResult(content=value)
        from robota.tools.returned import wrap  # noqa: PLC0415 - most functions return text

        return wrap(self.name, value)

    # With a ParamSpec instead of one covariant type, mypy would take `[add, search]` for a list of objects.
    @property
    def __call__(self) -> F_co:
        """The function itself, for code that is not a model."""
        return cast("F_co", self.function)

    if not TYPE_CHECKING:  # of a class with `__getattr__` type checkers believe every name

        def __getattr__(self, name):
            """`inspect.signature` looks for what is wrapped; the class would have a property as well."""
            if name == "__wrapped__":
                return self.function
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __get__(
        self: FunctionTool[Callable[..., R]], instance: object, owner: type | None = None
    ) -> FunctionTool[Callable[..., R]]:
        """The tool of a decorated method, bound to its object like the method would be."""
        code = getattr(self.function, "__code__", None)
        is_method = instance is not None and code is not None and code.co_varnames[:1] in _RECEIVERS
        if not is_method and not isinstance(self.function, classmethod):
            return self
        bound = copy(self)
        bound.function, bound._binding = self.function.__get__(instance, owner), None
        return bound

    def __repr__(self) -> str:
        module = getattr(self.function, "__module__", "?")
        origin = getattr(self.function, "__qualname__", type(self.function).__name__)
        return f"<FunctionTool {self.name!r} of {module}.{origin}>"

    def _bind(self) -> Binding:
        if self._binding is None:
            from robota.tools.signature import bind_schema, bind_signature  # noqa: PLC0415 - first use pays

            if self._parameters is None:
                self._binding = bind_signature(self.function, self.name, self._scope)
            else:
                self._binding = bind_schema(self.function, self.name, self._parameters, self._scope)
        return self._binding

    def _describe(self) -> str:
        if callable(self._description):
            return self._description()
        from robota.tools.parameters import parse_docstring, read_docstring  # noqa: PLC0415 - first use pays

        return parse_docstring(read_docstring(self.function))[0]

    def _refuse(self, error: Exception) -> ToolResult:
        code = "invalid_arguments"
        return ToolResult.failure(
            f"The arguments of {self.name!r} do not fit: {_explain(error)}.", code, errorCode=code
        )

    def _respell(self, arguments: JsonObject) -> JsonObject:
        """Arguments by their own names; where both spellings are given, both stay and the check complains."""
        aliases = self._aliases or {}
        if not any(name in arguments for name in aliases):
            return arguments
        return {
            (aliases[name] if name in aliases and aliases[name] not in arguments else name): value
            for name, value in arguments.items()
        }

    async def _run_in_thread(self, values: JsonObject) -> Json:
        from anyio import to_thread  # noqa: PLC0415 - async tools need no threads

        def call() -> Json:
            try:
                return self.function(**values)
            except SystemExit as error:  # of a thread it would end the whole program
                raise RuntimeError(f"it tried to exit the program with {error.code!r}") from error

        value = await to_thread.run_sync(call, abandon_on_cancel=True)
        return await value if hasattr(value, "__await__") else value


@overload
def tool(function: F, /) -> FunctionTool[F]: ...
@overload
def tool(
    *,
    name: str | None = None,
    description: str | None = None,
    tool_class: ToolClass | None = None,
    touches: tuple[Touches, ...] = (),
    timeout: float | None = None,
) -> Callable[[F], FunctionTool[F]]: ...
def tool(
    function: Function | None = None,
    /,
    *,
    name: str | None = None,
    description: str | None = None,
    tool_class: ToolClass | None = None,
    touches: tuple[Touches, ...] = (),
    timeout: float | None = None,
) -> FunctionTool | Callable[[Function], FunctionTool]:
    """Make a tool of a typed function: signature and docstring tell the model what it needs.

    Use it bare (`@tool`) or with arguments (`@tool(name="search")`).
    """

    def decorate(function: Function, frame: FrameType | None = None) -> FunctionTool:
        label = _name_of(function) if name is None else name
        if description is None and not function.__doc__:
            warnings.warn(
                f"Tool {label!r} has no docstring, and a model is not told what it does: write one, or pass "
                "`description=`.",
                stacklevel=2 if frame is None else 3,
            )
        scope = _local_names(function, frame or sys._getframe(1))
        return FunctionTool(
            label,
            description,
            None,
            function,
            tool_class=tool_class,
            touches=touches,
            timeout=timeout,
            scope=scope,
        )

    return decorate if function is None else decorate(function, sys._getframe(1))


def create_function_tool(name: str, description: str, parameters: JsonObject, fn: F) -> FunctionTool[F]:
    """A tool with a schema written by hand."""
    return FunctionTool(name, description, parameters, fn)


def text_beside(module_file: str, part: int = 0) -> Callable[[], str]:
    """A description that lies beside its module, `read.md` for `read.py`; opened when it is first wanted.

    Several of them in one file have a rule between them.
    """

    def load() -> str:
        with open(f"{module_file.removesuffix('.py')}.md", encoding="utf-8") as file:
            return own_words(file.read().split("\n---\n")[part].strip())

    return load


def _name_of(function: Function) -> str:
    name = getattr(function, "__name__", None)
    if not isinstance(name, str):
        raise ConfigurationError(
            f"@tool needs a function or a name, and {function!r} has none: pass `name=`."
        )
    if name == "<lambda>":
        raise ConfigurationError(
            "A lambda has no name a model could call: define a function, or pass `name=`."
        )
    return name


def _refuse_generator(name: str, function: Function) -> None:
    code = getattr(function, "__code__", None)
    if code is not None and code.co_flags & _GENERATOR:
        raise ConfigurationError(
            f"Tool {name!r} is a generator, but a call has one result: return it, report by `ctx.progress()`."
        )


def _looks_odd(function: Function) -> bool:
    """Whether the definition is worth a full look right now, so that a bad one is refused where it stands."""
    code = getattr(function, "__code__", None)
    if code is None or hasattr(function, "__wrapped__"):
        return False
    bare_context = "ctx" in code.co_varnames[: code.co_argcount] and "ctx" not in function.__annotations__
    return bool(code.co_posonlyargcount or code.co_flags & _VARARGS or bare_context)


def _local_names(function: Function, frame: FrameType) -> dict[str, object]:
    """Local types that a nested function's annotations mention as text; its module does not know them."""
    if "<locals>" not in getattr(function, "__qualname__", ""):
        return {}
    notes = [note for note in getattr(function, "__annotations__", {}).values() if isinstance(note, str)]
    return {name: value for name, value in frame.f_locals.items() if any(name in note for note in notes)}


def _explain(error: Exception) -> str:
    """Our own errors are whole sentences; of others the type says as much as the text."""
    return str(error).rstrip(".") if isinstance(error, RobotaError) else describe_exception(error)
