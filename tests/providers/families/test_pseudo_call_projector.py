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
JSON = '{"name": "add", "arguments": {"a": 1}}'
PARAMETER = '<parameter name="a">1</parameter>'
FAMILIES = {
    "llama 3, builtin": "<|python_tag|>add.call(a=1)",
    "llama 4": "<|python_start|>[add(a=1)]<|python_end|>",
    "mistral, by name": '[TOOL_CALLS]add{"a": 1}',
    "mistral, with arguments": '[TOOL_CALLS]add[ARGS]{"a": 1}',
    "mistral, with an id": '[TOOL_CALLS]add[CALL_ID]abc123456[ARGS]{"a": 1}',
    "granite": '<|tool_call|>[{"name": "add", "arguments": {"a": 1}}]',
    "granite, in tags": '<tool_call>[{"name": "add", "arguments": {"a": 1}}]</tool_call>',
    "phi": '<|tool_call|>[{"name": "add", "arguments": {"a": 1}}]<|/tool_call|>',
    "phi, firefunction": 'functools[{"name": "add", "arguments": {"a": 1}}]',
    "deepseek r1": "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>add\n"
    '```json\n{"a": 1}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>',
    "deepseek v3": "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>add<｜tool▁sep｜>"
    '{"a": 1}<｜tool▁call▁end｜><｜tool▁calls▁end｜>',
    "deepseek, in tags": '<｜DSML｜function_calls>\n<｜DSML｜invoke name="add">\n<｜DSML｜parameter name="a" '
    'string="false">1</｜DSML｜parameter>\n</｜DSML｜invoke>\n</｜DSML｜function_calls>',
    "glm": "<tool_call>add\n<arg_key>a</arg_key>\n<arg_value>1</arg_value>\n</tool_call>",
    "kimi": "<|tool_calls_section_begin|><|tool_call_begin|>functions.add:0<|tool_call_argument_begin|>"
    '{"a": 1}<|tool_call_end|><|tool_calls_section_end|>',
    "minimax": f'<minimax:tool_call>\n<invoke name="add">\n{PARAMETER}\n</invoke>\n</minimax:tool_call>',
    "deepseek, in other tags": '<｜DSML｜tool_calls>\n<｜DSML｜invoke name="add">\n'
    '<｜DSML｜parameter name="a" '
    'string="false">1</｜DSML｜parameter>'
    "\n</｜DSML｜invoke>\n</｜DSML｜tool_calls>",
    "minimax, joined": ']<]minimax[>[<tool_call>\n]<]minimax[>[<invoke name="add">]<]minimax[>[<a>1'
    "]<]minimax[>[</a>]<]minimax[>[</invoke>\n]<]minimax[>[</tool_call>",
    "apertus": '<|tools_prefix|>[{"add": {"a": 1}}]<|tools_suffix|>',
    "one mark": '<|function_call|>{"name": "add", "arguments": {"a": 1}}',
    "gpt-oss, analysing": '<|channel|>analysis to=functions.add <|constrain|>json<|message|>{"a": 1}',
    "gpt-oss, as another message": "<|start|>assistant to=functions.add<|channel|>commentary json<|message|>"
    '{"a": 1}<|call|>',
    "minimax, jamba": '<tool_calls>\n{"name": "add", "arguments": {"a": 1}}\n</tool_calls>',
    "hunyuan": '<tool_calls><tool_call>add\n```json\n{"a": 1}\n```\n</tool_call></tool_calls>',
    "invocations": f'<function_calls><invoke name="add">{PARAMETER}</invoke></function_calls>',
    "olmo": "<function_calls>\nadd(a=1)\n</function_calls>",
    "lfm": "<|tool_call_start|>[add(a=1)]<|tool_call_end|>",
    "nemotron": '<TOOLCALL>[{"name": "add", "arguments": {"a": 1}}]</TOOLCALL>',
    "command": '<|START_ACTION|>[{"tool_call_id": "0", "tool_name": "add", "parameters": {"a": 1}}]'
    "<|END_ACTION|>",
    "internlm": '<|action_start|><|plugin|>\n{"name": "add", "parameters": {"a": 1}}<|action_end|>',
    "seed": "<seed:tool_call>\n<function=add>\n<parameter=a>1</parameter>\n</function>\n</seed:tool_call>",
    "longcat": '<longcat_tool_call>{"name": "add", "arguments": {"a": 1}}</longcat_tool_call>',
    "gemma, small": "<start_function_call>call:add{a:1}<end_function_call>",
    "gpt-oss": '<|channel|>commentary to=functions.add <|constrain|>json<|message|>{"a": 1}<|call|>',
    "xlam": '{"tool_calls": [{"name": "add", "arguments": {"a": 1}}]}',
    "wrapped": '{"function_call": {"name": "add", "arguments": {"a": 1}}}',
    "with a space of names": '<tool_call>{"name": "functions.add", "arguments": {"a": 1}}</tool_call>',
    "quoted as in python": "<tool_call>\n{'name': 'add', 'arguments': {'a': 1}}\n</tool_call>",
    "a brace too many": '<tool_call>{"name": "add", "arguments": {"a": 1}}}</tool_call>',
}
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


