from __future__ import annotations

from datetime import UTC, datetime

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from robota.core.errors import ValidationError
from robota.core.messages import (
    AssistantMessage,
    FilePart,
    HistoryEntry,
    ImagePart,
    ImageUriPart,
    Message,
    ReasoningBlock,
    SystemMessage,
    TextPart,
    ToolCall,
    ToolMessage,
    UserMessage,
    message_to_history_entry,
)
from robota.sessions.store.message_codec import (
    history_entry_from_record,
    history_entry_to_record,
    message_from_record,
    message_to_record,
)

MOMENT = datetime(2026, 3, 1, 12, 30, 0, 123456, UTC)

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=8,
)
parts = st.lists(
    st.builds(TextPart, texts)
    | st.builds(ImagePart, texts, texts)
    | st.builds(ImageUriPart, texts, st.none() | texts)
    | st.builds(FilePart, texts, texts, texts),
    max_size=3,
).map(tuple)
calls = st.lists(st.builds(ToolCall, texts, texts, texts, st.none() | texts), max_size=3).map(tuple)
reasoning = st.lists(st.builds(ReasoningBlock, texts, st.none() | texts, values), max_size=2).map(tuple)
identity = {
    "id": texts.filter(bool),
    "timestamp": st.datetimes(datetime(1970, 1, 2), datetime(9000, 1, 1), timezones=st.just(UTC)),
    "metadata": st.dictionaries(texts, values, max_size=3),
}
messages: st.SearchStrategy[Message] = st.one_of(
    st.builds(SystemMessage, texts, **identity),
    st.builds(UserMessage, texts, parts, **identity),
    st.builds(
        AssistantMessage, texts, calls, st.sampled_from(("complete", "interrupted")), reasoning, **identity
    ),
    st.builds(ToolMessage, texts, texts, texts, parts, **identity),
)


def through_a_file(record: object) -> dict[str, object]:
    read: dict[str, object] = msgspec.json.decode(msgspec.json.encode(record))
    return read


@given(messages)
def test_every_message_comes_back_from_a_file_as_it_was(message: Message) -> None:
    assert message_from_record(through_a_file(message_to_record(message))) == message


@given(messages)
def test_every_chat_entry_comes_back_from_a_file_as_it_was(message: Message) -> None:
    entry = message_to_history_entry(message)
    assert history_entry_from_record(through_a_file(history_entry_to_record(entry))) == entry


@given(texts, values)
def test_every_event_entry_comes_back_from_a_file_as_it_was(kind: str, data: object) -> None:
    entry = HistoryEntry(category="event", type=kind, data=data, id="e1", timestamp=MOMENT)
    assert history_entry_from_record(through_a_file(history_entry_to_record(entry))) == entry


def test_a_record_has_the_spelling_of_the_disk() -> None:
    message = ToolMessage("3", "call_0", "add", id="m1", timestamp=MOMENT)
    assert message_to_record(message) == {
        "role": "tool",
        "id": "m1",
        "timestamp": "2026-03-01T12:30:00.123456Z",
        "state": "complete",
        "content": "3",
        "toolCallId": "call_0",
        "name": "add",
        "parts": [],
        "metadata": {},
    }


def test_a_call_as_the_original_writes_it_is_read() -> None:
    message = message_from_record(
        {
            "id": "m1",
            "role": "assistant",
            "content": None,
            "timestamp": "2026-03-01T12:30:00.123456Z",
            "state": "interrupted",
            "toolCalls": [
                {"id": "call_0", "type": "function", "function": {"name": "add", "arguments": '{"a":1}'}}
            ],
        }
    )
    assert message == AssistantMessage(
        "", (ToolCall("call_0", "add", '{"a":1}'),), "interrupted", id="m1", timestamp=MOMENT
    )


def test_a_message_in_a_provider_s_spelling_is_read() -> None:
    answer = message_from_record(
        {"role": "assistant", "tool_calls": [{"id": "c", "function": {"name": "f", "arguments": {"a": 1}}}]}
    )
    result = message_from_record({"role": "tool", "tool_call_id": "c", "content": "ok"})
    assert isinstance(answer, AssistantMessage)
    assert answer.tool_calls == (ToolCall("c", "f", '{"a":1}'),)
    assert isinstance(result, ToolMessage)
    assert (result.tool_call_id, result.name, result.content) == ("c", "", "ok")


def test_content_given_as_parts_is_text_and_parts() -> None:
    text = {"type": "text", "text": "look"}
    image = {"type": "image_inline", "data": "aGk=", "mimeType": "image/png"}
    plain = message_from_record({"role": "user", "content": [text]})
    mixed = message_from_record({"role": "user", "content": [text, image]})
    assert isinstance(plain, UserMessage)
    assert isinstance(mixed, UserMessage)
    assert (plain.content, plain.parts) == ("look", ())
    assert (mixed.content, mixed.parts) == ("look", (TextPart("look"), ImagePart("aGk=")))


def test_a_message_without_id_and_time_takes_the_ones_given() -> None:
    message = message_from_record({"role": "user", "content": "hi"}, id="m7", timestamp=MOMENT)
    assert message == UserMessage("hi", id="m7", timestamp=MOMENT)


@pytest.mark.parametrize(
    "written",
    ["2026-03-01T12:30:00.123456Z", "2026-03-01T12:30:00.123456", 1772368200123.456, 1772368200.123456],
)
def test_times_are_read_however_they_are_written(written: object) -> None:
    read = message_from_record({"role": "user", "timestamp": written}).timestamp
    assert abs((read - MOMENT).total_seconds()) < 0.001


@pytest.mark.parametrize("written", ["yesterday", 1e300, True, None, [], float("nan")])
def test_a_time_that_is_none_is_replaced(written: object) -> None:
    assert message_from_record({"role": "user", "timestamp": written}, timestamp=MOMENT).timestamp == MOMENT


def test_only_an_assistant_message_can_be_interrupted() -> None:
    assert message_from_record({"role": "user", "state": "interrupted"}).state == "complete"


def test_an_original_chat_entry_gives_its_id_and_time_to_its_message() -> None:
    entry = history_entry_from_record(
        {
            "id": "e1",
            "timestamp": "2026-03-01T12:30:00.123456Z",
            "category": "chat",
            "type": "user",
            "data": {"content": "hi"},
        }
    )
    assert entry == message_to_history_entry(UserMessage("hi", id="e1", timestamp=MOMENT))


@pytest.mark.parametrize(
    ("data", "named"),
    [
        ({"role": "developer", "content": "x"}, "'developer'"),
        ({"content": "x"}, "None"),
        ({"role": "user", "parts": [{"type": "hologram"}]}, "hologram"),
        ({"role": "user", "metadata": "x"}, "metadata"),
        ({"role": "assistant", "toolCalls": "x"}, "toolCalls"),
        ({"role": "assistant", "toolCalls": [{"id": "c", "type": "custom"}]}, "tool call"),
    ],
)
def test_what_has_no_place_in_our_messages_is_refused_by_name(data: dict[str, object], named: str) -> None:
    with pytest.raises(ValidationError, match=named):
        message_from_record(data)


@pytest.mark.parametrize(
    "data", [{"category": "chat", "type": "user"}, {"category": "gossip", "type": "user", "data": {}}]
)
def test_an_entry_that_holds_nothing_known_is_refused(data: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        history_entry_from_record(data)
