from __future__ import annotations

import itertools
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.providers.families.pieces import STOP, assert_same_in_all_cuts, calls_of, joined, play, text_of

from robota.core.messages import ToolCall
from robota.core.provider import NativePayload, StopChunk, TextChunk, ToolInputChunk, ToolSchema
from robota.providers.pseudo_call import PseudoCallProjector

ADD = ToolSchema("add", "", {"type": "object", "properties": {"a": {}, "note": {}}})
CALL = ToolCall("", "add", '{"a":1}')
MADE = StopChunk("tool_use", "stop")
WRITTEN = [
    '<tool_call>{"name": "add", "arguments": {"a": 1}}</tool_call>',
    '<tool_call>\n{"name": "add", "arguments": {"a": 1}}\n</tool_call>',
    '```json\n{"name": "add", "arguments": {"a": 1}}\n```',
    '```json {"name": "add", "arguments": {"a": 1}} ```',
    '```tool_call\n{"name": "add", "arguments": {"a": 1}}\n```',
    "```tool_code\nadd(a=1)\n```",
    "<|tool_call>call:add{a:1}<tool_call|>",
    '```\n{"name": "add", "arguments": {"a": 1}}\n```',
    '<tools>{"name": "add", "arguments": {"a": 1}}</tools>',
    '<function_call>{"name": "add", "parameters": {"a": 1}}</function_call>',
    '<function=add>{"a": 1}</function>',
    "<function=add>\n<parameter=a>\n1\n</parameter>\n</function>",
    "<tool_call>\n<function=add>\n<parameter=a>\n1\n</parameter>\n</function>\n</tool_call>",
    '[TOOL_CALLS][{"name": "add", "arguments": {"a": 1}}]',
    '<|python_tag|>{"name": "add", "parameters": {"a": 1}}',
    '{"name": "add", "arguments": {"a": 1}}',
    '[{"name": "add", "arguments": {"a": 1}}]',
    '{"type": "function", "function": {"name": "add", "arguments": "{\\"a\\": 1}"}}',
]
UNCLOSED = [
    '<tool_call>{"name": "add", "arguments": {"a": 1}}',
    '```json\n{"name": "add", "arguments": {"a": 1}}\n',
    '<function=add>{"a": 1}',
]


def projector() -> PseudoCallProjector:
    return PseudoCallProjector([ADD])


@pytest.mark.parametrize("written", WRITTEN)
def test_a_written_call_is_made_wherever_it_is_cut(written) -> None:
    expected = [TextChunk("I add.\n\n.\n"), CALL, MADE]
    assert_same_in_all_cuts(projector, f"I add.\n{written}\n.\n", expected)
    assert_same_in_all_cuts(projector, written, [CALL, MADE])


@pytest.mark.parametrize("written", UNCLOSED)
def test_a_call_whose_end_was_forgotten_is_made(written) -> None:
    assert_same_in_all_cuts(projector, f"I add.\n{written}", [TextChunk("I add.\n"), CALL, MADE])


def test_calls_line_by_line_are_all_made() -> None:
    line = '{"name": "add", "arguments": {"a": 1}}'
    expected = [TextChunk("First.\n\n"), CALL, CALL, MADE]
    assert_same_in_all_cuts(projector, f"First.\n{line}\n{line}", expected)


def test_a_value_between_tags_has_the_type_of_its_parameter() -> None:
    fields = {"path": {"type": "string"}, "lines": {"type": "array"}}
    write = ToolSchema("write", "", {"type": "object", "properties": fields})
    written = "<parameter=path>\n12\n</parameter>\n<parameter=lines>\n[1]\n</parameter>"
    text = f"<function=write>\n{written}\n</function>"
    made = ToolCall("", "write", '{"path":"12","lines":[1]}')
    assert_same_in_all_cuts(lambda: PseudoCallProjector([write]), text, [made, MADE])


def test_several_calls_are_made_in_their_order() -> None:
    text = '```json\n[{"name": "add", "arguments": {"a": 2}}, {"name": "add"}]\n```\n' + WRITTEN[0]
    expected = [TextChunk("\n"), ToolCall("", "add", '{"a":2}'), ToolCall("", "add", "{}"), CALL, MADE]
    assert_same_in_all_cuts(projector, text, expected)


