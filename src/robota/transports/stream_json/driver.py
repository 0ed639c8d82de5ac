"""A session driven over pipes: prompts and requests come in as lines, everything that happens goes out.

Reading, the turns and the requests are tasks of their own: a request is served while a turn runs, and a
prompt that comes then waits for its turn. The end of the input ends nothing that is under way.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from robota.core.errors import RobotaError, ValidationError
from robota.core.jsontext import decode, decode_leniently
from robota.core.messages import Json, JsonObject
from robota.sdk.execution import ExecutionResult
from robota.transports.init_frame import init_frame
from robota.transports.line_writer import LineWriter
from robota.transports.result_frame import Ending, failure_frame
from robota.transports.stream_json.control import answer_request
from robota.transports.stream_json.held_session import HeldSession, OpenSession
from robota.transports.stream_json.hook_callbacks import HookCallbacks, Registration, read_registrations
from robota.transports.stream_json.host import Host
from robota.transports.stream_json.host_server import HostServers
from robota.transports.stream_json.initialize import DEFAULT_MODEL, greet, read_schema, read_wishes
from robota.transports.stream_json.permissions import DONT_ASK, MODES, PermissionDesk
from robota.transports.stream_json.prompts import QueuedPrompt, WaitingPrompts, read_prompt_frame
from robota.transports.stream_json.state import StateTeller
from robota.transports.turn_frames import FrameOptions, TurnFrames

if TYPE_CHECKING:
    from robota.sdk.interactive import InteractiveSession
    from robota.transports.stream_json.transcript import Transcript


class DriveOptions(Struct, frozen=True, kw_only=True):
    """What the command line of a driven process says about the conversation."""

    partial_messages: bool = False
    hook_events: bool = False
    replay_user_messages: bool = False
    asks_host: bool = False
    """Questions go to the host; otherwise they are refused."""
    mode: str = ""
    """`dontAsk` to refuse what would be a question."""
    schema: JsonObject | None = None
    model: str = ""
    """The one that the command line names."""
    mirror: bool = False
    """Tell what is written to the transcript, too."""
    transcript: bool = False
    """Keep a transcript where clients of this protocol look for one."""
    resume_at: str = ""
    """The last message of the conversation that is gone on with."""
    resume_drops: str | None = None
    """The prompt of the only turn that may be lost by that."""
    notes: tuple[str, ...] = ()
    """What the host should know, in sentences."""


class Driver:
    """One connection."""

    def __init__(self, open_session: OpenSession, options: DriveOptions, writer: LineWriter) -> None:
        self._held = HeldSession(open_session, self._prepare)
        self.session = self._held.get
        """The session, made when it is first needed."""
        self._options = options
        self._writer = writer
        self.send_plain = writer.send
        self._host = Host(writer.send)
        self._state = StateTeller(writer.send)
        self._registrations: list[Registration] = []
        self._refusal: RobotaError | None = None
        """What was wrong with the host's wishes: a session without its hooks would not be guarded."""
        self._frame_options = FrameOptions(
            partial=options.partial_messages,
            hook_events=options.hook_events,
            replay=options.replay_user_messages,
        )
        self.host_servers = HostServers(self._host)
        self._held.wishes["mcp_relay"] = self.host_servers.open
        self._first_model = self._title = ""
        self._schema = options.schema
        self._mode = options.mode
        """A permission mode of the protocol that the session itself does not have."""
        self.prompts = WaitingPrompts()
        self._frames: TurnFrames | None = None
        self._transcript: Transcript | None = None
        self._desk: PermissionDesk | None = None
        """Where the session's questions go, if the host answers them."""
        self._requests: set[asyncio.Task[None]] = set()
        self._turn: asyncio.Task[Any] | None = None
        self._meeting: asyncio.Task[None] | None = None
        """The wait for servers, which the first frame of a turn lists; an interrupt ends it."""
        self._stops_early = False
        """The turn under way was interrupted before its session was made."""
        self.failed = False
        """The last result was an error."""

    # --- what is read ------------------------------------------------------------------------------------

    def take_line(self, line: bytes) -> None:
        """One line of the host. What is no JSON raises `ValidationError`."""
        if not line.strip():
            return
        try:
            frame = _read_frame(line)
        except ValueError as error:
            raise ValidationError(f"A line on standard input is not JSON: {error}") from error
        if not isinstance(frame, dict):
            raise ValidationError("A line on standard input is JSON, but not an object.")
        match frame.get("type"):
            case "user":
                self._take_prompt(frame)
            case "control_request":
                self._serve(frame)
            case "control_response":
                self._host.take(frame)
                if self._options.replay_user_messages:
                    self.send_plain(frame)
            case _:
                return  # a newer host may say more than is known here

    def _take_prompt(self, frame: JsonObject) -> None:
        self.prompts.add(read_prompt_frame(frame))
        self._state.tell("running")
        # Behind an `initialize` that came right before it, and that says how the session is to be made.
        asyncio.get_running_loop().call_soon(self._held.begin)

    def _serve(self, frame: JsonObject) -> None:
        request = frame.get("request")
        if isinstance(request, dict) and request.get("subtype") == "interrupt":
            self._host.withdraw_all()  # before the answer
        task = asyncio.create_task(answer_request(self, frame))
        self._requests.add(task)
        task.add_done_callback(self._requests.discard)

    def end_input(self) -> None:
        """No more lines come. What is under way goes on, without anybody to ask."""
        self._host.close()
        self.prompts.end()

    # --- what requests do --------------------------------------------------------------------------------

    def initialize(self, request: JsonObject) -> JsonObject:
        """Answered from what costs nothing to know; the session is made meanwhile."""
        is_first = not self._held.begun
        try:
            wishes, schema = read_wishes(request), read_schema(request)
            registrations = read_registrations(request.get("hooks"))
        except RobotaError as error:
            self._refusal = error
            raise
        self._refusal = None
        if is_first:
            self._registrations = registrations
            self._held.wishes.update(wishes)
            self._frame_options.subagent_text = bool(request.get("forwardSubagentText"))
            self._title = str(request.get("title") or "")
            self._schema = self._schema if schema is None else schema
        answer = greet(request, self._options.model, applied=is_first)
        asyncio.get_running_loop().call_soon(self._held.begin)
        return answer

    def interrupt(self) -> list[str]:
        """Stop the turn under way; the prompts that wait go on."""
        if self._turn is not None and self._held.now is not None:
            self._held.now.abort()
            if self._meeting is not None:
                self._meeting.cancel()
        self._stops_early = True
        return self.prompts.ids()

    async def set_mode(self, mode: str) -> str:
        """Take a permission mode of the protocol; the one that counts now."""
        session = await self.session()
        await session.switch_mode(MODES.get(mode, mode))
        self._mode = mode if mode == DONT_ASK else ""
        if self._desk is not None:
            self._desk.is_quiet = mode == DONT_ASK
        return self._mode or session.permission_mode

    async def set_model(self, model: str) -> str:
        """Take another model, or the one at the start; the one that counts now."""
        session = (await self.session()).session
        wanted = self._first_model if model in ("", DEFAULT_MODEL) else model
        if wanted and wanted != session.model:
            session.set_model(wanted)
        return wanted

    async def tell(self, sentence: str) -> None:
        """Something that the user of the host should know."""
        await self.session()
        assert self._frames is not None
        self._frames.tell(sentence)

    @property
    def prompt_ids(self) -> Mapping[str, str]:
        return {} if self._frames is None else self._frames.prompt_ids

    # --- the session --------------------------------------------------------------------------------------

    async def _prepare(self, session: InteractiveSession) -> None:
        if self._refusal is not None:
            raise self._refusal
        options, self._state.session_id = self._options, session.session_id
        inner = await session.ready()
        self._first_model = inner.model
        session.name = self._title or session.name
        frames = self._frames = TurnFrames(session, self._send, self._frame_options)
        if options.transcript:
            from robota.transports.stream_json.transcript import Transcript  # noqa: PLC0415 - few keep one

            tell = self.send_plain if options.mirror else None
            self._transcript = Transcript(session, frames, tell)
            await self._transcript.open()
            frames.prompt_ids.update(self._transcript.ids)
        if options.resume_at:
            ids, drops = frames.prompt_ids, options.resume_drops
            drops = drops if drops is None else ids.get(drops, drops)
            at = ids.get(options.resume_at, options.resume_at)
            await session.kit.checkpoints.keep_until(at, drops)
        if self._transcript is not None:
            self._transcript.begin(after=options.resume_at)
        callbacks = HookCallbacks(self._host, self._registrations, self._transcript)
        config = callbacks.config([tool.name for tool in inner.agent.tools])
        if config:
            session.kit.add_hooks(config)
        for note in (*options.notes, *callbacks.notes):
            frames.tell(note)
        frames.follow()
        if options.asks_host:
            self._desk = PermissionDesk(session, self._host, frames, self._state.tell_waiting, self.set_mode)
            self._desk.is_quiet = self._mode == DONT_ASK
            session.questions.attach(self._desk.answer)
        self._meeting = asyncio.create_task(session.kit.servers.settle())
        await session.kit.servers.settle(kind="client")  # whoever asks hears of them

    # --- turns -------------------------------------------------------------------------------------------

    async def take_turns(self) -> None:
        """Work through the prompts until there are none and none can come."""
        while (queued := await self.prompts.next()) is not None:
            self._stops_early = False
            self._turn = asyncio.create_task(self._take_turn(queued))
            try:
                await self._turn
            finally:
                self._turn = None
            if not self.prompts:
                self._state.tell("idle")
        if self._requests:
            await asyncio.wait(self._requests)

    async def _take_turn(self, queued: QueuedPrompt) -> None:
        try:
            session = await self.session()
            result = await self._submit(session, queued)
        except Exception as error:
            result = failure_frame(error)
            if self._held.now is None:  # there is no session, and there will be none
                self._writer.send({**result, "session_id": "", "uuid": ""})
                raise
        self.failed = bool(result["is_error"])
        if self._transcript is not None:
            await self._transcript.flush()
        assert self._frames is not None
        self._frames.send(result)

    async def _submit(self, session: InteractiveSession, queued: QueuedPrompt) -> JsonObject:
        frames = self._frames
        assert frames is not None
        if self._meeting is not None:
            await asyncio.wait((self._meeting,))
        frames.begin(queued.uuid)
        frames.send(init_frame(session, self._mode))
        ending = Ending(session, frames)
        answered = self.prompts.answer_to(queued.uuid)
        if queued.problem or answered is not None:
            frames.end()
            return answered or failure_frame(queued.problem)
        if self._stops_early:
            return ending.frame(ExecutionResult(interrupted=True))
        result = await session.submit(queued.prompt, output=self._schema, verbatim=queued.verbatim)
        frames.end()
        told = ending.frame(result)
        if queued.uuid and result.success:
            self.prompts.keep_answer(queued.uuid, told)
        return told

    async def close(self) -> None:
        """End the session in good order."""
        self._host.close()
        if self._meeting is not None:
            self._meeting.cancel()
        await self._held.close()

    # --- frames ------------------------------------------------------------------------------------------

    def _send(self, frame: JsonObject) -> None:
        if self.failed and self._turn is None:
            return  # behind an error result another frame would make the client forget it
        self._writer.send(frame)


def _read_frame(line: bytes) -> Json:
    try:
        return decode(line)
    except ValueError:
        line.decode()  # what is no text is no frame
        return decode_leniently(line)  # half characters and NaN, as json.dumps writes them
