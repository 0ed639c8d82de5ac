from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from pathlib import Path

import pytest

from robota.core.errors import ConfigurationError
from robota.core.messages import TokenUsage, ToolCall
from robota.core.provider import ReasoningChunk, StopChunk
from robota.testing import (
    CallIds,
    ContentType,
    Crlf,
    Cut,
    Delay,
    Drip,
    ErrorEvent,
    Forever,
    HttpError,
    KeepAlive,
    Malformed,
    NoEndMark,
    RawBytes,
    Stall,
    UnknownEvent,
)
from robota.testing.served_model import WORDS, Script, read_script

DOCS = (Path(__file__).parents[2] / "docs" / "testing.md").read_text()
STEPS = [
    ("Hello", "Hello"),
    ("say: 'yes'", "yes"),
    ("think: Hm", ReasoningChunk("Hm")),
    ("{call: add, arguments: {a: 1}, id: c1}", ToolCall("c1", "add", '{"a":1}')),
    ("call: add", ToolCall("call_add", "add", "{}")),
    ("{call: add, arguments: '{half', id: ''}", ToolCall("", "add", "{half")),
    ("usage: {input_tokens: 7, reasoning_tokens: 1}", TokenUsage(7, 0, 0, 0, 1)),
    ("{stop: max_tokens, detail: length}", StopChunk("max_tokens", "length")),
    ("error: 529", HttpError(529)),
    ("{error: 429, retry_after: 7}", HttpError(429, retry_after=7)),
    (
        "{error: 429, retry_after: 2030-01-02T03:04:05Z}",
        HttpError(429, retry_after=datetime(2030, 1, 2, 3, 4, 5, tzinfo=UTC)),
    ),
    ("{error: 400, body: {detail: odd}, headers: {x: y}}", HttpError(400, {"detail": "odd"}, {"x": "y"})),
    ("page: 502", HttpError.html(502)),
    ("cut: true", Cut()),
    ("{cut: 10, clean: true}", Cut(after_bytes=10, clean=True)),
    ("malformed: true", Malformed()),
    ("malformed: '{half'", Malformed("{half")),
    ("raw: \"data: 1\\n\\n\"", RawBytes(b"data: 1\n\n")),
    ("error_event: true", ErrorEvent()),
    ("{error_event: Busy., kind: overloaded_error}", ErrorEvent("Busy.", "overloaded_error")),
    ("unknown_event: true", UnknownEvent()),
    ("{unknown_event: weather, fields: {sky: blue}}", UnknownEvent("weather", {"sky": "blue"})),
    ("keep_alive: true", KeepAlive()),
    ("{keep_alive: ping, every: 0.5}", KeepAlive(text="ping", every=0.5)),
    ("{forever: la, every: 0.5}", Forever("la", None, 0.5)),
    ("{drip: 3, delay: 0.5}", Drip(3, 0.5)),
    ("delay: 2", Delay(2)),
    ("stall: true", Stall()),
    ("content_type: text/plain", ContentType("text/plain")),
    ("crlf: true", Crlf()),
    ("no_end_mark: true", NoEndMark()),
    ("call_ids: c1", CallIds("c1")),
]  # fmt: skip


@pytest.fixture
def read(tmp_path):
    def read_text(text: str, name: str = "script.yaml") -> Script:
        (tmp_path / name).write_text(text)
        return read_script(tmp_path / name)

    return read_text


@pytest.mark.parametrize(("written", "step"), STEPS, ids=[written for written, _ in STEPS])
def test_a_step_has_a_word(read, written, step):
    assert read(f"- [{written}]\n").replies == ([step],)


def test_every_word_is_tested_and_documented():
    tested = " ".join(written for written, _ in STEPS)
    assert [word for word in WORDS if f"{word}:" not in tested] == ["echo"]
    assert [word for word in WORDS if f"`{word}: " not in DOCS] == []


@pytest.mark.parametrize("block", re.findall(r"^```yaml\n(.*?)^```", DOCS, re.MULTILINE | re.DOTALL))
def test_a_script_of_the_documentation_can_be_read(read, block):
    assert read(block).replies


def test_a_reply_is_a_text_or_a_step_or_a_list(read):
    script = read("- Hello\n- error: 429\n- - Hel\n  - cut: true\n- []\n")
    assert script == Script((["Hello"], [HttpError(429)], ["Hel", Cut()], []))


def test_settings_stand_beside_the_replies(read):
    script = read("repeat: false\nstrict: false\nmodels: [small, large]\nreplies:\n- Hello\n")
    assert script == Script((["Hello"],), repeat=False, strict=False, models=("small", "large"))


def test_json_is_read_too(read):
    value = {"replies": ["Hello", ["Hi", {"call": "add", "arguments": {"a": 1}}]], "repeat": False}
    script = read(json.dumps(value, indent="\t"), "script.json")
    assert script.replies == (["Hello"], ["Hi", ToolCall("call_add", "add", '{"a":1}')])


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "1: a script is a list of replies; begin each with a dash: `- Hello!`."),
        ("[]", "1: a script is a list of replies;"),
        ("Hello", "1: a script is a list of replies;"),
        ("repeat: true", "1: there are no `replies`; write the list of them under that name."),
        ("replies: [a]\nrepaet: no", "2: a script has no `repaet`; did you mean `repeat`?"),
        ("replies: [a]\nrepeat: often", "2: the value of `repeat` does not fit: expected `bool`, got `str`."),
        ("- Hello\n- yes", "2: `yes` is not text; put quotes around it."),
        ("- Hello\n- - - Hi", "2: a list cannot be a step; write a text, or a mapping such as `error: 429`."),
        ("- Hello\n- eror: 429", "2: `eror` is not a step; did you mean `error`?"),
        ("- {}", "1: `` is not a step; there are say, echo,"),
        ("- error: 429\n  retry-after: 7", "2: `error` has no `retry-after`; did you mean `retry_after`?"),
        ("- error: busy", "1: the value of `error` does not fit: expected `int`, got `str`."),
        ("- crlf: false", "1: `crlf: false` does nothing; leave it out, or write true."),
        ("- usage: {tokens: 1}", "1: the value of `usage` does not fit: object contains unknown field"),
        ("- say: a\n  say: b", "2: `say` stands there twice; remove one of them."),
        ("- Hello\n- 'Hi", "2: found unexpected end of stream; check the indentation, quotes and brackets"),
        ("- Hello\n- say: !!python/object:os.system x", "2: could not determine a constructor"),
        ("- error: 429\n  retry_after: 2030-02-31", "2: the value is not possible: day is out of range"),
    ],
)  # fmt: skip
def test_a_mistake_is_told_with_file_line_and_fix(read, tmp_path, text, complaint):
    with pytest.raises(ConfigurationError) as caught:
        read(text)
    told = str(caught.value)
    assert told.startswith(f"{tmp_path / 'script.yaml'}, line {complaint}")
    assert "\n" not in told


def test_a_file_that_cannot_be_read_is_named(tmp_path):
    with pytest.raises(ConfigurationError, match=r"nowhere\.yaml cannot be read: No such file"):
        read_script(tmp_path / "nowhere.yaml")
    (tmp_path / "odd.yaml").write_bytes(b"- \xff\n")
    with pytest.raises(ConfigurationError, match=r"odd\.yaml is not UTF-8 text; save it as UTF-8"):
        read_script(tmp_path / "odd.yaml")
    (tmp_path / "deep.yaml").write_text("[" * 10_000)
    with pytest.raises(ConfigurationError, match=r"deep\.yaml"):
        read_script(tmp_path / "deep.yaml")
