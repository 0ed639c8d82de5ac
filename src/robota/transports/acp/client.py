"""The editor at the other end: what it can do, and what can be asked of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias, TypeVar

from acp.schema import (
    AgentMessageChunk,
    AgentPlanUpdate,
    AgentThoughtChunk,
    AvailableCommandsUpdate,
    ClientCapabilities,
    ConfigOptionUpdate,
    CreateTerminalRequest,
    CreateTerminalResponse,
    CurrentModeUpdate,
    KillTerminalRequest,
    PermissionOption,
    ReadTextFileRequest,
    ReadTextFileResponse,
    ReleaseTerminalRequest,
    RequestPermissionRequest,
    RequestPermissionResponse,
    SessionInfoUpdate,
    SessionNotification,
    TerminalOutputRequest,
    TerminalOutputResponse,
    ToolCallProgress,
    ToolCallStart,
    ToolCallUpdate,
    UsageUpdate,
    UserMessageChunk,
    WaitForTerminalExitRequest,
    WriteTextFileRequest,
)
from pydantic import BaseModel, ValidationError

from robota.core.messages import Json, JsonObject
from robota.transports.acp.peer import INVALID_PARAMS, Peer, RpcError

M = TypeVar("M", bound=BaseModel)
Update: TypeAlias = (
    UserMessageChunk | AgentMessageChunk | AgentThoughtChunk | ToolCallStart | ToolCallProgress
    | AgentPlanUpdate | AvailableCommandsUpdate | CurrentModeUpdate | ConfigOptionUpdate
    | SessionInfoUpdate | UsageUpdate
)  # fmt: skip


class AcpClient:
    """Asks in the types of the protocol."""

    def __init__(self, peer: Peer) -> None:
        self.peer = peer
        self.can = ClientCapabilities()
        """What it said that it can do."""

    def update(self, session_id: str, update: Update) -> None:
        """Tell it what happens in a session."""
        self.peer.tell("session/update", dump(SessionNotification(session_id=session_id, update=update)))

    async def choose(
        self, session_id: str, call: ToolCallUpdate, options: Sequence[PermissionOption]
    ) -> str | None:
        """The id of the option that the user chose; `None` if they were stopped."""
        request = RequestPermissionRequest(session_id=session_id, tool_call=call, options=list(options))
        given = await self.peer.ask("session/request_permission", dump(request))
        outcome = read(RequestPermissionResponse, given, "session/request_permission").outcome
        return outcome.option_id if outcome.outcome == "selected" else None

    @property
    def shows_forms(self) -> bool:
        return self.can.elicitation is not None and self.can.elicitation.form is not None

    async def fill_in(self, session_id: str, call_id: str, message: str, schema: JsonObject) -> Json:
        """What the user filled in, or that they would not."""
        request = {"sessionId": session_id, "mode": "form", "message": message, "requestedSchema": schema}
        return await self.peer.ask(
            "elicitation/create", {**request, **({"toolCallId": call_id} if call_id else {})}
        )

    # --- files -------------------------------------------------------------------------------------------

    async def read_file(self, session_id: str, path: str) -> str:
        """What a file holds in the editor, unsaved changes included."""
        request = ReadTextFileRequest(session_id=session_id, path=path)
        given = await self.peer.ask("fs/read_text_file", dump(request))
        return read(ReadTextFileResponse, given, "fs/read_text_file").content

    async def write_file(self, session_id: str, path: str, text: str) -> bool:
        """True when it is done."""
        request = WriteTextFileRequest(session_id=session_id, path=path, content=text)
        await self.peer.ask("fs/write_text_file", dump(request))
        return True

    # --- terminals ---------------------------------------------------------------------------------------

    async def create_terminal(self, request: CreateTerminalRequest) -> str:
        """Begin a command; the id of its terminal."""
        given = await self.peer.ask("terminal/create", dump(request))
        return read(CreateTerminalResponse, given, "terminal/create").terminal_id

    async def wait_for_terminal(self, session_id: str, terminal_id: str) -> None:
        request = WaitForTerminalExitRequest(session_id=session_id, terminal_id=terminal_id)
        await self.peer.ask("terminal/wait_for_exit", dump(request))

    async def read_terminal(self, session_id: str, terminal_id: str) -> TerminalOutputResponse:
        request = TerminalOutputRequest(session_id=session_id, terminal_id=terminal_id)
        given = await self.peer.ask("terminal/output", dump(request))
        return read(TerminalOutputResponse, given, "terminal/output")

    async def kill_terminal(self, session_id: str, terminal_id: str) -> None:
        request = KillTerminalRequest(session_id=session_id, terminal_id=terminal_id)
        await self.peer.ask("terminal/kill", dump(request))

    async def release_terminal(self, session_id: str, terminal_id: str) -> None:
        """The editor ends what still runs in it."""
        request = ReleaseTerminalRequest(session_id=session_id, terminal_id=terminal_id)
        await self.peer.ask("terminal/release", dump(request))


def dump(model: BaseModel) -> JsonObject:
    return model.model_dump(mode="json", by_alias=True, exclude_none=True)


def read(kind: type[M], given: Json, method: str) -> M:
    """What came with a method, if it is what the protocol says; else one sentence about the first fault."""
    try:
        return kind.model_validate(given)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"])) or "params"
        raise RpcError(INVALID_PARAMS, f"{method}: {place}: {first['msg']}.") from error
