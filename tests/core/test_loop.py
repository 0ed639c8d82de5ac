from __future__ import annotations

from typing import Any

import pytest

from robota.core.errors import ProviderError
from robota.core.events import (
    AssistantMessageCommitted,
    Event,
    ProviderNativeRawPayload,
    ProviderRequest,
    ProviderResponseNormalized,
    ProviderResponseRaw,
    ProviderRetried,
    ProviderStreamRawDelta,
    ReasoningDelta,
    RunCompleted,
    RunFailed,
    ServerToolUsed,
    TextDelta,
    ToolInputDelta,
)
from robota.core.messages import (
    AssistantMessage,
    ReasoningBlock,
    StopReason,
    TokenUsage,
    ToolCall,
    ToolMessage,
)
from robota.core.provider import (
    MetadataChunk,
    NativePayload,
    ReasoningChunk,
    RetryNotice,
    ServerToolChunk,
    StopChunk,
    ToolInputChunk,
)
from robota.core.robota import Robota
from robota.testing import ScriptedProvider, call
from robota.tools.function_tool import tool

pytestmark = pytest.mark.anyio


@tool
async def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def agent_for(*replies: Any, **options: Any) -> tuple[Robota, ScriptedProvider]:
    provider = ScriptedProvider(*replies)
    return Robota(provider, tools=[add], **options), provider


def heard(agent: Robota, kind: type[Event]) -> list[Any]:
    events: list[Any] = []
    agent.events.on(kind, events.append)
    return events


# --- rounds ------------------------------------------------------------------------------------------


async def test_the_model_is_asked_again_with_the_results_until_it_answers() -> None:
    agent, provider = agent_for(["Adding.", call("add", a=1, b=2)], "Three.", system_message="Be brief.")
    result = await agent.run("What is 1 + 2?")
    assert (result.text, result.rounds, result.tools_executed, result.success) == (
        "Three.",
        2,
        ("add",),
        True,
    )
    assert [m.role for m in agent.messages] == ["system", "user", "assistant", "tool", "assistant"]
    assert [[m.role for m in request.messages] for request in provider.requests] == [
        ["system", "user"],
        ["system", "user", "assistant", "tool"],
    ]
    assert provider.requests[1].messages[-1].content == "3"
    assert [schema.name for schema in provider.requests[0].tools] == ["add"]


async def test_a_separator_is_streamed_before_every_round_but_the_first_and_never_stored() -> None:  # §20.76
    agent, _ = agent_for(["One.", call("add", "c1", a=1, b=2)], ["Two.", call("add", "c2", a=1, b=2)], "End.")
    deltas = heard(agent, TextDelta)
    await agent.run("go")
    assert [delta.text for delta in deltas] == ["One.", "\n\n", "Two.", "\n\n", "End."]
    assert [m.content for m in agent.messages if isinstance(m, AssistantMessage)] == ["One.", "Two.", "End."]
    assert [(delta.round, delta.sequence) for delta in deltas] == [(1, 1), (2, 0), (2, 1), (3, 0), (3, 1)]


async def test_the_usage_of_a_run_is_the_sum_of_its_calls() -> None:
    agent, _ = agent_for(
        [call("add", a=1, b=2), TokenUsage(100, 10, 5, 6, 7)], ["Three.", TokenUsage(120, 4)]
    )
    result = await agent.run("go")
    assert result.usage == TokenUsage(220, 14, 5, 6, 7)


async def test_only_the_last_count_of_one_reply_counts() -> None:
    agent, _ = agent_for([TokenUsage(100, 1), "Hi", TokenUsage(100, 9)])
    assert (await agent.run("go")).usage == TokenUsage(100, 9)


async def test_usage_is_kept_with_the_message_in_its_canonical_spelling() -> None:
    agent, _ = agent_for(["Hi", TokenUsage(100, 9, cache_read_tokens=50)])
    await agent.run("go")
    assert agent.messages[-1].metadata == {
        "inputTokens": 100,
        "outputTokens": 9,
        "cacheReadTokens": 50,
        "stopReason": "end_turn",
    }


@pytest.mark.parametrize(
    "values",
    [
        {"promptTokens": 100, "completionTokens": 9, "totalTokens": 109},
        {"usage": {"promptTokens": 100, "completionTokens": 9, "totalTokens": 109}},
    ],
)
async def test_other_spellings_of_usage_are_converted_before_the_commit(
    values: dict[str, Any],
) -> None:  # §20.48
    agent, _ = agent_for(["Hi", MetadataChunk(values)])
    result = await agent.run("go")
    metadata = agent.messages[-1].metadata
    assert (metadata.get("inputTokens"), metadata.get("outputTokens")) == (100, 9)
    assert result.usage == TokenUsage(100, 9)


