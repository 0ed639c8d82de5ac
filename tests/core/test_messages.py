from __future__ import annotations

from datetime import UTC, datetime

import msgspec
import pytest

from robota.core.messages import (
    AssistantMessage,
    FilePart,
    ImagePart,
    ImageUriPart,
    Message,
    ReasoningBlock,
    SystemMessage,
    TextPart,
    TokenUsage,
    ToolCall,
    ToolMessage,
    UserMessage,
    user_message,
)

WHEN = datetime(2026, 5, 1, 12, 30, tzinfo=UTC)
IDENTITY = {"id": "m-1", "timestamp": WHEN}
ALL = [
    SystemMessage("Be brief.", **IDENTITY),
    UserMessage(
        "Look.",
        (TextPart("Look."), ImagePart("aGk="), ImageUriPart("https://x.test/a.png"), FilePart("eA==", "a/b")),
        metadata={"source": "test"},
        **IDENTITY,
    ),
    AssistantMessage(
        "Adding.",
        (ToolCall("call_0", "add", '{"a":1}', signature="s"),),
        "interrupted",
        (ReasoningBlock("hm", signature="sig", data={"x": 1}),),
        **IDENTITY,
    ),
    ToolMessage("3", "call_0", "add", (ImagePart("aGk=", "image/jpeg"),), **IDENTITY),
]


def test_only_an_assistant_message_can_be_interrupted() -> None:  # §20.62
    wire = msgspec.to_builtins([SystemMessage("s"), UserMessage("u"), ToolMessage("t", "c", "n")])
    for message in wire:
        assert message["state"] == "complete"
        message["state"] = "interrupted"
        with pytest.raises(msgspec.ValidationError):
            msgspec.convert(message, Message)
    assert AssistantMessage("half", state="interrupted").state == "interrupted"
    assert AssistantMessage("whole").state == "complete"


def test_every_message_has_an_id_of_its_own_and_a_time() -> None:
    messages = [UserMessage("a"), UserMessage("a"), AssistantMessage("a"), SystemMessage("a")]
    assert len({message.id for message in messages}) == 4
    assert all(message.timestamp.tzinfo is not None for message in messages)


@pytest.mark.parametrize("message", ALL, ids=lambda message: message.role)
def test_a_message_survives_the_way_to_disk_and_back(message: Message) -> None:
    assert msgspec.json.decode(msgspec.json.encode(message), type=Message) == message


def test_the_spelling_on_disk_is_that_of_the_seeds() -> None:
    tool = msgspec.json.decode(msgspec.json.encode(ToolMessage("3", "call_0", "add", **IDENTITY)))
    assert tool == {
        "role": "tool",
        "id": "m-1",
        "timestamp": "2026-05-01T12:30:00Z",
        "metadata": {},
        "content": "3",
        "toolCallId": "call_0",
        "name": "add",
        "parts": [],
        "state": "complete",
    }
    assert "toolCalls" in msgspec.to_builtins(AssistantMessage("x"))
    parts = msgspec.to_builtins(ALL[1])["parts"]
    assert [part["type"] for part in parts] == ["text", "image_inline", "image_uri", "file"]
    assert parts[1]["mimeType"] == "image/png"


def test_a_message_cannot_be_changed() -> None:
    with pytest.raises(AttributeError):
        UserMessage("a").content = "b"  # type: ignore[misc]  # the point of the test


def test_usage_adds_up_in_every_field() -> None:
    assert TokenUsage(1, 2, 3, 4, 5) + TokenUsage(10, 20, 30, 40, 50) == TokenUsage(11, 22, 33, 44, 55)
    assert TokenUsage(7, 5, 100).total_tokens == 12


def test_a_prompt_of_parts_keeps_them_and_its_words() -> None:
    prompt = [TextPart("What is"), ImagePart("aGk="), TextPart("this?")]
    message = user_message(prompt, **IDENTITY)
    assert (message.content, message.parts) == ("What is\nthis?", tuple(prompt))


def test_a_prompt_of_words_alone_is_plain_text() -> None:
    assert user_message([TextPart("a"), TextPart("b")], **IDENTITY) == user_message("a\nb", **IDENTITY)
