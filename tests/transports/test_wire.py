from __future__ import annotations

import json

import pytest

from robota.transports.line_writer import LINE_LIMIT, encode_line
from robota.transports.stream_json.permissions import suggest_rules
from robota.transports.stream_json.transcript import project_key


def test_a_frame_is_one_line_with_every_character_as_it_is() -> None:
    line = encode_line({"type": "x", "text": "zwei\nZeilen, 두 줄, 🦀 \u202e"})

    assert line.endswith(b"\n")
    assert line.count(b"\n") == 1
    assert "두 줄, 🦀".encode() in line
    assert json.loads(line)["text"] == "zwei\nZeilen, 두 줄, 🦀 \u202e"


def test_half_a_character_does_not_break_the_line() -> None:
    assert json.loads(encode_line({"type": "x", "text": "a\ud800b"}).decode())["type"] == "x"


@pytest.mark.parametrize("text", ["x" * 3_000_000, "한" * 3_000_000, "\n" * 3_000_000])
def test_a_text_that_is_too_long_is_cut_in_its_middle(text: str) -> None:
    line = encode_line({"type": "user", "message": {"content": f"first {text} last"}, "uuid": "u"}).decode()

    assert len(line) < LINE_LIMIT
    frame = json.loads(line)
    assert frame["uuid"] == "u"
    content = frame["message"]["content"]
    assert content.startswith("first ")
    assert content.endswith(" last")
    assert "characters left out" in content


def test_a_text_just_below_the_limit_stays_whole() -> None:
    text = "한" * 900_000  # many bytes, few characters

    assert json.loads(encode_line({"type": "x", "text": text}))["text"] == text


def test_an_image_that_is_too_large_becomes_a_note() -> None:
    source = {"type": "base64", "media_type": "image/png", "data": "A" * 2_000_000}
    blocks = [{"type": "text", "text": "see"}, {"type": "image", "source": source}]

    frame = json.loads(encode_line({"type": "user", "blocks": blocks}))

    assert frame["blocks"][0] == {"type": "text", "text": "see"}
    assert "2,000,000 characters" in frame["blocks"][1]["text"]


def test_a_list_of_too_many_things_is_cut_too() -> None:
    assert len(encode_line({"type": "x", "rows": [["a"] * 10] * 200_000})) < LINE_LIMIT


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        (None, []),
        ("Bash(git push *)", [("Bash", "git push *")]),
        ("Bash(a, b), Read(x)", [("Bash", "a, b"), ("Read", "x")]),
        ("WebSearch", [("WebSearch", None)]),
    ],
)
def test_rules_are_suggested_one_by_one(rule: str | None, expected: list[tuple[str, str | None]]) -> None:
    updates = suggest_rules(rule)

    found = [(each["toolName"], each["ruleContent"]) for update in updates for each in update["rules"]]
    assert found == expected


def test_the_folder_of_a_directory_has_the_name_that_clients_compute() -> None:
    assert project_key("/srv/my app_1") == "-srv-my-app-1"
    long = project_key("/" + "long/" * 60)
    assert long[:200] == ("-long" * 60)[:200]
    assert long[200:] == "-" + long[201:]
    assert len(long) > 201
