from __future__ import annotations

import asyncio
import functools
import sys
import threading
from base64 import b64decode, b64encode
from dataclasses import dataclass
from datetime import date, datetime
from enum import Enum
from pathlib import Path
from typing import Any, NotRequired, TypedDict

import anyio
import pydantic
import pytest

from robota.core.errors import ConfigurationError, ToolExecutionError
from robota.core.messages import FilePart, ImagePart, ImageUriPart, JsonObject, TextPart
from robota.core.robota import Robota
from robota.core.tool import ToolContext, ToolResult
from robota.testing import ScriptedProvider, call
from robota.tools.function_tool import FunctionTool, create_function_tool, tool

pytestmark = [pytest.mark.anyio, pytest.mark.filterwarnings("ignore:Tool .* has no docstring")]
CONTEXT = ToolContext(cwd="/w", session_id="s")


def properties(made: FunctionTool) -> JsonObject:
    return made.parameters["properties"]


async def text_of(made: FunctionTool, **arguments: Any) -> str:
    return (await made.run(arguments, CONTEXT)).text


@tool
async def add(a: int, b: int = 2) -> int:
    """Add two integers.

    Args:
        a: The first integer.
        b: The second integer.
    """
    return a + b


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


@dataclass
class Point:
    x: int
    y: int = 0


class Options(TypedDict):
    deep: bool
    depth: NotRequired[int]


# --- calls ---------------------------------------------------------------------------------------------


async def test_a_call_gets_its_arguments_converted():
    @tool
    async def show(
        colour: Colour, at: Point, day: date, where: Path, options: Options, size: float = 1
    ) -> str:
        return repr((colour, at, day, where, options, size))

    arguments = {
        "colour": "red",
        "at": {"x": 1},
        "day": "2026-01-02",
        "where": "a/b",
        "options": {"deep": True},
    }
    expected = (Colour.RED, Point(1), date(2026, 1, 2), Path("a/b"), {"deep": True}, 1)
    assert await text_of(show, **arguments) == repr(expected)


async def test_the_default_stays_the_functions_own():
    marker = object()

    @tool
    async def same(x: int = marker) -> bool:  # type: ignore[assignment]
        return x is marker

    assert await text_of(same) == "true"


async def test_wrong_arguments_are_an_error_result_that_names_the_fields():
    result = await add.run({"a": "1", "c": 0}, CONTEXT)
    assert (result.ok, result.error_code) == (False, "invalid_arguments")
    assert result.error == (
        "The arguments of 'add' do not fit: 'a' must be an integer, got the string \"1\"; "
        "unknown field 'c'; allowed: 'a', 'b'."
    )


async def test_a_whole_number_with_a_point_is_an_integer():
    assert await text_of(add, a=1.0) == "3"


async def test_a_text_of_the_wrong_form_is_named_too():
    @tool
    async def plan(at: datetime) -> None: ...

    assert (await plan.run({"at": "soon"}, CONTEXT)).error == (
        "The arguments of 'plan' do not fit: 'at': Invalid RFC3339 encoded datetime."
    )


async def test_a_type_that_refuses_its_value_is_a_wrong_argument():
    @dataclass
    class Even:
        value: int

        def __post_init__(self) -> None:
            _ = {0: "even"}[self.value % 2]

    @tool
    async def halve(number: Even) -> None: ...

    assert (await halve.run({"number": {"value": 3}}, CONTEXT)).error_code == "invalid_arguments"


async def test_arguments_that_are_no_object_are_refused():
    result = await add.run([1, 2], CONTEXT)  # type: ignore[arg-type]
    assert result.error == "The arguments of 'add' do not fit: the arguments must be an object, got a list."


async def test_extra_keywords_arrive():
    @tool
    async def log(event: str, **fields: Any) -> str:
        return f"{event} {fields}"

    assert await text_of(log, event="e", level=1) == "e {'level': 1}"


async def test_the_context_is_handed_in_and_no_argument_can_replace_it():
    @tool
    async def where(ctx: ToolContext, *, again: ToolContext | None = None, **rest: Any) -> str:
        return f"{ctx.cwd} {again is ctx} {rest}"

    assert properties(where) == {}
    assert await text_of(where, ctx="mine") == "/w True {}"


async def test_async_functions_run_in_the_loop_and_sync_ones_in_a_thread():
    @tool
    async def here() -> bool:
        return threading.current_thread() is threading.main_thread()

    @tool
    def there() -> bool:
        return threading.current_thread() is threading.main_thread()

    assert (await text_of(here), await text_of(there)) == ("true", "false")


async def test_a_plain_function_that_returns_an_awaitable_is_awaited():
    @tool
    def later() -> Any:
        return asyncio.sleep(0, "done")

    assert await text_of(later) == "done"


class Word(str, Enum):  # noqa: UP042 - the older spelling, whose str() is not its value
    YES = "yes"


