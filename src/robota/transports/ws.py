"""A session over a WebSocket: messages of one client in, events and answers out.

    handler = create_ws_handler(session, send)
    await handler.on_message(text)      # for each message of the client
    await handler.cleanup()             # when it has left

`send` takes the text of one message; it may be awaited, and a client that is slow to take it is given the
rest from the journal: the session never waits. What cannot be understood is answered with `protocol_error`.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

from msgspec import to_builtins

from robota.core.errors import RobotaError
from robota.core.jsontext import decode, encode
from robota.core.messages import Json, JsonObject
from robota.core.ports import new_uuid
from robota.sdk.interactive import InteractiveSession
from robota.transports.host import HostedSession
from robota.transports.presence import NAME_LENGTH
from robota.transports.reader import Frame, Reader

SendText: TypeAlias = Callable[[str], Awaitable[None] | None]
WINDOW = 1_000
"""Events that a client who acknowledges them may be behind before the next is sent."""
AT_ONCE = 8
"""Messages of one client that are worked on at the same time."""
CLOSING_SECONDS = 2.0


class ProtocolError(Exception):
    """A message that cannot be understood."""


def create_ws_handler(
    session: InteractiveSession | HostedSession,
    send: SendText,
    *,
    name: str = "ws",
    read_only: bool = False,
    after: int | None = None,
) -> WsHandler:
    """Connect one client, by its name, with a session that is ready. Events come from now on, or behind the
    number `after`. With `read_only` the client may look and do nothing else."""
    hosted = session if isinstance(session, HostedSession) else HostedSession(session)
    return WsHandler(hosted, send, name=name, read_only=read_only, after=after)


class WsHandler:
    """One client, until `cleanup`."""

    def __init__(
        self, hosted: HostedSession, send: SendText, *, name: str, read_only: bool, after: int | None
    ) -> None:
        self.id = new_uuid()
        self._hosted = hosted
        self._send = send
        self._name = name[:NAME_LENGTH]
        self._read_only = read_only
        self._reader: Reader = hosted.read(hosted.session.events.seq if after is None else after)
        self._unacknowledged: deque[int] | None = None
        """Numbers that were sent, once the client has begun to acknowledge them."""
        self._room = asyncio.Event()
        self._room.set()
        self._left = False
        self._work: set[asyncio.Task[None]] = set()
        self.pump = asyncio.get_running_loop().create_task(self._write())
        """Sends; done when the session has been closed."""
        self._leave = hosted.presence.arrive(self.id, name)

    # --- out ----------------------------------------------------------------------------------------------

    async def _write(self) -> None:
        """Send what comes, until the client or the session is gone."""
        while not self._left:
            reader = self._reader
            frames = await reader.read()
            if reader is not self._reader:
                continue  # the client begins anew elsewhere
            if reader.closed and not frames:
                await self._pass_on(Frame("end", b"{}"))
                return
            for frame in frames:
                if reader is self._reader:
                    await self._pass_on(frame)

    async def _pass_on(self, frame: Frame) -> None:
        if frame.number and self._unacknowledged is not None:
            await self._room.wait()
            self._unacknowledged.append(frame.number)
            if len(self._unacknowledged) >= WINDOW:
                self._room.clear()
        sent = self._send(write_message(frame))
        if sent is not None:
            await sent

    def _tell(self, name: str, data: JsonObject) -> None:
        """An answer for this client alone, behind the events that came before it."""
        self._reader.tell(name, data)

    # --- in -----------------------------------------------------------------------------------------------

    async def on_message(self, text: str | bytes) -> None:
        """Take one message of the client."""
        try:
            message = read_message(text)
            kind = message["type"]
            act = _ACTIONS.get(kind)
            if act is None:
                raise ProtocolError(f"There is no message {kind!r}; there are {', '.join(_ACTIONS)}.")
            if self._read_only and kind not in _LOOKING:
                raise ProtocolError("This server only shows sessions.")
            if kind not in _SLOW:
                await act(self, message)
                return
            if len(self._work) >= AT_ONCE:
                raise ProtocolError(f"{AT_ONCE} messages are worked on already: wait for an answer.")
            task = asyncio.get_running_loop().create_task(self._act(act, message))
            self._work.add(task)
            task.add_done_callback(self._work.discard)
        except ProtocolError as error:
            self._tell("protocol_error", {"message": str(error)})
        except RobotaError as error:
            self._tell("protocol_error", {"message": str(error), "code": error.code})

    async def _act(self, act: Action, message: JsonObject) -> None:
        try:
            await act(self, message)
        except ProtocolError as error:
            self._tell("protocol_error", {"message": str(error)})
        except RobotaError as error:
            self._tell("protocol_error", {"message": str(error), "code": error.code})

    async def cleanup(self) -> None:
        """The client has left; the session goes on."""
        self._left = True
        self._reader.close()
        tasks = [self.pump, *self._work]
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks, timeout=CLOSING_SECONDS)
        self._leave()

    # --- messages -----------------------------------------------------------------------------------------

    async def _submit(self, message: JsonObject) -> None:
        prompt = _words(message, "prompt")
        display, raw = _maybe(message, "display"), _maybe(message, "raw")
        task = await self._hosted.submit(prompt, display, raw, id=_maybe(message, "submitId") or "")
        self._tell("submitted", {"submitId": task.get_name()})

    async def _command(self, message: JsonObject) -> None:
        name, args = _words(message, "name"), _maybe(message, "args") or ""
        answer = await self._hosted.session.execute_command(name, args)
        if answer is None:
            raise ProtocolError(f"There is no command {name!r}.")
        await self._hosted.carry_out(answer)
        result = {"message": answer.message, "success": answer.success, "data": dict(answer.data)}
        self._tell("command_result", {"name": name, **result})

    async def _abort(self, message: JsonObject) -> None:
        await self._hosted.take_back(abort=True)

    async def _cancel_queue(self, message: JsonObject) -> None:
        await self._hosted.take_back(abort=False)

    async def _steer(self, message: JsonObject) -> None:
        text = _words(message, "text")
        await self._hosted.prepare()
        self._hosted.session.steer(text)

    async def _answer(self, message: JsonObject) -> None:
        id = _words(message, "id")
        if "answer" not in message:
            raise ProtocolError(f"{message['type']} needs `answer`.")
        accepted = self._hosted.session.questions.answer(id, message["answer"], by=self._name)
        self._tell("answer_result", {"id": id, "accepted": accepted})

    async def _get_messages(self, message: JsonObject) -> None:
        self._tell("messages", {"messages": to_builtins(self._hosted.session.messages)})

    async def _get_context(self, message: JsonObject) -> None:
        self._tell("context", to_builtins(self._hosted.session.context_state))

    async def _get_executing(self, message: JsonObject) -> None:
        self._tell("executing", {"executing": self._hosted.session.is_executing})

    async def _get_pending(self, message: JsonObject) -> None:
        self._tell("pending", {"pending": self._hosted.session.pending_prompt})

    async def _resume(self, message: JsonObject) -> None:
        """Begin again behind a number, with what happened since and then live."""
        after = _number(message, "after")
        before, self._reader = self._reader, self._hosted.read(after)
        if self._unacknowledged is not None:
            self._unacknowledged.clear()
            self._room.set()
        before.close()

    async def _acknowledge(self, message: JsonObject) -> None:
        """The client has everything up to a number."""
        seq = _number(message, "seq")
        known = self._unacknowledged = deque() if self._unacknowledged is None else self._unacknowledged
        while known and known[0] <= seq:
            known.popleft()
        self._room.set()

    async def _typing(self, message: JsonObject) -> None:
        typing = message.get("typing", True)
        if not isinstance(typing, bool):
            raise ProtocolError("`typing` of typing is true or false.")
        self._hosted.presence.set_typing(self.id, typing)


Action: TypeAlias = Callable[[WsHandler, JsonObject], Awaitable[None]]
_ACTIONS: dict[str, Action] = {
    "submit": WsHandler._submit,
    "command": WsHandler._command,
    "abort": WsHandler._abort,
    "cancel-queue": WsHandler._cancel_queue,
    "steer": WsHandler._steer,
    "get-messages": WsHandler._get_messages,
    "get-context": WsHandler._get_context,
    "get-executing": WsHandler._get_executing,
    "get-pending": WsHandler._get_pending,
    "permission-response": WsHandler._answer,
    "ask-response": WsHandler._answer,
    "resume": WsHandler._resume,
    "ack": WsHandler._acknowledge,
    "typing": WsHandler._typing,
}
_SLOW = frozenset(("submit", "command", "steer"))
"""These may wait for files or a model, and others must get through meanwhile."""
_LOOKING = frozenset(
    ("get-messages", "get-context", "get-executing", "get-pending", "resume", "ack", "typing")
)


def write_message(frame: Frame) -> str:
    """An event as one message; what no journal has is marked, because its number is another event's."""
    mark = b"" if frame.number or b'"seq":' not in frame.data else b'"transient":true,'
    rest = frame.data[1:]
    head = b'{"type":%b%b' % (encode(frame.name), b"" if rest == b"}" else b",")
    return (head + (mark if rest != b"}" else b"") + rest).decode()


def read_message(text: str | bytes) -> JsonObject:
    try:
        message: Json = decode(text)
    except ValueError as error:
        raise ProtocolError(f"The message is not JSON: {error}.") from error
    if not isinstance(message, dict) or not isinstance(message.get("type"), str):
        raise ProtocolError(
            'A message is an object with a `type`, such as {"type": "submit", "prompt": "Hi"}.'
        )
    return message


def _words(message: JsonObject, name: str) -> str:
    value: Any = message.get(name)
    if not isinstance(value, str) or not value.strip():
        raise ProtocolError(f"{message['type']} needs `{name}`, a text.")
    return value


def _maybe(message: JsonObject, name: str) -> str | None:
    value: Any = message.get(name)
    if value is not None and not isinstance(value, str):
        raise ProtocolError(f"`{name}` of {message['type']} is a text.")
    return value


def _number(message: JsonObject, name: str) -> int:
    value: Any = message.get(name)
    if type(value) is not int or value < 0:
        raise ProtocolError(f"{message['type']} needs `{name}`, the number of an event.")
    return value
