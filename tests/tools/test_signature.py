from __future__ import annotations

import subprocess
import sys
import warnings
from dataclasses import dataclass
from datetime import date
from enum import Enum
from pathlib import Path
from typing import Annotated, Any, Literal, NotRequired, Required, TypedDict, Unpack

import msgspec
import pydantic
import pytest

from robota.core.errors import ConfigurationError
from robota.core.messages import JsonObject
from robota.core.tool import Tool, ToolContext, tool_schema
from robota.tools.function_tool import FunctionTool, tool

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


class Order(msgspec.Struct):
    """An order."""

    points: list[Point]


class Node(msgspec.Struct):
    name: str
    children: list[Node] = []


class Model(pydantic.BaseModel):
    x: int
    day: date = date(2026, 1, 2)


def test_signature_and_docstring_become_name_description_and_schema():
    schema = tool_schema(add)
    assert (schema.name, schema.description) == ("add", "Add two integers.")
    assert schema.parameters == {
        "type": "object",
        "properties": {
            "a": {"type": "integer", "description": "The first integer."},
            "b": {"type": "integer", "description": "The second integer.", "default": 2},
        },
        "required": ["a"],
        "additionalProperties": False,
    }
    assert isinstance(add, Tool)


def test_the_decorator_takes_a_name_a_description_and_a_class():
    @tool(name="look-up", description="Find it.", tool_class="inspect")
    def find(key: str) -> str:
        """Ignored."""
        return key

    assert (find.name, find.description, find.tool_class) == ("look-up", "Find it.", "inspect")


def test_a_decorated_function_can_still_be_called():
    @tool
    def double(x: int) -> int:
        return 2 * x

    assert double(4) == 8


def test_types_become_schemas_with_their_definitions_in_place():
    @tool
    def paint(
        colour: Colour,
        style: Literal["thin", "thick"],
        points: list[Point],
        pair: tuple[int, str],
        tags: dict[str, int],
        options: Options,
        order: Order,
        note: str | None = None,
        where: Path = Path("/tmp"),
        anything: Any = None,
        bare=3,
    ) -> None: ...

    point = {
        "type": "object",
        "properties": {"x": {"type": "integer"}, "y": {"type": "integer", "default": 0}},
        "required": ["x"],
    }
    assert properties(paint) == {
        "colour": {"type": "string", "enum": ["red", "blue"]},
        "style": {"type": "string", "enum": ["thin", "thick"]},
        "points": {"type": "array", "items": point},
        "pair": {
            "type": "array",
            "prefixItems": [{"type": "integer"}, {"type": "string"}],
            "items": False,
            "minItems": 2,
            "maxItems": 2,
        },
        "tags": {"type": "object", "additionalProperties": {"type": "integer"}},
        "options": {
            "type": "object",
            "properties": {"deep": {"type": "boolean"}, "depth": {"type": "integer"}},
            "required": ["deep"],
        },
        "order": {
            "description": "An order.",
            "type": "object",
            "properties": {"points": {"type": "array", "items": point}},
            "required": ["points"],
        },
        "note": {"anyOf": [{"type": "string"}, {"type": "null"}], "default": None},
        "where": {"type": "string", "format": "path"},
        "anything": {"default": None},
        "bare": {"default": 3},
    }


def test_a_type_that_contains_itself_stays_a_definition():
    @tool
    def grow(root: Node, title: str) -> None: ...

    assert properties(grow) == {"root": {"$ref": "#/$defs/Node"}, "title": {"type": "string"}}
    assert grow.parameters["$defs"]["Node"]["properties"] == {
        "name": {"type": "string"},
        "children": {"type": "array", "items": {"$ref": "#/$defs/Node"}, "default": []},
    }


def test_extra_keywords_open_the_schema():
    @tool
    def log(event: str, **fields: Any) -> None: ...

    assert log.parameters["additionalProperties"] is True


def test_a_function_without_arguments_has_an_empty_schema():
    @tool
    def now() -> str: ...

    assert now.parameters == {"type": "object", "properties": {}, "additionalProperties": False}


def test_annotated_descriptions_outrank_the_docstring():
    @tool
    def cut(
        length: Annotated[int, "In metres."],
        width: Annotated[int, msgspec.Meta(ge=1, description="At least one.")],
        depth: Annotated[int, "If any."] | None = None,
    ) -> None:
        """Cut.

        Args:
            length: Not this.
        """

    described = {name: schema["description"] for name, schema in properties(cut).items()}
    assert described == {"length": "In metres.", "width": "At least one.", "depth": "If any."}
    assert properties(cut)["width"]["minimum"] == 1


