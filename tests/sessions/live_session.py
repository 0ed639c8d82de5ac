"""A real session on real files with a scripted model, and everything that it told."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeVar

from tests.support.history import assert_valid_for_a_request
from tests.support.session_options import session_options

from robota.core.events import Event, Noticed, ReplayEvent, TurnEvent
from robota.core.messages import JsonObject
from robota.core.tool import Tool
from robota.sessions.files import REAL_FILES, Files
from robota.sessions.journal.session_logger import FileSessionLogger
from robota.sessions.log.conversation_restore import RestoredConversation, restore_conversation
from robota.sessions.log.session_log import SessionLogEntries, load_session_log_entries
from robota.sessions.session import Session
from robota.sessions.store.session_store import SessionStore
from robota.testing import ScriptedProvider
from robota.tools.function_tool import tool

E = TypeVar("E", bound=Event)


@tool
async def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


class Studio:
    """`home` has the project the session works in, the directory it is kept in, and what its hooks heard."""

    def __init__(
        self,
        home: Path,
        *replies: Any,
        provider: Any = None,
        tools: Sequence[Tool] = (add,),
        session_id: str = "s-1",
        model: str = "scripted",
        handler: Any = None,
        conversation: Any = None,
        files: Files = REAL_FILES,
        system: str | None = "You are terse.",
        keep: bool = True,
        **options: Any,
    ) -> None:
        self.home = home
        self.kept = home / "sessions"
        self.project = home / "project"
        self.project.mkdir(exist_ok=True)
        self.provider = provider or ScriptedProvider(*replies)
        if files is not REAL_FILES:
            options["logger"] = FileSessionLogger(str(self.kept), session_id, files=files)
        options = {"context_window": 100_000, **options}
        self.session = Session(
            provider=self.provider,
            model=model,
            tools=tools,
            system_message=system,
            cwd=str(self.project),
            store=SessionStore(self.kept, files=files) if keep else None,
            permission_handler=handler,
            session_id=session_id,
            conversation=conversation,
            options=session_options(**options),
        )
        self.events: list[Event] = []
        self.session.events.on(TurnEvent, self.events.append)

    # --- what happened ----------------------------------------------------------------------------------

    def told(self, kind: type[E]) -> list[E]:
        return [event for event in self.events if isinstance(event, kind)]

    @property
    def notices(self) -> list[str]:
        return [event.message for event in self.told(Noticed)]

    def listen(self, *kinds: type[ReplayEvent]) -> list[Event]:
        """Events of these kinds from now on."""
        heard: list[Event] = []
        for kind in kinds:
            self.session.events.on(kind, heard.append)
        return heard

    # --- hooks ------------------------------------------------------------------------------------------

    @property
    def fired(self) -> list[JsonObject]:
        """The input of every hook made by `heard`, in order."""
        return fired(self.home)

    # --- on disk ----------------------------------------------------------------------------------------

    @property
    def path(self) -> Path:
        return self.kept / f"{self.session.session_id}.jsonl"

    @property
    def records(self) -> list[JsonObject]:
        return [json.loads(line) for line in self.path.read_bytes().splitlines()]

    @property
    def record_names(self) -> list[str]:
        return [record["event"] for record in self.records]

    @property
    def saved_messages(self) -> list[JsonObject]:
        """The messages of the snapshot."""
        path = self.path.with_suffix(".json")
        return list(json.loads(path.read_bytes())["messages"]) if path.exists() else []

    def restored(self) -> RestoredConversation:
        return restore_conversation(str(self.path), session_id=self.session.session_id)

    def log(self) -> SessionLogEntries:
        return load_session_log_entries(self.path)

    def assert_journal_is_good(self) -> None:
        """It reads without a problem, and gives the conversation that is in memory."""
        restored, log = self.restored(), self.log()
        assert restored.problems == ()
        assert log.problems == ()
        assert [m.id for m in restored.messages] == [m.id for m in self.session.messages]
        assert restored.messages == self.session.messages
        assert_valid_for_a_request(restored.store.messages_for_api())

    def resume(self, *replies: Any, **options: Any) -> Studio:
        """The same session again, from its journal."""
        name = self.session.session_id
        return Studio(self.home, *replies, session_id=name, conversation=self.restored().store, **options)


def listen_to(home: Path, *events: str, then: str = "") -> JsonObject:
    """Hooks that write down what they are told, and then run a command."""
    return {event: [heard(home, then)] for event in events}


def heard(home: Path, then: str = "") -> JsonObject:
    return run(f"(cat; echo) >> {home}/fired.jsonl; {then}")


def run(command: str, **more: Any) -> JsonObject:
    return {"hooks": [{"type": "command", "command": command, "timeout": 30, **more}]}


def fired(home: Path) -> list[JsonObject]:
    path = home / "fired.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines() if line] if path.exists() else []


def names_of(inputs: Sequence[JsonObject]) -> list[str]:
    return [told["hook_event_name"] for told in inputs]


def all_bytes(home: Path) -> bytes:
    """Everything that is in any file below a directory."""
    return b"\n".join(path.read_bytes() for path in sorted(home.rglob("*")) if path.is_file())
