"""Many sessions in one process, for every server that offers them: HTTP, WebSocket, MCP, ACP.

A session is made by the factory that whoever starts the server gives. It stays open, with its lease on the
journal, until it is closed, deleted, or has to make room; when somebody uses it again it is opened again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING

from msgspec.structs import replace

from robota.core.background import ENDED
from robota.core.errors import RobotaError, SessionNotFoundError, ValidationError
from robota.core.ports import new_uuid, utc_now
from robota.sdk.commands.effects import CommandResult, SubmitPrompt
from robota.sdk.commands.run import carry_out
from robota.sdk.execution import ExecutionResult
from robota.sdk.listeners import open_follower
from robota.transports.event_text import EventTexts
from robota.transports.presence import Presence
from robota.transports.reader import PastEvents, Reader
from robota.transports.session_maker import SessionFactory, SessionWish, made_ready

if TYPE_CHECKING:
    from robota.core.messages import JsonObject, Prompt
    from robota.sdk.interactive import InteractiveSession
    from robota.sdk.kept_sessions import SessionStore
    from robota.sdk.project_files import ProjectFiles

MOST_SESSIONS = 1_000
"""Sessions that are open at the same time."""
CLOSING_SECONDS = 10.0
"""How long a session may take to put itself away when the server ends."""


class TooManySessions(RobotaError, code="TOO_MANY_SESSIONS", category="user", recoverable=True):
    """No more sessions can be open at the same time, and none of them is idle."""


class QueueFull(RobotaError, code="SESSION_BUSY", category="user", recoverable=True):
    """One prompt is worked on and another waits."""


class HostClosed(RobotaError, code="SERVER_CLOSING", category="user", recoverable=True):
    """No session is opened any more."""


class HostedSession:
    """One open session, with those who read its events and what was submitted to it."""

    def __init__(self, session: InteractiveSession, *, made: bool = False) -> None:
        self.session = session
        self.readers: set[Reader] = set()
        self.texts = EventTexts()
        self.opened_at = utc_now().isoformat(timespec="milliseconds").replace("+00:00", "Z")
        self._made = made
        self.failed = False
        """The last turn ended with an error."""
        self.declined = ""
        """The trust question that somebody has answered with no: it is not asked again."""
        self.files: ProjectFiles | None = None
        """For completion, once somebody asked."""
        self.presence = Presence(self.tell)
        self._submits: set[asyncio.Task[ExecutionResult[object]]] = set()
        self._detach = session.questions.attach(wait_for_answer)

    @property
    def id(self) -> str:
        return self.session.session_id

    @property
    def state(self) -> str:
        if self.session.questions.open:
            return "asks"
        if self.session.is_executing or self._submits:
            return "running"
        return "failed" if self.failed else "idle"

    @property
    def is_idle(self) -> bool:
        """Whether nobody would miss it: it can be opened again from the store."""
        busy = self._submits or self.session.is_executing or self.readers or self.session.questions.open
        return not busy and not (self.session.is_kept and has_background_work(self.session))

    def read(self, after: int = 0) -> Reader:
        """Its events behind a number, for one client; `close` the reader when that leaves."""
        reader = Reader(open_follower(self.session, after), self.texts, self._leave)
        self.readers.add(reader)
        self.texts.share(len(self.readers))
        return reader

    def _leave(self, reader: Reader) -> None:
        self.readers.discard(reader)
        self.texts.share(len(self.readers))

    async def submit(
        self, prompt: Prompt, display: str | None = None, raw: str | None = None, *, id: str = ""
    ) -> asyncio.Task[ExecutionResult[object]]:
        """Begin a prompt, or have it wait for the one before; its end comes through the events. Whoever
        submitted it may leave."""
        await self.prepare()
        if len(self._submits) > 1 or self.session.pending_prompt is not None:
            raise QueueFull(
                "One prompt is worked on and another waits: wait, take it back with cancel-queue, or abort."
            )
        id = id or new_uuid()
        task = asyncio.create_task(self._run(prompt, display, raw, id), name=id)
        self._submits.add(task)
        task.add_done_callback(self._submits.discard)
        return task

    async def make(self) -> None:
        """Read the project's files, unless that was done."""
        if not self._made:
            await self.session.ready()
            self._made = True

    async def prepare(self) -> None:
        """Have the session and its journal, so that whoever uses it hears that another process has it."""
        await (await self.session.ready()).open()

    async def carry_out(self, answer: CommandResult) -> None:
        """Do what a command wants of its caller, as far as that concerns the session."""
        if isinstance(answer.effect, SubmitPrompt):
            effect = answer.effect
            await self.submit(effect.input, effect.display_input, effect.raw_input)
        else:
            await carry_out(self.session, answer)

    async def _run(
        self, prompt: Prompt, display: str | None, raw: str | None, id: str
    ) -> ExecutionResult[object]:
        try:
            result: ExecutionResult[object] = await self.session.submit(prompt, display, raw, id=id)
        except RobotaError as error:
            result = ExecutionResult(error=error)
        self.failed = result.error is not None
        self.tell("submit_end", describe_end(id, result))
        return result

    def tell(self, name: str, data: JsonObject) -> None:
        """Say something to everybody who reads, that is no event of the session and has no number."""
        for reader in tuple(self.readers):
            reader.tell(name, data)

    async def take_back(self, *, abort: bool) -> None:
        """Take back the prompt that waits; with `abort` also stop the turn under way."""
        if abort:
            self.session.abort()
        else:
            self.session.cancel_queue()
        await asyncio.sleep(0)  # lets what waited notice, so that its place is free

    def let_go(self) -> None:
        """Nobody here answers its questions or reads it any more."""
        self._detach()
        for reader in tuple(self.readers):
            reader.close()

    async def close(self, reason: str = "other") -> None:
        try:
            await self.session.shutdown(reason)
        finally:
            self.let_go()
            for task in tuple(self._submits):
                task.cancel()