def google(path: str, limit: int, *, extra: str) -> None:
    """Read a file.

    It may be long.

    Args:
        path (str): Which file,
            by its absolute name.
        limit: How many lines: at most 10.
        **extra: More.

    Returns:
        The text.
    """


def numpy(path: str, limit: int, extra: str) -> None:
    """Read a file.

    It may be long.

    Parameters
    ----------
    path : str
        Which file,
        by its absolute name.
    limit, extra : int, optional
        How many lines: at most 10.

    Returns
    -------
    str
        The text.
    """


def sphinx(path: str, limit: int, extra: str) -> None:
    """Read a file.

    It may be long.

    :param path: Which file,
        by its absolute name.
    :param int limit: How many lines: at most 10.
    :type limit: int
    :returns: The text.
    """


@pytest.mark.parametrize(
    ("function", "rest"),
    [
        (google, "Returns:\n    The text."),
        (numpy, "Returns\n-------\nstr\n    The text."),
        (sphinx, ":returns: The text."),
    ],
)
def test_argument_sections_of_three_docstring_styles_go_into_the_schema(function, rest):
    made = tool(function)
    assert made.description == f"Read a file.\n\nIt may be long.\n\n{rest}"
    assert properties(made)["path"]["description"] == "Which file, by its absolute name."
    assert properties(made)["limit"]["description"] == "How many lines: at most 10."


# --- pydantic ------------------------------------------------------------------------------------------


async def test_pydantic_models_and_fields_are_understood():
    @tool
    async def book(
        guest: Model,
        nights: Annotated[int, pydantic.Field(ge=1, description="How many.")],
        beds: int = pydantic.Field(default=2, le=4, description="How wide."),
        wishes: list[str] | None = None,
    ) -> str:
        return f"{guest!r} {nights} {beds} {wishes}"

    assert book.parameters == {
        "type": "object",
        "properties": {
            "guest": {
                "type": "object",
                "properties": {
                    "x": {"type": "integer"},
                    "day": {"type": "string", "format": "date", "default": "2026-01-02"},
                },
                "required": ["x"],
            },
            "nights": {"type": "integer", "minimum": 1, "description": "How many."},
            "beds": {"type": "integer", "maximum": 4, "default": 2, "description": "How wide."},
            "wishes": {
                "anyOf": [{"type": "array", "items": {"type": "string"}}, {"type": "null"}],
                "default": None,
            },
        },
        "required": ["guest", "nights"],
        "additionalProperties": False,
    }
    guest = "Model(x=1, day=datetime.date(2026, 1, 2))"
    assert await text_of(book, guest={"x": 1}, nights=1) == f"{guest} 1 2 None"
    assert await text_of(book, guest={"x": "1"}, nights=0) == (
        "Error: The arguments of 'book' do not fit: 'guest.x' must be an integer, got the string \"1\"; "
        "'nights' must be at least 1, got 0."
    )
    assert "'guest.day': Input should be a valid date" in await text_of(
        book, guest={"x": 1, "day": "?"}, nights=1
    )


async def test_a_field_deep_inside_another_type_counts():
    @dataclass
    class Stay:
        nights: Annotated[int, pydantic.Field(ge=1)]

    @tool
    async def book(stays: list[Stay]) -> int:
        return stays[0].nights

    assert await text_of(book, stays=[{"nights": 2}]) == "2"
    assert "'stays[0].nights' must be at least 1" in await text_of(book, stays=[{"nights": 0}])


async def test_a_union_that_msgspec_cannot_tell_apart_works_too():
    @dataclass
    class Circle:
        radius: int

    @tool
    async def draw(shape: Point | Circle) -> str:
        return repr(shape)

    assert await text_of(draw, shape={"x": 1}) == "Point(x=1, y=0)"
    assert (await text_of(draw, shape={"radius": 2})).endswith("Circle(radius=2)")


