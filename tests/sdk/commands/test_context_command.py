from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from robota.sdk.commands.effects import CommandResult
from robota.sdk.interactive import InteractiveSession
from robota.testing import ScriptedProvider

pytestmark = pytest.mark.anyio
DEFAULT = "The conversation is summarized when 83.5% of the window is used."


def make(tmp_path: Path, *answers: str) -> tuple[InteractiveSession, ScriptedProvider]:
    provider = ScriptedProvider(*answers)
    session = InteractiveSession(
        cwd=tmp_path, provider=provider, model="m", environment={"HOME": str(tmp_path / "home")}
    )
    return session, provider


async def run(session: InteractiveSession, args: str = "") -> CommandResult:
    result = await session.execute_command("context", args)
    assert result is not None
    return result


def settings(tmp_path: Path) -> dict[str, object]:
    text = (tmp_path / "home" / ".robota" / "settings.json").read_text()
    values: dict[str, object] = json.loads(text)
    return values


async def test_each_part_of_a_request_is_shown_with_its_tokens(tmp_path: Path) -> None:
    (tmp_path / "AGENTS.md").write_text("Use tabs. " * 100)
    session, _ = make(tmp_path, "word " * 400)
    async with session:
        await session.submit("hello")
        shown = (await run(session)).message.partition("\n")[2]

        found = re.findall(r"^  (.+): ([\d,]+) tokens", shown, re.MULTILINE)
        parts = {name: int(count.replace(",", "")) for name, count in found}
        sections = {each.name: each.tokens for each in session.kit.context.prompt.sections}
        assert {name: parts[name] for name in sections} == sections
        assert sections["Agent Instructions"] > 200
        assert parts.keys() - sections.keys() == {"Descriptions of tools", "Conversation"}
        assert parts["Descriptions of tools"] > 1_000
        assert 500 < parts["Conversation"] < 700


async def test_files_are_kept_in_the_conversation_and_let_go(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("milk")
    (tmp_path / "more.txt").write_text("eggs")
    session, provider = make(tmp_path, "yes", "no")
    async with session:
        assert (await run(session, "add notes.txt")).message == (
            "notes.txt is kept in the conversation (4 bytes)."
        )
        await run(session, "add more.txt")
        assert "  kept: notes.txt (4 bytes)" in (await run(session)).message
        await session.submit("hello")
        assert "milk" in str(provider.requests[0].messages)
        assert (await run(session, "remove more.txt")).message == "more.txt is not followed any more."
        assert (await run(session, "clear")).message == "1 file is not followed any more."
        assert "kept:" not in (await run(session)).message


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ("add", "Usage: /context add PATH"),
        ("remove", "Usage: /context remove PATH"),
        ("add missing.txt", "missing.txt does not exist."),
        ("remove x", "x is not among the files that are kept: there are none."),
        ("ad x", "/context knows no 'ad': did you mean 'add'?"),
        (
            "auto 85",
            "Write 85% for that part of the window. Usage: /context auto [on | off | 85% | reset]",
        ),
        (
            "auto much",
            "'much' is not a part of the window. Usage: /context auto [on | off | 85% | reset]",
        ),
        (
            "auto 0",
            "0 is not more than nothing and at most the whole window. "
            "Usage: /context auto [on | off | 85% | reset]",
        ),
        (
            "auto 120%",
            "120% is not more than nothing and at most the whole window. "
            "Usage: /context auto [on | off | 85% | reset]",
        ),
    ],
)
async def test_what_cannot_be_done_is_explained(tmp_path: Path, args: str, message: str) -> None:
    session, _ = make(tmp_path)
    async with session:
        assert await run(session, args) == CommandResult(message, success=False)
        assert not (tmp_path / "home").exists()


@pytest.mark.parametrize(("word", "threshold"), [("85%", 0.85), ("0.85", 0.85), ("1", 1.0), ("off", False)])
async def test_the_threshold_counts_at_once_and_is_kept(
    tmp_path: Path, word: str, threshold: float | bool
) -> None:
    session, _ = make(tmp_path)
    async with session:
        assert (await run(session, "auto")).message == DEFAULT
        assert (await run(session, f"auto {word}")).success
        assert session.session.auto_compact_threshold == threshold
        assert settings(tmp_path) == {"autoCompactThreshold": threshold}

        assert (await run(session, "auto reset")).message == DEFAULT
        assert session.session.auto_compact_threshold == 0.835
        assert settings(tmp_path) == {}

        assert (await run(session, "auto on")).message == DEFAULT
        assert settings(tmp_path) == {"autoCompactThreshold": 0.835}


async def test_a_language_that_is_submitted_counts_from_the_next_prompt_on(tmp_path: Path) -> None:
    session, provider = make(tmp_path, "네", "네")
    async with session:
        await session.submit("/language ko")
        await session.submit("hello")

        assert "Korean" in provider.requests[0].messages[0].content