class SessionHost:
    """The sessions that are open, and the store of those that are not."""

    def __init__(
        self, factory: SessionFactory, *, store: SessionStore | None = None, limit: int = MOST_SESSIONS
    ) -> None:
        self._factory = factory
        self.store = store
        self._limit = limit
        self._open: dict[str, HostedSession] = {}
        """In the order in which they were used last."""
        self._opening: dict[str, asyncio.Lock] = {}
        self._choosing = asyncio.Lock()
        self._root = ""
        """The id of the session at the root."""
        self.made = 0
        """Sessions that were opened so far."""
        self.closed = False
        self._past = EventTexts()
        """Of sessions that are not open any more."""

    @property
    def events_sent(self) -> int:
        """Events that clients were given, once for each of them."""
        return self._past.sent + sum(hosted.texts.sent for hosted in self._open.values())

    @property
    def sessions(self) -> Mapping[str, HostedSession]:
        return self._open

    async def find(self, id: str) -> HostedSession | None:
        """The session if it is open."""
        found = self._open.get(id)
        if found is not None:
            self._open[id] = self._open.pop(id)  # it is the one used last
            await found.make()
        return found

    async def require(self, id: str) -> HostedSession:
        """The session, opened if it is kept."""
        return await self.find(id) or await self.resume(SessionWish(resume=id))

    async def first(self) -> HostedSession:
        """The one that stands at the root: the first that was opened here, else a new one."""
        async with self._choosing:
            known = self._root and (self._root in self._open or self.is_kept(self._root))
            if known:
                return await self.require(self._root)
            self._root = ""
            return await self.create(SessionWish())

    def is_kept(self, id: str) -> bool:
        try:
            return self.store is not None and self.store.exists(id)
        except ValidationError:  # nothing has such an id
            return False

    async def create(self, wish: SessionWish) -> HostedSession:
        if self.closed:
            raise HostClosed("The server ends: start it again, and try again.")
        await self._make_room()
        return self.adopt(await made_ready(await self._factory(wish)), made=True)

    async def resume(self, wish: SessionWish) -> HostedSession:
        """Go on with a session that is kept; one that is open is given as it is."""
        id = wish.resume or ""
        if not self.is_kept(id):
            raise SessionNotFoundError(f"There is no session {id}.")
        lock = self._opening.setdefault(id, asyncio.Lock())
        try:
            async with lock:
                return await self.find(id) or await self.create(wish)
        finally:
            self._opening.pop(id, None)

    async def fork(self, wish: SessionWish, at: int | None = None, event: int | None = None) -> HostedSession:
        """Go on in a copy of a session that is kept, with all of it, its first messages, or what there was
        when an event was told."""
        id = wish.resume or ""
        if self.store is None or not self.is_kept(id):
            raise SessionNotFoundError(f"There is no session {id}.")
        if at is None and event is None:
            return await self.create(replace(wish, fork=True))
        from robota.sdk.past_sessions import fork_at, step_of_event  # noqa: PLC0415 - to begin in the middle

        if at is None:
            at = await asyncio.to_thread(step_of_event, self.store, id, event or 0)
        copy = await asyncio.to_thread(fork_at, self.store, id, at)
        return await self.create(replace(wish, resume=copy, fork=False))

    def read_past(self, id: str, after: int) -> Reader:
        """The events of a session that is not open here."""
        from robota.sdk.past_sessions import past_events  # noqa: PLC0415 - for those who look back

        if self.store is None or not self.is_kept(id):
            raise SessionNotFoundError(f"There is no session {id}.")
        return Reader(PastEvents(past_events(self.store, id, after), after), self._past)

    def last_event(self, id: str) -> int:
        """The number of the last event of a session that is not open here; it reads a file."""
        from robota.sdk.past_sessions import last_event  # noqa: PLC0415 - for those who look back

        return 0 if self.store is None else last_event(self.store, id)

    def adopt(self, session: InteractiveSession, *, made: bool = False) -> HostedSession:
        """Offer a session that somebody else has made."""
        self.made += 1
        self._root = self._root or session.session_id
        hosted = self._open[session.session_id] = HostedSession(session, made=made)
        return hosted

    def let_go(self) -> None:
        """Stop offering sessions that are somebody else's; they go on."""
        for hosted in self._open.values():
            hosted.let_go()
        self._open = {}

    async def close(self, id: str, reason: str = "other") -> None:
        hosted = self._open.pop(id, None)
        if hosted is not None:
            self._past.sent += hosted.texts.sent
            await hosted.close(reason)

    async def _make_room(self) -> None:
        while len(self._open) >= self._limit:
            idle = next((id for id, hosted in self._open.items() if hosted.is_idle), None)
            if idle is None:
                raise TooManySessions(
                    f"{self._limit} sessions are open and none is idle: close one, or wait."
                )
            await self.close(idle)

    async def aclose(self) -> None:
        """Put every session away, saved; streams are told by their end."""
        self.closed = True
        hosted, self._open = list(self._open.values()), {}
        tasks = [asyncio.create_task(each.close()) for each in hosted]
        if tasks:
            _, late = await asyncio.wait(tasks, timeout=CLOSING_SECONDS)
            for task in late:
                task.cancel()


async def wait_for_answer(question: object) -> None:
    """Somebody may answer over the wire: until then, or until the turn is aborted, the question is open."""
    await asyncio.get_running_loop().create_future()


def has_background_work(session: InteractiveSession) -> bool:
    return any(task.state not in ENDED for task in session.session.background.tasks.values())


def describe_end(id: str, result: ExecutionResult[object]) -> JsonObject:
    """How a submitted prompt ended, for those who did not wait for it."""
    command = result.command
    return {
        "submitId": id,
        "success": result.success,
        "interrupted": result.interrupted,
        "text": result.text,
        "error": None if result.error is None else str(result.error),
        "command": None
        if command is None
        else {"message": command.message, "success": command.success, "data": dict(command.data)},
    }