def test_plain_functions_and_their_schemas_need_no_pydantic():
    script = """
import sys
from typing import Literal
from robota.tools.function_tool import tool

@tool
async def f(a: int, b: list[str] | None = None, c: Literal["x", "y"] = "x") -> int:
    '''F.'''
    return a

light = [name for name in ("pydantic", "anyio", "asyncio", "robota.tools.signature") if name in sys.modules]
f.parameters
print(light, "pydantic" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("[] False\n", "")


class Filters(TypedDict, total=False):
    size: Required[Literal["small", "large", "huge"]]
    tags: Annotated[list[str], "Any of these."]


async def test_the_fields_of_unpacked_keywords_are_arguments():
    @tool
    async def find(query: str, **filters: Unpack[Filters]) -> str:
        """Find.

        Args:
            size: How large.
        """
        return repr((query, filters))

    assert properties(find) == {
        "query": {"type": "string"},
        "size": {"type": "string", "enum": ["small", "large", "huge"], "description": "How large."},
        "tags": {"type": "array", "items": {"type": "string"}, "description": "Any of these."},
    }
    assert (find.parameters["required"], find.parameters["additionalProperties"]) == (
        ["query", "size"],
        False,
    )
    assert await text_of(find, query="a", size="huge") == repr(("a", {"size": "huge"}))
    assert "missing required field 'size'" in await text_of(find, query="a")


@pytest.mark.parametrize("kind", [int, Annotated[int, pydantic.Field(ge=0)]])
async def test_typed_keywords_are_checked_and_told(kind: Any):
    async def count(first: str, **others: kind) -> str:  # type: ignore[valid-type]
        """Count."""
        return repr((first, others))

    count.__annotations__["others"] = kind
    made = tool(count)
    assert made.parameters["additionalProperties"]["type"] == "integer"
    assert await text_of(made, first="a", x=1, y=2.0) == repr(("a", {"x": 1, "y": 2}))
    assert "'x' must be an integer, got the string" in await text_of(made, first="a", x="b")


async def test_a_field_with_an_alias_is_called_by_it():
    @tool
    async def travel(
        start: Annotated[str, pydantic.Field(alias="from", description="Where from.")],
        end: str = pydantic.Field(alias="to"),
        copy: int = pydantic.Field(default=1, alias="copies", gt=0),
        schema: str = "plain",
    ) -> str:
        """Travel."""
        return repr((start, end, copy, schema))

    assert list(properties(travel)) == ["from", "to", "copies", "schema"]
    assert (properties(travel)["from"]["description"], travel.parameters["required"]) == (
        "Where from.",
        ["from", "to"],
    )
    assert await text_of(travel, **{"from": "a", "to": "b"}) == repr(("a", "b", 1, "plain"))
    assert await text_of(travel, **{"from": "a", "to": "b", "copies": 2}) == repr(("a", "b", 2, "plain"))
    assert "unknown field 'start'; allowed: 'from', 'to', 'copies', 'schema'" in await text_of(
        travel, start="a", to="b"
    )


class Level(Enum):
    LOW = "low"
    HIGH = "high"
    ALERT = "alert"


def test_values_keep_the_order_they_were_written_in():
    @dataclass
    class Rule:
        level: Level
        days: list[Literal["mon", "fri", "all"]]

    @tool
    def watch(rule: Rule, least: Level | None = None, mode: Literal["z", 1, "a"] = "z") -> None:
        """Watch."""

    rule = properties(watch)["rule"]["properties"]
    assert rule["level"]["enum"] == ["low", "high", "alert"]
    assert rule["days"]["items"]["enum"] == ["mon", "fri", "all"]
    assert properties(watch)["least"]["anyOf"][0]["enum"] == ["low", "high", "alert"]
    assert properties(watch)["mode"]["enum"] == ["z", 1, "a"]


def test_a_context_without_its_annotation_is_refused_where_it_stands():
    with pytest.raises(ConfigurationError, match=r"`ctx` has no annotation.*write `ctx: ToolContext`"):

        @tool
        async def look(ctx, path: str) -> None:
            """Look."""


def test_a_tool_without_a_docstring_is_told_where_it_stands():
    with pytest.warns(UserWarning, match=r"Tool 'quiet' has no docstring.*pass `description=`") as caught:

        @tool
        async def quiet() -> None: ...

    assert caught[0].filename == __file__
    with pytest.warns(UserWarning, match="Tool 'called' has no docstring") as caught:

        @tool(name="called")
        async def silent() -> None: ...

    assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")

        @tool(description="Says it elsewhere.")
        async def described() -> None: ...
