"""What plugins cost a turn: with all eight, with telemetry, with one that overrides nothing, beside none.

    python bench/plugins.py [--quick]

A turn is a prompt, a reply with two tool calls, their results and the answer, in an `InteractiveSession`. The
sides take turns in one process; the smallest sample counts. Posts and writes happen beside the run and are
not a part of it. A missed goal is no failure.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
import time
from collections.abc import AsyncGenerator
from pathlib import Path

from robota import InteractiveSession, Plugin, tool
from robota.core.messages import TokenUsage, ToolCall
from robota.core.provider import Capabilities, ChatRequest, Chunk, StopChunk, TextChunk
from robota.plugins import (
    ConversationHistoryPlugin,
    ErrorHandlingPlugin,
    ExecutionAnalyticsPlugin,
    LimitsPlugin,
    LoggingPlugin,
    PerformancePlugin,
    TelemetryPlugin,
    UsagePlugin,
    WebhookPlugin,
)

GOAL = 2.0
FOREVER = 1_000_000
WORDS = 40


@tool
async def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


class Instant:
    """Answers at once, from memory: two calls, then forty words."""

    name = "instant"
    capabilities = Capabilities()

    async def stream(self, request: ChatRequest) -> AsyncGenerator[Chunk, None]:
        asked = request.messages[-1].role == "user"
        if asked:
            for number in range(2):
                yield ToolCall(id=f"c{number}", name="add", arguments='{"a":1,"b":2}')
        else:
            for _ in range(WORDS):
                yield TextChunk("word ")
        yield TokenUsage(1000, 100)
        yield StopChunk("tool_use" if asked else "end_turn")


class Nothing(Plugin):
    """Overrides no hook."""

    name = "nothing"


def all_eight(directory: Path) -> list[Plugin]:
    return [
        ConversationHistoryPlugin(strategy="file", path=directory / "history.jsonl", save_interval=FOREVER),
        LoggingPlugin(strategy="file", path=directory / "log.jsonl", flush_interval=FOREVER),
        UsagePlugin(strategy="sqlite", path=directory / "usage.db", flush_interval=FOREVER),
        PerformancePlugin(),
        ExecutionAnalyticsPlugin(),
        ErrorHandlingPlugin(strategy="circuit-breaker"),
        LimitsPlugin(strategy="sliding-window", max_tokens=10**12, max_requests=FOREVER, max_cost=FOREVER),
        WebhookPlugin(
            url="https://hook.invalid/x",
            batching=True,
            batch_size=FOREVER,
            batch_interval=FOREVER,
            max_retries=0,
        ),
    ]


async def measure(repeats: int) -> dict[str, float]:
    """Seconds of a turn by side."""
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        plugins: dict[str, list[Plugin]] = {
            "no plugin": [],
            "one that overrides nothing": [Nothing()],
            "telemetry without an SDK": [TelemetryPlugin()],
            "all eight": all_eight(directory),
        }
        sessions = {
            side: InteractiveSession(
                cwd=directory,
                provider=Instant(),
                model="scripted",
                permission_mode="bypassPermissions",
                tools=[add],
                plugins=given,
                environment={"HOME": str(directory)},
            )
            for side, given in plugins.items()
        }
        times: dict[str, list[float]] = {side: [] for side in sessions}
        for number in range(repeats):
            for side, session in sessions.items():
                began = time.perf_counter()
                await session.submit("Add them.")
                times[side].append(time.perf_counter() - began)
                if number % 50 == 49:
                    session.session.clear_history()
        for session in sessions.values():
            await session.shutdown()
    return {side: min(taken[repeats // 10 :]) for side, taken in times.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    quick = parser.parse_args().quick
    found = asyncio.run(measure(100 if quick else 600))
    floor = found["no plugin"]
    for side, seconds in found.items():
        goal = f"  (goal {GOAL}x)" if side == "all eight" else ""
        print(f"turn with two tools, {side:<28} {seconds * 1000:8.3f} ms {seconds / floor:6.2f}x{goal}")


if __name__ == "__main__":
    main()
