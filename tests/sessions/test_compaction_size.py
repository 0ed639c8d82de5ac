from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.sessions.compaction_setup import SYSTEM, Workshop

from robota.core.context import estimate_serialized_context_tokens
from robota.core.errors import ProviderError
from robota.core.events import Compacted, Noticed
from robota.core.messages import (
    AssistantMessage,
    SystemMessage,
    TokenUsage,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from robota.core.provider import ChatRequest, StopChunk
from robota.providers.openai_compatible import OpenAICompatibleProvider
from robota.sessions.compaction.compaction_orchestrator import NOTE
from robota.sessions.compaction.kept_state import CompactionSection, drop_sections, read_sections
from robota.sessions.compaction.summarizer import MAX_ATTEMPTS, MAX_PIECES, CompactionError
from robota.testing import Fail, HttpError, ModelServer, ReceivedRequest, ScriptedProvider

pytestmark = pytest.mark.anyio

TOO_LONG = ProviderError("acme rejected the request (400: prompt is too long); check it.", status=400)


async def prompt(shop: Workshop, text: str) -> str:
    """What a session does with a prompt, as far as the context window goes."""
    if shop.tracker.should_auto_compact:
        await shop.compaction.compact(trigger="auto")
    return (await shop.agent.run(text)).text


def sizes(shop: Workshop) -> list[int]:
    return [estimate_serialized_context_tokens(request.messages) for request in shop.requests]


# --- when it happens -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("used", "compactions"), [(8_000, 0), (8_349, 0), (8_350, 1), (9_500, 1), (30_000, 1)]
)
async def test_a_prompt_finds_a_full_window_compacted(used: int, compactions: int) -> None:
    shop = Workshop([TokenUsage(used - 10, 10), "one"], *["Summary."] * compactions, "two", window=10_000)
    await prompt(shop, "first")
    assert await prompt(shop, "second") == "two"
    assert len(shop.told(Compacted)) == compactions
    assert len(shop.provider.requests) == 2 + compactions


async def test_without_a_threshold_a_full_window_is_left_to_the_user() -> None:
    shop = Workshop([TokenUsage(9_990, 5), "one"], "Summary.", "two", window=10_000, threshold=False)
    await prompt(shop, "first")
    assert (await prompt(shop, "second")).startswith("The conversation is too long for the model")
    assert shop.told(Compacted) == []
    assert await shop.compaction.compact() == "Summary."
    assert await prompt(shop, "third") == "two"


# --- what is sent ----------------------------------------------------------------------------------------


def fill_with_output(shop: Workshop, *, outputs: int, size: int) -> None:
    shop.store.append(SystemMessage(SYSTEM))
    shop.store.append(UserMessage("Find the leak, but never touch the keel."))
    for number in range(outputs):
        shop.store.append(AssistantMessage("", (ToolCall(f"c{number}", "Bash", '{"command":"ls"}'),)))
        text = f"begin {number}\n" + "x" * size + f"\nend {number}"
        shop.store.append(ToolMessage(text, f"c{number}", "Bash"))


async def test_long_outputs_of_tools_are_cut_in_the_middle_before_anything_else() -> None:
    shop = Workshop("The leak is found.", window=10_000)
    fill_with_output(shop, outputs=4, size=9_000)
    assert drop_sections(await shop.compaction.compact() or "") == "The leak is found."
    (sent,) = shop.prompts
    assert sizes(shop)[0] <= 8_000
    assert "never touch the keel" in sent
    for number in range(4):
        assert f"begin {number}\n" in sent
        assert f"end {number}" in sent
    assert sent.count("characters left out") == 4


async def test_what_fits_is_sent_whole() -> None:
    shop = Workshop("ok", window=10_000)
    fill_with_output(shop, outputs=2, size=8_000)
    await shop.compaction.compact()
    assert "left out" not in shop.prompts[0]


