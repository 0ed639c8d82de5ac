"""Lines with a slash that are submitted as prompts."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from robota.core.errors import ConfigurationError, ValidationError
from robota.core.messages import UserMessage
from robota.sdk.commands.effects import CommandResult, ExitRequested, SubmitPrompt
from robota.sdk.commands.registry import Command
from robota.sdk.interactive import InteractiveSession
from robota.testing import ScriptedProvider

pytestmark = pytest.mark.anyio
ENDS = ("complete", "interrupted", "error")


class Source:
    """Somebody else's commands."""

    name = "own"

    def __init__(self, *commands: Command) -> None:
        self._commands = commands

    def commands(self) -> tuple[Command, ...]:
        return self._commands


def make(tmp_path: Path, *answers: str) -> tuple[InteractiveSession, ScriptedProvider, list[str]]:
    provider = ScriptedProvider(*answers)
    session = InteractiveSession(
        cwd=tmp_path, provider=provider, model="m", environment={"HOME": str(tmp_path / "home")}
    )
    ends: list[str] = []
    for name in ENDS:
        session.on(name, lambda _, name=name: ends.append(name))
    return session, provider, ends


async def test_a_command_answers_without_asking_the_model(tmp_path: Path) -> None:
    session, provider, ends = make(tmp_path)
    async with session:
        result = await session.submit("/mode acceptEdits")

        assert result.text == "Permission mode set to: acceptEdits"
        assert result.command is not None
        assert dict(result.command.data) == {"mode": "acceptEdits"}
        assert session.permission_mode == "acceptEdits"
        assert (provider.requests, ends, session.messages) == ([], ["complete"], [])


async def test_a_command_that_fails_ends_in_an_error(tmp_path: Path) -> None:
    session, _, ends = make(tmp_path)
    async with session:
        result = await session.submit("/mode reckless")

        assert isinstance(result.error, ValidationError)
        assert str(result.error).startswith("Invalid mode. Valid: plan | ")
        assert ends == ["error"]


async def test_what_a_session_can_do_for_its_caller_is_done(tmp_path: Path) -> None:
    session, provider, _ = make(tmp_path, "yes")
    async with session:
        await session.submit("/rename the big one")
        await session.submit("/model other")
        await session.submit("hello")

        assert session.name == "the big one"
        assert provider.requests[0].model == "other"


async def test_what_only_a_program_can_do_is_told(tmp_path: Path) -> None:
    session, _, ends = make(tmp_path)
    async with session:
        result = await session.submit("/exit")

        assert result.command is not None
        assert result.command.effect == ExitRequested()
        assert ends == ["complete"]


@pytest.mark.parametrize("line", ["/usr/bin/env is missing", "/unknown thing", "cost"])
async def test_a_line_that_names_nothing_known_is_an_ordinary_prompt(tmp_path: Path, line: str) -> None:
    session, provider, ends = make(tmp_path, "I see.")
    async with session:
        result = await session.submit(line)

        assert (result.text, result.command, ends) == ("I see.", None, ["complete"])
        assert provider.requests[0].messages[-1].content == line


async def test_a_prompt_that_was_made_of_a_command_calls_no_other(tmp_path: Path) -> None:
    session, provider, _ = make(tmp_path, "I see.")
    async with session:
        planned = await session.execute_command("plan", "/exit the vim way")
        assert planned is not None
        effect = planned.effect
        assert isinstance(effect, SubmitPrompt)
        result = await session.submit(effect.input, effect.display_input, effect.raw_input)

        assert (result.text, result.command) == ("I see.", None)
        assert provider.requests[0].messages[-1].content == "/exit the vim way"


async def test_a_command_that_is_a_prompt_is_shown_as_it_was_typed(tmp_path: Path) -> None:
    session, provider, ends = make(tmp_path, "Done.")
    async with session:
        result = await session.submit("/review only the tests")

        assert (result.text, ends) == ("Done.", ["complete"])
        asked = provider.requests[0].messages[-1].content
        assert asked.startswith("Review the changes")
        assert asked.endswith("\n\nThe user adds: only the tests")
        assert [each.content for each in session.messages] == ["/review only the tests", "Done."]


@pytest.mark.parametrize(("name", "part"), [("init", "AGENTS.md"), ("commit", "git status")])
async def test_the_other_prompts_are_effects_too(tmp_path: Path, name: str, part: str) -> None:
    session, _, _ = make(tmp_path)
    async with session:
        result = await session.execute_command(name)

        assert result is not None
        effect = result.effect
        assert isinstance(effect, SubmitPrompt)
        assert part in effect.input
        assert (effect.display_input, effect.raw_input) == (f"/{name}", f"/{name}")


async def test_the_short_name_of_a_plugins_command_is_enough(tmp_path: Path) -> None:
    def execute(host: InteractiveSession, args: str) -> CommandResult:
        return CommandResult("", effect=SubmitPrompt(f"audit {args}", "/audit", f"/one:audit {args}"))

    session, provider, _ = make(tmp_path, "Done.")
    command = Command(name="one:audit", description="d", source="plugin", execute=execute)
    session.commands.add_source(Source(command))
    async with session:
        await session.submit("/audit all")

        [message] = [each for each in provider.requests[0].messages if isinstance(each, UserMessage)]
        assert message.content == "audit all"


async def test_a_command_that_is_broken_says_so_in_an_event(tmp_path: Path) -> None:
    def refuse(host: InteractiveSession, args: str) -> CommandResult:
        raise ConfigurationError("The file is missing: make it.")

    def crash(host: InteractiveSession, args: str) -> Any:
        raise RuntimeError("bug")

    session, _, ends = make(tmp_path)
    session.commands.add_source(
        Source(
            Command(name="refuse", description="d", execute=refuse),
            Command(name="crash", description="d", execute=crash),
        )
    )
    async with session:
        assert await session.execute_command("refuse") == CommandResult(
            "The file is missing: make it.", success=False
        )
        with pytest.raises(RuntimeError, match="bug"):
            await session.submit("/crash")

        assert ends == ["error"]
        assert not session.is_executing


async def test_a_command_waits_for_the_prompt_under_way(tmp_path: Path) -> None:
    session, _, ends = make(tmp_path, "yes")
    async with session:
        first = asyncio.ensure_future(session.submit("hello"))
        await asyncio.sleep(0)
        result = await session.submit("/cost")

        assert first.done()
        assert result.text.endswith("Messages: 1")
        assert ends == ["complete", "complete"]


async def test_plan_mode_is_entered_and_left_for_the_mode_before(tmp_path: Path) -> None:
    session, provider, _ = make(tmp_path, "A plan.")
    async with session:
        await session.submit("/mode acceptEdits")
        await session.submit("/plan build it")

        assert provider.requests[0].messages[-1].content == "build it"
        assert (session.permission_mode, session.kit.plan.active) == ("plan", True)
        assert (await session.submit("/plan")).text == "Plan mode is on. There is no plan."
        assert (await session.submit("/plan on")).text == "Plan mode is on."
        left = await session.submit("/plan off")
        assert left.text == "Plan mode is off. Permission mode set to: acceptEdits"
        assert session.permission_mode == "acceptEdits"
        assert (await session.submit("/plan off")).error is not None


async def test_plan_mode_by_its_mode_is_plan_mode(tmp_path: Path) -> None:
    session, _, _ = make(tmp_path)
    async with session:
        await session.submit("/mode plan")
        assert session.kit.plan.active
        session.permission_mode = "default"
        assert not session.kit.plan.active
