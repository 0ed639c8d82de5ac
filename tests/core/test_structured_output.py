from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, TypedDict

import msgspec
import pytest
from pydantic import BaseModel, Field

from robota.core.errors import ConfigurationError, ProviderError, StructuredOutputError
from robota.core.events import RunCompleted, RunFailed
from robota.core.messages import TextPart, UserMessage
from robota.core.provider import Capabilities, StopChunk
from robota.core.robota import Robota
from robota.testing import Fail, ScriptedProvider, Stall, call
from robota.tools.function_tool import tool

pytestmark = pytest.mark.anyio


class City(BaseModel):
    name: str
    people: int = Field(ge=0)


@dataclass
class Point:
    x: int
    y: int


@dataclass
class Town:
    name: str
    mayor: str


@dataclass
class Route:
    stops: list[City]


@dataclass
class Dice:
    eyes: Annotated[int, Field(ge=1, le=6)]


class Pair(TypedDict):
    left: str
    right: str


class Line(msgspec.Struct):
    start: Point
    end: Point


SCHEMA = {
    "type": "object",
    "properties": {"ok": {"type": "boolean"}},
    "required": ["ok"],
    "additionalProperties": False,
}


@pytest.mark.parametrize(
    ("kind", "answer", "value"),
    [
        (City, '{"name": "Seoul", "people": 9}', City(name="Seoul", people=9)),
        (Point, '{"x": 1, "y": 2}', Point(1, 2)),
        (Pair, '{"left": "a", "right": "b"}', {"left": "a", "right": "b"}),
        (list[int], "[1, 2, 3]", [1, 2, 3]),
        (Line, '{"start": {"x": 1, "y": 2}, "end": {"x": 3, "y": 4}}', Line(Point(1, 2), Point(3, 4))),
        (SCHEMA, '{"ok": true}', {"ok": True}),
        (int, "5", 5),
        (list[City], '[{"name": "Seoul", "people": 9}]', [City(name="Seoul", people=9)]),
        (City | None, "null", None),
        (City | Town, '{"name": "Ulm", "mayor": "Ada"}', Town("Ulm", "Ada")),
        (Route, '{"stops": [{"name": "Seoul", "people": 9}]}', Route([City(name="Seoul", people=9)])),
    ],
    ids=[
        "pydantic",
        "dataclass",
        "typeddict",
        "list",
        "struct",
        "json schema",
        "int",
        "list of models",
        "optional model",
        "model or dataclass",
        "dataclass of models",
    ],
)
async def test_the_answer_becomes_a_value_of_the_wanted_type(kind: Any, answer: str, value: Any) -> None:
    provider = ScriptedProvider(answer)
    result = await Robota(provider).run("go", output=kind)
    assert (result.output, result.text, result.error) == (value, answer, None)
    schema = provider.requests[0].output_schema
    assert schema is not None
    asked = provider.requests[0].messages[-1].content
    assert asked.startswith("go\n\n")
    assert msgspec.json.encode(schema).decode() in asked


@pytest.mark.parametrize(
    "answer",
    ['```json\n{"x": 1, "y": 2}\n```', '```\n{"x": 1, "y": 2}```', '  \n{"x": 1, "y": 2}\n\n'],
)
async def test_an_answer_in_a_code_fence_is_read_all_the_same(answer: str) -> None:
    result = await Robota(ScriptedProvider(answer)).run("go", output=Point)
    assert result.output == Point(1, 2)


@pytest.mark.parametrize(
    ("kind", "wrong", "told", "right", "value"),
    [
        (City, '{"name": "Seoul"}', "people", '{"name": "Seoul", "people": 9}', City(name="Seoul", people=9)),
        (Point, '{"x": 1, "y": "2"}', "y", '{"x": 1, "y": 2}', Point(1, 2)),
        (SCHEMA, '{"ok": 1}', "ok", '{"ok": true}', {"ok": True}),
        (Dice, '{"eyes": 7}', "'eyes': Input should be less than or equal to 6\n", '{"eyes": 6}', Dice(6)),
        (list[int], "Here you are: 1, 2", "it is not JSON: 'Here you are: 1, 2'", "[1, 2]", [1, 2]),
        (list[int], "no", "it is not JSON: 'no'", "[1, 2]", [1, 2]),
        (list[int], "[1, 2", "truncated", "[1, 2]", [1, 2]),
        (list[int], "[" * 100_000, "", "[1, 2]", [1, 2]),
    ],
    ids=["pydantic", "dataclass", "json schema", "note for pydantic", "no json", "a word", "cut", "too deep"],
)
async def test_a_wrong_answer_is_tried_again_with_the_problem_told(
    kind: Any, wrong: str, told: str, right: str, value: Any
) -> None:
    provider = ScriptedProvider(wrong, right)
    agent = Robota(provider)
    result = await agent.run("go", output=kind)
    assert (result.output, result.error, result.rounds) == (value, None, 2)
    complaint = provider.requests[1].messages[-1]
    assert isinstance(complaint, UserMessage)
    assert "does not have the required form" in complaint.content
    assert told in complaint.content
    assert [m.role for m in agent.messages] == ["user", "assistant", "user", "assistant"]


async def test_after_the_retries_the_error_says_what_is_wrong_and_keeps_the_answer() -> None:
    provider = ScriptedProvider("one", "two", "three", "never asked")
    agent = Robota(provider)
    failed: list[RunFailed] = []
    agent.events.on(RunFailed, failed.append)
    result = await agent.run("go", output=Point)
    assert isinstance(result.error, StructuredOutputError)
    assert "does not fit the requested type after 2 retries" in str(result.error)
    assert (result.error.text, result.text, result.parsed, result.success) == ("three", "three", None, False)
    assert len(provider.requests) == 3
    assert [event.code for event in failed] == ["STRUCTURED_OUTPUT_ERROR"]


