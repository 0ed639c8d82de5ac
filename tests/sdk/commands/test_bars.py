from __future__ import annotations

from pathlib import Path

import pytest

from robota import InteractiveSession
from robota.sdk.commands.bars import length_bar, share_bar
from robota.sdk.commands.system.usage import CHARTED, draw_turns
from robota.sessions.usage.report import TurnUsage, UsageReport
from robota.testing import ScriptedProvider


@pytest.mark.parametrize(
    ("part", "drawn"), [(0, "░░░░"), (0.001, "█░░░"), (0.5, "██░░"), (1, "████"), (7, "████"), (-1, "░░░░")]
)
def test_a_share_fills_its_bar(part: float, drawn: str) -> None:
    assert share_bar(part, 4) == drawn


@pytest.mark.parametrize(
    ("value", "drawn"), [(0, ""), (8, "████"), (4, "██"), (5, "██▌"), (0.01, "▏"), (-3, "")]
)
def test_a_length_is_drawn_to_an_eighth(value: float, drawn: str) -> None:
    assert length_bar(value, 8, 4) == drawn


@pytest.mark.anyio
async def test_context_and_usage_have_pictures(tmp_path: Path) -> None:
    provider = ScriptedProvider("One.", "Two, with more words.")
    async with InteractiveSession(provider=provider, cwd=tmp_path, model="m") as session:
        await session.submit("first")
        alone = await session.submit("/usage")
        await session.submit("second")
        context = await session.submit("/context")
        usage = await session.submit("/usage")

    assert "Tokens of each turn" not in alone.text
    assert "░" in context.text.splitlines()[1]
    assert any(line.strip().startswith("Conversation") for line in context.text.splitlines())
    assert "█" in context.text.partition("\n")[2].partition("\n")[2]
    chart = usage.text.partition("Tokens of each turn\n")[2].splitlines()
    assert [line.split()[0] for line in chart] == ["1", "2"]


def test_the_chart_shows_the_latest_turns_beside_the_largest() -> None:
    turns = tuple(TurnUsage(execution_id=str(number), input_tokens=number * 100) for number in range(1, 31))

    drawn = draw_turns(UsageReport(turns=turns, earlier_turn_count=5))

    assert len(drawn) == CHARTED + 1
    assert drawn[-1] == f"    35      3,000  {'█' * 30}"
    assert drawn[1].startswith("    16      1,100  ███████████")
