"""What a very small model is shown before the conversation, as if it had been part of it.

Models below a billion parameters do not follow a description of tools, but they do go on with a pattern: with
these turns the smallest one calls fitting tools and comes to an end, without them it does neither. They speak
of the usual tools of a coding assistant and are shown for those that are offered and take such arguments.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from robota.core.jsontext import encode
from robota.core.messages import JsonObject
from robota.core.provider import ToolSchema


class Example(Struct, frozen=True, kw_only=True):
    prompt: str
    tool: str
    arguments: dict[str, str]
    result: str
    answer: str


EXAMPLES = (
    Example(
        prompt="Where is the word timeout used?",
        tool="Grep",
        arguments={"pattern": "timeout"},
        result="net.py\nclient.py",
        answer="In net.py and client.py.",
    ),
    Example(
        prompt="What is in setup.cfg?",
        tool="Read",
        arguments={"file_path": "setup.cfg"},
        result="1\t[metadata]\n2\tname = demo",
        answer="It sets the name to demo.",
    ),
    Example(
        prompt="Which python files are there?",
        tool="Glob",
        arguments={"pattern": "**/*.py"},
        result="app.py\ntests/test_app.py",
        answer="There are two: app.py and tests/test_app.py.",
    ),
)
"""Only of tools that change nothing: what is shown is what such a model does, asked or not."""
LAST_ANSWER = EXAMPLES[-1].answer


def example_turns(tools: Sequence[ToolSchema]) -> list[JsonObject]:
    """The turns that come before the conversation; none if no example fits."""
    offered = {tool.name: tool for tool in tools}
    turns: list[JsonObject] = []
    for example in EXAMPLES:
        tool = offered.get(example.tool)
        if tool is None or set(tool.parameters.get("required") or ()) != example.arguments.keys():
            continue
        call = call_text(example.tool, encode_spaced(example.arguments))
        turns += [
            _turn("user", example.prompt),
            _turn("assistant", call),
            _turn("user", result_text(example.tool, example.result)),
            _turn("assistant", answer_text(example.answer)),
        ]
    greeting = [_turn("user", "Hello"), _turn("assistant", answer_text("Hello, how can I help you?"))]
    return greeting + turns if turns else []


def without_optional_parameters(tool: ToolSchema) -> ToolSchema:
    """The tool with the parameters it cannot do without: a very small model fills in whatever it may."""
    required = tool.parameters.get("required") or ()
    fields = tool.parameters.get("properties") or {}
    if not required:
        return tool
    kept = {name: schema for name, schema in fields.items() if name in required}
    return ToolSchema(tool.name, tool.description, {**tool.parameters, "properties": kept})


# --- the form in which things are said ----------------------------------------------------------------


def call_text(name: str, arguments: str) -> str:
    return f'{{"name": {encode(name).decode()}, "arguments": {arguments}}}'


def answer_text(answer: str) -> str:
    return f'{{"answer": {encode(answer).decode()}}}'


def result_text(name: str, result: str) -> str:
    return f"Result of {name}:\n{result}"


def encode_spaced(arguments: dict[str, str]) -> str:
    """JSON as models like to write it."""
    fields = (f'"{name}": {encode(value).decode()}' for name, value in arguments.items())
    return "{" + ", ".join(fields) + "}"


def _turn(role: str, content: str) -> JsonObject:
    return {"role": role, "content": content}
