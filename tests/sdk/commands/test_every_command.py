"""What holds for every command, whatever is typed behind it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from robota.core.errors import RateLimitError
from robota.core.messages import ToolMessage
from robota.sdk.commands.effects import CommandResult
from robota.sdk.commands.table import ROWS
from robota.sdk.interactive import InteractiveSession
from robota.sessions.session import Session
from robota.testing import Fail, ScriptedProvider, call

pytestmark = pytest.mark.anyio
ODD = ("", "   ", "x", "list", "-1", "99999999", "'", '"open', "\0\x1b[31m", "é" * 5_000, "../../etc/passwd")
WORDS = {row.name: tuple(word for word, _ in row.words) for row in ROWS}


def make(tmp_path: Path, *script: Any) -> InteractiveSession:
    return InteractiveSession(
        cwd=tmp_path,
        provider=ScriptedProvider(*script),
        model="m",
        environment={"HOME": str(tmp_path / "home")},
    )


def is_sound(result: CommandResult | None) -> bool:
    """Words for people, no trace of a program that failed, and data that are JSON."""
    return (
        result is not None
        and bool(result.message.strip())
        and "Traceback" not in result.message
        and isinstance(json.dumps(dict(result.data)), str)
    )


@pytest.mark.parametrize("name", [row.name for row in ROWS])
async def test_whatever_is_typed_has_an_answer(tmp_path: Path, name: str) -> None:
    typed = [*ODD, *(f"{word} {odd}".strip() for word in WORDS[name] for odd in ("", "x", "1", "'"))]
    async with make(tmp_path, "A summary.") as session:
        for args in typed:
            assert is_sound(await session.execute_command(name, args)), args


@pytest.mark.parametrize("name", [row.name for row in ROWS])
async def test_a_session_that_was_given_has_an_answer_too(tmp_path: Path, name: str) -> None:
    inner = Session(provider=ScriptedProvider(), model="m", cwd=str(tmp_path))
    async with InteractiveSession(session=inner) as session:
        assert is_sound(await session.execute_command(name, ""))


async def test_a_summary_that_fails_leaves_the_conversation_alone(tmp_path: Path) -> None:
    async with make(tmp_path, "x" * 8_000, Fail(RateLimitError("too fast"))) as session:
        await session.submit("hello")
        result = await session.execute_command("compact")

        assert result is not None
        assert not result.success
        assert [each.role for each in session.messages] == ["user", "assistant"]


async def test_a_rule_that_config_writes_binds_the_next_call(tmp_path: Path) -> None:
    async with make(tmp_path, [call("Bash", command="echo hi")], "done") as session:
        await session.submit('/config set permissions.deny ["Bash(echo *)"]')
        session.permission_mode = "bypassPermissions"
        await session.submit("say hi")

        [told] = [each for each in session.session.messages if isinstance(each, ToolMessage)]
        assert "Bash(echo *)" in told.content