class Model(pydantic.BaseModel):
    x: int
    day: date = date(2026, 1, 2)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("as is", "as is"),
        (Word.YES, "yes"),
        (None, ""),
        (True, "true"),
        (10**30, "1" + "0" * 30),
        ({"a": [1, None]}, '{"a":[1,null]}'),
        (Point(1), '{"x":1,"y":0}'),
        ([Model(x=1)], '[{"x":1,"day":"2026-01-02"}]'),
        (Path("a"), '"a"'),
        (ToolResult(content="mine", metadata={"k": 1}), "mine"),
    ],
)
async def test_what_a_function_returns_becomes_text(value, text):
    @tool
    async def give() -> Any:
        return value

    assert await text_of(give) == text


PNG = b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNk+A8AAQUBAScY42YAAAAASUVORK5CYII="
)
IMAGE = ImagePart(b64encode(PNG).decode())
PDF = FilePart(b64encode(b"%PDF-1.4\n%%EOF\n").decode(), "application/pdf")


@pytest.mark.parametrize(
    ("value", "text", "parts"),
    [
        (IMAGE, "[Image attached]", (IMAGE,)),
        (["A chart:", IMAGE, {"points": 3}], 'A chart:\n{"points":3}', (IMAGE,)),
        ((TextPart("One"), TextPart("Two")), "One\nTwo", ()),
        (PNG, "[Image attached]", (IMAGE,)),
        (bytearray(PNG), "[Image attached]", (IMAGE,)),
        ([PNG, b"%PDF-1.4\n%%EOF\n"], "[Image, File attached]", (IMAGE, PDF)),
        (b"just text \xc3\xa9", "just text é", ()),
        (b"\x00\xff\xfe", "[3 bytes that cannot be shown: they are not text, an image or a PDF]", ()),
        (ImageUriPart("https://example.org/a.png"), "[Image attached]", (ImageUriPart("https://example.org/a.png"),)),
        ([1, "a"], '[1,"a"]', ()),
    ],
)  # fmt: skip
async def test_images_and_files_that_a_function_returns_are_parts(value, text, parts):
    @tool
    async def give() -> Any:
        return value

    result = await give.run({}, CONTEXT)
    assert (result.ok, result.text, result.parts) == (True, text, parts)


async def test_an_image_that_a_function_returns_reaches_the_model():
    @tool
    async def draw() -> Any:
        """Draw."""
        return IMAGE

    provider = ScriptedProvider([call("draw")], "Nice.")
    await Robota(provider, tools=[draw]).run("hi")
    assert provider.requests[1].messages[-1].parts == (IMAGE,)


class Shop:
    name = "corner"

    @tool
    @classmethod
    async def open(cls, hour: int) -> str:
        """Open the shop."""
        return f"{cls.name} at {hour}"

    @tool
    @staticmethod
    async def close(hour: int) -> str:
        """Close a shop."""
        return f"closed at {hour}"


class Bakery(Shop):
    name = "bakery"


@pytest.mark.parametrize(("shop", "name"), [(Shop, "corner"), (Bakery, "bakery"), (Bakery(), "bakery")])
async def test_class_methods_and_static_methods_are_tools_too(shop, name):
    assert (shop.open.name, shop.open.description) == ("open", "Open the shop.")
    assert list(properties(shop.open)) == ["hour"]
    assert await text_of(shop.open, hour=9) == f"{name} at 9"
    assert await text_of(shop.close, hour=18) == "closed at 18"


def test_a_class_method_the_other_way_round_says_how_to_write_it():
    class Shop:
        @classmethod
        @tool
        def open(cls, hour: int) -> str:
            """Open."""
            return ""

    made = vars(Shop)["open"].__func__
    with pytest.raises(ConfigurationError, match="put @tool above @classmethod"):
        _ = made.parameters


async def test_a_result_that_cannot_be_shown_is_an_error_result():
    @tool
    async def give() -> object:
        return threading.Lock()

    result = await give.run({}, CONTEXT)
    assert result.error == (
        "Tool 'give' ran, but its result (lock) is not JSON: lock is not a JSON value. "
        "It should return text, JSON values or message parts."
    )


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (ZeroDivisionError("division by zero"), "ZeroDivisionError: division by zero"),
        (KeyError("k"), "KeyError: 'k'"),
        (ToolExecutionError("The disk is full."), "The disk is full"),
    ],
)
async def test_an_exception_becomes_an_error_result_that_names_the_tool(error, said):
    @tool
    async def fail() -> None:
        raise error

    assert (await fail.run({}, CONTEXT)).error == f"Tool 'fail' failed: {said}"


async def test_a_function_that_exits_the_program_only_fails():
    @tool
    def leave() -> None:
        sys.exit(3)

    assert "it tried to exit the program with 3" in await text_of(leave)


async def test_cancellation_passes_through():
    started = anyio.Event()
    seen: list[str] = []

    @tool
    async def wait() -> None:
        started.set()
        try:
            await anyio.sleep_forever()
        finally:
            seen.append("cleaned up")

    async with anyio.create_task_group() as group:
        group.start_soon(wait.run, {}, CONTEXT)
        await started.wait()
        group.cancel_scope.cancel()
    assert seen == ["cleaned up"]


