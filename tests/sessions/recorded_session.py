"""A session that is recorded while it runs, to be read back and run again."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

import msgspec
from tests.support.session_options import session_options

from robota.core.errors import RobotaError
from robota.core.event_names import event_to_wire
from robota.core.events import EVENT_TYPES, Event, ToolProgressed, TurnEvent
from robota.core.messages import JsonObject
from robota.core.tool import Tool
from robota.providers.openai_compatible import OpenAICompatibleProvider
from robota.sessions.journal.entries import SessionLogEntries, load_session_log_entries
from robota.sessions.permissions.live_rules import PermissionRules
from robota.sessions.replay.session_replay import ReplayReport, replay_session
from robota.sessions.session import Session
from robota.sessions.start import restore_journal
from robota.sessions.store.session_store import SessionStore
from robota.testing import ModelServer, ScriptedProvider
from robota.tools.function_tool import tool

E = TypeVar("E", bound=Event)
FREE = PermissionRules(mode="bypassPermissions")


@tool
async def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


class RecordedSession:
    """`events` are all events of the session, of every type, as they happened."""

    def __init__(
        self,
        home: Path,
        provider: Any,
        *,
        tools: Sequence[Tool] = (add,),
        session_id: str = "s-1",
        handler: Any = None,
        system: str | None = "You are terse.",
        model: str = "scripted",
        **options: Any,
    ) -> None:
        self.home = home
        self.path = home / "sessions" / f"{session_id}.jsonl"
        before = restore_journal(str(self.path)).conversation if self.path.exists() else None
        options = {"context_window": 100_000, "rules": FREE, **options}
        self.session = Session(
            provider=provider,
            model=model,
            tools=tools,
            system_message=system,
            cwd=str(home),
            store=SessionStore(home / "sessions"),
            permission_handler=handler,
            session_id=session_id,
            conversation=before,
            options=session_options(**options),
        )
        self.events: list[Event] = []
        for kind in EVENT_TYPES.values():
            self.session.events.on(kind, self.events.append)

    async def run(self, *prompts: Any) -> None:
        """Each prompt to its end, whatever that is."""
        for prompt in prompts:
            with suppress(RobotaError):
                await self.session.run(prompt)

    def told(self, kind: type[E]) -> list[E]:
        return [event for event in self.events if isinstance(event, kind)]

    def log(self) -> SessionLogEntries:
        return load_session_log_entries(self.path)


def scripted(home: Path, *replies: Any, **options: Any) -> RecordedSession:
    return RecordedSession(home, ScriptedProvider(*replies), **options)


@asynccontextmanager
async def served(home: Path, *replies: Any, **options: Any) -> AsyncIterator[RecordedSession]:
    """A session whose model is a real server on the loopback interface."""
    async with (
        ModelServer(*replies) as server,
        OpenAICompatibleProvider("test", f"{server.url}/v1", "scripted") as provider,
    ):
        yield RecordedSession(home, provider, **options)


def turn_events(events: Sequence[Event], *, numbered: bool = True) -> list[JsonObject]:
    """What a front end was told, except for the progress of tools, which is not recorded."""
    told = [
        event for event in events if isinstance(event, TurnEvent) and not isinstance(event, ToolProgressed)
    ]
    return [event_to_wire(event) if numbered else {**event_to_wire(event), "seq": 0} for event in told]


async def assert_replays(recorded: RecordedSession, *earlier: RecordedSession) -> ReplayReport:
    """The same messages, the same events in the same order, the same log."""
    heard: list[TurnEvent] = []
    report = await replay_session(recorded.path, on_event=heard.append)
    assert report.divergence is None, str(report.divergence)
    assert report.messages == tuple(recorded.session.messages)
    live = [event for part in (*earlier, recorded) for event in part.events]
    numbered = not any(isinstance(event, ToolProgressed) for event in live)
    assert turn_events(heard, numbered=numbered) == turn_events(live, numbered=numbered)
    return report


def rewrite(source: Path, target: Path, change: Callable[[JsonObject], JsonObject | None]) -> Path:
    """A copy of a journal in which some records are others or missing, as if it had been written so."""
    from zlib import crc32

    target.parent.mkdir(parents=True, exist_ok=True)
    payloads = source.with_suffix(".payloads")
    if payloads.exists():
        import shutil

        shutil.copytree(payloads, target.with_suffix(".payloads"), dirs_exist_ok=True)
    lines, seq = [], 0
    for line in source.read_bytes().splitlines():
        record = change(msgspec.json.decode(line))
        if record is None:
            continue
        seq += 1
        record["seq"] = seq
        del record["crc"]
        body = msgspec.json.encode(record)[1:]
        lines.append(b'{"crc":"%08x",%s\n' % (crc32(body), body))
    target.write_bytes(b"".join(lines))
    return target