# --- why an answer stopped -----------------------------------------------------------------------------


@pytest.mark.parametrize("reason", ["end_turn", "max_tokens", "refusal", "content_filter", "other"])
async def test_the_reason_for_stopping_is_told(reason: StopReason) -> None:
    agent, _ = agent_for(["Well,", StopChunk(reason)])
    ends = heard(agent, RunCompleted)
    result = await agent.run("go")
    assert (result.text, result.stop_reason, ends[0].stop_reason) == ("Well,", reason, reason)
    assert agent.messages[-1].metadata["stopReason"] == reason


@pytest.mark.parametrize("reason", ["refusal", "content_filter"])
async def test_a_refusal_without_words_is_shown_as_one(reason: StopReason) -> None:
    agent, provider = agent_for([StopChunk(reason, "policy 7")])
    result = await agent.run("go")
    assert result.text == "The model declined to answer (policy 7)."
    assert result.stop_reason == reason
    assert agent.messages[-1].metadata["stopDetail"] == "policy 7"
    assert len(provider.requests) == 1


async def test_a_call_cut_at_the_token_limit_is_not_executed_and_the_model_is_told() -> None:
    agent, _ = agent_for([ToolCall("c", "add", '{"a": 1, "b'), StopChunk("max_tokens")], "Sorry.")
    result = await agent.run("go")
    [message] = [m for m in agent.messages if isinstance(m, ToolMessage)]
    assert "cut at the token limit" in message.content
    assert (message.metadata["errorCode"], result.tools_executed) == ("truncated_arguments", ())


async def test_counts_that_are_a_sum_over_several_calls_do_not_end_a_paused_turn() -> None:
    searched = [TokenUsage(400_000, 800), MetadataChunk({"usageIsSum": True}), StopChunk("pause")]
    agent, _ = agent_for(["Searching …", *searched], "Found it.", context_window=200_000)
    result = await agent.run("find it")
    assert result.text.endswith("Found it.")
    assert result.usage.input_tokens >= 400_000


async def test_a_pause_of_the_provider_is_continued() -> None:
    agent, provider = agent_for(["Searching …", StopChunk("pause")], "Found it.")
    result = await agent.run("go")
    assert (result.text, result.rounds) == ("Found it.", 2)
    assert provider.requests[1].messages[-1].content == "Searching …"


async def test_an_empty_answer_is_tried_once_more() -> None:
    agent, provider = agent_for([], "Here I am.")
    assert (await agent.run("go")).text == "Here I am."
    assert provider.requests[0].messages == provider.requests[1].messages
    assert [m.role for m in agent.messages] == ["user", "assistant"]


async def test_two_empty_answers_end_with_a_request_for_words_without_tools() -> None:
    agent, provider = agent_for([], [], "Fine, then.")
    assert (await agent.run("go")).text == "Fine, then."
    assert provider.requests[2].tools == ()
    assert len(agent.messages) == 2


async def test_three_empty_answers_are_not_called_a_limit_of_rounds() -> None:
    agent, _ = agent_for([], [], [])
    result = await agent.run("go")
    said = "The model answered with nothing, three times in a row; ask again or use another model."
    assert (result.text, agent.messages[-1].content) == (said, said)


@pytest.mark.parametrize(
    ("stop", "words"),
    [
        (StopChunk("max_tokens", "length"), "it reached the limit of its output before it wrote a word"),
        (StopChunk("error", "MALFORMED_FUNCTION_CALL: no"), "it stopped with 'MALFORMED_FUNCTION_CALL: no';"),
        (StopChunk("other"), "it stopped with 'other';"),
    ],
)
async def test_a_model_that_was_kept_from_answering_is_asked_again_once_and_the_reason_told(
    stop: StopChunk, words: str
) -> None:
    thought = [ReasoningChunk("Hm."), ReasoningBlock("Hm."), stop]
    agent, provider = agent_for(thought, thought, "never asked")
    failed = heard(agent, RunFailed)
    result = await agent.run("go")
    assert (len(provider.requests), result.stop_reason, result.success) == (2, stop.reason, False)
    assert isinstance(result.error, ProviderError)
    assert words in str(result.error)
    assert [event.message for event in failed] == [str(result.error)]
    assert agent.messages[-1].content == f"[{result.error}]"


async def test_a_model_that_finds_its_words_the_second_time_has_answered() -> None:
    agent, _ = agent_for([StopChunk("max_tokens")], "Here I am.")
    result = await agent.run("go")
    assert (result.text, result.stop_reason, result.error) == ("Here I am.", "end_turn", None)


# --- what else a stream may carry ----------------------------------------------------------------------


