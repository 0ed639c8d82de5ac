from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token
from tests.sessions.exported import HOSTILE, NOON, record_full_of, record_of

from robota.core.messages import (
    AssistantMessage,
    HistoryEntry,
    ToolCall,
    ToolMessage,
    UserMessage,
    message_to_history_entry,
)
from robota.sessions.export.markdown import export_markdown

DATA = Path(__file__).parent / "data" / "export"
READER = MarkdownIt("commonmark", {"html": True}).enable("table")


def tokens(document: str) -> list[Token]:
    found = READER.parse(document)
    return found + [child for token in found for child in token.children or ()]


def headings(document: str) -> list[str]:
    found = READER.parse(document)
    return [
        f"{token.tag} {following.content}"
        for token, following in pairwise(found)
        if token.type == "heading_open"
    ]


def said(text: str) -> str:
    record = record_of()
    record["messages"] = [{"role": "user", "timestamp": "2026-03-01T12:00:00Z", "content": text}]
    return export_markdown(record)


def test_a_session_reads_as_the_example_shows() -> None:
    record = json.loads((DATA / "session.json").read_text())

    assert export_markdown(record) == (DATA / "session.md").read_text()


@pytest.mark.parametrize("text", HOSTILE)
def test_content_makes_no_heading_link_picture_or_html(text: str) -> None:
    document = export_markdown(record_full_of(text))

    harmless = headings(export_markdown(record_full_of("harmless")))
    assert [heading[:2] for heading in headings(document)] == [heading[:2] for heading in harmless]
    assert not {"html_block", "html_inline", "link_open", "image"} & {
        token.type for token in tokens(document)
    }


PIECES = st.sampled_from(
    (
        "`", "``", "```", "~~~", "\n", "\n\n", "    ", "\t", "> ", "- ", "1. ", "# ", "===", "---", "|",
        "|---|", "\\", "[a]", "(javascript:x)", "[a]: b", "!", "<b>", "<!--", "</b>", "&lt;", "*", "word",
        " ", ":", "\r",
    )
)  # fmt: skip


@given(st.lists(PIECES, max_size=25).map("".join))
@settings(max_examples=400, deadline=None)
def test_no_mixture_of_marks_makes_a_heading_link_picture_or_html(text: str) -> None:
    document = said(text) + "\nafterwards\n"

    assert not {"html_block", "html_inline", "link_open", "image"} & {
        token.type for token in tokens(document)
    }
    assert [heading[:2] for heading in headings(document)] == ["h1", "h2"]
    assert READER.parse(document)[-2].content == "afterwards"


def test_code_keeps_its_words_and_its_language() -> None:
    document = said("Look:\n\n~~~python\nif a < b:\n    print('```')\n~~~\nand `x<y>`")

    fenced = next(token for token in tokens(document) if token.type == "fence")
    assert (fenced.info, fenced.content) == ("python", "if a < b:\n    print('```')\n")
    assert "code_inline" in {token.type for token in tokens(document)}
    assert "`x<y>`" in document


def test_a_fence_is_longer_than_any_inside_it() -> None:
    record = record_of(
        AssistantMessage("", (ToolCall("c", "Bash", "{}"),), timestamp=NOON),
        ToolMessage("a\n``````\nb\n", "c", "Bash", timestamp=NOON),
    )

    assert "```````text\na\n``````\nb\n```````\n" in export_markdown(record)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("pay \u202egro.live\u202c", "pay ⟨U+202E⟩gro.live⟨U+202C⟩"),
        ("\x1b[2J \x9b \x00 \b a\rb", "⟨U+001B⟩[2J ⟨U+009B⟩ ⟨U+0000⟩ ⟨U+0008⟩ a⟨U+000D⟩b"),
        ("zero\u200bwidth \ufeff \U000e0041", "zero⟨U+200B⟩width ⟨U+FEFF⟩ ⟨U+E0041⟩"),
        ("half \ud800 character", "half ⟨U+D800⟩ character"),
        ("a\u200db but 👨\u200d👩\u200d👧", "a⟨U+200D⟩b but 👨\u200d👩\u200d👧"),
    ],
)
def test_hidden_characters_are_shown(text: str, shown: str) -> None:
    assert f"> {shown}\n" in said(text)