@pytest.mark.parametrize("retries", [0, 1, 4])
async def test_the_number_of_retries_can_be_given(retries: int) -> None:
    provider = ScriptedProvider("no", repeat=True)
    result = await Robota(provider).run("go", output=Point, output_retries=retries)
    assert isinstance(result.error, StructuredOutputError)
    assert len(provider.requests) == retries + 1


@pytest.mark.parametrize("retries", [-1, 1.5, True, "2"])
async def test_a_number_of_retries_that_is_no_count_is_refused(retries: Any) -> None:
    agent = Robota(ScriptedProvider('{"x": 1, "y": 2}'))
    with pytest.raises(ConfigurationError, match="output_retries must be a non-negative integer"):
        await agent.run("go", output=Point, output_retries=retries)
    assert agent.messages == []


async def test_a_provider_that_enforces_schemas_gets_the_schema_and_no_extra_words() -> None:
    provider = ScriptedProvider('{"x": 1, "y": 2}', capabilities=Capabilities(output_schema=True))
    agent = Robota(provider)
    result = await agent.run("go", output=Point)
    assert result.output == Point(1, 2)
    assert provider.requests[0].output_schema is not None
    assert agent.messages[0].content == "go"


async def test_words_are_added_to_a_prompt_of_parts_too() -> None:
    provider = ScriptedProvider("[1]")
    await Robota(provider).run([TextPart("go")], output=list[int])
    assert provider.requests[0].messages[0].content.startswith("go\nAnswer with nothing but one JSON value")


async def test_without_a_wanted_type_nothing_is_asked_or_checked() -> None:
    provider = ScriptedProvider("Hello")
    result = await Robota(provider).run("go")
    assert (result.output, provider.requests[0].output_schema) == (None, None)
    assert provider.requests[0].messages[0].content == "go"


async def test_tools_may_be_used_on_the_way_to_a_value() -> None:
    @tool
    async def add(a: int, b: int) -> int:
        """Add two numbers."""
        return a + b

    provider = ScriptedProvider([call("add", a=1, b=2)], "[3]")
    assert (await Robota(provider, tools=[add]).run("go", output=list[int])).output == [3]


@pytest.mark.parametrize("kind", ["a string", 5, object(), lambda: None])
async def test_a_type_without_a_schema_is_refused_before_anything_is_sent(kind: Any) -> None:
    provider = ScriptedProvider("x")
    agent = Robota(provider)
    with pytest.raises(ConfigurationError, match=r"output=.* has no JSON schema.*pydantic model"):
        await agent.run("go", output=kind)
    assert (agent.messages, provider.requests, agent.is_running) == ([], [], False)


@pytest.mark.parametrize(
    ("schema", "told"),
    [
        ({"type": "objekt"}, '"objekt" is not valid'),
        ({"name": "str", "age": "int"}, "'name' is not a keyword of JSON Schema: put it under"),
    ],
)
async def test_a_dict_that_is_no_schema_is_refused_before_anything_is_sent(schema: Any, told: str) -> None:
    provider = ScriptedProvider("x")
    with pytest.raises(ConfigurationError, match=f"output is not a JSON schema: {told}"):
        await Robota(provider).run("go", output=schema)
    assert provider.requests == []


async def test_a_failing_model_is_reported_as_what_it_is() -> None:
    error = ProviderError("no")
    provider = ScriptedProvider([Fail(error)], "never asked")
    result = await Robota(provider).run("go", output=Point)
    assert (result.error, result.parsed, len(provider.requests)) == (error, None, 1)


async def test_an_abort_while_a_value_is_wanted_is_an_abort() -> None:
    provider = ScriptedProvider(['{"x"', Stall()])
    agent = Robota(provider)
    agent.events.subscribe(lambda event: agent.abort() if event.name == "text_delta" else None)
    result = await agent.run("go", output=Point)
    assert (result.interrupted, result.error, result.parsed) == (True, None, None)


async def test_a_full_window_is_not_filled_with_retries() -> None:
    agent = Robota(ScriptedProvider("never asked"), context_window=1_000)
    result = await agent.run("x" * 5_000, output=Point)
    assert [m.role for m in agent.messages] == ["user", "assistant"]
    assert result.parsed is None
    assert result.stop_reason == "context_overflow"


async def test_a_refusal_is_shown_when_a_value_was_wanted() -> None:
    provider = ScriptedProvider([StopChunk("refusal")], repeat=True)
    result = await Robota(provider).run("go", output=Point)
    assert isinstance(result.error, StructuredOutputError)
    assert result.stop_reason == "refusal"


async def test_the_round_limit_holds_for_retries_too() -> None:
    provider = ScriptedProvider("no", repeat=True)
    result = await Robota(provider).run("go", output=Point, max_rounds=2)
    assert isinstance(result.error, StructuredOutputError)
    assert (result.rounds, len(provider.requests)) == (2, 2)


async def test_retries_need_no_round_limit() -> None:
    result = await Robota(ScriptedProvider("no", "[1]"), max_rounds=0).run("go", output=list[int])
    assert (result.output, result.rounds) == ([1], 2)


async def test_a_completed_value_ends_the_run_once() -> None:
    agent = Robota(ScriptedProvider("no", "[1]"))
    endings: list[RunCompleted] = []
    agent.events.on(RunCompleted, endings.append)
    await agent.run("go", output=list[int])
    assert [event.text for event in endings] == ["[1]"]
