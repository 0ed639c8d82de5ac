"""The JSON schema that a local model decodes under: one of the tools with its arguments, or an answer.

llama.cpp holds a model to a schema every time, but not to a `tool_choice`; so the schema is where the choice
goes. Keywords that only narrow values are left out: the tool checks its arguments itself, and some of these
keywords make the grammar slow or llama.cpp print warnings.
"""

from __future__ import annotations

from collections.abc import Sequence

from robota.core.errors import ConfigurationError
from robota.core.messages import Json, JsonObject
from robota.core.provider import ToolChoice, ToolSchema

_PLAIN = frozenset({"type", "required", "enum", "const", "minItems", "maxItems"})
_SCHEMAS = frozenset({"items", "additionalProperties"})
_LISTS = frozenset({"anyOf", "oneOf", "allOf", "prefixItems"})
_MAPS = frozenset({"properties", "$defs", "definitions"})


def choice_schema(
    tools: Sequence[ToolSchema],
    choice: ToolChoice | None,
    answer: JsonObject | None = None,
    *,
    loose: bool = False,
) -> JsonObject:
    """The schema for these tools. `answer` is the shape an answer must have; `loose` takes any arguments."""
    offered = tools
    if choice not in (None, "auto", "required"):
        offered = [tool for tool in tools if tool.name == choice]
        if not offered:
            known = ", ".join(tool.name for tool in tools)
            raise ConfigurationError(f"The tool choice {choice!r} names no tool; there are {known}.")
    branches = []
    for at, tool in enumerate(offered):
        place = f"#/anyOf/{at}/properties/arguments"
        arguments = {"type": "object"} if loose else _trim(tool.parameters, place)
        branches.append(_record(name={"const": tool.name}, arguments=arguments))
    if choice in (None, "auto"):
        place = f"#/anyOf/{len(branches)}/properties/answer"
        branches.append(_record(answer={"type": "string"} if answer is None else _trim(answer, place)))
    return {"anyOf": branches}


def _record(**properties: Json) -> JsonObject:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _trim(schema: Json, place: str) -> JsonObject:
    """What of a schema shapes a value; its references are made to start at `place`, where it will stand."""
    if not isinstance(schema, dict):
        return {}
    kept: JsonObject = {}
    for keyword, value in schema.items():
        if keyword in _PLAIN:
            kept[keyword] = value
        elif keyword == "$ref" and isinstance(value, str):
            kept[keyword] = place + value.removeprefix("#")
        elif keyword in _SCHEMAS:
            kept[keyword] = value if isinstance(value, bool) else _trim(value, place)
        elif keyword in _LISTS and isinstance(value, list):
            kept[keyword] = [_trim(item, place) for item in value]
        elif keyword in _MAPS and isinstance(value, dict):
            kept[keyword] = {name: _trim(item, place) for name, item in value.items()}
    if kept.get("properties") and "additionalProperties" not in kept:
        kept["additionalProperties"] = False  # a small model would go on inventing fields
    return kept
