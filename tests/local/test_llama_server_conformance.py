"""The conformance suite with a real llama.cpp server as the service.

Left out is what such a server cannot be made to do: it gives calls ids of its own, counts tokens itself, has
two reasons to stop, never stalls, and answers the same request with the same words. What these cases are
about is in test_llama_server.py, in a form that a real server can play.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from tests.local.wires import WIRES
from tests.support.llama_server import llama_server
from tests.support.scripted_gguf import write_scripted_gguf

from robota.core.messages import AssistantMessage, SystemMessage, ToolCall, ToolMessage, UserMessage
from robota.core.provider import Provider
from robota.testing.reply_conformance import ADD, ReplyConformance, ScriptedReply, ask, listen, using

HISTORIES = {
    "begins with the assistant": (AssistantMessage("Summary."), UserMessage("Go on.")),
    "two user messages in a row": (UserMessage("First."), UserMessage("Second.")),
    "empty assistant message": (UserMessage("First."), AssistantMessage(""), UserMessage("Second.")),
    "a result whose call is gone": (
        UserMessage("Add."),
        ToolMessage("3", tool_call_id="c1", name="add"),
        UserMessage("So?"),
    ),
    "an id used twice": (
        UserMessage("One"),
        AssistantMessage("", (ToolCall("call_0", "add", '{"a":1,"b":1}'),)),
        ToolMessage("2", tool_call_id="call_0", name="add"),
        UserMessage("Two"),
        AssistantMessage("", (ToolCall("call_0", "add", '{"a":2,"b":2}'),)),
        ToolMessage("4", tool_call_id="call_0", name="add"),
    ),
    "arguments that are not JSON": (
        SystemMessage("Be brief."),
        UserMessage("Add."),
        AssistantMessage("", (ToolCall("c1", "add", '{"a": 1, "b'),)),
        ToolMessage("Error: the arguments are not JSON.", tool_call_id="c1", name="add"),
    ),
}


class LlamaServerConformance(ReplyConformance):
    wire = ""

    test_a_streamed_call_becomes_one_complete_call = None  # expects an id of the script
    test_text_and_calls_of_one_reply_keep_their_order_and_ids = None  # the same
    test_calls_that_share_an_id_are_all_delivered = None  # the same
    test_a_call_cut_off_by_the_token_limit_is_not_delivered = None  # the limit is the request's there
    test_usage_is_reported = None  # expects tokens of the script
    test_the_stop_reason_is_reported_once = None  # expects reasons that no local server has
    test_two_streams_of_one_provider_do_not_mix = None  # expects two replies to one request
    test_a_stream_that_waits_can_be_cancelled = None  # the same, and a server that stalls

    @pytest.fixture(autouse=True)
    def directory(self, tmp_path: Path) -> None:
        self.tmp_path = tmp_path

    @asynccontextmanager
    async def playing(self, *replies: ScriptedReply) -> AsyncIterator[Provider]:
        texts = ["".join(reply) for reply in replies] or [""]
        model = write_scripted_gguf(self.tmp_path / "model.gguf", *texts)
        with llama_server(model) as url:
            async with using(WIRES[self.wire](url)) as provider:
                yield provider

    async def test_every_history_is_sent_in_a_form_that_the_server_takes(self) -> None:
        async with self.playing("Fine.") as provider:
            for history in HISTORIES.values():
                assert (await listen(provider, ask(*history, tools=(ADD,)))).text == "Fine."


class TestChat(LlamaServerConformance):
    wire = "chat"


class TestMessages(LlamaServerConformance):
    wire = "messages"


class TestResponses(LlamaServerConformance):
    wire = "responses"
