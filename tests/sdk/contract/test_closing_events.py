"""Each prompt ends with exactly one of complete, interrupted and error, whatever happens to it."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from tests.sdk.contract.heard import Heard, hook, write

from robota import InteractiveSession, tool
from robota.core import (
    PromptBlockedError,
    ProviderError,
    TokenUsage,
    estimate_serialized_context_tokens,
)
from robota.sdk import ExecutionResult
from robota.testing import Fail, ScriptedProvider, Stall, call

pytestmark = pytest.mark.anyio


def has_ended(session: InteractiveSession, heard: Heard) -> bool:
    thinking = heard.of("thinking")
    return not session.is_executing and thinking[:1] == [True] and thinking[-1:] == [False]


async def test_an_answer_completes_once_in_the_order_of_the_contract(project: Path) -> None:
    async with InteractiveSession(cwd=project, provider=ScriptedProvider(["Hel", "lo."])) as session:
        heard = Heard(session)
        result = await session.submit("Hi")
        assert heard.of("text_delta") == ["Hel", "lo."]
        assert heard.closings() == ["complete"]
        assert heard.of("complete") == [result]
        assert heard.names()[0] == "thinking"
        assert heard.names().index("complete") < len(heard.names()) - 1
        assert "context_update" in heard.names()[heard.names().index("complete") :]
        assert has_ended(session, heard)


async def test_the_result_holds_answer_history_summaries_and_context(project: Path) -> None:
    provider = ScriptedProvider([call("Read", file_path="notes.txt")], "Milk.")
    async with InteractiveSession(cwd=project, provider=provider) as session:
        heard = Heard(session)
        await session.submit("Read")
        (result,) = heard.of("complete")
        assert isinstance(result, ExecutionResult)
        assert (result.response, result.text) == ("Milk.", "Milk.")
        assert [entry.id for entry in result.history] == [entry.id for entry in session.full_history]
        (summary,) = result.tool_summaries
        assert (summary.name, summary.args) == ("Read", '{"file_path":"notes.txt"}')
        assert result.context_state is not None
        assert result.context_state.max_tokens > 0
        assert (result.interrupted, result.error) == (False, None)
        assert result.raise_for_error() in (None, result)


async def test_a_stop_hook_that_continues_leaves_one_complete(project: Path) -> None:
    command = 'test -e .once || { touch .once; echo "go on" >&2; exit 2; }'
    write(project / ".robota/settings.json", hook(command, event="Stop"))
    provider = ScriptedProvider("First.", "Second.")
    async with InteractiveSession(cwd=project, provider=provider, trust_project=True) as session:
        heard = Heard(session)
        result = await session.submit("Hi")
        assert heard.closings() == ["complete"]
        assert result.text.endswith("Second.")
        assert len(provider.requests) == 2
        assert heard.of("thinking") == [True, False]


async def test_a_stop_hook_continues_at_most_eight_times(project: Path) -> None:
    write(project / ".robota/settings.json", hook("echo more >&2; exit 2", event="Stop"))
    provider = ScriptedProvider("Again.", repeat=True)
    async with InteractiveSession(cwd=project, provider=provider, trust_project=True) as session:
        heard = Heard(session)
        await session.submit("Hi")
        assert len(provider.requests) == 9
        assert heard.closings() == ["complete"]


async def test_a_prompt_that_a_hook_blocks_is_one_error_with_the_reason(project: Path) -> None:
    write(project / ".robota/settings.json", hook("echo no poems >&2; exit 2", event="UserPromptSubmit"))
    provider = ScriptedProvider("Never.")
    async with InteractiveSession(cwd=project, provider=provider, trust_project=True) as session:
        heard = Heard(session)
        result = await session.submit("A poem")
        assert heard.closings() == ["error"]
        (error,) = heard.of("error")
        assert isinstance(error, PromptBlockedError)
        assert "no poems" in str(error)
        assert result.error is error
        assert provider.requests == []
        assert has_ended(session, heard)


async def test_a_blocked_prompt_leaves_the_conversation_and_stays_told(project: Path) -> None:
    command = "grep -q secret && { echo no secrets >&2; exit 2; }; exit 0"
    write(project / ".robota/settings.json", hook(command, event="UserPromptSubmit"))
    provider = ScriptedProvider("Fine.")
    async with InteractiveSession(cwd=project, provider=provider, trust_project=True) as session:
        await session.submit("my secret")
        await session.submit("Hello")
        assert "my secret" not in str(provider.requests[0].messages)
        assert any("no secrets" in str(entry.data) for entry in session.full_history)


async def test_an_overflow_that_compaction_heals_is_one_complete(project: Path) -> None:
    provider = ScriptedProvider(
        "One.", [Fail(ProviderError("prompt is too long", status=400))], "The user said hi.", "Two."
    )
    async with InteractiveSession(cwd=project, provider=provider) as session:
        await session.submit("Hi")
        heard = Heard(session)
        result = await session.submit("And now?")
        assert heard.closings() == ["complete"]
        assert result.text == "Two."
        assert heard.of("thinking") == [True, False]


async def test_an_abort_before_anything_began_is_harmless(project: Path) -> None:
    async with InteractiveSession(cwd=project, provider=ScriptedProvider("Hello.")) as session:
        heard = Heard(session)
        session.abort()
        assert heard.closings() == []
        assert (await session.submit("Hi")).text == "Hello."
        assert heard.closings() == ["complete"]


async def test_an_abort_as_thinking_begins_is_one_interrupted(project: Path) -> None:
    provider = ScriptedProvider("Never heard.", "Here.")
    async with InteractiveSession(cwd=project, provider=provider) as session:
        heard = Heard(session)
        stop = session.on("thinking", lambda on: session.abort() if on else None)
        result = await session.submit("Hi")
        assert heard.closings() == ["interrupted"]
        assert result.interrupted
        assert has_ended(session, heard)
        stop()
        assert not (await session.submit("Still there?")).interrupted


async def test_an_abort_while_the_first_prompt_still_loads_is_one_interrupted(project: Path) -> None:
    async with InteractiveSession(cwd=project, provider=ScriptedProvider("A", "B")) as session:
        heard = Heard(session)
        turn = asyncio.ensure_future(session.submit("Hi"))
        await asyncio.sleep(0)
        session.abort()
        result = await turn
        assert result.interrupted
        assert heard.closings() == ["interrupted"]


async def test_an_abort_keeps_the_partial_answer(project: Path) -> None:
    provider = ScriptedProvider(["Half ", "an answer", Stall()])
    async with InteractiveSession(cwd=project, provider=provider) as session:
        heard = Heard(session)
        session.on("text_delta", lambda text: session.abort() if text == "an answer" else None)
        result = await session.submit("Hi")
        assert heard.closings() == ["interrupted"]
        assert (result.response, result.interrupted) == ("Half an answer", True)
        assert heard.of("interrupted") == [result]
        contents = [message.content for message in session.messages]
        assert contents == ["Hi", "Half an answer", "Interrupted by user."]


async def test_interrupted_fires_when_the_abort_completed(project: Path) -> None:
    provider = ScriptedProvider(["Half", Stall()])
    async with InteractiveSession(cwd=project, provider=provider) as session:
        heard = Heard(session)
        at_request: list[list[str]] = []

        def stop(text: str) -> None:
            session.abort()
            at_request.append(heard.closings())

        session.on("text_delta", stop)
        await session.submit("Hi")
        assert at_request == [[]]
        assert heard.closings() == ["interrupted"]


async def test_an_abort_closes_the_question_that_is_open(project: Path) -> None:
    asked = asyncio.Event()

    async def wait_for_ever(request: Any) -> bool:
        asked.set()
        await asyncio.Event().wait()
        return True

    provider = ScriptedProvider([call("Bash", command="touch made")], "Never.")
    session = InteractiveSession(cwd=project, provider=provider, permission_handler=wait_for_ever)
    async with session:
        heard = Heard(session)
        closed: list[Any] = []
        session.on("question_closed", closed.append)
        turn = asyncio.ensure_future(session.submit("Go"))
        await asked.wait()
        session.abort()
        result = await turn
        assert heard.closings() == ["interrupted"]
        assert result.interrupted
        assert len(closed) == 1
        assert not (project / "made").exists()


async def test_a_failing_provider_is_one_error_and_the_session_goes_on(project: Path) -> None:
    provider = ScriptedProvider([Fail(ProviderError("The service is down."))], "Back.")
    async with InteractiveSession(cwd=project, provider=provider) as session:
        heard = Heard(session)
        result = await session.submit("Hi")
        assert heard.closings() == ["error"]
        assert heard.of("error") == [result.error]
        with pytest.raises(ProviderError):
            result.raise_for_error()
        assert "Error: The service is down." in [message.content for message in session.messages]
        assert (await session.submit("Again")).text == "Back."
        assert heard.closings() == ["error", "complete"]


async def test_a_provider_that_fails_in_mid_stream_keeps_what_was_said(project: Path) -> None:
    provider = ScriptedProvider(["Half a ", Fail(ProviderError("The line broke."))])
    async with InteractiveSession(cwd=project, provider=provider) as session:
        heard = Heard(session)
        result = await session.submit("Hi")
        assert heard.closings() == ["error"]
        assert isinstance(result.error, ProviderError)
        assert "Half a " in str([entry.data for entry in session.full_history])


async def test_a_cancelled_caller_gets_its_cancellation_and_one_closing_event(project: Path) -> None:
    said = asyncio.Event()
    provider = ScriptedProvider(["Half", Stall()], "Whole.")
    async with InteractiveSession(cwd=project, provider=provider) as session:
        heard = Heard(session)
        session.on("text_delta", lambda text: said.set())
        turn = asyncio.ensure_future(session.submit("Hi"))
        await said.wait()
        turn.cancel()
        with pytest.raises(asyncio.CancelledError):
            await turn
        assert heard.closings() == ["interrupted"]
        assert "Half" in [message.content for message in session.messages]
        assert (await session.submit("Again")).text == "Whole."


async def test_a_listener_that_raises_does_not_end_the_turn(project: Path) -> None:
    def broken(text: str) -> None:
        raise RuntimeError("a bug in a front end")

    async with InteractiveSession(cwd=project, provider=ScriptedProvider("Hello.")) as session:
        heard = Heard(session)
        session.on("text_delta", broken)
        assert (await session.submit("Hi")).text == "Hello."
        assert heard.closings() == ["complete"]


async def test_a_tool_that_raises_does_not_end_the_turn(project: Path) -> None:
    @tool
    def explode() -> str:
        """Fail."""
        raise RuntimeError("boom")

    provider = ScriptedProvider([call("explode")], "It failed.")
    session = InteractiveSession(
        cwd=project, provider=provider, tools=[explode], permission_mode="bypassPermissions"
    )
    async with session:
        heard = Heard(session)
        await session.submit("Go")
        assert [state.result for state in heard.of("tool_end")] == ["error"]
        assert heard.closings() == ["complete"]


async def test_an_empty_answer_is_said_in_words(project: Path) -> None:
    async with InteractiveSession(cwd=project, provider=ScriptedProvider([], [], [], [], [])) as session:
        heard = Heard(session)
        await session.submit("Hi")
        assert heard.closings() == ["complete"]
        assert "answered with nothing" in str(session.messages[-1].content)


async def test_context_updates_carry_the_four_figures(project: Path) -> None:
    provider = ScriptedProvider(["Hello.", TokenUsage(1000, 20)])
    async with InteractiveSession(cwd=project, provider=provider) as session:
        heard = Heard(session)
        await session.submit("Hi")
        last = heard.of("context_update")[-1]
        assert last.used_tokens >= 1000
        assert last.used_percentage == pytest.approx(100 * last.used_tokens / last.max_tokens, abs=0.1)
        assert last.remaining_percentage == pytest.approx(100 - last.used_percentage, abs=0.1)
        assert session.context_state == last


async def test_the_context_is_estimated_before_the_request_is_sent(project: Path) -> None:
    seen: list[list[str]] = []
    heard: Heard | None = None

    def reply(request: Any) -> str:
        assert heard is not None
        seen.append(heard.names())
        return "Hello."

    async with InteractiveSession(cwd=project, provider=ScriptedProvider(reply)) as session:
        heard = Heard(session)
        await session.submit("Hi")
    assert "context_update" in seen[0]


async def test_the_estimate_of_the_first_prompt_counts_the_system_prompt(project: Path) -> None:
    async with InteractiveSession(cwd=project, provider=ScriptedProvider("Hello.")) as session:
        heard = Heard(session)
        await session.submit("Hi")
        system, user, answer = session.session.messages
    before, *_, after = (state.used_tokens for state in heard.of("context_update"))
    assert before == pytest.approx(estimate_serialized_context_tokens([system, user]), abs=30)
    assert before < after == estimate_serialized_context_tokens([system, user, answer])


async def test_the_round_separator_is_streamed_but_not_stored(project: Path) -> None:
    provider = ScriptedProvider(["Looking.", call("Read", file_path="notes.txt")], "Milk.")
    async with InteractiveSession(cwd=project, provider=provider) as session:
        heard = Heard(session)
        await session.submit("Read")
        assert "".join(heard.of("text_delta")) == "Looking.\n\nMilk."
        assert all(not str(message.content).startswith("\n") for message in session.session.messages)


async def test_an_unsubscribed_listener_hears_nothing(project: Path) -> None:
    said: list[str] = []
    async with InteractiveSession(cwd=project, provider=ScriptedProvider("One.", "Two.")) as session:
        stop = session.on("text_delta", said.append)
        await session.submit("Hi")
        stop()
        await session.submit("Hi")
    assert said == ["One."]