async def test_a_blocked_thread_does_not_hold_up_a_cancelled_call():
    release, started = threading.Event(), anyio.Event()
    loop = asyncio.get_running_loop()

    @tool
    def block() -> None:
        loop.call_soon_threadsafe(started.set)
        release.wait()

    async with anyio.create_task_group() as group:
        group.start_soon(block.run, {}, CONTEXT)
        await started.wait()
        group.cancel_scope.cancel()
    release.set()


async def test_methods_partials_and_callable_objects_can_be_tools():
    class Counter:
        def __init__(self, start: int) -> None:
            self.start = start

        @tool
        async def count(self, by: int) -> int:
            """Count on."""
            return self.start + by

        async def __call__(self, by: int) -> int:
            return self.start - by

    def scale(factor: int, secret: str, value: int) -> str:
        """Scale it."""
        return f"{secret}{factor * value}"

    scaled = tool(name="scale")(functools.partial(scale, 3, secret="s"))
    assert await text_of(Counter(4).count, by=2) == "6"
    assert await text_of(tool(name="down")(Counter(4)), by=1) == "3"
    assert await text_of(scaled, value=2) == "s6"
    assert (list(properties(scaled)), scaled.description) == (["value"], "Scale it.")


# --- ready-made schemas --------------------------------------------------------------------------------

ADD = {
    "type": "object",
    "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
    "required": ["a", "b"],
}


async def test_a_ready_made_schema_is_the_contract():
    made = create_function_tool("add", "Add.", ADD, lambda a, b: a + b)
    assert (made.name, made.description, made.parameters) == ("add", "Add.", ADD)
    assert await text_of(made, a=1, b=2) == "3"
    assert await text_of(made, a=1) == "Error: The arguments of 'add' do not fit: missing required field 'b'."
    assert await text_of(made, a=1, b=2, c=3) == (
        "Error: The arguments of 'add' do not fit: unknown field 'c'; allowed: 'a', 'b'."
    )


async def test_a_function_of_one_unknown_parameter_gets_all_arguments():
    async def total(arguments: JsonObject, ctx: ToolContext) -> str:
        return f"{arguments['a'] + arguments['b']} in {ctx.cwd}"

    assert await text_of(create_function_tool("add", "Add.", ADD, total), a=1, b=2) == "3 in /w"


def test_a_function_that_does_not_fit_its_schema_is_refused():
    made = create_function_tool("add", "Add.", ADD, lambda a, c: a)
    with pytest.raises(
        ConfigurationError, match="'add' cannot be used: its function needs 'c', which its schema"
    ):
        anyio.run(made.run, {}, CONTEXT)


async def test_other_spellings_of_an_argument_are_accepted():
    schema = {
        "type": "object",
        "properties": {"file_path": {"type": "string"}},
        "additionalProperties": False,
    }
    made = FunctionTool("f", "", schema, lambda file_path: file_path, aliases={"filePath": "file_path"})
    assert await text_of(made, filePath="a") == "a"
    assert "unknown field 'filePath'" in await text_of(made, filePath="a", file_path="b")


# --- definitions that cannot work ----------------------------------------------------------------------


def star(*values: int) -> None: ...


def positional(x: int, /) -> None: ...


def generate(x: int) -> Any:
    yield x


async def agenerate(x: int) -> Any:
    yield x


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (star, r"'star' .* \*values.*take a list: `values: list\[str\]`"),
        (positional, "'positional' .* 'x' is positional-only.*remove the `/`"),
        (generate, "'generate' is a generator"),
        (agenerate, "'agenerate' is a generator"),
        (lambda x: x, "lambda has no name"),
        (functools.partial(star), "pass `name=`"),
    ],
)
def test_a_bad_definition_is_refused_where_it_stands(function, message):
    with pytest.raises(ConfigurationError, match=message):
        tool(function)


@pytest.mark.parametrize("name", ["", "two words", "größe", "a.b", "x" * 129])
def test_a_name_no_service_accepts_is_refused(name):
    with pytest.raises(ConfigurationError, match="cannot be used: take 1 to 128 letters"):
        tool(name=name)(star)


def test_something_that_is_no_function_is_refused():
    with pytest.raises(ConfigurationError, match="'f' needs a function, not int"):
        FunctionTool("f", "", {}, 3)  # type: ignore[arg-type]


def test_an_annotation_that_cannot_be_resolved_is_named():
    @tool
    def f(x: Missing) -> None: ...  # type: ignore[name-defined]  # noqa: F821

    with pytest.raises(
        ConfigurationError, match=r"'f' .* annotation 'Missing' of 'x' .*import the name at module level"
    ):
        _ = f.parameters


def test_a_type_without_a_schema_is_named():
    @tool
    def f(x: threading.Thread) -> None: ...

    with pytest.raises(
        ConfigurationError, match=r"'f' cannot be used: no schema can be made of its types.*Thread"
    ):
        _ = f.parameters


def test_a_method_without_its_object_is_refused():
    class Box:
        @tool
        def open(self) -> None: ...

    with pytest.raises(ConfigurationError, match=r"'open' .* method without its object"):
        _ = Box.open.parameters