async def test_a_conversation_of_many_words_is_read_in_a_few_pieces() -> None:
    shop = Workshop(
        "Up to the mast.", "Up to the sail.", "All of it.", window=4_000, instructions="Mind the birds."
    )
    shop.say(*(f"{number} " + "word " * 250 for number in range(15)))
    assert await shop.compaction.compact() == "All of it."
    assert len(shop.prompts) == 3
    assert all(size <= 3_200 for size in sizes(shop))
    assert all("Mind the birds." in sent for sent in shop.prompts)
    assert [f"part {n} of 3" in sent for n, sent in enumerate(shop.prompts, 1)] == [True] * 3
    assert "\nearlier summary: Up to the mast.\n" in shop.prompts[1]
    assert "\nearlier summary: Up to the sail.\n" in shop.prompts[2]
    seen = "".join(shop.prompts)
    assert all(f": {number} word" in seen for number in range(15))


async def test_the_number_of_calls_is_bounded_however_long_the_conversation() -> None:
    shop = Workshop("ok", repeat=True, window=3_000)
    shop.say(*(f"{number} " + "word " * 250 for number in range(400)))
    await shop.compaction.compact()
    assert len(shop.calls) == MAX_PIECES
    assert "messages are left out here" in shop.prompts[0]
    assert ": 0 word" in shop.prompts[0]
    assert ": 399 word" in shop.prompts[-1]


async def test_a_model_that_counts_more_than_the_estimate_gets_less() -> None:
    shop = Workshop([TokenUsage(9_000, 100), "one"], "ok", window=10_000)
    await shop.agent.run("x " * 10_000)  # 5,000 tokens by size, 9,000 by the model's count
    await shop.compaction.compact()
    assert sizes(shop)[0] < 5_000
    assert "left out" in shop.prompts[0]


async def test_endless_instructions_leave_room_for_the_conversation() -> None:
    shop = Workshop("ok", window=4_000)
    shop.say("Build a boat.")
    await shop.compaction.compact("mind this " * 10_000)
    assert sizes(shop)[0] <= 3_200
    assert shop.prompts[0].endswith("user: Build a boat.")


# --- when even that is too long ----------------------------------------------------------------------------


def refusing_above(tokens: int, refusal: object = Fail(TOO_LONG)) -> Callable[[ChatRequest], object]:
    """A model with a smaller window than anybody thought."""

    def reply(request: ChatRequest) -> object:
        return [refusal] if estimate_serialized_context_tokens(request.messages) > tokens else "It fits."

    return reply


@pytest.mark.parametrize("refusal", [Fail(TOO_LONG), StopChunk("context_overflow")])
async def test_a_request_the_service_calls_too_long_is_tried_at_half_the_size(refusal: object) -> None:
    shop = Workshop(refusing_above(2_500, refusal), repeat=True, window=10_000)
    fill_with_output(shop, outputs=3, size=7_000)
    assert drop_sections(await shop.compaction.compact() or "") == "It fits."
    assert sizes(shop)[0] > 2_500 >= sizes(shop)[-1]
    assert len(shop.calls) <= 4
    assert "Find the leak" in shop.prompts[-1]
    assert shop.told(Noticed) == []


async def test_if_no_size_helps_a_summary_is_put_together_without_the_model() -> None:
    shop = Workshop([Fail(TOO_LONG)], repeat=True, window=10_000)
    fill_with_output(shop, outputs=3, size=9_000)
    shop.say("And mind the gulls.", "The gulls are minded.")
    text = await shop.compaction.compact()
    assert text is not None
    assert text.startswith(NOTE)
    for kept in ("never touch the keel", "And mind the gulls.", "The gulls are minded."):
        assert kept in text
    assert len(shop.calls) == MAX_ATTEMPTS
    assert shop.tracker.state.used_tokens < 1_000
    (notice,) = shop.told(Noticed)
    assert notice.message.startswith("The conversation is too long for the model to summarise")


async def test_a_window_too_small_for_the_request_is_not_even_tried() -> None:
    shop = Workshop("never asked", window=500)
    shop.say("Build a boat.", "x" * 3_000)
    text = await shop.compaction.compact()
    assert shop.calls == []
    assert text is not None
    assert "Build a boat." in text
    assert shop.tracker.state.used_tokens < 0.835 * 500


