"""The server: lists its tools, and runs calls with progress, questions and cancellation."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Collection
from typing import TYPE_CHECKING, Any, TypeAlias

from mcp import types
from mcp.server import Server, ServerRequestContext
from mcp.shared.exceptions import MCPError

from robota._version import __version__
from robota.core.errors import RobotaError
from robota.core.messages import JsonObject
from robota.transports.mcp_server.elicitation import make_form, read_form
from robota.transports.mcp_server.live_call import Asked, Ended, LiveCall, Progress
from robota.transports.mcp_server.results import describe_end, failure
from robota.transports.mcp_server.sessions import AgentSessions
from robota.transports.mcp_server.tools import SUBMIT, list_tools, offered_commands, tool_name

if TYPE_CHECKING:
    from robota.sdk.interactive import InteractiveSession

Context: TypeAlias = ServerRequestContext[Any, Any]
CallResult: TypeAlias = types.CallToolResult | types.InputRequiredResult
QUESTION = "question"
ANSWER_SECONDS = 600.0
"""How long a client that was asked may take to come back."""


def create_agent_mcp_server(
    *,
    name: str = "robota",
    version: str = __version__,
    session: InteractiveSession | None = None,
    sessions: AgentSessions | None = None,
    expose_commands: bool | Collection[str] = True,
) -> Server[Any]:
    """An MCP server whose tools are a session: `submit`, and `command_<name>` for its commands.

    `session` is the caller's, who also runs the server, as in `async with stdio_server() as streams: await
    server.run(*streams, server.create_initialization_options())`. Of `expose_commands` a list names the
    commands to offer; otherwise those that change what the session may do are left out.
    """
    known = AgentSessions(session) if sessions is None else sessions
    agent = AgentServer(known, expose_commands)
    return Server(
        name,
        version=version,
        instructions="An agent that works in a directory of its own: give it a task with `submit`.",
        on_list_tools=agent.list_tools,
        on_call_tool=agent.call_tool,
    )


class AgentServer:
    """What the methods do."""

    def __init__(self, sessions: AgentSessions, expose: bool | Collection[str]) -> None:
        self._sessions = sessions
        self._expose = expose
        self._waiting: dict[str, LiveCall] = {}
        """Calls whose client was asked something and has not come back, by what it brings along."""

    async def list_tools(
        self, ctx: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        session = await self._sessions.first()
        await session.ready()
        return types.ListToolsResult(tools=list_tools(session, self._expose, many=self._sessions.makes_more))

    async def call_tool(self, ctx: Context, params: types.CallToolRequestParams) -> CallResult:
        try:
            if params.request_state is not None:
                return await self._go_on(ctx, params)
            return await self._begin(ctx, params.name, dict(params.arguments or {}))
        except RobotaError as error:
            return failure(str(error))

    async def _begin(self, ctx: Context, name: str, given: JsonObject) -> CallResult:
        wanted = given.get("session_id", "")
        if not isinstance(wanted, str):
            return failure("`session_id` is a text.")
        session = await self._sessions.find(wanted)
        await session.ready()
        if name == SUBMIT:
            prompt = given.get("prompt")
            if not isinstance(prompt, str) or not prompt.strip():
                return failure("`submit` needs a `prompt`: the task, in plain words.")
            verbatim = True
        else:
            found = {tool_name(each): each for each in offered_commands(session, self._expose)}
            args = given.get("args", "")
            if name not in found:
                return failure(f"There is no tool {name!r}: {SUBMIT} gives the agent a task.")
            if not isinstance(args, str):
                return failure(f"The `args` of {name} are a text.")
            prompt, verbatim = f"/{found[name].name} {args}".rstrip(), False
        asks = can_be_asked(ctx)
        return await self._follow(ctx, LiveCall(session, prompt, verbatim=verbatim, asks=asks))

    async def _go_on(self, ctx: Context, params: types.CallToolRequestParams) -> CallResult:
        call = self._waiting.pop(params.request_state or "", None)
        if call is None or call.open is None:
            return failure("Nobody waits for this answer any more: call the tool again.")
        answer = (params.input_responses or {}).get(QUESTION)
        asked, call.open = call.open, None
        if not asked.answer.done():
            given = answer if isinstance(answer, types.ElicitResult) else types.ElicitResult(action="cancel")
            asked.answer.set_result(read_form(asked.question, given))
        return await self._follow(ctx, call)

    async def _follow(self, ctx: Context, call: LiveCall) -> CallResult:
        """Until the call has ended, or its client has to be asked in another request."""
        told, kept = 0, False
        try:
            while True:
                match await call.step():
                    case Progress(text=text):
                        told += 1
                        await ctx.session.report_progress(told, message=text)
                    case Asked() as asked if ctx.session.can_send_request:
                        await self._ask(ctx, asked)
                    case Asked() as asked:
                        kept = True
                        return self._put_off(call, asked)
                    case Ended() as ended:
                        kept = True
                        return describe_end(call, ended)
        finally:
            if not kept:
                call.stop()

    async def _ask(self, ctx: Context, asked: Asked) -> None:
        form = make_form(asked.question)
        try:
            given = await ctx.session.elicit_form(form.message, form.requested_schema, ctx.request_id)
        except (MCPError, ValueError):  # it could not ask, or answered with something else
            given = types.ElicitResult(action="cancel")
        if not asked.answer.done():
            asked.answer.set_result(read_form(asked.question, given))

    def _put_off(self, call: LiveCall, asked: Asked) -> types.InputRequiredResult:
        """The client comes back with the answer, or the question is closed after a while."""
        state = secrets.token_urlsafe(24)
        self._waiting[state] = call
        call.open = asked
        asyncio.get_running_loop().call_later(ANSWER_SECONDS, self._give_up, state)
        request = types.ElicitRequest(params=make_form(asked.question))
        return types.InputRequiredResult(input_requests={QUESTION: request}, request_state=state)

    def _give_up(self, state: str) -> None:
        call = self._waiting.pop(state, None)
        if call is not None:
            call.stop()


def can_be_asked(ctx: Context) -> bool:
    """Whether the client has somebody who fills in forms."""
    capabilities = ctx.session.client_capabilities
    return capabilities is not None and capabilities.elicitation is not None
