"""The conformance suite with `LocalProvider`.

What is left out is what test_llama_server_conformance.py leaves out, for the same reasons; its cases are in
test_local_provider.py in a form that a real model can play.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from tests.support.scripted_gguf import write_scripted_gguf

from robota.core.provider import Provider
from robota.providers.local import LocalProvider
from robota.testing.reply_conformance import ReplyConformance, ScriptedReply


class TestLocalProvider(ReplyConformance):
    test_a_streamed_call_becomes_one_complete_call = None  # expects an id of the script
    test_text_and_calls_of_one_reply_keep_their_order_and_ids = None  # a reply is a call or a text
    test_calls_that_share_an_id_are_all_delivered = None  # a reply has one call
    test_a_call_cut_off_by_the_token_limit_is_not_delivered = None  # the limit is the request's
    test_usage_is_reported = None  # expects tokens of the script
    test_the_stop_reason_is_reported_once = None  # expects reasons that no local model has
    test_two_streams_of_one_provider_do_not_mix = None  # expects two replies to one request
    test_a_stream_that_waits_can_be_cancelled = None  # the same, and a model that stalls

    @pytest.fixture(autouse=True)
    def directory(self, tmp_path: Path) -> None:
        self.tmp_path = tmp_path

    @asynccontextmanager
    async def playing(self, *replies: ScriptedReply) -> AsyncIterator[Provider]:
        texts = ["".join(reply) for reply in replies] or [""]
        async with LocalProvider(write_scripted_gguf(self.tmp_path / "model.gguf", *texts)) as provider:
            yield provider
