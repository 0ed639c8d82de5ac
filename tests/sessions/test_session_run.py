"""What happens to a prompt, in order."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

import pytest
from tests.sessions.live_session import Studio, fired, heard, listen_to, names_of, run

from robota.core.errors import (
    AuthenticationError,
    ConfigurationError,
    ModelNotAvailableError,
    NetworkError,
    PromptBlockedError,
    ProviderError,
    RateLimitError,
    RobotaError,
    SessionBusyError,
)
from robota.core.events import Compacted, ContextUpdated, HistoryMutation, RunFailed
from robota.core.hooks import HookOutcome
from robota.core.messages import ImagePart, TextPart, UserMessage
from robota.sessions.session import Session
from robota.testing import Fail, ScriptedProvider, call
from robota.tools.function_tool import tool

pytestmark = pytest.mark.anyio

BROKEN = Fail(ProviderError("The service is on fire.", provider="scripted"))


# --- before the model -----------------------------------------------------------------------------------


async def test_the_prompt_is_written_down_before_anything_else_happens(tmp_path: Path) -> None:
    seen: list[list[str]] = []
    studio = Studio(tmp_path, lambda _: (seen.append(studio.record_names), "hi")[1], hooks=listen_to(
        tmp_path, "SessionStart", "UserPromptSubmit"
    ))  # fmt: skip

    await studio.session.run("hello")

    assert seen[0][:2] == ["session_init", "user"]
    assert studio.record_names.index("user") < studio.record_names.index("hook_executed")


async def test_session_start_fires_once_at_the_first_prompt(tmp_path: Path) -> None:
    studio = Studio(tmp_path, "one", "two", hooks=listen_to(tmp_path, "SessionStart"))
    assert studio.fired == []

    await studio.session.run("first")
    await studio.session.run("second")

    [told] = studio.fired
    assert told["source"] == "startup"
    assert told["model"] == "scripted"
    assert told["session_id"] == "s-1"
    assert told["cwd"] == str(studio.project)
    assert told["transcript_path"] == str(studio.path)
    assert told["permission_mode"] == "default"


async def test_session_start_says_that_a_session_is_resumed(tmp_path: Path) -> None:
    first = Studio(tmp_path, "one")
    await first.session.run("first")
    await first.session.shutdown()

    second = first.resume("two", hooks=listen_to(tmp_path, "SessionStart"))
    await second.session.run("second")

    assert [told["source"] for told in second.fired] == ["resume"]


async def test_a_message_put_in_before_the_first_prompt_makes_it_no_resumed_session(tmp_path: Path) -> None:
    studio = Studio(tmp_path, "one", hooks=listen_to(tmp_path, "SessionStart"))
    studio.session.inject_message("user", "by the way")

    await studio.session.run("first")

    assert [told["source"] for told in studio.fired] == ["startup"]


async def test_what_start_hooks_print_goes_with_the_first_prompt_only(tmp_path: Path) -> None:
    studio = Studio(tmp_path, "one", "two", hooks={"SessionStart": [run("echo Today is Monday.")]})

    await studio.session.run("first")
    await studio.session.run("second")

    users = [message.content for message in studio.session.messages if isinstance(message, UserMessage)]
    assert users == [
        "<system-reminder>\nToday is Monday.\n</system-reminder>\nfirst",
        "second",
    ]


async def test_what_prompt_hooks_print_goes_with_the_prompt(tmp_path: Path) -> None:
    hooks = {"UserPromptSubmit": [heard(tmp_path, "echo The build is red.")]}
    studio = Studio(tmp_path, "one", hooks=hooks)

    await studio.session.run("why?")

    sent = studio.provider.requests[0].messages[-1].content
    assert sent == "<system-reminder>\nThe build is red.\n</system-reminder>\nwhy?"
    assert [(told["prompt"], told["user_message"]) for told in studio.fired] == [("why?", "why?")]


async def test_hooks_hear_what_the_user_typed_when_the_prompt_was_made_from_it(tmp_path: Path) -> None:
    studio = Studio(tmp_path, "one", hooks=listen_to(tmp_path, "UserPromptSubmit"))

    await studio.session.run("Review the file parser.py in detail.", raw_input="/review parser.py")

    assert studio.fired[0]["prompt"] == "/review parser.py"
    assert studio.provider.requests[0].messages[-1].content == "Review the file parser.py in detail."
    [user] = [record for record in studio.records if record["event"] == "user"]
    assert (user["input"], user["prompt"]) == ("/review parser.py", "Review the file parser.py in detail.")


async def test_a_prompt_may_have_parts_and_hooks_add_to_them(tmp_path: Path) -> None:
    studio = Studio(tmp_path, "a cat", hooks={"UserPromptSubmit": [run("echo Be brief.")]})

    picture = ImagePart(mime_type="image/png", data="AAAA")
    assert await studio.session.run([TextPart("What is it?"), picture]) == "a cat"

    sent = studio.provider.requests[0].messages[-1]
    assert isinstance(sent, UserMessage)
    assert [type(part) for part in sent.parts] == [TextPart, TextPart, ImagePart]
    assert "Be brief." in sent.parts[0].text  # type: ignore[union-attr]  # the first is text
    studio.assert_journal_is_good()


async def test_a_prompt_hook_can_refuse_a_prompt(tmp_path: Path) -> None:
    hooks = {"UserPromptSubmit": [run("echo 'no swearing' >&2; exit 2")], **listen_to(tmp_path, "Stop")}
    studio = Studio(tmp_path, "fine", hooks=hooks)

    with pytest.raises(PromptBlockedError, match="no swearing"):
        await studio.session.run("damn")

    assert studio.provider.requests == []
    assert studio.session.messages == []
    assert studio.session.message_count == 0
    assert studio.fired == []


async def test_a_prompt_that_is_none_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    studio = Studio(tmp_path, "fine")
    for wrong in (None, 5, ["text"], b"bytes"):
        with pytest.raises(ConfigurationError, match="prompt"):
            await studio.session.run(wrong)  # type: ignore[arg-type]  # that is the point

    assert not studio.kept.exists()
    assert await studio.session.run("hello") == "fine"


async def test_a_full_conversation_is_summarised_before_the_prompt_is_looked_at(tmp_path: Path) -> None:
    studio = Studio(
        tmp_path,
        "x" * 13_000,
        "what was said so far",
        "fresh",
        context_window=4_000,
        hooks=listen_to(tmp_path, "UserPromptSubmit", "PreCompact", "PostCompact", "Stop"),
    )
    await studio.session.run("tell me")
    (tmp_path / "fired.jsonl").unlink()

    assert await studio.session.run("and now?") == "fresh"

    assert names_of(studio.fired) == ["PreCompact", "PostCompact", "UserPromptSubmit", "Stop"]
    assert [event.trigger for event in studio.told(Compacted)] == ["auto"]
    view = studio.provider.requests[-1].messages
    assert [message.role for message in view] == ["system", "assistant", "user"]
    assert view[1].content.startswith("[Context Summary]")


async def test_a_summary_that_fails_does_not_keep_the_prompt_from_being_answered(tmp_path: Path) -> None:
    studio = Studio(tmp_path, "x" * 13_000, [BROKEN], "fresh", context_window=4_000)
    await studio.session.run("tell me")

    assert await studio.session.run("and now?") == "fresh"

    assert "could not be summarised: " in "".join(studio.notices)
    assert studio.told(Compacted) == []


# --- context ------------------------------------------------------------------------------------------


async def test_the_context_is_told_before_and_after_the_model_was_asked(tmp_path: Path) -> None:
    order: list[Any] = []
    studio = Studio(tmp_path, lambda _: (order.append("model"), "x" * 400)[1])
    studio.session.events.on(ContextUpdated, lambda event: order.append(event.used_tokens))

    await studio.session.run("y" * 4_000)

    assert len(order) == 3
    estimate, model, exact = order
    assert model == "model"
    assert 1_000 < estimate < exact
    assert studio.session.context_state.used_tokens == exact


# --- after the model ------------------------------------------------------------------------------------


async def test_stop_hooks_hear_the_answer(tmp_path: Path) -> None:
    studio = Studio(tmp_path, "The answer is 42.", hooks=listen_to(tmp_path, "Stop"))

    await studio.session.run("?")

    [told] = studio.fired
    assert told["response"] == told["last_assistant_message"] == "The answer is 42."
    assert told["stop_hook_active"] is False


async def test_a_stop_hook_sends_the_model_on_with_its_reason(tmp_path: Path) -> None:
    go_on_once = f"test -e {tmp_path}/once || {{ touch {tmp_path}/once; echo 'run the tests' >&2; exit 2; }}"
    studio = Studio(tmp_path, "done", "all green", hooks={"Stop": [heard(tmp_path, go_on_once)]})

    assert await studio.session.run("fix it") == "all green"

    assert [told["stop_hook_active"] for told in studio.fired] == [False, True]
    assert studio.provider.requests[1].messages[-1].content == "run the tests"
    assert studio.session.message_count == 1
    studio.assert_journal_is_good()


async def test_stop_hooks_send_the_model_on_at_most_eight_times(tmp_path: Path) -> None:
    provider = ScriptedProvider("done", repeat=True)
    studio = Studio(tmp_path, provider=provider, hooks={"Stop": [heard(tmp_path, "echo more >&2; exit 2")]})

    assert await studio.session.run("fix it") == "done"

    assert len(provider.requests) == 9
    assert len(studio.fired) == 9
    assert studio.notices == ["Stop hooks sent the model on 8 times; that is enough."]


async def test_a_stop_hook_that_wants_the_end_gets_it(tmp_path: Path) -> None:
    hooks = {"Stop": [run("""echo '{"continue": false, "stopReason": "enough"}'""")]}
    studio = Studio(tmp_path, "done", hooks=hooks)

    assert await studio.session.run("fix it") == "done"
    assert len(studio.provider.requests) == 1


async def test_a_tool_hook_can_end_the_run(tmp_path: Path) -> None:
    hooks = {"PostToolUse": [run("""echo '{"continue": false, "stopReason": "budget for today"}'""")]}
    studio = Studio(tmp_path, ["Adding.", call("add", a=1, b=2)], "next", hooks=hooks, handler=_yes)

    assert await studio.session.run("add") == "Adding."

    assert studio.notices == ["A hook ended the run: budget for today"]
    assert len(studio.provider.requests) == 1
    assert await studio.session.run("again") == "next"
    studio.assert_journal_is_good()


async def test_finished_prompts_are_counted(tmp_path: Path) -> None:
    studio = Studio(tmp_path, "one", [BROKEN], "three")

    await studio.session.run("1")
    with pytest.raises(ProviderError):
        await studio.session.run("2")
    await studio.session.run("3")

    assert studio.session.message_count == 2


# --- errors -------------------------------------------------------------------------------------------


async def test_an_error_is_logged_told_to_hooks_and_raised_and_the_session_goes_on(tmp_path: Path) -> None:
    hooks = listen_to(tmp_path, "Stop", "StopFailure")
    studio = Studio(tmp_path, ["Half an ", BROKEN], "better", hooks=hooks)

    with pytest.raises(ProviderError, match="on fire"):
        await studio.session.run("hello")

    [told] = studio.fired
    assert told["hook_event_name"] == "StopFailure"
    assert told["reason"] == "The service is on fire."
    [error] = [entry for entry in studio.log() if entry["event"] == "error"]
    assert error["message"] == "The service is on fire."
    assert error["code"] == "PROVIDER_ERROR"
    assert error["historyLength"] == len(studio.session.messages)
    assert "Half an " in studio.session.messages[-1].content
    assert [event.code for event in studio.told(RunFailed)] == ["PROVIDER_ERROR"]
    assert not studio.session.is_running

    assert await studio.session.run("again") == "better"
    assert names_of(studio.fired) == ["StopFailure", "Stop"]
    studio.assert_journal_is_good()


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (RateLimitError("slow down"), "rate_limit"),
        (AuthenticationError("who?"), "authentication_failed"),
        (ModelNotAvailableError("m", "p"), "model_not_found"),
        (ProviderError("busy", status=529), "overloaded"),
        (ProviderError("broken", status=503), "server_error"),
        (ProviderError("what?", status=400), "invalid_request"),
        (NetworkError("nobody there"), "unknown"),
        (ValueError("a bug"), "unknown"),
    ],
)
async def test_hooks_tell_failures_apart_by_their_kind(tmp_path: Path, error: Exception, kind: str) -> None:
    group = {"matcher": kind, **heard(tmp_path)}
    studio = Studio(tmp_path, [Fail(error)], hooks={"StopFailure": [group]})

    with pytest.raises(RobotaError):
        await studio.session.run("hello")

    [told] = studio.fired
    assert told["error"] == kind
    assert told["error_details"] == told["reason"]
    assert str(error) in told["reason"]


async def test_an_error_before_the_model_is_logged_and_told_to_hooks_too(tmp_path: Path) -> None:
    class BrokenHooks:
        fired: ClassVar[list[tuple[str, Any]]] = []

        def has(self, event: str) -> bool:
            return True

        async def fire(self, event: str, hook_input: Any, **more: Any) -> HookOutcome:
            self.fired.append((event, hook_input.get("reason")))
            if len(self.fired) == 2:
                raise RuntimeError("no room for a process")
            return HookOutcome(event=event)

    studio = Studio(tmp_path, "fine", hook_port=BrokenHooks())

    with pytest.raises(RobotaError, match="no room"):
        await studio.session.run("hello")

    sentence = "RuntimeError: no room for a process"
    assert BrokenHooks.fired[1:] == [("UserPromptSubmit", None), ("StopFailure", sentence)]
    [error] = [entry for entry in studio.log() if entry["event"] == "error"]
    assert error["message"] == sentence
    assert await studio.session.run("again") == "fine"


# --- one at a time --------------------------------------------------------------------------------------


async def test_a_second_prompt_at_the_same_time_is_refused(tmp_path: Path) -> None:
    refused: list[Exception] = []

    @tool
    async def ask_again() -> str:
        """Run the session from inside itself."""
        for attempt in (studio.session.run("inner"), studio.session.compact()):
            try:
                await attempt
            except SessionBusyError as error:
                refused.append(error)
        return "no"

    studio = Studio(tmp_path, [call("ask_again")], "done", tools=[ask_again], handler=_yes)

    assert await studio.session.run("outer") == "done"
    assert len(refused) == 2
    assert studio.record_names.count("user") == 1


async def test_nothing_is_put_between_a_tool_call_and_its_result(tmp_path: Path) -> None:
    @tool
    async def interrupt() -> str:
        """Put a message into the conversation while a tool runs."""
        studio.session.inject_message("user", "psst")
        return "no"

    studio = Studio(tmp_path, [call("interrupt")], "done", tools=[interrupt], handler=_yes)
    assert await studio.session.run("go") == "done"

    roles = [message.role for message in studio.session.messages[-4:]]
    assert roles == ["assistant", "tool", "user", "assistant"]
    studio.session.inject_message("user", "now")
    studio.assert_journal_is_good()


async def test_a_session_without_a_store_works_and_leaves_no_file(tmp_path: Path) -> None:
    studio = Studio(tmp_path, [call("add", a=1, b=2)], "3", keep=False, handler=_yes)
    told = studio.listen(HistoryMutation)

    assert await studio.session.run("1+2?") == "3"
    await studio.session.shutdown()

    assert len(told) == 5
    assert not studio.kept.exists()
    assert fired(tmp_path) == []


async def _yes(request: object) -> bool:
    return True


async def test_a_prompt_is_kept_with_the_words_that_front_ends_show() -> None:
    session = Session(provider=ScriptedProvider("one", "two"))

    await session.submit("the whole text of a skill", display_input="/audit", raw_input="audit")
    await session.submit("plain")

    first, second = (message for message in session.messages if isinstance(message, UserMessage))
    assert first.metadata["display"] == "/audit"
    assert "display" not in second.metadata