async def test_reasoning_is_streamed_and_kept_with_the_answer() -> None:
    block = ReasoningBlock("Let me think.", signature="sig")
    agent, provider = agent_for([ReasoningChunk("Let me "), ReasoningChunk("think."), block, "Hi"], "Again")
    deltas = heard(agent, ReasoningDelta)
    await agent.run("go")
    assert [delta.text for delta in deltas] == ["Let me ", "think."]
    answer = agent.messages[-1]
    assert isinstance(answer, AssistantMessage)
    assert (answer.content, answer.reasoning) == ("Hi", (block,))
    await agent.run("more")
    assert provider.requests[1].messages[1] == answer


async def test_arguments_are_told_while_the_model_writes_them() -> None:
    agent, _ = agent_for([ToolInputChunk(0, '{"a":', "c", "add"), ToolInputChunk(0, "1}"), "Hi"])
    deltas = heard(agent, ToolInputDelta)
    await agent.run("go")
    assert [(d.index, d.tool_call_id, d.tool_name, d.delta) for d in deltas] == [
        (0, "c", "add", '{"a":'),
        (0, "", "", "1}"),
    ]


async def test_server_tools_and_retries_are_told() -> None:
    agent, _ = agent_for(
        [
            RetryNotice(attempt=1, max_attempts=3, delay=2.0, message="busy"),
            ServerToolChunk("web_search", {"query": "x"}),
            "Hi",
        ]
    )
    used, retried = heard(agent, ServerToolUsed), heard(agent, ProviderRetried)
    await agent.run("go")
    assert [(e.tool_name, e.input, e.round) for e in used] == [("web_search", {"query": "x"}, 1)]
    assert [(e.attempt, e.max_attempts, e.delay, e.message) for e in retried] == [(1, 3, 2.0, "busy")]


async def test_a_native_payload_carries_its_run_and_gets_a_number_when_it_has_none() -> None:  # §20.43
    agent, provider = agent_for(
        [
            NativePayload(kind="request", payload={"n": 1}),
            NativePayload(kind="stream_event", payload={"n": 2}, api_surface="chat"),
            call("add", a=1, b=2),
        ],
        [NativePayload(kind="response", payload={"n": 3}), "Hi"],
    )
    payloads = heard(agent, ProviderNativeRawPayload)
    result = await agent.run("go")
    assert all(request.want_raw for request in provider.requests)
    assert [(e.round, e.payload_kind, e.payload["n"], e.provider) for e in payloads] == [
        (1, "request", 1, "scripted"),
        (1, "stream_event", 2, "scripted"),
        (2, "response", 3, "scripted"),
    ]
    assert payloads[0].sequence < payloads[1].sequence
    assert {e.execution_id for e in payloads} == {result.execution_id}
    assert {e.conversation_id for e in payloads} == {agent.conversation_id}


async def test_a_native_payloads_own_number_stays_and_later_ones_grow_from_it() -> None:  # §20.43
    agent, _ = agent_for(
        [NativePayload(kind="stream_event", payload=n, sequence=at) for n, at in enumerate([10, None, None])]
    )
    payloads = heard(agent, ProviderNativeRawPayload)
    await agent.run("go")
    numbers = [e.sequence for e in payloads]
    assert numbers[0] == 10
    assert numbers == sorted(set(numbers))


async def test_native_payloads_are_asked_for_only_when_somebody_records_them() -> None:
    agent, provider = agent_for("Hi")
    heard(agent, RunCompleted)
    await agent.run("go")
    assert not provider.requests[0].want_raw


async def test_the_recorded_response_is_the_providers_normalized_message() -> None:  # §20.44
    agent, _ = agent_for(["Hi", call("add", a=1, b=2)], "Three.")
    raw, normalized = heard(agent, ProviderResponseRaw), heard(agent, ProviderResponseNormalized)
    committed, asked = heard(agent, AssistantMessageCommitted), heard(agent, ProviderRequest)
    deltas = heard(agent, ProviderStreamRawDelta)
    await agent.run("go")
    assert [e.response_kind for e in raw] == ["provider-normalized-message"] * 2
    assert [e.response for e in raw] == [e.response for e in normalized] == [e.message for e in committed]
    assert [e.tool_calls_count for e in normalized] == [1, 0]
    assert [(e.round, e.sequence, e.delta) for e in deltas] == [(1, 1, "Hi"), (2, 1, "Three.")]
    assert [(e.round, e.provider, len(e.messages), e.tools[0].name) for e in asked] == [
        (1, "scripted", 1, "add"),
        (2, "scripted", 3, "add"),
    ]


async def test_facts_about_the_reply_are_kept_with_it() -> None:
    agent, _ = agent_for(["Hi", MetadataChunk({"responseId": "r1"}), MetadataChunk({"model": "m-2"})])
    await agent.run("go")
    assert agent.messages[-1].metadata == {"responseId": "r1", "model": "m-2", "stopReason": "end_turn"}