def test_long_texts_of_a_call_stand_apart_from_its_other_fields() -> None:
    call = ToolCall("c", "Write", '{"file_path":"a.sh","content":"one\\ntwo\\n"}')
    document = export_markdown(record_of(AssistantMessage("", (call,), timestamp=NOON)))

    assert '```json\n{\n  "file_path": "a.sh"\n}\n```\n\n`content`:\n\n```text\none\ntwo\n```\n' in document
    assert document.endswith("No result was recorded.\n")


def test_input_that_is_not_json_is_shown_as_it_came() -> None:
    call = ToolCall("c", "Write", '{"file_path":"a')

    assert '```text\n{"file_path":"a\n```' in export_markdown(record_of(AssistantMessage("", (call,))))


def test_the_whole_history_is_exported_with_its_events() -> None:
    old, new = UserMessage("old", timestamp=NOON), UserMessage("new", timestamp=NOON)
    event = HistoryEntry(category="event", type="context_compact", data={"trigger": "auto"}, timestamp=NOON)
    history = [message_to_history_entry(old), event, message_to_history_entry(new)]
    document = export_markdown(record_of(new, history=history))

    assert headings(document)[1:] == [
        "h2 1. User · 2026-03-01 12:00:00 UTC",
        "h2 2. Event `context_compact` · 2026-03-01 12:00:00 UTC",
        "h2 3. User · 2026-03-01 12:00:00 UTC",
    ]


def test_messages_that_the_history_lacks_are_exported_all_the_same() -> None:
    later = NOON.replace(hour=13)
    first, second = UserMessage("first", timestamp=NOON), UserMessage("second", timestamp=later)
    between = HistoryEntry(category="event", type="note", timestamp=NOON.replace(minute=30))
    document = export_markdown(record_of(first, second, history=[message_to_history_entry(first), between]))

    assert [line[:12] for line in document.split("\n") if line.startswith("## ")] == [
        "## 1. User ·",
        "## 2. Event ",
        "## 3. User ·",
    ]


def test_what_cannot_be_read_as_a_message_is_shown_as_it_is() -> None:
    record = record_of()
    record["messages"] = [{"role": "oracle", "content": "from the future"}]
    record["history"] = [{"category": "chat", "type": "user", "data": 7}]
    document = export_markdown(record)

    assert "from the future" in document
    assert "oracle" in document


def test_any_moment_in_time_can_be_shown() -> None:
    record = record_of()
    record["messages"] = [
        {"role": "user", "content": "early", "timestamp": "0001-01-01T00:00:00+14:00"},
        {"role": "user", "content": "milliseconds", "timestamp": 1_772_366_400_000},
        {"role": "user", "content": "unknown", "timestamp": "yesterday"},
    ]

    assert [heading.partition(" · ")[2] for heading in headings(export_markdown(record))[1:]] == [
        "0001-01-01T00:00:00+14:00",
        "2026-03-01 12:00:00 UTC",
        "2026-03-01 12:00:00 UTC",
    ]


def test_secrets_are_removed_unless_asked_otherwise() -> None:
    key = "sk-ant-api03-" + "q" * 40
    record = record_of(UserMessage(f"my key is {key} and hunter2hunter2", timestamp=NOON))

    assert key not in export_markdown(record)
    assert "hunter2hunter2" not in export_markdown(record, secrets=["hunter2hunter2"])
    assert key in export_markdown(record, redact=False)


@pytest.mark.parametrize("unit", ["- ", "`", "``` ", "> ", "**a", "[", "~~~\n", "-=", "<", "\\`", "1. "])
@pytest.mark.timeout(60)  # a quadratic step would take hours
def test_long_hostile_texts_are_exported_too(unit: str) -> None:
    assert "afterwards" in said(f"{unit * 200_000}\nafterwards")
