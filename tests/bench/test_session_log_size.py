from __future__ import annotations

import asyncio
import json
from pathlib import Path

from robota import Session, SessionOptions, create_project_session_store, tool
from robota.core.jsontext import encode
from robota.core.messages import TokenUsage
from robota.sessions import JournalOptions, PermissionRules
from robota.testing import ScriptedProvider, call

ROUNDS = 1_000
DELTA = "twenty characters ok"
OPTIONS = SessionOptions(
    permissions=PermissionRules(allow=("add",)),
    context_window=1_000_000_000,
    journal=JournalOptions(durable=False),
)


@tool
async def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def test_a_log_is_at_most_three_times_as_long_as_its_conversation(tmp_path: Path) -> None:
    rounds = [
        [DELTA] * 10 + [call("add", f"call_{number}", a=number, b=2), TokenUsage(1_000 + number, 60)]
        for number in range(ROUNDS)
    ]
    session = Session(
        provider=ScriptedProvider(*rounds, "done"),
        model="any",
        tools=[add],
        store=create_project_session_store(str(tmp_path)),
        options=OPTIONS,
    )

    asyncio.run(session.run("go"))

    lines = (tmp_path / f"{session.session_id}.jsonl").read_bytes().splitlines(keepends=True)
    native = sum(
        len(json.dumps(record["native"])) for record in map(json.loads, lines) if record.get("native")
    )
    conversation = sum(len(encode(message)) for message in session.messages)
    assert len(session.messages) == 2 * ROUNDS + 2
    assert sum(map(len, lines)) - native <= 3 * conversation
