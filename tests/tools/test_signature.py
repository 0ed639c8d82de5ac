from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from datetime import date
from enum import Enum
from pathlib import Path
from typing import Annotated, Any, Literal, NotRequired, TypedDict

import msgspec
import pydantic
import pytest

from robota.core.messages import JsonObject
from robota.core.tool import Tool, ToolContext, tool_schema
from robota.tools.function_tool import FunctionTool, tool

pytestmark = pytest.mark.anyio
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
        "colour": {"type": "string", "enum": ["blue", "red"]},
        "style": {"type": "string", "enum": ["thick", "thin"]},
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
    return a

light = [name for name in ("pydantic", "anyio", "asyncio", "robota.tools.signature") if name in sys.modules]
f.parameters
print(light, "pydantic" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("[] False\n", "")
