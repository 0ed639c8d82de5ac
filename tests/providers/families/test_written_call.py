from __future__ import annotations

import json

import pytest

from robota.core.provider import ToolSchema
from robota.providers.written_calls import (
    may_be_json_call,
    read_gemma_calls,
    read_json_calls,
    read_python_calls,
)

FIELDS = {"type": "object", "properties": {"path": {"type": "string"}, "text": {"type": "string"}}}
OFFERED = {name: ToolSchema(name, "", FIELDS) for name in ("write", "read.file", "read-file")}


def plainly(calls):
    return [(call.name, json.loads(call.arguments)) for call in calls]


@pytest.mark.parametrize(
    "text",
    [
        '{"name": "write", "arguments": {"path": "a"}}',
        ' \n{"arguments": {"path": "a"}, "name": "write"}\n',
        '{"name": "write", "parameters": {"path": "a"}}',
        '{"tool": "write", "args": {"path": "a"}}',
        '{"tool_name": "write", "input": {"path": "a"}}',
        '{"name": "write", "arguments": "{\\"path\\": \\"a\\"}"}',
        '{"type": "function", "function": {"name": "write", "arguments": "{\\"path\\": \\"a\\"}"}}',
        '{"function": "write", "arguments": {"path": "a"}}',
        '[{"name": "write", "arguments": {"path": "a"}}]',
    ],
)
def test_json_is_a_call_in_every_spelling_models_use(text) -> None:
    assert plainly(read_json_calls(text, OFFERED)) == [("write", {"path": "a"})]
    assert all(may_be_json_call(text[:length]) for length in range(len(text)))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "null",
        "[]",
        '{"name": "write", "arguments": {"path": "a"}',
        '{"name": "other", "arguments": {}}',
        '{"name": "write", "arguments": ["a"]}',
        '{"name": "write", "arguments": "path"}',
        '{"name": ["write"], "arguments": {}}',
        '[{"name": "write", "arguments": {}}, {"name": "other", "arguments": {}}]',
        '[{"name": "write", "arguments": {}}, 1]',
    ],
)
def test_json_that_is_not_wholly_calls_of_offered_tools_is_none(text) -> None:
    assert read_json_calls(text, OFFERED) == []


def test_a_call_without_arguments_has_none() -> None:
    assert plainly(read_json_calls('{"name": "write"}', OFFERED)) == [("write", {})]


@pytest.mark.parametrize("text", ["5", "true", '{"colour": "red"', '{"colour of th', "[1", "{1", "# no"])
def test_the_first_key_tells_other_json_from_calls(text) -> None:
    assert not may_be_json_call(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('write(path="a", text="b\\n")', [("write", {"path": "a", "text": "b\n"})]),
        ('\nwrite("a", text=None)\n', [("write", {"path": "a", "text": None})]),
        ('print(write(path={"x": [1, True]}))', [("write", {"path": {"x": [1, True]}})]),
        ('write("a")\nwrite("b")', [("write", {"path": "a"}), ("write", {"path": "b"})]),
        ('[write("a"), write("b")]', [("write", {"path": "a"}), ("write", {"path": "b"})]),
        ("write()", [("write", {})]),
    ],
)
def test_python_calls_with_literals_are_read(text, expected) -> None:
    assert plainly(read_python_calls(text, OFFERED)) == expected


@pytest.mark.parametrize(
    "text",
    [
        "", "write(", "other()", "write(path=name)", 'write("a", "b", "c")', 'write("a", path="b")', "x = 1",
        'write("a")\nother("b")', "os.write()", "write(**{})", "write(path=b'a')", "write(path={1, 2})",
        "write(path=3j)", "print(1, 2)", "print()", "1",
    ],
)  # fmt: skip
def test_other_python_is_no_call(text) -> None:
    assert read_python_calls(text, OFFERED) == []


def test_names_of_any_depth_are_read_and_none_is_found() -> None:
    assert read_python_calls("write" + ".a" * 5_000 + "()", OFFERED) == []
    assert plainly(read_python_calls('write.call(path="a")', OFFERED)) == [("write", {"path": "a"})]
    assert plainly(read_python_calls('functions.write("a")', OFFERED)) == [("write", {"path": "a"})]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('call:write{path:<|"|>a b<|"|>}', {"path": "a b"}),
        ('call:write{path:<|"|>{"x": [1]}, }<|"|>, text:<|"|><|"|>}', {"path": '{"x": [1]}, }', "text": ""}),
        ("call:write{n:1, f:-2.5, yes:true, none:null}", {"n": 1, "f": -2.5, "yes": True, "none": None}),
        ("call:write{path:hello there,text:a.txt}", {"path": "hello there", "text": "a.txt"}),
        ('call:write{path:"a, b",text:"say \\"hi\\""}', {"path": "a, b", "text": 'say "hi"'}),
        (
            'call:write{<|"|>path<|"|>:[<|"|>a<|"|>,bug,{x:[]}], "text":{}}',
            {"path": ["a", "bug", {"x": []}], "text": {}},
        ),
        (" call:write {} ", {}),
    ],
)
def test_gemmas_notation_is_read(text, expected) -> None:
    assert plainly(read_gemma_calls(text, OFFERED)) == [("write", expected)]


def test_several_calls_and_names_with_dots_and_dashes_are_read_in_gemmas_notation() -> None:
    assert plainly(read_gemma_calls("call:read.file{}\ncall:read-file{path:a}", OFFERED)) == [
        ("read.file", {}),
        ("read-file", {"path": "a"}),
    ]


@pytest.mark.parametrize(
    "text",
    [
        "", "write{}", "call:other{}", "call:write", "call:write{", "call:write{path}", "call:write{path:}",
        'call:write{path:<|"|>a}', "call:write{path:a,}", "call:write{path:[a}", "call:write{} and more",
        "call:write{a:" + "[" * 5000, "call:write{a:1 b:{}}",
    ],
)  # fmt: skip
def test_broken_notation_is_no_call(text) -> None:
    assert read_gemma_calls(text, OFFERED) == []
