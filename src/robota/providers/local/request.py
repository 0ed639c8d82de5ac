"""A request in the form that every chat template takes: text only, the system first, then user and assistant.

Templates differ in what they do with tools, and some refuse unusual histories; so tools are described in the
system message, calls and results are text in the form the model is asked for, and turns are put in order.

With tools the model decodes under a JSON schema: one of the tools with its arguments, or an answer. llama.cpp
holds a model to a schema every time, but not to a `tool_choice`; so the schema is where the choice goes.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from robota.core.errors import ConfigurationError
from robota.core.jsontext import decode, encode
from robota.core.messages import (
    AssistantMessage,
    FilePart,
    Json,
    JsonObject,
    Message,
    SystemMessage,
    TextPart,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from robota.core.provider import ChatRequest, ToolChoice, ToolSchema

TINY_PARAMETERS = 1_000_000_000
MANY_TOOLS = 8
"""More than a tiny model tells apart, and each of them costs it a second before it says a word."""
LONGEST_LEAD = 600
"""Characters of instructions that a tiny model is given."""
MAX_TOKENS = 1024
"""Of one reply, unless the request says otherwise: small models that lose the thread never find an end."""
_CALL_FORM = 'To use a tool: {"name": "TOOL", "arguments": {...}}'
_ANSWER_FORM = 'To talk to the user: {"answer": "TEXT"}'
_MANNERS = "Use one tool at a time, and look at its result before you answer."
_GO_ON = "Go on."
_LONGEST_PURPOSE = 240
_LONGEST_NOTE = 80
_PLAIN = frozenset({"type", "required", "enum", "const", "minItems", "maxItems"})
_SCHEMAS = frozenset({"items", "additionalProperties"})
_LISTS = frozenset({"anyOf", "oneOf", "allOf", "prefixItems"})
_MAPS = frozenset({"properties", "$defs", "definitions"})
"""The keywords of a schema that are kept: those that take a value, a schema, a list and a mapping of schemas.
Those that only narrow values are left out: the tool checks its arguments itself, and some of them make the
grammar slow or llama.cpp print warnings."""


def offered_tools(request: ChatRequest, *, tiny: bool) -> tuple[ToolSchema, ...]:
    """The tools the model may choose from; a tiny one gets them without their optional parameters, and of
    many only those it is shown examples of, and the one that is asked for."""
    choice, tools = request.settings.tool_choice, request.tools
    if choice == "none":
        return ()
    if not tiny:
        return tools
    if len(tools) > MANY_TOOLS:
        shown = {example.tool for example in EXAMPLES} | {choice}
        tools = tuple(tool for tool in tools if tool.name in shown) or tools
    return tuple(map(without_optional_parameters, tools))


def choice_fields(
    request: ChatRequest, tools: tuple[ToolSchema, ...], schema: JsonObject | None, *, tiny: bool
) -> JsonObject:
    """The fields of a body that keeps the model to this schema, but for the caller's own ones."""
    settings = request.settings
    fields: JsonObject = {
        "messages": wire_messages(
            request, tools, may_answer=settings.tool_choice in (None, "auto"), examples=tiny
        ),
        "stream": True,
        "stream_options": {"include_usage": True},
        "temperature": settings.temperature,
        "top_p": settings.top_p,
        "max_tokens": settings.max_tokens or MAX_TOKENS,
        "stop": settings.stop or None,
    }
    if schema is not None:
        form = {"name": "reply", "schema": schema}
        fields["response_format"] = {"type": "json_schema", "json_schema": form}
    return fields


def wire_messages(
    request: ChatRequest, tools: Sequence[ToolSchema], *, may_answer: bool, examples: bool
) -> list[JsonObject]:
    """The messages. With tools the model is held to the choice form; without, it writes plain text."""
    lead: list[str] = []
    turns: list[JsonObject] = []
    for message in request.messages:
        if isinstance(message, SystemMessage) and not turns:
            lead.append(_first_part(message.content) if examples else message.content)
            continue
        role = "assistant" if isinstance(message, AssistantMessage) else "user"
        text = _text_of(message, in_choice_form=bool(tools))
        if not text:
            continue
        if turns and turns[-1]["role"] == role:
            turns[-1]["content"] += f"\n\n{text}"
        else:
            turns.append(_turn(role, text))
    if not turns or turns[0]["role"] == "assistant":
        turns.insert(0, _turn("user", _GO_ON))
    if turns[-1]["role"] == "assistant":
        turns.append(_turn("user", _GO_ON))
    if tools:
        lead.append(_describe_choice(tools, may_answer=may_answer))
    if tools and may_answer and examples:
        turns = [*example_turns(tools), *turns]
    system = "\n\n".join(filter(None, lead))
    return [_turn("system", system), *turns] if system else turns


