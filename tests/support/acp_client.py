"""An editor for tests: the official client of the protocol, with a user who answers as the test says."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from acp import PROTOCOL_VERSION, spawn_agent_process
from acp.client.connection import ClientSideConnection
from acp.schema import (
    AllowedOutcome,
    ClientCapabilities,
    DeniedOutcome,
    PermissionOption,
    RequestPermissionResponse,
    TextContentBlock,
    ToolCallUpdate,
)
from tests.support.command import environment, place

from robota.testing.model_server import ModelServer


class Editor:
    """Notes what it is told; `choose` answers questions with the id of an option, `None` cancels."""

    def __init__(self, choose: Callable[[list[PermissionOption]], str | None] | None = None) -> None:
        self.updates: list[tuple[str, Any]] = []
        self.asked: list[tuple[ToolCallUpdate, list[PermissionOption]]] = []
        self._choose = choose
        self._changed = asyncio.Condition()

    def on_connect(self, conn: Any) -> None: ...

    async def session_update(self, session_id: str, update: Any, **more: Any) -> None:
        self.updates.append((session_id, update))
        async with self._changed:
            self._changed.notify_all()

    async def request_permission(
        self, session_id: str, tool_call: ToolCallUpdate, options: list[PermissionOption], **more: Any
    ) -> RequestPermissionResponse:
        self.asked.append((tool_call, options))
        async with self._changed:
            self._changed.notify_all()
        chosen = options[0].option_id if self._choose is None else self._choose(options)
        if chosen is None:
            return RequestPermissionResponse(outcome=DeniedOutcome(outcome="cancelled"))
        return RequestPermissionResponse(outcome=AllowedOutcome(outcome="selected", option_id=chosen))

    async def until(self, happened: Callable[[], bool]) -> None:
        async with asyncio.timeout(30), self._changed:
            await self._changed.wait_for(happened)

    def shown(self, kind: str, session_id: str | None = None) -> list[Any]:
        return [
            update
            for owner, update in self.updates
            if update.session_update == kind and session_id in (None, owner)
        ]

    def text(self, kind: str = "agent_message_chunk") -> str:
        return "".join(update.content.text for update in self.shown(kind))


@asynccontextmanager
async def connected(
    editor: Any, server: ModelServer, cwd: Path, *options: str, **capabilities: Any
) -> AsyncIterator[ClientSideConnection]:
    """A real `robota acp`, introduced to the editor."""
    async with spawn_agent_process(
        editor,
        sys.executable,
        "-m",
        "robota",
        "acp",
        *options,
        cwd=cwd,
        env=environment(**place(server)),
        transport_kwargs={"stderr": None, "shutdown_timeout": 20.0},
        use_unstable_protocol=True,
    ) as (connection, process):
        connection.process = process  # type: ignore[attr-defined]
        await connection.initialize(PROTOCOL_VERSION, ClientCapabilities(**capabilities))
        yield connection


def words(text: str) -> list[TextContentBlock]:
    return [TextContentBlock(type="text", text=text)]
