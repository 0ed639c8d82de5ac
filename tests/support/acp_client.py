"""An editor for tests: the official client of the protocol, with a user who answers as the test says."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from acp import PROTOCOL_VERSION, spawn_agent_process
from acp.client.connection import ClientSideConnection
from acp.schema import (
    AcceptElicitationResponse,
    AllowedOutcome,
    ClientCapabilities,
    CreateTerminalResponse,
    DeniedOutcome,
    PermissionOption,
    ReadTextFileResponse,
    RequestPermissionResponse,
    TerminalExitStatus,
    TerminalOutputResponse,
    TextContentBlock,
    ToolCallUpdate,
    WaitForTerminalExitResponse,
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


class FullEditor(Editor):
    """One with files that are not saved and terminals, which are processes of its own."""

    def __init__(self, choose: Callable[[list[PermissionOption]], str | None] | None = None) -> None:
        super().__init__(choose)
        self.buffers: dict[str, str] = {}
        self.written: dict[str, str] = {}
        self.terminals: dict[str, asyncio.subprocess.Process] = {}
        self.output: dict[str, bytes] = {}
        self.commands: list[list[str]] = []
        self.released: list[str] = []

    async def read_text_file(self, session_id: str, path: str, **more: Any) -> ReadTextFileResponse:
        known = self.buffers.get(path)
        return ReadTextFileResponse(content=Path(path).read_text() if known is None else known)

    async def write_text_file(self, session_id: str, path: str, content: str, **more: Any) -> None:
        Path(path).write_text(content)
        self.buffers.pop(path, None)
        self.written[path] = content

    async def create_terminal(
        self, session_id: str, command: str, args: Any = None, env: Any = None, cwd: Any = None, **more: Any
    ) -> CreateTerminalResponse:
        id = f"term-{len(self.terminals)}"
        self.commands.append([command, *args])
        self.terminals[id] = await asyncio.create_subprocess_exec(
            command,
            *args,
            cwd=cwd,
            env={**os.environ, **{each.name: each.value for each in env}},
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        return CreateTerminalResponse(terminal_id=id)

    async def wait_for_terminal_exit(self, terminal_id: str, **more: Any) -> WaitForTerminalExitResponse:
        process = self.terminals[terminal_id]
        self.output[terminal_id], _ = await process.communicate()
        return WaitForTerminalExitResponse(exit_code=process.returncode)

    async def terminal_output(self, terminal_id: str, **more: Any) -> TerminalOutputResponse:
        code = self.terminals[terminal_id].returncode
        status = None if code is None else TerminalExitStatus(exit_code=code)
        text = self.output.get(terminal_id, b"").decode()
        return TerminalOutputResponse(output=text, truncated=False, exit_status=status)

    async def kill_terminal(self, terminal_id: str, **more: Any) -> None:
        self.terminals[terminal_id].kill()

    async def release_terminal(self, terminal_id: str, **more: Any) -> None:
        process = self.terminals[terminal_id]
        if process.returncode is None:
            process.kill()
            await process.wait()
        self.released.append(terminal_id)


class FormEditor(Editor):
    """One that shows forms; its user fills them in, one after the other."""

    def __init__(self, *contents: dict[str, Any]) -> None:
        super().__init__()
        self.forms: list[Any] = []
        self._contents = iter(contents)

    async def create_elicitation(self, message: str, mode: Any, **more: Any) -> AcceptElicitationResponse:
        self.forms.append(mode)
        return AcceptElicitationResponse(action="accept", content=next(self._contents))


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