def _first_part(text: str) -> str:
    """As many whole lines as a tiny model can follow: more instructions make it worse, and slower."""
    kept = text[:LONGEST_LEAD]
    return text if len(text) <= LONGEST_LEAD else kept.rpartition("\n")[0] or kept


# --- what was said --------------------------------------------------------------------------------------


def _text_of(message: Message, *, in_choice_form: bool) -> str:
    if isinstance(message, AssistantMessage):
        said = message.content
        if in_choice_form and said and not message.tool_calls:
            said = answer_text(said)
        return "\n".join(filter(None, (said, *map(_call_text, message.tool_calls))))
    if isinstance(message, ToolMessage):
        return result_text(message.name, _with_notes(message))
    if isinstance(message, UserMessage):
        return _with_notes(message)
    return message.content


def _call_text(call: ToolCall) -> str:
    """As the model wrote it, so that what llama.cpp keeps of the conversation can be used again."""
    try:
        decode(call.arguments)
    except ValueError:
        return call_text(call.name, "{}")
    return call_text(call.name, call.arguments)


def _with_notes(message: UserMessage | ToolMessage) -> str:
    notes = [
        f"[{'file' if isinstance(part, FilePart) else 'image'} left out: this model reads only text]"
        for part in message.parts
        if not isinstance(part, TextPart)
    ]
    return "\n".join(filter(None, (message.content, *notes)))


# --- what may be done ------------------------------------------------------------------------------------


def _describe_choice(tools: Sequence[ToolSchema], *, may_answer: bool) -> str:
    lines = ["Reply with one JSON object.", _CALL_FORM]
    if may_answer:
        lines += [_ANSWER_FORM, _MANNERS]
    lines += ["Tools:", *(f"- {_describe_tool(tool)}" for tool in tools)]
    return "\n".join(lines)


def _describe_tool(tool: ToolSchema) -> str:
    """A tool in a line or two: a small model reads a signature better than a schema, and in a tenth of it."""
    properties = tool.parameters.get("properties") or {}
    required = tool.parameters.get("required") or ()
    fields = ", ".join(
        f"{name}{'' if name in required else '?'}: {_type_name(schema)}"
        for name, schema in properties.items()
    )
    notes = "".join(
        f"\n  {name}: {_shorten(note, _LONGEST_NOTE)}"
        for name, schema in properties.items()
        if name in required and isinstance(schema, dict)
        if isinstance(note := schema.get("description"), str) and note
    )
    return f"{tool.name}({fields}): {_shorten(tool.description, _LONGEST_PURPOSE)}{notes}"


def _type_name(schema: Json) -> str:
    if not isinstance(schema, dict):
        return "any"
    if isinstance(schema.get("enum"), list):
        return " | ".join(encode(value).decode() for value in schema["enum"])
    kind = schema.get("type", "any")
    return " | ".join(map(str, kind)) if isinstance(kind, list) else str(kind)


def _shorten(text: str, longest: int) -> str:
    """The first paragraph in one line, at most so long, whole sentences or words."""
    line = " ".join(text.split("\n\n", 1)[0].split())
    if len(line) <= longest:
        return line
    kept = line[:longest]
    end = kept.rfind(". ")
    return kept[: end + 1] if end > 0 else f"{kept.rpartition(' ')[0] or kept}…"


# --- what it decodes under -------------------------------------------------------------------------------


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


# --- examples for very small models -------------------------------------------------------------------------


class Example(Struct, frozen=True, kw_only=True):
    """What a very small model is shown before the conversation, as if it had been part of it.

    Models below a billion parameters do not follow a description of tools, but they do go on with a pattern:
    with these turns the smallest one calls fitting tools and comes to an end, without them it does neither.
    They speak of the usual tools of a coding assistant and are shown for those that are offered and take such
    arguments.
    """

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


def brief_tool(tool: ToolSchema) -> ToolSchema:
    """The tool with a line for its purpose and half a line for each parameter, for a small window."""
    fields = tool.parameters.get("properties") or {}
    kept = {name: _brief_field(schema) for name, schema in fields.items()}
    parameters = {**tool.parameters, "properties": kept}
    return ToolSchema(tool.name, _shorten(tool.description, _LONGEST_PURPOSE), parameters)


def _brief_field(schema: Json) -> Json:
    note = schema.get("description") if isinstance(schema, dict) else None
    return {**schema, "description": _shorten(note, _LONGEST_NOTE)} if isinstance(note, str) else schema


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
