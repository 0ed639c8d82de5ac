from __future__ import annotations

from typing import Any

import pytest
from tests.providers.loopback import DONE, event, tool_delta

from robota.core.messages import ToolCall
from robota.core.provider import Chunk, MetadataChunk, StopChunk, ToolInputChunk
from robota.providers.chat.reply import ChatContent
from robota.providers.wire.errors import Peer
from robota.providers.wire.reply import ReplyReader


def read(*deltas: dict[str, Any], finish: str = "tool_calls") -> list[Chunk]:
    """All chunks of a reply with these deltas, without the metadata it begins with."""
    reader = ReplyReader(ChatContent(), Peer("test"))
    chunks = [chunk for part in (*map(event, deltas), event({}, finish), DONE) for chunk in reader.feed(part)]
    return [chunk for chunk in chunks + reader.finish() if not isinstance(chunk, MetadataChunk)]


def read_calls(*deltas: dict[str, Any], finish: str = "tool_calls") -> list[ToolCall]:
    return [chunk for chunk in read(*deltas, finish=finish) if isinstance(chunk, ToolCall)]


ADD = ToolCall("a", "add", '{"a":1}')
SUB = ToolCall("b", "sub", '{"b":2}')


def function(name: str | None = None, arguments: Any = "") -> dict[str, Any]:
    return {"arguments": arguments} if name is None else {"name": name, "arguments": arguments}


CALL_FORMS: dict[str, list[dict[str, Any]]] = {
    "pieces in turn": [
        tool_delta(index=0, id="a", function=function("add")),
        tool_delta(index=1, id="b", function=function("sub")),
        tool_delta(index=0, function=function(None, '{"a"')),
        tool_delta(index=1, function=function(None, '{"b":2}')),
        tool_delta(index=0, function=function(None, ":1}")),
    ],
    "whole calls": [
        tool_delta(index=0, id="a", function=function("add", '{"a":1}')),
        tool_delta(index=1, id="b", function=function("sub", '{"b":2}')),
    ],
    "both in one delta": [
        {"tool_calls": [{"index": 0, "id": "a", "function": function("add", '{"a":1}')},
                        {"index": 1, "id": "b", "function": function("sub", '{"b":2}')}]},
    ],
    "without an index": [
        tool_delta(id="a", function=function("add", '{"a"')),
        tool_delta(function=function(None, ":1}")),
        tool_delta(id="b", function=function("sub", '{"b":2}')),
    ],
    "always index 0": [
        tool_delta(index=0, id="a", function=function("add", '{"a":1}')),
        tool_delta(index=0, id="b", function=function("sub", '{"b":2}')),
    ],
    "id and name repeated": [
        tool_delta(index=0, id="a", function=function("add", "")),
        tool_delta(index=0, id="a", function=function("add", '{"a":')),
        tool_delta(index=0, id="a", function=function("add", "1}")),
        tool_delta(index=1, id="b", function=function("sub", '{"b":2}')),
    ],
    "name in pieces": [
        tool_delta(index=0, id="a", function=function("a", None)),
        tool_delta(index=0, function=function("dd", '{"a":1}')),
        tool_delta(index=1, id="b", function=function("su", None)),
        tool_delta(index=1, function=function("sub", '{"b":2}')),
    ],
    "arguments as objects": [
        tool_delta(index=0, id="a", function=function("add", {"a": 1})),
        tool_delta(index=1, id="b", function=function("sub", {"b": 2})),
    ],
}  # fmt: skip


@pytest.mark.parametrize("form", CALL_FORMS)
def test_tool_calls_are_put_together_from_whatever_form_they_have(form: str) -> None:
    assert read_calls(*CALL_FORMS[form]) == [ADD, SUB]


def test_the_pieces_of_a_call_are_shown_as_they_arrive() -> None:
    chunks = read(*CALL_FORMS["pieces in turn"])
    assert chunks == [
        ToolInputChunk(0, "", "a", "add"),
        ToolInputChunk(1, "", "b", "sub"),
        ToolInputChunk(0, '{"a"', "a", "add"),
        ToolInputChunk(1, '{"b":2}', "b", "sub"),
        ToolInputChunk(0, ":1}", "a", "add"),
        ADD,
        SUB,
        StopChunk("tool_use", "tool_calls"),
    ]


def test_calls_without_id_or_index_are_told_apart_by_their_names() -> None:
    deltas = [
        tool_delta(function=function("add", '{"a":1}')),
        tool_delta(function=function("sub", '{"b":2}')),
    ]
    assert read_calls(*deltas) == [ToolCall("", "add", '{"a":1}'), ToolCall("", "sub", '{"b":2}')]


def test_the_same_id_twice_is_two_calls() -> None:
    deltas = [tool_delta(index=at, id="call_0", function=function("add", "{}")) for at in (0, 1)]
    assert read_calls(*deltas) == [ToolCall("call_0", "add"), ToolCall("call_0", "add")]


@pytest.mark.parametrize("nothing", ["", None, "  "])
def test_no_arguments_are_an_empty_object(nothing: str | None) -> None:
    assert read_calls(tool_delta(index=0, id="a", function=function("now", nothing))) == [
        ToolCall("a", "now", "{}")
    ]


def test_broken_arguments_of_a_finished_reply_are_passed_on_for_the_model_to_be_told() -> None:
    assert read_calls(tool_delta(index=0, id="a", function=function("add", '{"a":'))) == [
        ToolCall("a", "add", '{"a":')
    ]


def test_a_piece_that_says_nothing_about_the_function_changes_nothing() -> None:
    whole = CALL_FORMS["whole calls"]
    assert read_calls(*whole, tool_delta(index=0), tool_delta(index=1, id=None, function=None)) == [ADD, SUB]


def test_the_old_function_call_is_a_call() -> None:
    old = [{"function_call": {"name": "add", "arguments": '{"a"'}}, {"function_call": {"arguments": ":1}"}}]
    assert read_calls(*old, finish="function_call") == [ToolCall("", "add", '{"a":1}')]


def test_calls_ended_by_stop_are_still_tool_use() -> None:
    chunks = read(*CALL_FORMS["both in one delta"], finish="stop")
    assert chunks[-3:] == [ADD, SUB, StopChunk("tool_use", "stop")]


@pytest.mark.parametrize("cut", ["", '{"b"', "{"])
def test_a_call_that_ran_into_the_token_limit_is_dropped_and_whole_ones_are_kept(cut: str) -> None:
    deltas = [
        tool_delta(index=0, id="a", function=function("add", '{"a":1}')),
        tool_delta(index=1, id="b", function=function("sub", cut)),
    ]
    assert read_calls(*deltas, finish="length") == [ADD]
