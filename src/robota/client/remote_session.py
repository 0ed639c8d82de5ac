"""`RemoteSession`: a session on another host, with the methods and events of an `InteractiveSession`.

Everything it knows comes from the numbered events of the session, so a connection that breaks, or a host that
is started again, costs nothing: what was missed is read from the journal there. A prompt has an id, under
which it is done once however often it is sent.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing, suppress
from typing import TYPE_CHECKING, Self, TypeAlias, cast

from robota.client.command_answer import read_answer_of_command
from robota.client.connection import END, OPENED, Connection, read_address
from robota.client.errands import Errands
from robota.client.feed import Feed
from robota.client.finding import find_session, list_sessions
from robota.client.questions import RemoteQuestions
from robota.core.bus import EventBus, Unsubscribe
from robota.core.closing import Closing
from robota.core.context import ContextWindowState, window_state
from robota.core.errors import NetworkError, RobotaError, SessionBusyError, SessionNotFoundError
from robota.core.events import TurnEvent
from robota.core.messages import HistoryEntry, ImagePart, Json, JsonObject, Message, Prompt, prompt_text
from robota.core.ports import new_uuid
from robota.core.robota import check_prompt
from robota.http.sse import ServerSentEvent
from robota.sdk.commands.effects import CommandResult
from robota.sdk.commands.registry import CommandName
from robota.sdk.execution import ExecutionResult
from robota.sdk.listeners import Listener
from robota.sdk.session_facts import SessionDetails

if TYPE_CHECKING:
    from robota.core.transport import TransportAdapter
    from robota.sdk.tool_states import ToolState

# `list` is also what lists the sessions of a host.
Entries: TypeAlias = list[HistoryEntry]
Messages: TypeAlias = list[Message]
CommandNames: TypeAlias = list[CommandName]


class RemoteSession(Closing):
    """One session of a host; leaving it leaves the session alone."""

    def __init__(
        self,
        url: str,
        token: str = "",
        session_id: str | None = None,
        *,
        cwd: str | None = None,
        name: str | None = None,
        model: str | None = None,
        permission_mode: str | None = None,
        client_name: str = "python",
    ) -> None:
        """`url` is the address, or the whole line that `robota serve` prints, which has the token. Without a
        `session_id` a new session is made there, with the other options. `client_name` is what others are
        told when a question is answered here."""
        address, token, named = read_address(url, token)
        self._connection = Connection(address, token, name=client_name)
        self._id = session_id or named
        self._wanted = {"cwd": cwd, "name": name, "model": model, "permissionMode": permission_mode}
        self.events = EventBus()
        self.questions = RemoteQuestions(self._send_answer)
        self.feed = Feed(self.events, self.questions)
        self._commands: CommandNames = []
        self._prompts: dict[str, JsonObject] = {}
        """Prompts that have not ended, as they were sent."""
        self._making: asyncio.Lock | None = None
        self._reading: asyncio.Task[None] | None = None
        self._opened = asyncio.Event()
        self._errands = Errands(self._connection, self.feed.notice)

    list = staticmethod(list_sessions)
    """`await RemoteSession.list(url, token)`: the sessions of a host, the last one first."""

    # --- what it is -------------------------------------------------------------------------------------

    @property
    def session_id(self) -> str:
        return self._id

    @property
    def details(self) -> SessionDetails:
        """The session as its host told of it last."""
        return self.feed.details

    @property
    def cwd(self) -> str:
        return self.details.cwd

    @property
    def is_executing(self) -> bool:
        return self.details.executing or bool(self._prompts)

    @property
    def pending_prompt(self) -> str | None:
        return self.details.pending

    @property
    def streaming_text(self) -> str:
        return self.feed.history.streaming_text

    @property
    def active_tools(self) -> Sequence[ToolState]:
        return self.feed.history.tools.shown

    @property
    def full_history(self) -> Entries:
        return [*self.feed.history.entries]

    @property
    def messages(self) -> Messages:
        return [cast("Message", entry.data) for entry in self.full_history if entry.category == "chat"]

    @property
    def context_state(self) -> ContextWindowState:
        return self.feed.context or window_state(0, 0)

    @property
    def name(self) -> str | None:
        return self.details.name

    @name.setter
    def name(self, name: str | None) -> None:
        self._errands.send("PATCH", self._at(), {"name": name})

    @property
    def permission_mode(self) -> str:
        return self.details.permission_mode or "default"

    @permission_mode.setter
    def permission_mode(self, mode: str) -> None:
        self._errands.send("PATCH", self._at(), {"permissionMode": mode})

    def on(self, name: str, listener: Listener) -> Unsubscribe:
        """Call `listener` whenever that happens; `events.on` is the typed form."""
        return self.feed.listeners.on(name, listener)

    def off(self, name: str, listener: Listener) -> None:
        self.feed.listeners.off(name, listener)

    def attach_transport(self, transport: TransportAdapter) -> None:
        transport.attach(self)

    def list_commands(self) -> CommandNames:
        """The names and descriptions of the host's commands."""
        return [*self._commands]

    # --- life -------------------------------------------------------------------------------------------

    async def ready(self) -> Self:
        """Find the session, or have it made, and follow it from now on."""
        self._making = self._making or asyncio.Lock()
        async with self._making:
            if self._reading is None:
                self._errands.loop = asyncio.get_running_loop()
                found = await find_session(self._connection, self._id, self._wanted)
                self._id, self._commands = found.details.id, found.commands
                self.feed.context = found.context
                self.feed.begin(found.details, found.history)
                self._reading = asyncio.create_task(self._read())
                await self._opened.wait()  # the end of a prompt is told to those who read
        return self

    async def _read(self) -> None:
        """Follow the session, until its host does not want that any more."""
        try:
            async with aclosing(
                self._connection.events(self._at("/events"), lambda: self.events.seq)
            ) as all_:
                await self._take(all_)
        except RobotaError as error:
            self.feed.fail(error)
            self._opened.set()

    async def _take(self, frames: AsyncGenerator[ServerSentEvent, None]) -> None:
        """When a stream begins anew, what has not ended is sent again: a host that was started again goes on
        with it, and one that was not knows it by its id."""
        async for frame in frames:
            if frame.event == OPENED:
                if self._opened.is_set():
                    self._errands.spawn(self._send_again())
                self._opened.set()
            elif frame.event != END:
                self.feed.take(frame)

    async def _send_again(self) -> None:
        for prompt in tuple(self._prompts.values()):
            with suppress(SessionBusyError, NetworkError):  # it is worked on, or the stream will break again
                await self._connection.call("POST", self._at("/submit"), prompt)

    async def shutdown(self, reason: str = "other") -> None:
        """Leave the session; it goes on without us."""
        self.questions.close()
        if self._reading is not None:
            self._reading.cancel()
            await asyncio.wait((self._reading,))
        await self._errands.aclose()
        await self._connection.aclose()

    async def aclose(self) -> None:
        await self.shutdown()

    # --- prompts ----------------------------------------------------------------------------------------

    async def submit(
        self,
        prompt: Prompt,
        display_input: str | None = None,
        raw_input: str | None = None,
        *,
        id: str = "",
    ) -> ExecutionResult[object]:
        """Take one prompt to its end, there. Whoever stops waiting leaves it running; `abort` ends it."""
        check_prompt(prompt)
        await self.ready()
        id = id or new_uuid()
        body = describe_prompt(prompt, display_input, raw_input, id)
        ended: asyncio.Future[ExecutionResult[object]] = asyncio.get_running_loop().create_future()
        self._prompts[id], self.feed.waiting[id] = body, ended
        try:
            await self._connection.call("POST", self._at("/submit"), body)
            self._connection.wanted.set()  # a session that was closed there is open again
            return await ended
        finally:
            self._prompts.pop(id, None)
            self.feed.waiting.pop(id, None)

    async def stream(
        self, prompt: Prompt, display_input: str | None = None, raw_input: str | None = None
    ) -> AsyncGenerator[TurnEvent, None]:
        """`submit`, as the events of the turn; leaving early leaves it running."""
        await self.ready()
        events = self.events.open()
        task = asyncio.ensure_future(self.submit(prompt, display_input, raw_input))
        task.add_done_callback(lambda _: events.close())
        try:
            async for event in events:
                yield event
            await task
        finally:
            events.close()
            task.cancel()

    def run_sync(self, prompt: Prompt) -> ExecutionResult[object]:
        """`submit` for code without an event loop."""
        from robota.core.sync import run_sync  # noqa: PLC0415 - starts a thread, for those who ask for it

        return run_sync(self.submit(prompt))

    async def execute_command(self, name: str, args: str = "") -> CommandResult | None:
        """The answer of the host's command of that name, `None` when there is none."""
        await self.ready()
        try:
            told = await self._connection.call("POST", self._at("/command"), {"name": name, "args": args})
        except SessionNotFoundError:
            return None
        return read_answer_of_command(told)

    def steer(self, prompt: Prompt) -> None:
        """Tell the model something while it works: it hears it before its next round."""
        self._post("/steer", {"text": prompt_text(prompt)})

    def abort(self) -> None:
        """Stop the turn under way and take back what waits. Safe from any thread."""
        self._post("/abort")

    def cancel_queue(self) -> None:
        """Take back the prompt that waits; the turn under way goes on."""
        self._post("/cancel-queue")

    # --- the wire ---------------------------------------------------------------------------------------

    def _at(self, path: str = "") -> str:
        return f"/sessions/{self._id}{path}"

    async def _send_answer(self, id: str, answer: Json) -> bool:
        try:
            await self._connection.call("POST", self._at(f"/questions/{id}"), {"answer": answer})
        except SessionBusyError:  # somebody else was first
            return False
        return True

    def _post(self, path: str, body: JsonObject | None = None) -> None:
        self._errands.send("POST", self._at(path), body or {})


def describe_prompt(prompt: Prompt, display: str | None, raw: str | None, id: str) -> JsonObject:
    """A prompt as the host takes it."""
    parts = () if isinstance(prompt, str) else prompt
    images = [
        {"mediaType": part.mime_type, "data": part.data} for part in parts if isinstance(part, ImagePart)
    ]
    return {
        "prompt": prompt_text(prompt),
        "stream": False,
        "submitId": id,
        **({} if display is None else {"display": display}),
        **({} if raw is None else {"raw": raw}),
        **({"images": images} if images else {}),
    }