@pytest.mark.parametrize(
    "text",
    [
        '<tool_call>{"name": "delete", "arguments": {}}</tool_call> was not offered.',
        '<tool_call>{"name": "add", "arguments": {"a": 1}</tool_call> is broken.',
        '```json\n{"name": "add", "arguments": {"a"',
        '```json\n{"colour": "red"}\n```\nis a colour.',
        '```json\n{"name": "Ann", "age": 3}\n```\nis a person.',
        "```python\nadd(a=1)\n```",
        "```tool_code\nadd(a=x)\n```",
        'As {"name": "add", "arguments": {"a": 1}} shows, it is in a sentence.',
        '{"name": "demo", "version": "1.0"}\nis a package.',
        '[{"a": 1}, 2]',
        "{ not JSON }",
        "<function=delete>{}</function>",
        "<function=add>plain words</function>",
        "```jso",
        "``",
        "<",
        "A plain answer with `code`, ```fences``` and <tags>.",
    ],
)
def test_what_is_no_whole_call_of_an_offered_tool_stays_text(text) -> None:
    assert_same_in_all_cuts(projector, text, [TextChunk(text), STOP])


def test_fences_and_marks_inside_arguments_do_not_end_a_call() -> None:
    note = "Run:\n```sh\nls\n```\nand <tool_call> then"
    written = json.dumps({"name": "add", "arguments": {"note": note}})
    expected = [ToolCall("", "add", json.dumps({"note": note}, separators=(",", ":"))), MADE]
    assert_same_in_all_cuts(projector, f"```json\n{written}\n```", expected)


def test_json_that_cannot_become_a_call_is_not_held_back() -> None:
    chunks = projector().take(TextChunk('```json\n{"colour": "re'))
    assert chunks == [TextChunk('```json\n{"colour": "re')]


def test_a_call_of_the_servers_own_makes_written_ones_text_again() -> None:
    own = ToolCall("c1", "add", "{}")
    opening = ToolInputChunk(0, "", "c1", "add")
    chunks = play(projector(), ["I add.", WRITTEN[0], "So."], opening, own, STOP)
    assert joined(chunks) == [TextChunk("I add.So." + WRITTEN[0]), opening, own, STOP]
    assert calls_of(play(projector(), [WRITTEN[0]], own, STOP)) == [own]


def test_a_reply_that_breaks_off_gives_written_calls_back_as_text() -> None:
    cut = projector()
    chunks = cut.take(TextChunk(f"So: {WRITTEN[0]} and <tool_call>{{"))
    assert text_of([*chunks, *cut.release()]) == f"So:  and {WRITTEN[0]}<tool_call>{{"


def test_the_reason_for_stopping_is_kept_when_it_is_another_one() -> None:
    limit = StopChunk("max_tokens", "length")
    text = WRITTEN[0] + '<tool_call>{"name": "add", "arg'
    chunks = play(projector(), [text], limit)
    assert chunks == [TextChunk('<tool_call>{"name": "add", "arg'), CALL, limit]


def test_native_events_of_calls_are_kept() -> None:
    native = NativePayload(kind="stream_event", payload=b'{"n":1}', api_surface="openai-chat-completions")
    assert projector().take(TextChunk(WRITTEN[0], b'{"n":1}')) == [native]


PARTS = [
    *WRITTEN,
    "```json\n",
    '{"name": "add"}',
    "\n```",
    "```",
    "<tool_call>",
    "</tool_call>",
    "a",
    "\n",
    "`",
    "<",
]


@given(st.lists(st.sampled_from(PARTS), max_size=6).map("".join), st.sets(st.integers(0, 300)))
def test_cuts_change_nothing_and_no_letter_is_lost(text: str, places: set[int]) -> None:
    edges = sorted({min(place, len(text)) for place in places} | {0, len(text)})
    pieces = [text[a:b] for a, b in itertools.pairwise(edges)]
    chunks = play(projector(), pieces)
    assert joined(chunks) == joined(play(projector(), [text]))
    cut = projector()
    given_back = [chunk for piece in pieces for chunk in cut.take(TextChunk(piece))] + cut.release()
    assert sorted(text_of(given_back)) == sorted(text)
