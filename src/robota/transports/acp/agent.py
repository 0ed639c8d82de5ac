"""The agent side of the protocol: what each method does."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

from acp.meta import PROTOCOL_VERSION
from acp.schema import (
    AgentCapabilities,
    AuthenticateRequest,
    CancelNotification,
    CloseSessionRequest,
    DeleteSessionRequest,
    ForkSessionRequest,
    ForkSessionResponse,
    Implementation,
    InitializeRequest,
    InitializeResponse,
    ListSessionsRequest,
    ListSessionsResponse,
    LoadSessionRequest,
    LoadSessionResponse,
    McpCapabilities,
    NewSessionRequest,
    NewSessionResponse,
    PromptCapabilities,
    PromptRequest,
    ResumeSessionRequest,
    ResumeSessionResponse,
    SessionAdditionalDirectoriesCapabilities,
    SessionCapabilities,
    SessionCloseCapabilities,
    SessionDeleteCapabilities,
    SessionForkCapabilities,
    SessionInfo,
    SessionListCapabilities,
    SessionResumeCapabilities,
    SetSessionConfigOptionResponse,
    SetSessionConfigOptionSelectRequest,
    SetSessionModeRequest,
    TerminalAuthMethod,
)
from anyio import to_thread
from pydantic import BaseModel

from robota._version import __version__
from robota.core.errors import SessionNotFoundError
from robota.core.messages import JsonObject
from robota.transports.acp.client import AcpClient, dump, read
from robota.transports.acp.client_files import ClientFiles
from robota.transports.acp.client_terminal import ClientTerminal
from robota.transports.acp.mcp_servers import read_servers
from robota.transports.acp.modes import MODEL, describe_modes, describe_options
from robota.transports.acp.peer import INVALID_PARAMS, METHOD_NOT_FOUND, Peer, RpcError
from robota.transports.acp.session import AcpSession
from robota.transports.session_maker import SessionMaker, SessionWish, made_ready

PAGE = 50
"""Sessions that are listed at once."""
SETUP = "setup"
Opening: TypeAlias = NewSessionRequest | LoadSessionRequest | ResumeSessionRequest | ForkSessionRequest
Method: TypeAlias = Callable[[Any], Awaitable[BaseModel | None]]


class AcpAgent:
    """The sessions of one connection."""

    def __init__(self, host: SessionMaker, write: Callable[[bytes], None]) -> None:
        self._host = host
        self.peer = Peer(write, self._serve)
        self._client = AcpClient(self.peer)
        self._sessions: dict[str, AcpSession] = {}
        self._opening: dict[str, asyncio.Lock] = {}
        self._methods: dict[str, tuple[type[BaseModel], Method]] = {
            "initialize": (InitializeRequest, self._initialize),
            "authenticate": (AuthenticateRequest, self._authenticate),
            "session/new": (NewSessionRequest, self._new),
            "session/load": (LoadSessionRequest, self._load),
            "session/resume": (ResumeSessionRequest, self._resume),
            "session/fork": (ForkSessionRequest, self._fork),
            "session/list": (ListSessionsRequest, self._list),
            "session/delete": (DeleteSessionRequest, self._delete),
            "session/close": (CloseSessionRequest, self._close),
            "session/prompt": (PromptRequest, self._prompt),
            "session/cancel": (CancelNotification, self._cancel),
            "session/set_mode": (SetSessionModeRequest, self._set_mode),
            "session/set_config_option": (SetSessionConfigOptionSelectRequest, self._set_option),
        }

    async def _serve(self, method: str, params: JsonObject, wanted: bool) -> JsonObject:
        known = self._methods.get(method)
        if known is None:
            raise RpcError(METHOD_NOT_FOUND, f"There is no method {method}.")
        kind, act = known
        answer = await act(read(kind, params, method))
        return {} if answer is None else dump(answer)

    async def close(self) -> None:
        """The client has left: stop what runs, save everything."""
        self.peer.close()
        sessions = tuple(self._sessions.values())
        self._sessions.clear()
        if sessions:
            tasks = [asyncio.ensure_future(session.close()) for session in sessions]
            await asyncio.wait(tasks)

    # --- the connection ----------------------------------------------------------------------------------

    async def _initialize(self, request: InitializeRequest) -> InitializeResponse:
        if request.client_capabilities is not None:
            self._client.can = request.client_capabilities
        auth = self._client.can.auth
        methods = [
            TerminalAuthMethod(
                type="terminal",
                id=SETUP,
                name="Set up a provider",
                description="Choose who answers and give a key, in a terminal",
                args=["setup"],
            )
        ]
        return InitializeResponse(
            protocol_version=PROTOCOL_VERSION,
            agent_info=Implementation(name="robota", title="robota", version=__version__),
            agent_capabilities=AgentCapabilities(
                load_session=self._host.store is not None,
                prompt_capabilities=PromptCapabilities(image=True, audio=False, embedded_context=True),
                mcp_capabilities=McpCapabilities(http=True, sse=True),
                session_capabilities=self._describe_sessions(),
            ),
            auth_methods=list(methods) if auth is not None and auth.terminal else [],
        )

    def _describe_sessions(self) -> SessionCapabilities:
        directories, close = SessionAdditionalDirectoriesCapabilities(), SessionCloseCapabilities()
        if self._host.store is None:
            return SessionCapabilities(additional_directories=directories, close=close)
        return SessionCapabilities(
            list=SessionListCapabilities(),
            delete=SessionDeleteCapabilities(),
            additional_directories=directories,
            fork=SessionForkCapabilities(),
            resume=SessionResumeCapabilities(),
            close=close,
        )

    async def _authenticate(self, request: AuthenticateRequest) -> None:
        if request.method_id != SETUP:
            raise RpcError(INVALID_PARAMS, f"There is no way to authenticate called {request.method_id!r}.")
        await self._host.choose_provider_again()

    # --- sessions ----------------------------------------------------------------------------------------

    def _find(self, session_id: str) -> AcpSession:
        found = self._sessions.get(session_id)
        if found is None:
            raise SessionNotFoundError(
                f"There is no open session {session_id}: session/new, session/load or session/resume first."
            )
        return found

    async def _open(self, request: Opening, resume: str | None = None, *, fork: bool = False) -> AcpSession:
        cwd = request.cwd
        if not os.path.isabs(cwd):
            raise RpcError(INVALID_PARAMS, f"cwd is an absolute path, not {cwd!r}.")
        files = ClientFiles(self._client)
        terminal = ClientTerminal(self._client, lambda call, id: opened.updates.show_terminal(call, id))
        more = tuple(request.additional_directories or ())
        session = await self._host.open(
            SessionWish(cwd=cwd, resume=resume, fork=fork, add_dirs=more),
            mcp_servers=read_servers(request.mcp_servers or ()),
            editor=files,
            terminal=terminal,
        )
        files.session_id = terminal.session_id = session.session_id
        await made_ready(session)
        opened = AcpSession(session, self._client, self._host.models())
        self._sessions[session.session_id] = opened
        asyncio.get_running_loop().call_soon(opened.announce)  # after the answer that tells its id
        return opened

    async def _reopen(self, session_id: str, request: Opening) -> AcpSession:
        """The session of the store, or the one that is open already. Two who ask at once get the same."""
        async with self._opening.setdefault(session_id, asyncio.Lock()):
            known = self._sessions.get(session_id)
            return known or await self._open(request, session_id)

    async def _new(self, request: NewSessionRequest) -> NewSessionResponse:
        opened = await self._open(request)
        return NewSessionResponse(session_id=opened.session.session_id, **self._describe(opened))

    async def _load(self, request: LoadSessionRequest) -> LoadSessionResponse:
        opened = await self._reopen(request.session_id, request)
        opened.tell_history()
        return LoadSessionResponse(**self._describe(opened))

    async def _resume(self, request: ResumeSessionRequest) -> ResumeSessionResponse:
        opened = await self._reopen(request.session_id, request)
        return ResumeSessionResponse(**self._describe(opened))

    async def _fork(self, request: ForkSessionRequest) -> ForkSessionResponse:
        opened = await self._open(request, request.session_id, fork=True)
        return ForkSessionResponse(session_id=opened.session.session_id, **self._describe(opened))

    def _describe(self, opened: AcpSession) -> dict[str, Any]:
        return {
            "modes": describe_modes(opened.session),
            "config_options": describe_options(opened.session, opened.models),
        }

    async def _list(self, request: ListSessionsRequest) -> ListSessionsResponse:
        store = self._host.store
        if store is None:
            return ListSessionsResponse(sessions=[])
        begin = _read_cursor(request.cursor)
        found = await to_thread.run_sync(store.list, request.cwd)
        usable = [each for each in found if not each.problem]
        page = [
            SessionInfo(
                session_id=each.id,
                cwd=each.cwd,
                title=each.name or each.preview or None,
                updated_at=each.updated_at or None,
            )
            for each in usable[begin : begin + PAGE]
        ]
        more = begin + PAGE < len(usable)
        return ListSessionsResponse(sessions=page, next_cursor=str(begin + PAGE) if more else None)

    async def _delete(self, request: DeleteSessionRequest) -> None:
        store = self._host.store
        open_one = self._sessions.pop(request.session_id, None)
        if open_one is not None:
            await open_one.close()
        if store is None or not await to_thread.run_sync(store.exists, request.session_id):
            if open_one is None:
                raise SessionNotFoundError(f"There is no session {request.session_id}.")
            return
        await to_thread.run_sync(store.delete, request.session_id)

    async def _close(self, request: CloseSessionRequest) -> None:
        opened = self._find(request.session_id)
        del self._sessions[request.session_id]
        await opened.close()

    # --- turns -------------------------------------------------------------------------------------------

    async def _prompt(self, request: PromptRequest) -> BaseModel:
        return await self._find(request.session_id).prompt(request.prompt)

    async def _cancel(self, request: CancelNotification) -> None:
        self._find(request.session_id).cancel()

    async def _set_mode(self, request: SetSessionModeRequest) -> None:
        await self._find(request.session_id).session.switch_mode(request.mode_id)

    async def _set_option(
        self, request: SetSessionConfigOptionSelectRequest
    ) -> SetSessionConfigOptionResponse:
        opened = self._find(request.session_id)
        if request.config_id != MODEL:
            raise RpcError(INVALID_PARAMS, f"There is no option {request.config_id!r}, only {MODEL!r}.")
        opened.session.session.set_model(request.value)
        options: Any = describe_options(opened.session, opened.models)
        return SetSessionConfigOptionResponse(config_options=options)


def _read_cursor(cursor: str | None) -> int:
    if cursor is None:
        return 0
    if not cursor.isdecimal():
        raise RpcError(INVALID_PARAMS, f"The cursor {cursor!r} is not one that session/list gave.")
    return int(cursor)
