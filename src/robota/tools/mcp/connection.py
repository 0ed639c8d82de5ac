"""`ServerConnection`: one MCP server, connected in the background and kept connected.

One task of its own enters and leaves everything that belongs to the connection. Whoever calls a tool waits
for it at most the server's start timeout. A server that dies is started again, ever later; its calls fail at
once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, suppress
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar

from anyio import to_thread

from robota.core.errors import ConfigurationError
from robota.core.messages import JsonObject
from robota.core.run_task import is_cancelled
from robota.core.tool import ToolContext, ToolResult
from robota.tools.mcp.definition import ServerDefinition
from robota.tools.mcp.failure import Noise, ServerError, explain
from robota.tools.mcp.offer import Offer, read_offer
from robota.tools.mcp.open_call import Answers, FillIn, OpenCall, Sample, ask_user

if TYPE_CHECKING:
    from mcp.client import Client
    from mcp.client.session import IncomingMessage

T = TypeVar("T")
ServerState: TypeAlias = Literal["pending", "connected", "failed", "needs-auth", "disabled"]
OpenTransport: TypeAlias = Callable[[ServerDefinition, Noise], AbstractAsyncContextManager[Any]]

MAX_FAILURES = 4
"""In a row, after which nobody tries again by themselves."""
FIRST_DELAY = 0.5
MAX_DELAY = 30.0
STEADY_SECONDS = 10.0
"""A connection that lived so long, or answered a call, was none of the failures in a row."""
RELIST_SECONDS = 0.2
"""Between two looks at lists that keep changing."""
CLOSING_SECONDS = 4.0
_MODES = ("legacy", "auto")
"""The handshake first: every server of today knows it, and some take what comes before it badly."""
_HOPELESS = (FileNotFoundError, PermissionError, NotADirectoryError, ValueError, ConfigurationError)
"""What trying again does not mend."""


class ServerConnection:
    """Made for one definition; another definition is another connection."""

    def __init__(
        self,
        definition: ServerDefinition,
        open_transport: OpenTransport | None = None,
        *,
        sample: Sample | None = None,
        fill_in: FillIn | None = None,
        roots: tuple[str, ...] = (),
        on_change: Callable[[ServerConnection], None] | None = None,
    ) -> None:
        """`on_change` is told whenever the state or the offer is another one."""
        self.definition = definition
        self.state: ServerState = "pending"
        self.error = ""
        """Why it is not connected, in one sentence."""
        self.offer = Offer()
        self.noise = Noise()
        self.starts = 0
        self._open_transport = open_transport
        self._answers = Answers(sample, fill_in or ask_user, roots)
        self._on_change = on_change or (lambda _: None)
        self._client: Client | None = None
        self._settled = asyncio.Event()  # connected, or nobody tries any more
        self._tried = asyncio.Event()  # connected, or failed once
        self._news = asyncio.Event()
        self._ended = self._stale = self._wanted_again = self._proved = False
        self._stop = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    # --- life -------------------------------------------------------------------------------------------

    def start(self, after: float = 0.0) -> None:
        """Begin to connect, now or after some seconds; returns at once."""
        self._task = asyncio.create_task(self._own(after), name=f"mcp server {self.definition.name}")

    async def close(self) -> None:
        """Disconnect, within a few seconds."""
        self._stop.set()
        self._news.set()
        if self._task is not None:
            await asyncio.wait((self._task,), timeout=CLOSING_SECONDS)
            if not self._task.done():
                self._task.cancel()
                await asyncio.wait((self._task,), timeout=0.5)
        self._set("disabled", "It was disconnected.")

    def reconnect(self) -> None:
        """Connect anew, whatever the state."""
        self._settled.clear()
        self._wanted_again = True
        self._news.set()

    async def settle(self, *, once: bool = False) -> None:
        """Wait until it is connected or will not be, at most its start timeout. Whoever waits `once` does not
        wait for one that crashes to be tried again."""
        if not self.starts:
            self._news.set()  # it need not hold back any longer
        with suppress(TimeoutError):
            async with asyncio.timeout(self.definition.start_timeout):
                await (self._tried if once else self._settled).wait()

    async def _own(self, after: float) -> None:
        failures = 0
        with suppress(TimeoutError):
            async with asyncio.timeout(after):
                await self._news.wait()
        while not self._stop.is_set():
            self._begin()
            began, hopeless = asyncio.get_running_loop().time(), False
            try:
                await self._live()
                why = f"The server ended. {self.noise.last_words}".rstrip()
            except (Exception, BaseExceptionGroup, asyncio.CancelledError) as error:
                if is_cancelled():
                    raise
                why, hopeless = explain(error, self.definition, self.noise), isinstance(error, _HOPELESS)
                if self.noise.wants_login and self._client is None:
                    await self._rest("needs-auth", why)
                    failures = 0
                    continue
            finally:
                self._client = None
                self._tried.set()
            if self._stop.is_set():
                return
            lived = asyncio.get_running_loop().time() - began
            failures = 0 if self._proved or lived > STEADY_SECONDS else failures + 1
            if self._wanted_again:
                failures = 0
            elif hopeless or failures >= MAX_FAILURES:
                await self._rest("failed", why)
                failures = 0
            else:
                self._set("pending", why)
                await self._pause(failures)

    def _begin(self) -> None:
        self._ended = self._stale = self._wanted_again = self._proved = False
        self._news.clear()
        self._settled.clear()
        self.noise.clear()
        self.starts += 1
        self._set("pending", self.error)

    async def _live(self) -> None:
        """Connect, and stay until the connection ends or somebody wants it to."""
        await to_thread.run_sync(load_library)
        from robota.tools.mcp.client import follow_lists, wants_newer  # noqa: PLC0415 - needs the library

        for mode in _MODES:
            async with AsyncExitStack() as stack:
                try:
                    async with asyncio.timeout(self.definition.start_timeout):
                        client = await stack.enter_async_context(self._make(mode))
                        offer = await read_offer(client, self.noise.complain)
                except Exception as error:
                    if mode != _MODES[-1] and wants_newer(error):
                        continue
                    raise
                self._client = client
                self.offer = offer
                self.noise.wants_login = False
                self._set("connected")
                self._settled.set()
                self._tried.set()
                async with follow_lists(client, self._note_change):
                    await self._serve(client)
                return

    def _make(self, mode: str) -> Client:
        from robota.tools.mcp.client import make_client  # noqa: PLC0415 - needs the library
        from robota.tools.mcp.transports import inspect, open_transport  # noqa: PLC0415 - likewise

        opened = (self._open_transport or open_transport)(self.definition, self.noise)
        inspected = inspect(opened, self.noise, self._note_end)
        return make_client(inspected, mode, self._answers, self._hear)

    async def _serve(self, client: Client) -> None:
        while True:
            await self._news.wait()
            self._news.clear()
            if self._ended or self._stop.is_set() or self._wanted_again:
                return
            if self._stale:
                self._stale = False
                async with asyncio.timeout(self.definition.start_timeout):
                    self.offer = await read_offer(client, self.noise.complain)
                self._set("connected")
                await asyncio.sleep(RELIST_SECONDS)

    async def _rest(self, state: ServerState, why: str) -> None:
        """Nobody tries again until somebody asks for it."""
        self._set(state, why)
        self._settled.set()
        await self._wait_until_wanted()

    async def _pause(self, failures: int) -> None:
        """Before the next try; a call that needs the server ends it."""
        delay = 0.0 if failures == 0 else min(FIRST_DELAY * 2 ** (failures - 1), MAX_DELAY)
        with suppress(TimeoutError):
            async with asyncio.timeout(delay):
                await self._wait_until_wanted()

    async def _wait_until_wanted(self) -> None:
        while not self._stop.is_set() and not self._wanted_again:
            await self._news.wait()
            self._news.clear()

    def _set(self, state: ServerState, error: str = "") -> None:
        self.state, self.error = state, "" if state == "connected" else error
        self._on_change(self)

    def _note_end(self) -> None:
        """At once: a call that comes now waits for the next connection."""
        self._ended, self._client = True, None
        self._settled.clear()
        self._news.set()

    def _note_change(self) -> None:
        self._stale = True
        self._news.set()

    # --- what it is asked -------------------------------------------------------------------------------

    async def _hear(self, message: IncomingMessage) -> None:
        method = getattr(message, "method", "")
        if method.startswith("notifications/") and method.endswith("/list_changed"):
            self._note_change()

    async def _get_client(self) -> Client:
        if self._client is None and not self._settled.is_set():
            if self.state == "pending" and self.error:
                self._wanted_again = True  # it waits before the next try
                self._news.set()
            await self.settle()
        if self._client is None:
            raise ServerError(self.describe_absence())
        return self._client

    def describe_absence(self) -> str:
        name = self.definition.name
        if self.state == "needs-auth":
            return f"The MCP server {name!r} wants a login: the user can run `robota mcp login {name}`."
        if self.state == "pending" and not self.error:
            seconds = self.definition.start_timeout
            return f"The MCP server {name!r} has not answered within {seconds:g} seconds; try again later."
        return f"The MCP server {name!r} is not connected: {self.error}"

    async def call(self, tool: str, arguments: JsonObject, context: ToolContext) -> ToolResult:
        """Call a tool. Whatever happens is a result; only a cancellation passes, and reaches the server."""
        from robota.tools.mcp.content import make_result  # noqa: PLC0415 - needs what a connection loads

        definition = self.definition
        opened = OpenCall(definition.name, context, definition.call_timeout)
        self._answers.calls.append(opened)
        try:
            client = await self._get_client()
            if tool not in self.offer.tools:
                return ToolResult.failure(
                    f"The tool {tool!r} is gone: the MCP server {definition.name!r} offers it no longer.",
                    "tool_gone",
                )
            answer = await opened.limit(
                client.call_tool(tool, dict(arguments), progress_callback=opened.show_progress)
            )
            self._proved = True
            return make_result(tool, answer)
        except TimeoutError:
            name, seconds = definition.name, definition.call_timeout
            return ToolResult.failure(
                f"The MCP server {name!r} gave no sign of life for {seconds:g} seconds: the call is given up."
            )
        except Exception as error:  # noqa: BLE001 - foreign code on both sides: the model is told why
            return ToolResult.failure(explain(error, definition, self.noise), "mcp_error")
        finally:
            self._answers.calls.remove(opened)

    async def ask(self, work: Callable[[Client], Awaitable[T]]) -> T:
        """Ask it something besides a call; what goes wrong is a `ServerError`."""
        try:
            client = await self._get_client()
            async with asyncio.timeout(self.definition.call_timeout):
                return await work(client)
        except ServerError:
            raise
        except Exception as error:
            raise ServerError(explain(error, self.definition, self.noise)) from error


def load_library() -> None:
    """Import what connections need, which takes most of a second: in a thread, when a server is wanted."""
    import logging  # noqa: PLC0415 - with the library

    try:
        import robota.tools.mcp.client  # noqa: PLC0415
        import robota.tools.mcp.transports  # noqa: F401, PLC0415
    except ImportError as error:
        sentence = f"MCP servers need a package that is not here ({error}): pip install 'robota[mcp]'."
        raise ConfigurationError(sentence) from error
    for name in ("mcp", "client", "httpx2"):  # they would speak on our terminal
        logger = logging.getLogger(name)
        if not logger.handlers:
            logger.addHandler(logging.NullHandler())
