from __future__ import annotations

import base64
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs
from tests.providers.anthropic_requests import (
    encode,
    result,
    text,
    turns,
    use,
)

from robota.core.messages import (
    AssistantMessage,
    FilePart,
    ImagePart,
    ImageUriPart,
    Message,
    Part,
    ReasoningBlock,
    SystemMessage,
    TextPart,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from robota.providers.anthropic.request import MessagesEncoder
from robota.providers.encoding import UNANSWERED

MESSAGES = (
    SystemMessage("Be brief."),
    UserMessage("Why?"),
    UserMessage(" "),
    UserMessage("See.", parts=(TextPart("See."), ImagePart("image/png", "aW1n"))),
    AssistantMessage("Because."),
    AssistantMessage("", reasoning=(ReasoningBlock("Hm.", "sig", {"type": "thinking"}),)),
    AssistantMessage("", (ToolCall("c1", "add", '{"a": 1}'), ToolCall("c2", "add", "{half"))),
    AssistantMessage("Again.", (ToolCall("c1", "add"),)),
    ToolMessage("1", "c1", "add"),
    ToolMessage("2", "c2", "add", metadata={"success": False}),
)


@given(st.lists(st.sampled_from(MESSAGES), min_size=1, max_size=8))
def test_any_history_is_sent_in_turns_and_says_the_same_through_a_client(messages: list[Message]) -> None:
    encode(MessagesEncoder(), messages=[structs.replace(message) for message in messages])


# --- turns -------------------------------------------------------------------------------------------


def test_every_kind_of_message_has_its_place() -> None:
    messages = (
        SystemMessage("Be brief."),
        UserMessage("1+1?"),
        AssistantMessage("Well.", (ToolCall("c1", "add", '{"a": 1}'),)),
        ToolMessage("2", "c1", "add"),
        AssistantMessage("Two."),
        SystemMessage("Be briefer."),
        UserMessage("Thanks."),
    )
    body = encode(messages=messages)
    assert body["system"] == [text("Be brief."), text("Be briefer.")]
    assert [(turn["role"], turn["content"]) for turn in body["messages"]] == [
        ("user", [text("1+1?")]),
        ("assistant", [text("Well."), use("c1", a=1)]),
        ("user", [result("c1")]),
        ("assistant", [text("Two.")]),
        ("user", [text("Thanks.")]),
    ]


def test_the_results_of_a_batch_and_what_the_user_adds_are_one_turn() -> None:
    calls = (ToolCall("c1", "add"), ToolCall("c2", "add"))
    assert turns(
        UserMessage("Add."),
        AssistantMessage("", calls),
        ToolMessage("1", "c1", "add"),
        ToolMessage("2", "c2", "add"),
        UserMessage("Faster."),
        UserMessage("Now."),
    ) == [
        ("user", [text("Add.")]),
        ("assistant", [use("c1"), use("c2")]),
        ("user", [result("c1", "1"), result("c2", "2"), text("Faster."), text("Now.")]),
    ]


def test_messages_without_words_leave_no_trace() -> None:
    messages = (
        SystemMessage(" "),
        UserMessage("a"),
        AssistantMessage(""),
        UserMessage(" \n"),
        UserMessage("b"),
    )
    assert turns(*messages) == [("user", [text("a"), text("b")])]
    assert "system" not in encode(messages=messages)


def test_thinking_alone_is_no_answer() -> None:
    thought = AssistantMessage("", reasoning=(ReasoningBlock("Hm.", "sig"),))
    assert turns(UserMessage("a"), thought, UserMessage("b")) == [("user", [text("a"), text("b")])]


def test_a_history_begins_and_ends_with_the_user() -> None:
    assert turns(AssistantMessage("Summary.")) == [
        ("user", [text("[The beginning of this conversation is not shown.]")]),
        ("assistant", [text("Summary.")]),
        ("user", [text("Go on.")]),
    ]
    assert turns() == [("user", [text("Go on.")])]


def test_a_result_whose_call_is_gone_is_said_in_words() -> None:
    assert turns(UserMessage("Summary."), ToolMessage("2", "c1", "add"), AssistantMessage("Two.")) == [
        ("user", [text("Summary."), text("[Result of an earlier call of add]\n2")]),
        ("assistant", [text("Two.")]),
        ("user", [text("Go on.")]),
    ]


def test_results_stand_in_front_of_those_whose_calls_are_gone() -> None:
    calls = AssistantMessage("", (ToolCall("c1", "add"),))
    history = (UserMessage("a"), calls, ToolMessage("0", "c0", "add"), ToolMessage("2", "c1", "add"))
    assert turns(*history)[-1] == ("user", [result("c1"), text("[Result of an earlier call of add]\n0")])


@pytest.mark.parametrize(
    ("rest", "after"),
    [
        ((), []),
        ((UserMessage("b"),), [text("b")]),
        ((UserMessage(""), UserMessage("b")), [text("b")]),
        ((ToolMessage("1", "c1", "add"),), []),
    ],
)
def test_a_call_without_a_result_gets_one(rest: tuple[Message, ...], after: list[Any]) -> None:
    calls = AssistantMessage("", (ToolCall("c1", "add"), ToolCall("c2", "add")))
    role, content = turns(UserMessage("a"), calls, *rest)[-1]
    missing = {**result("c2", UNANSWERED), "is_error": True}
    assert role == "user"
    assert content[1:] == [missing, *after]


def test_a_call_without_a_result_before_another_answer_gets_one_too() -> None:
    calls = AssistantMessage("", (ToolCall("c1", "add"),))
    roles = [role for role, _ in turns(UserMessage("a"), calls, AssistantMessage("b"), UserMessage("c"))]
    assert roles == ["user", "assistant", "user", "assistant", "user"]


def test_a_failed_tool_is_marked() -> None:
    calls = AssistantMessage("", (ToolCall("c1", "add"),))
    failed = ToolMessage("Error: no.", "c1", "add", metadata={"success": False})
    assert turns(UserMessage("a"), calls, failed)[-1][1] == [{**result("c1", "Error: no."), "is_error": True}]


def test_a_result_without_words_has_no_content() -> None:
    calls = AssistantMessage("", (ToolCall("c1", "add"),))
    empty = {"type": "tool_result", "tool_use_id": "c1"}
    assert turns(UserMessage("a"), calls, ToolMessage(" \n", "c1", "add"))[-1][1] == [empty]


def test_ids_are_made_unique_and_legal() -> None:
    history: list[Message] = [UserMessage("a")]
    for id in ("call_0", "call_0", "functions.add:0", ""):
        history += [AssistantMessage("", (ToolCall(id, "add"),)), ToolMessage("2", id, "add")]
    sent = turns(*history)
    ids = [content[0]["id"] for role, content in sent if role == "assistant"]
    assert ids == ["call_0", "call_3_0", "call_5_0", "call_7_0"]
    assert [content[0]["tool_use_id"] for _, content in sent[2::2]] == ids


def test_two_calls_with_one_id_are_answered_in_order() -> None:
    calls = AssistantMessage("", (ToolCall("c", "add"), ToolCall("c", "add")))
    history = (UserMessage("a"), calls, ToolMessage("1", "c", "add"), ToolMessage("2", "c", "add"))
    assert turns(*history)[-1][1] == [result("c", "1"), result("call_1_1", "2")]


@pytest.mark.parametrize("arguments", ['{"a":', "", "[1]", "null", "NaN", "\ud800"])
def test_arguments_that_are_no_object_become_an_empty_one(arguments: str) -> None:
    calls = AssistantMessage("", (ToolCall("c1", "add", arguments),))
    assert turns(UserMessage("a"), calls, ToolMessage("2", "c1", "add"))[1][1] == [use("c1")]


def test_text_that_is_no_unicode_is_sent_all_the_same() -> None:
    assert turns(UserMessage("caf\udce9.txt")) == [("user", [text("caf?.txt")])]


# --- thinking ----------------------------------------------------------------------------------------


def test_signed_and_redacted_thinking_is_sent_back_in_front() -> None:
    hidden = {"type": "redacted_thinking", "data": "opaque"}
    thoughts = (
        ReasoningBlock("Hm.", "sig"),
        ReasoningBlock(data=hidden),
        ReasoningBlock("", "omitted"),
    )
    message = AssistantMessage("Yes.", reasoning=thoughts)
    assert turns(UserMessage("a"), message, UserMessage("b"))[1][1] == [
        {"type": "thinking", "thinking": "Hm.", "signature": "sig"},
        hidden,
        {"type": "thinking", "thinking": "", "signature": "omitted"},
        text("Yes."),
    ]


@pytest.mark.parametrize(
    "thought", [ReasoningBlock("Hm."), ReasoningBlock("Hm.", "sig", {"type": "reasoning", "id": "rs_1"})]
)
def test_thinking_that_others_did_is_left_out(thought: ReasoningBlock) -> None:
    message = AssistantMessage("Yes.", reasoning=(thought,))
    assert turns(UserMessage("a"), message, UserMessage("b"))[1][1] == [text("Yes.")]


SEARCH = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "x"}}
FOUND = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []}
NATIVE = [text("Let me see. "), SEARCH, FOUND, {**text("Yes."), "citations": [{"url": "u"}]}]


