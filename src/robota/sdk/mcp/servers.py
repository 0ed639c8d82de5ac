"""`McpServers`: the servers of one session, connected beside it, and their tools in its toolset."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Any, TypeAlias

from robota.core.errors import ValidationError
from robota.core.given import suggest
from robota.core.tool import Tool
from robota.sdk.mcp.deferral import SearchPolicy, is_too_much
from robota.sdk.mcp.search_tool import ToolSearchTool, choose
from robota.tools.mcp.tool import McpTool

if TYPE_CHECKING:
    from robota.core.robota import Robota
    from robota.sessions.session import Session
    from robota.tools.mcp.connection import OpenTransport, ServerConnection
    from robota.tools.mcp.definition import ServerDefinition
    from robota.tools.mcp.open_call import FillIn, Sample

OpenRelay: TypeAlias = Callable[[str], AbstractAsyncContextManager[Any]]
"""Reaches a server of that name inside the program around the session."""

HOLD_SECONDS = 0.1
"""A new session sends its first request before it starts servers: they would take the processor from it."""
PATIENCE_SECONDS = 10.0
"""How long those who want tools now wait for servers that are still connecting."""
_SHOWN = 20


class McpServers:
    """An async context manager: its connections live as long as it is entered."""

    def __init__(
        self,
        found: set[str],
        open_transport: OpenTransport | None,
        *,
        sample: Sample | None = None,
        fill_in: FillIn | None = None,
        accepts: Callable[[str], bool] | None = None,
    ) -> None:
        """`found` are the tools that the conversation knows already. `sample` and `fill_in` do what servers
        may ask for: the model's answer, and the user's. Tools that are not accepted are not there."""
        self.connections: dict[str, ServerConnection] = {}
        self.policy = SearchPolicy()
        self._open_transport = open_transport
        self._sample = sample
        self._fill_in = fill_in
        self.accepts = accepts
        self._found = found
        self._definitions: Mapping[str, ServerDefinition] = {}
        self._off: set[str] = set()
        """Those that the user has turned off."""
        self._tools: dict[str, McpTool] = {}
        """Everything that connected servers offer, by full name."""
        self._known: dict[str, frozenset[str]] = {}
        """The tools that each server had last."""
        self._session: Session | None = None
        self._running = self._has_dropped = False
        self._closing: set[asyncio.Task[None]] = set()
        self._search = ToolSearchTool(lambda: self.connections, self.find_tools)

    def attach(self, session: Session) -> None:
        self._session = session

    async def __aenter__(self) -> McpServers:
        self._running = True
        self._connect(HOLD_SECONDS)
        return self

    async def __aexit__(self, *_: object) -> None:
        self._running = False
        closing = [asyncio.create_task(each.close()) for each in self.connections.values()]
        tasks = [*closing, *self._closing]
        if tasks:
            await asyncio.wait(tasks)

    def take(self, definitions: Mapping[str, ServerDefinition], off: frozenset[str] = frozenset()) -> None:
        """Have these servers from now on: others are disconnected, changed ones connected anew."""
        if definitions != self._definitions or off != self._off:
            self._definitions, self._off = definitions, set(off)
            if self._running:
                self._connect()

    def _connect(self, after: float = 0.0) -> None:
        wanted = {name: each for name, each in self._definitions.items() if name not in self._off}
        for name, connection in [*self.connections.items()]:
            if wanted.get(name) != connection.definition:
                self._drop(name)
        for name, definition in wanted.items():
            if name not in self.connections:
                self._add(definition, after)
        self._offer()

    def _add(self, definition: ServerDefinition, after: float) -> None:
        from robota.tools.mcp.connection import ServerConnection  # noqa: PLC0415 - for those who have servers

        roots = () if self._session is None else (self._session.cwd,)
        connection = ServerConnection(
            definition,
            self._open_transport,
            sample=self._sample,
            fill_in=self._fill_in,
            roots=roots,
            on_change=self._hear,
        )
        self.connections[definition.name] = connection
        connection.start(after)

    def _drop(self, name: str) -> None:
        connection = self.connections.pop(name)
        self._known.pop(name, None)
        self._has_dropped = True
        task = asyncio.create_task(connection.close())
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)

    # --- on somebody's word -----------------------------------------------------------------------------

    def get(self, name: str) -> ServerConnection:
        """The server of that name; one that is not there is named."""
        if name not in self.connections:
            raise ValidationError(f"There is no MCP server {name!r}; {suggest(name, self.connections)}")
        return self.connections[name]

    def reconnect(self, name: str) -> None:
        self.get(name).reconnect()

    def toggle(self, name: str, *, enabled: bool) -> None:
        """Connect or disconnect a server for the rest of the session."""
        if name not in self._definitions:
            raise ValidationError(f"There is no MCP server {name!r}; {suggest(name, self._definitions)}")
        self._off = self._off - {name} if enabled else self._off | {name}
        if self._running:
            self._connect()

    @property
    def turned_off(self) -> list[ServerDefinition]:
        return [each for name, each in self._definitions.items() if name in self._off]

    # --- tools ------------------------------------------------------------------------------------------

    def prepare(self) -> None:
        """Before a prompt: tools of servers that are gone leave, what is not there yet can be searched."""
        if self._session is None or not (self.connections or self._has_dropped):
            return  # most sessions have no servers, and every prompt comes by here
        agent = self._session.agent
        if self._has_dropped:
            self._has_dropped = False
            kept = [tool for tool in agent.toolset.tools.values() if not self._is_of_gone(tool)]
            agent.toolset = agent.toolset.renew(kept)
        if self.policy.mode != "never" and any(each.state == "pending" for each in self.connections.values()):
            self._join(agent, self._search)

    def _is_of_gone(self, tool: Tool) -> bool:
        return (isinstance(tool, McpTool) and tool.connection not in self.connections.values()) or (
            tool is self._search and not self.connections
        )

    def _hear(self, connection: ServerConnection) -> None:
        """A server is in another state, or offers something else."""
        if not self._running or self.connections.get(connection.definition.name) is not connection:
            return
        if connection.state == "connected":
            self._announce(connection)
            self._offer()
        elif connection.state in ("failed", "needs-auth"):
            self._tell(connection.describe_absence())
            self._offer()

    def _offer(self) -> None:
        """Put what is to be offered into the toolset: changed tools in their places, new ones behind."""
        self._tools = {tool.name: tool for tool in self._list_tools()}
        if self._session is None:
            return
        deferred = {tool.name for tool in self.find_deferred()}
        agent = self._session.agent
        known = agent.toolset.tools
        wanted = [tool for tool in self._tools.values() if tool.name not in deferred or tool.name in known]
        changed = {tool.name: tool for tool in wanted if known.get(tool.name, tool) is not tool}
        if changed or self._search.name in known:
            agent.toolset = agent.toolset.renew([changed.get(name, tool) for name, tool in known.items()])
        new = [tool for tool in wanted if tool.name not in known]
        self._join(agent, *new, *([self._search] if deferred else []))

    def _join(self, agent: Robota, *tools: Tool) -> None:
        agent.toolset = agent.toolset.plus(*tools)

    def _list_tools(self) -> Iterator[McpTool]:
        seen: set[str] = set()
        for connection in self.connections.values():
            for offered in connection.offer.tools.values():
                tool = McpTool(connection, offered)
                known = self._tools.get(tool.name)
                if self.accepts is not None and not self.accepts(tool.name):
                    continue
                if tool.name in seen:
                    connection.noise.complain(f"Its tool {offered.name!r} is left out: {tool.name} is taken.")
                    continue
                seen.add(tool.name)
                same = known is not None and known.connection is connection and known.offered == offered
                yield known if known is not None and same else tool

    @property
    def all_tools(self) -> list[McpTool]:
        """Whether they are in the window or found by searching."""
        return [*self._tools.values()]

    def tools_of(self, connection: ServerConnection) -> list[McpTool]:
        return [tool for tool in self._tools.values() if tool.connection is connection]

    def find_deferred(self) -> list[McpTool]:
        """What is offered only to those who search for it."""
        window = 0 if self._session is None else self._session.tracker.max_tokens
        if not window or not is_too_much(self.policy, self.costs, window):
            return []
        return [
            tool
            for tool in self._tools.values()
            if not tool.connection.definition.always_load and tool.name not in self._found
        ]

    @property
    def costs(self) -> dict[ServerConnection, int]:
        """Tokens that the tools of each server take, or would take."""
        costs = dict.fromkeys(self.connections.values(), 0)
        for tool in self._tools.values():
            costs[tool.connection] += tool.tokens
        return costs

    async def find_tools(self, query: str, limit: int) -> tuple[list[McpTool], str]:
        """The tools that fit, callable from now on, and what else whoever searches should know."""
        await self.settle()
        found = choose([*self._tools.values()], query, limit)
        self._found.update(tool.name for tool in found)
        for agent in self._agents():
            if self._search.name in agent.toolset.tools:
                self._join(agent, *found)
        absent = [name for name, each in self.connections.items() if each.state != "connected"]
        return found, f"Not connected: {', '.join(absent[:_SHOWN])}." if absent else ""

    def _agents(self) -> Iterator[Robota]:
        if self._session is not None:
            yield self._session.agent
            for child in self._session.resources.children.values():
                yield child.agent  # type: ignore[attr-defined]

    async def settle(self, seconds: float = PATIENCE_SECONDS, *, kind: str = "") -> None:
        """Wait for the first try of those that are still connecting, if wanted only of one kind."""
        waiting = [
            asyncio.create_task(each.settle(once=True))
            for each in self.connections.values()
            if each.state == "pending" and kind in ("", each.definition.kind)
        ]
        if waiting:
            try:
                await asyncio.wait(waiting, timeout=seconds)
            finally:
                for task in waiting:
                    task.cancel()

    # --- what people hear -------------------------------------------------------------------------------

    def _announce(self, connection: ServerConnection) -> None:
        """Other tools than a moment ago are something that the user should know."""
        name, now = connection.definition.name, frozenset(connection.offer.tools)
        before = self._known.get(name, now)
        self._known[name] = now
        if before != now:
            added, gone = sorted(now - before), sorted(before - now)
            parts = [f"new: {', '.join(added[:_SHOWN])}"] if added else []
            parts += [f"gone: {', '.join(gone[:_SHOWN])}"] if gone else []
            self._tell(f"The MCP server {name!r} has other tools now ({'; '.join(parts)}).")

    def _tell(self, sentence: str) -> None:
        if self._session is not None:
            self._session.log.notice(sentence)