@pytest.mark.parametrize("family", FAMILIES)
def test_the_call_of_a_family_is_made_wherever_it_is_cut(family) -> None:
    assert_same_in_all_cuts(projector, FAMILIES[family], [CALL, MADE])


def test_a_list_of_python_is_calls_where_a_reply_begins_with_it() -> None:
    assert_same_in_all_cuts(projector, "[add(a=1), add(a=1)]", [CALL, CALL, MADE])
    said = "So:\n[add(a=1)]"
    assert_same_in_all_cuts(projector, said, [TextChunk(said), STOP])


@pytest.mark.parametrize(
    "written",
    [
        f"<tool_call>{JSON}\n{JSON}</tool_call>",
        f"```json\n{JSON}\n{JSON}\n```",
        '[TOOL_CALLS]add{"a": 1}[TOOL_CALLS]add{"a": 1}',
        f'<function_calls>{2 * f"""<invoke name="add">{PARAMETER}</invoke>"""}</function_calls>',
    ],
)
def test_calls_side_by_side_are_all_made(written) -> None:
    assert_same_in_all_cuts(projector, written, [CALL, CALL, MADE])


def test_semicolons_between_calls_are_no_text_that_hides_the_next() -> None:
    line = '{"name": "add", "arguments": {"a": 1}}'
    assert_same_in_all_cuts(projector, f"{line}; {line}", [TextChunk("; "), CALL, CALL, MADE])


def test_lines_may_break_inside_of_an_argument() -> None:
    note = ToolCall("", "add", '{"note":"a\\nb"}')
    text = '<tool_call>{"name": "add", "arguments": {"note": "a\nb"}}</tool_call>'
    assert_same_in_all_cuts(projector, text, [note, MADE])


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
        '{"name": "add", "version": "1.0"}',
        '```json\n{"add": {"a": 1}}\n```',
        '{"tool_name": "add", "description": "Adds.", "parameters": {"a": {"param_type": "int"}}}',
        '{"name": "add", "description": "Adds.", "parameters": {"type": "object", "properties": {}}}',
        '```json\n[{"name": "add", "description": "Adds.", "inputSchema": {"type": "object"}}]\n```',
        "<tool_call> is how models write calls, and <tool_calls> is how others do.",
        "<function_calls>\nimport os\n</function_calls>",
        "<tool_call>delete\n<arg_key>a</arg_key>\n<arg_value>1</arg_value>\n</tool_call>",
        '<function_calls><invoke name="delete"></invoke></function_calls>',
        '[TOOL_CALLS]delete{"a": 1}',
        "import functools\nfunctools.partial(add, a=1)",
        "[add](https://a.org) is a link, [x] a box and [1, 2] a list.",
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