def test_blocks_that_were_kept_with_the_message_are_sent_back_as_they_were() -> None:
    call = ToolCall("c1", "add", '{"a":1}')
    kept = {"anthropicContent": [*NATIVE, {"type": "tool_use"}]}
    message = AssistantMessage("Let me see. Yes.", (call,), metadata=kept)
    history = (UserMessage("a"), message, ToolMessage("2", "c1", "add"))
    assert turns(*history)[1][1] == [*NATIVE, use("c1", a=1)]


def test_blank_text_among_kept_blocks_is_not_sent() -> None:
    kept = {"anthropicContent": [*NATIVE, text(" "), text("So.")]}
    message = AssistantMessage("Let me see. Yes. So.", metadata=kept)
    assert turns(UserMessage("a"), message, UserMessage("b"))[1][1] == [*NATIVE, text("So.")]


@pytest.mark.parametrize(
    "message",
    [
        AssistantMessage("Let me see. Ye", metadata={"anthropicContent": NATIVE}),
        AssistantMessage("Let me see. Yes.", metadata={"anthropicContent": [*NATIVE, {"type": "tool_use"}]}),
        AssistantMessage("Let me see. Yes.", metadata={"anthropicContent": "what"}),
    ],
)
def test_blocks_that_do_not_fit_the_message_any_more_are_not_used(message: AssistantMessage) -> None:
    assert turns(UserMessage("a"), message, UserMessage("b"))[1][1] == [text(message.content)]


