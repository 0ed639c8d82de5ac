"""A conversation that turns out too long: one compaction, then on; never a loop."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.sessions.live_session import Studio, listen_to, names_of

from robota.core.errors import ProviderError
from robota.core.events import Compacted, RunStarted
from robota.core.provider import ChatRequest
from robota.providers.openai_compatible import OpenAICompatibleProvider
from robota.sessions.permissions.live_rules import PermissionRules
from robota.testing import Fail, HttpError, ModelServer, ScriptedProvider, call
from robota.tools.function_tool import tool

pytestmark = pytest.mark.anyio

TOO_LONG = [Fail(ProviderError("prompt is too long: 210000 tokens > 200000 maximum", provider="scripted"))]


async def test_a_service_that_finds_the_conversation_too_long_leads_to_one_compaction(tmp_path: Path) -> None:
    hooks = listen_to(tmp_path, "PreCompact", "PostCompact", "Stop", "StopFailure")
    studio = Studio(tmp_path, "one", TOO_LONG, "what was said", "here you are", hooks=hooks)
    await studio.session.run("first")

    assert await studio.session.run("second") == "here you are"

    assert [event.trigger for event in studio.told(Compacted)] == ["auto"]
    assert names_of(studio.fired) == ["Stop", "PreCompact", "PostCompact", "Stop"]
    view = studio.provider.requests[-1].messages
    assert view[1].content.startswith("[Context Summary]\nwhat was said")
    assert "Go on with the task" in view[-1].content
    assert studio.session.message_count == 2
    studio.assert_journal_is_good()


async def test_the_summary_is_made_of_the_prompt_too(tmp_path: Path) -> None:
    studio = Studio(tmp_path, "one", TOO_LONG, "what was said", "here you are")
    await studio.session.run("first")
    await studio.session.run("paint the shed green")

    assert "paint the shed green" in studio.provider.requests[2].messages[-1].content


async def test_a_service_that_is_never_content_gets_no_second_compaction(tmp_path: Path) -> None:
    provider = ScriptedProvider("one", TOO_LONG, "what was said", *[TOO_LONG] * 20)
    studio = Studio(tmp_path, provider=provider, hooks=listen_to(tmp_path, "StopFailure"))
    await studio.session.run("first")

    with pytest.raises(ProviderError, match="too long"):
        await studio.session.run("second")

    assert len(studio.told(Compacted)) == 1
    assert len(provider.requests) == 4
    assert names_of(studio.fired) == ["StopFailure"]
    studio.assert_journal_is_good()


async def test_a_summary_that_is_too_long_as_well_still_makes_progress(tmp_path: Path) -> None:
    provider = ScriptedProvider("one", *[TOO_LONG] * 5, "here you are")
    studio = Studio(tmp_path, provider=provider)
    await studio.session.run("first")

    assert await studio.session.run("second") == "here you are"

    assert "put together without it" in "".join(studio.notices)
    assert len(studio.told(Compacted)) == 1


async def test_a_summary_that_fails_leaves_the_service_with_the_last_word(tmp_path: Path) -> None:
    broken = [Fail(ProviderError("on fire", provider="scripted"))]
    studio = Studio(tmp_path, "one", TOO_LONG, broken, "better")
    await studio.session.run("first")

    with pytest.raises(ProviderError, match="too long"):
        await studio.session.run("second")

    assert "could not be summarised: " in "".join(studio.notices)
    assert await studio.session.run("third") == "better"


def summarise_or_answer(request: ChatRequest) -> str:
    return "here you are" if "Go on with the task" in request.messages[-1].content else "what was said"


async def test_what_is_not_sent_because_it_cannot_fit_leads_to_a_compaction_too(tmp_path: Path) -> None:
    replies = ["x" * 9_000, *[summarise_or_answer] * 9]
    studio = Studio(tmp_path, *replies, context_window=4_000, auto_compact_threshold=1.0)
    await studio.session.run("first")

    assert await studio.session.run("y" * 6_500) == "here you are"

    assert len(studio.told(Compacted)) == 1
    assert len(studio.told(RunStarted)) == 2
    assert len(studio.provider.requests) < 7
    studio.assert_journal_is_good()


async def test_a_prompt_that_fits_nowhere_is_refused_with_figures(tmp_path: Path) -> None:
    studio = Studio(tmp_path, *["short"] * 6, context_window=2_000)

    answer = await studio.session.run("y" * 40_000)

    assert len(studio.told(Compacted)) <= 1
    assert len(studio.provider.requests) <= 6
    assert answer != ""
    assert await studio.session.run("shorter") == "short"


async def test_whoever_manages_the_context_himself_gets_no_compaction(tmp_path: Path) -> None:
    studio = Studio(tmp_path, "one", TOO_LONG, auto_compact_threshold=False)
    await studio.session.run("first")

    with pytest.raises(ProviderError, match="too long"):
        await studio.session.run("second")

    assert studio.told(Compacted) == []
    assert len(studio.provider.requests) == 2


async def test_tool_results_that_no_longer_fit_end_in_a_compaction_not_in_a_failure(tmp_path: Path) -> None:
    @tool
    async def read_all() -> str:
        """Give a long text."""
        return "z" * 20_000

    studio = Studio(
        tmp_path,
        [call("read_all", "c1")],
        "what was read",
        "it is about z",
        tools=[read_all],
        rules=PermissionRules(mode="bypassPermissions"),
        context_window=4_000,
    )
    assert await studio.session.run("read") == "it is about z"
    assert len(studio.told(Compacted)) == 1
    studio.assert_journal_is_good()


async def test_the_words_of_a_real_service_are_understood(tmp_path: Path) -> None:
    refusal = HttpError(
        400,
        body={
            "error": {
                "message": "This model's maximum context length is 8192 tokens.",
                "type": "invalid_request_error",
                "code": "context_length_exceeded",
            }
        },
    )
    async with (
        ModelServer("one", refusal, "what was said", "here you are") as server,
        OpenAICompatibleProvider(api_key="k", base_url=f"{server.url}/v1", model="m") as provider,
    ):
        studio = Studio(tmp_path, provider=provider, model="m")
        await studio.session.run("first")
        assert await studio.session.run("second") == "here you are"
    assert len(studio.told(Compacted)) == 1


async def test_a_system_message_that_no_summary_makes_room_for_ends_with_one_sentence(tmp_path: Path) -> None:
    studio = Studio(tmp_path, "never", system="word " * 8_000, context_window=10_000)

    for _ in range(2):
        result = await studio.session.submit("hello")
        assert "The system message alone has about 10,000 tokens" in str(result.error)

    assert studio.provider.requests == []
    assert studio.told(Compacted) == []
    assert studio.notices == []