async def test_a_failure_on_the_way_to_a_smaller_size_is_a_failure() -> None:
    shop = Workshop([Fail(TOO_LONG)], [Fail(ProviderError("The line broke."))], window=10_000)
    fill_with_output(shop, outputs=3, size=9_000)
    view = shop.view
    with pytest.raises(CompactionError, match="The line broke"):
        await shop.compaction.compact()
    assert (shop.view, shop.events) == (view, [])


async def test_a_server_that_rejects_by_length_is_served_what_it_can_read() -> None:
    limit = 16_500

    def answer(request: ReceivedRequest) -> object:
        if len(request.raw) <= limit:
            return "A summary."
        error = {"message": "the request exceeds the available context size", "type": "invalid_request_error"}
        return HttpError(400, {"error": error})

    async with (
        ModelServer(answer, repeat=True) as server,
        OpenAICompatibleProvider("key", f"{server.url}/v1", "m") as provider,
    ):
        shop = Workshop(provider=provider, window=10_000)
        fill_with_output(shop, outputs=4, size=8_000)
        failed = await shop.agent.run("And?")
        assert failed.error is not None
        assert drop_sections(await shop.compaction.compact() or "") == "A summary."
        assert [len(request.raw) > limit for request in server.requests] == [True, True, False]
        assert (await shop.agent.run("And now?")).text == "A summary."


# --- what remains ------------------------------------------------------------------------------------------


async def test_an_endless_summary_is_cut_and_the_sections_are_not() -> None:
    rules = CompactionSection("Project rules", "never touch the keel\n" * 300)
    todos = CompactionSection("Open todos", "[ ] caulk")
    shop = Workshop("It went on and on. " * 10_000, window=4_000, sections=[rules, todos])
    shop.say("Build a boat.")
    text = await shop.compaction.compact(trigger="auto")
    assert text is not None
    assert read_sections(text) == (rules, todos)
    assert text.startswith("It went on and on.")
    assert 2_000 < shop.tracker.state.used_tokens < 0.835 * 4_000
    assert not shop.tracker.should_auto_compact


async def test_a_summary_takes_at_most_a_quarter_of_the_window() -> None:
    shop = Workshop("It went on and on. " * 10_000, window=8_000)
    shop.say("Build a boat.")
    await shop.compaction.compact()
    assert 1_900 < shop.tracker.state.used_tokens < 2_100


async def test_rules_that_fill_the_window_are_kept_and_complained_about_without_a_loop() -> None:
    rules = CompactionSection("Project rules", "never touch the keel\n" * 620)  # about 3,400 tokens
    provider = ScriptedProvider("A summary.", "one", "two", "three", "Another summary.", "four")
    shop = Workshop(provider=provider, window=4_000, threshold=0.835, sections=[rules])
    shop.say("Build a boat. " * 300)
    text = await shop.compaction.compact(trigger="auto")
    assert text is not None
    assert rules.text in text
    assert "still 8" in shop.told(Noticed)[0].message
    assert "Shorten them" in shop.told(Noticed)[0].message
    assert shop.tracker.state.used_tokens > 0.835 * 4_000
    assert await prompt(shop, "hm") == "one"
    assert len(shop.told(Compacted)) == 1


async def test_many_prompts_around_the_threshold_never_loop() -> None:
    def answer(request: ChatRequest) -> object:
        wants_summary = request.messages[0].content.startswith("Summarise the conversation")
        return "s" * 400 if wants_summary else "a" * 1_200

    shop = Workshop(answer, repeat=True, window=20_000)
    for number in range(200):
        assert await prompt(shop, f"{number}: " + "q" * 800) == "a" * 1_200
    compactions = len(shop.told(Compacted))
    assert 5 <= compactions <= 10
    assert len(shop.calls) == compactions
    assert shop.told(Noticed) == []