def test_a_paused_turn_is_the_last_one_of_its_continuation() -> None:
    metadata = {"anthropicContent": [SEARCH], "stopReason": "pause"}
    assert turns(UserMessage("a"), AssistantMessage("", metadata=metadata))[1:] == [("assistant", [SEARCH])]


# --- images and files --------------------------------------------------------------------------------


def base64_source(kind: str, data: str) -> dict[str, str]:
    return {"type": "base64", "media_type": kind, "data": data}


@pytest.mark.parametrize(
    ("part", "block"),
    [
        (ImagePart("aW1n"), {"type": "image", "source": base64_source("image/png", "aW1n")}),
        (
            ImageUriPart("https://x/y.jpg"),
            {"type": "image", "source": {"type": "url", "url": "https://x/y.jpg"}},
        ),
        (
            ImageUriPart("data:image/gif;base64,aW1n"),
            {"type": "image", "source": base64_source("image/gif", "aW1n")},
        ),
        (
            FilePart("cGRm", "application/pdf", "a.pdf"),
            {"type": "document", "source": base64_source("application/pdf", "cGRm"), "title": "a.pdf"},
        ),
        (
            FilePart(base64.b64encode("żółw".encode()).decode(), "text/csv"),
            {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "żółw"}},
        ),
    ],
)
def test_images_and_files_are_blocks(part: Part, block: dict[str, Any]) -> None:
    assert turns(UserMessage("Look:", (TextPart("Look:"), TextPart(""), part))) == [
        ("user", [text("Look:"), block])
    ]
    calls = AssistantMessage("", (ToolCall("c1", "Read"),))
    sent = turns(UserMessage("a"), calls, ToolMessage("one", "c1", "Read", (TextPart("one"), part)))
    assert sent[-1][1] == [{"type": "tool_result", "tool_use_id": "c1", "content": [text("one"), block]}]


def test_what_has_no_block_is_replaced_by_a_note() -> None:
    parts = (ImagePart("aW1n", "image/bmp"), FilePart("emlw", "application/zip", "a.zip"))
    image, file = turns(UserMessage("", parts))[0][1]
    assert image["text"].startswith("[image (image/bmp) left out: this API takes image/jpeg, image/png,")
    assert file["text"] == "[file a.zip (application/zip) left out: this API takes PDF and text]"
