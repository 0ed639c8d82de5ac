"""Another model or provider in the middle of a session: from the next request on, with the history kept."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.sessions.live_session import Studio
from tests.sessions.recorded_session import assert_replays, scripted
from tests.support.session_options import fork_session, resume_session

from robota.core.errors import ConfigurationError
from robota.core.events import ModelChanged, ProviderRequest, TextDelta, ToolStarted
from robota.core.messages import FilePart, ImagePart, ReasoningBlock, TextPart, TokenUsage, ToolMessage
from robota.core.models import describe_unknown_model, find_model_price
from robota.core.plugin import Plugin
from robota.core.provider import (
    Capabilities,
    ChatRequest,
    ModelSettings,
    NativeWebTool,
    NativeWebTools,
    Provider,
)
from robota.sessions.compaction.summarizer import CompactionError
from robota.sessions.permissions.live_rules import PermissionRules
from robota.sessions.store.session_store import SessionStore
from robota.sessions.usage.budget import Budget, BudgetedProvider, BudgetExceededError
from robota.sessions.usage.ledger import UsageLedger
from robota.testing import ScriptedProvider, call

pytestmark = pytest.mark.anyio
FREE = PermissionRules(mode="bypassPermissions")
SEARCH = NativeWebTool(supported=True, enabled=True)
ABLE = Capabilities(vision=True, files=True, web_search=SEARCH)


def other(*replies: Any, **options: Any) -> ScriptedProvider:
    return ScriptedProvider(*replies, name="other", **options)


# --- when it takes effect ---------------------------------------------------------------------------------


async def test_another_model_answers_the_next_prompt(tmp_path: Path) -> None:
    studio = Studio(tmp_path, "one", "two", model="claude-sonnet-4-5", context_window=None)
    await studio.session.run("first")
    told = studio.session.set_model("gpt-4o")
    await studio.session.run("second")

    assert [request.model for request in studio.provider.requests] == ["claude-sonnet-4-5", "gpt-4o"]
    assert (told.provider, told.model, told.context_window, told.notes) == ("scripted", "gpt-4o", 128_000, ())
    assert studio.session.context_state.max_tokens == 128_000
    assert studio.told(ModelChanged) == [told]
    studio.assert_journal_is_good()


async def test_another_provider_gets_the_whole_history(tmp_path: Path) -> None:
    studio, second = Studio(tmp_path, "one"), other("two")
    await studio.session.run("first")
    studio.session.set_provider(second, "large")
    assert await studio.session.run("second") == "two"

    asked = second.requests[0]
    assert asked.model == "large"
    assert [message.content for message in asked.messages] == ["You are terse.", "first", "one", "second"]


@pytest.mark.parametrize("moment", [TextDelta, ToolStarted], ids=["a reply comes in", "a tool runs"])
async def test_a_swap_while_something_is_under_way_counts_from_the_next_request(
    tmp_path: Path, moment: type[Any]
) -> None:
    recorded = scripted(tmp_path, ["Let me ", "add.", call("add", a=1, b=2)], model="small")
    session, second = recorded.session, other("It is 3.", "And on.")
    asked: list[ProviderRequest] = []
    session.events.on(ProviderRequest, asked.append)
    unsubscribe = session.events.on(moment, lambda event: session.set_provider(second, "large"))
    session.events.on(ToolStarted, lambda event: unsubscribe())
    assert await session.run("What is 1 + 2?") == "It is 3."
    await session.run("Go on.")

    assert [(request.provider, request.model) for request in asked] == [
        ("scripted", "small"), ("other", "large"), ("other", "large"),
    ]  # fmt: skip
    assert [message.role for message in second.requests[0].messages] == [
        "system", "user", "assistant", "tool",
    ]  # fmt: skip
    await assert_replays(recorded)


async def test_a_plugin_may_choose_the_model_of_each_request(tmp_path: Path) -> None:
    second = other("It is 3.")

    class Router(Plugin):
        name = "router"

        async def before_provider_call(self, request: ChatRequest) -> None:
            if isinstance(request.messages[-1], ToolMessage):
                studio.session.set_provider(second, "large")

    studio = Studio(tmp_path, [call("add", a=1, b=2)], rules=FREE, plugins=(Router(),))
    asked = studio.listen(ProviderRequest)
    assert await studio.session.run("What is 1 + 2?") == "It is 3."
    assert [(request.provider, request.model) for request in asked] == [
        ("scripted", "scripted"), ("other", "large"),
    ]  # fmt: skip
    assert second.requests[0].model == "large"


async def test_the_guards_of_a_run_follow_the_new_window(tmp_path: Path) -> None:
    long = "word " * 110_000
    studio = Studio(
        tmp_path, [long, call("add", a=1, b=2)], model="claude-sonnet-4-6",
        context_window=None, rules=FREE, auto_compact_threshold=False,
    )  # fmt: skip
    second = other("Never.")
    studio.session.events.on(ToolStarted, lambda event: studio.session.set_provider(second, "gpt-4o"))
    answer = await studio.session.run("go")

    assert "too long for the model" in answer
    assert "of 128,000 tokens" in answer
    assert second.requests == []


async def test_the_fragments_of_the_old_wire_are_dropped(tmp_path: Path) -> None:
    studio = Studio(tmp_path, "one")
    await studio.session.run("first")
    conversation = studio.session.agent.conversation
    conversation.encoded.fragments("wire", len(conversation.messages_for_api()), lambda group: b"{}")
    studio.session.set_provider(other(), "large")
    assert conversation.encoded._fragments == []


async def test_a_provider_brings_its_own_model_along(tmp_path: Path) -> None:
    studio, second = Studio(tmp_path), other("two")
    second.model = "own"  # type: ignore[attr-defined]  # as adapters have it
    assert studio.session.set_provider(second).model == "own"
    assert studio.session.model == "own"


@pytest.mark.parametrize(
    ("provider", "model", "says"),
    [
        (other(), None, "no model of its own"),
        (object(), "m", "is not a provider"),
        (other(), 3, "must be text"),
    ],
)
async def test_a_swap_that_cannot_work_changes_nothing(
    tmp_path: Path, provider: Any, model: Any, says: str
) -> None:
    studio = Studio(tmp_path, "one", "two")
    await studio.session.run("first")
    before = studio.record_names
    with pytest.raises(ConfigurationError, match=says):
        studio.session.set_provider(provider, model)
    assert (studio.session.model, studio.session.agent.provider) == ("scripted", studio.provider)
    assert (studio.record_names, studio.told(ModelChanged)) == (before, [])
    assert await studio.session.run("second") == "two"


# --- what is told -----------------------------------------------------------------------------------------

RICH = (TextPart("Look."), ImagePart("aGk="), FilePart("aGk=", "application/pdf"))
THINKING = [ReasoningBlock("hm", "signed"), "Let me add.", call("add", a=1, b=2)]


async def test_what_the_new_model_does_not_get_is_told(tmp_path: Path) -> None:
    wanted = NativeWebTools(web_search=True)
    first = ScriptedProvider(THINKING, "3", capabilities=ABLE)
    studio = Studio(
        tmp_path, provider=first, rules=FREE, native_web_tools=wanted,
        settings=ModelSettings(extra={"special": 1}),
    )  # fmt: skip
    await studio.session.run(RICH)
    second = other("fine", capabilities=Capabilities(function_calling=False))
    told = studio.session.set_provider(second, "large")
    assert await studio.session.run("And?") == "fine"

    assert told.notes == (
        "One image of the history will be a note: other takes no images.",
        "One file of the history will be a note: other takes no files.",
        "One piece of thinking by scripted will not be sent to other.",
        "One tool call will be sent under ids that other accepts.",
        "other cannot call tools, so those of this session are of no use with it.",
        "The extra settings special will be sent to other as they are.",
        "other has no web search of its own; requests will go without it.",
        describe_unknown_model("large"),
    )
    assert first.requests[0].native_web_tools == wanted
    assert second.requests[0].native_web_tools is None
    before = [entry for entry in studio.log() if entry["event"] == "pre_run"]
    assert [entry["webTools"]["webSearch"]["enabled"] for entry in before] == [True, False]
    assert [entry["webToolsEnabled"] for entry in before] == [True, False]


@pytest.mark.parametrize("exchanged", ["model", "provider"])
async def test_a_window_that_was_said_of_one_model_is_not_that_of_the_next(
    tmp_path: Path, exchanged: str
) -> None:
    studio = Studio(tmp_path, "one", "two", model="mine", context_window=5_000)
    await studio.session.run("hi")
    same = studio.session.set_model("mine")
    if exchanged == "model":
        told = studio.session.set_model("gpt-4o")
    else:
        told = studio.session.set_provider(other("two"), "gpt-4o")
    await studio.session.run("again")
    assert (same.context_window, told.context_window) == (5_000, 128_000)
    before = [entry["maxTokens"] for entry in studio.log() if entry["event"] == "pre_run"]
    assert before == [5_000, 128_000]


async def test_a_model_that_can_do_the_same_loses_nothing_but_thinking_and_ids(tmp_path: Path) -> None:
    studio = Studio(tmp_path, THINKING, "3", rules=FREE)
    await studio.session.run(RICH)
    told = studio.session.set_provider(other(capabilities=ABLE), "large")
    assert told.notes == (
        "One piece of thinking by scripted will not be sent to other.",
        "One tool call will be sent under ids that other accepts.",
        describe_unknown_model("large"),
    )


async def test_whoever_comes_back_gets_its_own_thinking_again(tmp_path: Path) -> None:
    first = ScriptedProvider([ReasoningBlock("hm", "signed"), "one"], "three", capabilities=ABLE)
    studio = Studio(tmp_path, provider=first)
    await studio.session.run("first")
    studio.session.set_provider(other([ReasoningBlock("ho"), ReasoningBlock("hu"), "two"]), "large")
    await studio.session.run("second")
    told = studio.session.set_provider(first, "small")
    thoughts = "2 pieces of thinking by other will not be sent to scripted."
    assert told.notes == (thoughts, describe_unknown_model("small"))


async def test_what_was_compacted_away_is_not_spoken_of(tmp_path: Path) -> None:
    studio = Studio(tmp_path, "one", "what was said")
    await studio.session.run(RICH)
    await studio.session.compact()
    told = studio.session.set_provider(other(), "large")
    assert told.notes == (describe_unknown_model("large"),)


async def test_a_window_that_is_too_small_or_only_assumed_is_told(tmp_path: Path) -> None:
    long = "word " * 110_000
    studio = Studio(tmp_path, long, model="claude-sonnet-4-6", context_window=None)
    await studio.session.run("go")
    assert "will be summarised" in " ".join(studio.session.set_model("gpt-4o").notes)
    assert studio.session.set_model("unheard-of").notes[0].startswith("Nothing is known about the model")


async def test_a_budget_that_cannot_be_kept_is_told(tmp_path: Path) -> None:
    studio = Studio(tmp_path, "one", model="gpt-4o", budget=Budget(max_cost_usd=1.0))
    await studio.session.run("first")
    assert "No price is known" in studio.session.set_provider(other("two"), "unheard-of").notes[-1]
    with pytest.raises(ConfigurationError, match="no price"):
        await studio.session.run("second")


# --- the budget -------------------------------------------------------------------------------------------


async def test_a_budget_holds_for_every_provider_there_is(tmp_path: Path) -> None:
    second, third = other("two"), other("never")
    studio = Studio(tmp_path, "one", budget=Budget(max_requests=2))
    await studio.session.run("first")
    studio.session.set_provider(second, "large")
    assert await studio.session.run("second") == "two"
    studio.session.agent.provider = third
    with pytest.raises(BudgetExceededError):
        await studio.session.run("third")
    with pytest.raises(CompactionError, match="budget"):
        await studio.session.compact()
    assert (await studio.session.agent.run("fourth")).error is not None
    assert third.requests == []
    assert studio.session.usage.total.requests == 2


async def test_a_swap_in_the_middle_of_a_run_stays_behind_the_budget(tmp_path: Path) -> None:
    second = other("never")
    studio = Studio(tmp_path, [call("add", a=1, b=2)], rules=FREE, budget=Budget(max_requests=1))
    studio.session.events.on(ToolStarted, lambda event: studio.session.set_provider(second, "large"))
    with pytest.raises(BudgetExceededError):
        await studio.session.run("go")
    assert second.requests == []


async def test_who_works_under_the_budget_of_another_session_stays_there(tmp_path: Path) -> None:
    ledger = UsageLedger()
    lent = BudgetedProvider(ScriptedProvider("one"), ledger, Budget(max_requests=1))
    studio = Studio(tmp_path, provider=lent)
    await studio.session.run("first")
    studio.session.set_provider(other("never"), "large")
    with pytest.raises(BudgetExceededError):
        await studio.session.run("second")


async def test_each_model_is_counted_at_its_own_price(tmp_path: Path) -> None:
    spent = TokenUsage(100_000, 0)
    studio = Studio(tmp_path, ["one", spent], ["two", spent], model="gpt-4o", context_window=None)
    await studio.session.run("first")
    studio.session.set_model("gpt-4o-mini")
    await studio.session.run("second")
    prices = [find_model_price(name) for name in ("gpt-4o", "gpt-4o-mini")]
    report = studio.session.usage.snapshot()
    assert [used.model for used in report.models] == ["gpt-4o", "gpt-4o-mini"]
    assert [used.cost_usd for used in report.models] == [price.input / 10 for price in prices if price]


# --- the journal --------------------------------------------------------------------------------------------


async def test_swaps_are_replayed_where_they_happened(tmp_path: Path) -> None:
    recorded = scripted(tmp_path, THINKING, "3", "four", context_window=None)
    session = recorded.session
    first: Provider = session.agent.provider
    session.set_model("claude-sonnet-4-5")
    await recorded.run(RICH)
    session.set_provider(other("two", capabilities=ABLE), "gpt-4o")
    await recorded.run("second")
    session.set_model("gpt-4o-mini")
    session.set_provider(first, "claude-sonnet-4-5")
    await recorded.run("third")
    await session.shutdown()

    report = await assert_replays(recorded)
    asked = [entry for entry in report.entries if entry["event"] == "provider_request"]
    assert [entry["provider"] for entry in asked] == ["scripted", "scripted", "other", "scripted"]
    assert len(recorded.told(ModelChanged)) == 3  # the first came before there was anything to tell of


async def test_a_resumed_session_goes_on_with_the_model_it_was_left_with(tmp_path: Path) -> None:
    studio = Studio(tmp_path, "one")
    await studio.session.run("first")
    studio.session.set_provider(other("two"), "large")
    await studio.session.run("second")
    await studio.session.shutdown()
    assert (studio.restored().provider, studio.restored().model) == ("other", "large")

    store = SessionStore(studio.kept)
    third = other("three")
    resumed = resume_session(store, "s-1", provider=third)
    assert resumed.model == "large"
    assert await resumed.run("third") == "three"
    await resumed.shutdown()
    assert (studio.restored().provider, third.requests[0].model) == ("other", "large")

    forked = fork_session(store, "s-1", provider=ScriptedProvider("four", name="another"), model="own")
    assert await forked.run("fourth") == "four"
    assert len(forked.messages) == len(studio.restored().messages) + 2
