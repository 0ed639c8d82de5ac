"""`InteractiveSession`: what every front end stands on.

A directory and a provider go in; prompts, commands and answers to questions come from anybody who is
attached, and everybody sees the same events.

Construction only remembers. The files of the project are read, and the `Session` inside is made, when it is
first used (`ready`).
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator, Callable
from typing import TYPE_CHECKING, Any, Unpack

from robota.core.bus import EventBus, Unsubscribe
from robota.core.closing import Closing
from robota.core.context import ContextWindowState
from robota.core.errors import ConfigurationError, RobotaError
from robota.core.events import PromptQueued, TurnEvent
from robota.core.given import refuse_unknown
from robota.core.messages import HistoryEntry, Message, Prompt, prompt_text
from robota.core.permissions import PermissionMode
from robota.core.provider import ModelSettings, Provider, check_provider
from robota.core.robota import check_prompt
from robota.core.run import OutputKind, OutputT, RunResult
from robota.sdk.assembly import Assembly, MoreOptions, Wanted, choose_id
from robota.sdk.commands.builtin_source import BuiltinCommandSource
from robota.sdk.commands.command_tools import command_tools
from robota.sdk.commands.effects import CommandResult, SubmitPrompt
from robota.sdk.commands.registry import CommandName, CommandRegistry
from robota.sdk.commands.run import carry_out, run_command, run_named
from robota.sdk.commands.slash import read_slash
from robota.sdk.commands.sources import add_sources
from robota.sdk.execution import ExecutionResult
from robota.sdk.listeners import Listener, Listeners
from robota.sdk.places import find_places
from robota.sdk.prompt_queue import PromptQueue
from robota.sdk.timeline import show_history
from robota.sdk.tool_states import ToolState
from robota.sdk.turn import Turn
from robota.sessions.options import SubmitOptions
from robota.sessions.parts import attach_handlers
from robota.sessions.questions import PermissionHandler, QuestionHandler, Questions
from robota.sessions.session import Session

if TYPE_CHECKING:
    from robota.core.transport import TransportAdapter
    from robota.sdk.kit import Kit
    from robota.sdk.problems import Problem
    from robota.sdk.project import Project
    from robota.sdk.trust import Trust
    from robota.sessions.store.session_store import SessionStorePort


def require_provider(provider: Provider | None) -> Provider:
    if provider is None:
        raise ConfigurationError(
            "InteractiveSession needs a provider, such as InteractiveSession(provider=AnthropicProvider()); "
            "robota.choose_provider() finds one."
        )
    check_provider(provider)
    return provider


def _nothing() -> None:
    """Wakes the loop up."""


class InteractiveSession(Closing):
    """A session with everything a coding assistant has, for any number of front ends at once."""

    def __init__(
        self,
        *,
        provider: Provider | None = None,
        cwd: str | os.PathLike[str] | None = None,
        model: str | None = None,
        permission_mode: PermissionMode | None = None,
        permission_handler: PermissionHandler | None = None,
        ask_handler: QuestionHandler | None = None,
        session_store: SessionStorePort | None = None,
        session_name: str | None = None,
        resume_session_id: str | None = None,
        fork_session: bool = False,
        trust_project: bool | None = None,
        session: Session | None = None,
        **more: Unpack[MoreOptions],
    ) -> None:
        """`provider` answers; it is the caller's to make and to close. `permission_handler` is asked before
        calls that need it, `ask_handler` everything else; both may come later, through `questions.attach`.
        `session` is a ready-made one, for tests: then no file is read. `MoreOptions` has the rest.
        """
        known = (*(InteractiveSession.__init__.__kwdefaults__ or ()), *MoreOptions.__annotations__)
        refuse_unknown("InteractiveSession", more, known)
        self.events: EventBus = EventBus() if session is None else session.events
        self.questions = Questions(self.events) if session is None else session.questions
        self.commands = CommandRegistry(BuiltinCommandSource())
        """Everything that can be called by its name behind a slash."""
        self._listeners = Listeners(self.events)
        self._queue = PromptQueue()
        self._turn = Turn(self.events, self._listeners)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._aborts = self._aborts_before = 0
        """All there were, and those before the turn under way."""
        self._session = session
        self._assembly: Assembly | None = None
        self._making = asyncio.Lock()
        attach_handlers(self.questions, permission_handler, ask_handler)
        if session is not None:
            self._follow(session)
            return
        self._assembly = Assembly(
            Wanted(
                provider=require_provider(provider),
                places=find_places(cwd, more.get("environment", os.environ)),
                model=model,
                permission_mode=permission_mode,
                store=session_store,
                session_id=choose_id(session_store, resume_session_id, fork_session, more.get("session_id")),
                name=session_name,
                resume=resume_session_id,
                fork=fork_session,
                trust=trust_project,
                more=more,
            ),
            self.events,
            self.questions,
        )

    # --- what it is -------------------------------------------------------------------------------------

    @property
    def session(self) -> Session:
        """The session inside, once it is made."""
        if self._session is None:
            raise ConfigurationError("InteractiveSession not initialized: await session.ready() first.")
        return self._session

    @property
    def session_id(self) -> str:
        return self._session.session_id if self._session is not None else self._assembled.wanted.session_id

    @property
    def cwd(self) -> str:
        return self._session.cwd if self._session is not None else self._assembled.wanted.places.cwd

    @property
    def is_ready_made(self) -> bool:
        """Whether the session inside was given: then it has no project and no kit."""
        return self._assembly is None

    @property
    def _assembled(self) -> Assembly:
        if self._assembly is None:
            raise ConfigurationError("This session was given ready-made: it has no project and no kit.")
        return self._assembly

    @property
    def project(self) -> Project:
        """What was read from the files of the project and its user."""
        return self._assembled.project

    @property
    def kit(self) -> Kit:
        """The tools of the session and what they work on."""
        return self._assembled.kit

    @property
    def problems(self) -> tuple[Problem, ...]:
        """What was skipped, corrected or ignored while files were loaded."""
        return () if self._assembly is None or self._session is None else self._assembly.project.problems

    @property
    def trouble(self) -> str:
        """Why not everything is on the disk, in one sentence; empty when all is well."""
        return "" if self._session is None else self._session.trouble

    @property
    def is_kept(self) -> bool:
        """Whether there is something to resume."""
        return self._session is not None and self._session.store is not None and self._session.log.used

    @property
    def is_executing(self) -> bool:
        return self._queue.busy

    @property
    def pending_prompt(self) -> str | None:
        """The prompt that waits, as it is shown."""
        return self._queue.pending

    @property
    def streaming_text(self) -> str:
        """What the model has said in the turn under way."""
        return self._turn.text

    @property
    def active_tools(self) -> list[ToolState]:
        """The calls of the turn under way; the last of those that have ended, too."""
        return self._turn.tools.shown

    @property
    def full_history(self) -> list[HistoryEntry]:
        """The timeline for people: prompts as they were typed, answers, tools, remarks."""
        return show_history(self._kept_history())

    @property
    def messages(self) -> list[Message]:
        """What was said, without events. The messages as the model sees them are `session.messages`."""
        found: list[Any] = [entry.data for entry in self.full_history if entry.category == "chat"]
        return found

    def _kept_history(self) -> list[HistoryEntry]:
        if self._session is not None:
            return self._session.history
        start = self._assembled.start
        return [] if start is None else start.history

    @property
    def context_state(self) -> ContextWindowState:
        return self.session.context_state

    @property
    def name(self) -> str | None:
        return self._session.name if self._session is not None else self._assembled.name

    @name.setter
    def name(self, name: str | None) -> None:
        if self._session is not None:
            self._session.name = name
        else:
            self._assembled.given_name = name

    @property
    def permission_mode(self) -> PermissionMode:
        return self.session.permission_mode

    @permission_mode.setter
    def permission_mode(self, mode: PermissionMode) -> None:
        if self._assembly is None:
            self.session.permission_mode = mode
        else:
            self._assembly.switch_mode(self.session, mode)

    def on(self, name: str, listener: Listener) -> Unsubscribe:
        """Call `listener` whenever that happens; `events.on` is the typed form."""
        return self._listeners.on(name, listener)

    def off(self, name: str, listener: Listener) -> None:
        self._listeners.off(name, listener)

    def attach_transport(self, transport: TransportAdapter) -> None:
        """Connect a transport; starting and stopping it is the caller's."""
        transport.attach(self)

    # --- life -------------------------------------------------------------------------------------------

    async def ready(self) -> Session:
        """Read the project's files and make the session, the first time; then look whether they changed."""
        if self._session is None:
            async with self._making:
                if self._session is None:
                    tools = command_tools(self.commands.for_models(), self.execute_command)
                    self._follow(await self._assembled.make(self.switch_mode, tools))
                    add_sources(self.commands, self._assembled)
        elif self._assembly is not None:
            await self._assembly.live.refresh(instructions=True)
        return self.session

    def _follow(self, session: Session) -> None:
        self._turn.follow(session)
        session.steps.stopped_outside = self._is_stopped
        self._session = session

    async def trust_project(self, seen: Trust | None = None, *, below: bool = False) -> None:
        """The user agrees to what the project wants: from now on it may. `seen` is the `project.trust` that
        they were shown, by default what `describe_trust` showed last; what has changed since is asked again.
        With `below`, the directories below it may too, as they are when they are first opened."""
        if self._session is None:
            await self.ready()
        await self._assembled.live.trust(seen, below=below)

    def describe_trust(self) -> list[str]:
        """The question whether the user trusts the project, line by line; empty when there is none to ask."""
        return self._assembled.live.describe_trust()

    def describe_outside_imports(self) -> list[str]:
        """The question whether the project's instruction files may import files from outside it, line by
        line; empty when there is none to ask."""
        paths = self.project.context.outside_imports
        return ["The instructions of this project import files from outside it:", *paths] if paths else []

    async def allow_outside_imports(self) -> None:
        """The user lets the project's instruction files import what `project.context.outside_imports` lists,
        and whatever else lies outside it, from now on."""
        await self.ready()
        await self._assembled.live.allow_imports()

    async def reload(self) -> None:
        """Read the files of the project and its user again, also if none seems to have changed."""
        await self.ready()
        await self._assembled.live.reload()

    async def forget_project(self) -> None:
        """The user takes their trust in the project back."""
        await self._assembled.live.forget()

    async def switch_mode(self, mode: str | None) -> None:
        """Take another permission mode; `None` leaves plan mode for the one before."""
        self._assembled.switch_mode(self.session, mode)

    async def shutdown(self, reason: str = "other") -> None:
        """End what runs, close what the session owns, save. Calling it again waits for the same end."""
        self._queue.cancel()
        if self._session is not None:
            await self._session.shutdown(reason)

    async def aclose(self) -> None:
        await self.shutdown()

    # --- prompts ----------------------------------------------------------------------------------------

    async def submit(
        self,
        prompt: Prompt,
        display_input: str | None = None,
        raw_input: str | None = None,
        *,
        output: OutputKind[OutputT] | None = None,
        max_turns: int | None = None,
        settings: ModelSettings | None = None,
        id: str = "",
        verbatim: bool = False,
    ) -> ExecutionResult[OutputT]:
        """Take one prompt to its end; one event tells of that: `complete`, `interrupted` or `error`.

        While another is worked on, one prompt may wait; taken back by `cancel_queue` or `abort`, it returns
        without having run. `display_input` is what front ends show in its place, `raw_input` what hooks are
        told was typed. A `verbatim` prompt calls no command and names no files.
        """
        aborts = self._aborts
        check_prompt(prompt)
        self._loop = asyncio.get_running_loop()
        if not self._queue.take():
            shown = prompt_text(prompt) if display_input is None else display_input
            if self._queue.pending is None:
                self.events.emit(PromptQueued(shown, seq=self.events.seq))
            if not await self._queue.wait(shown):
                return ExecutionResult(interrupted=True, stop_reason="aborted")
        self._aborts_before = aborts
        try:
            options: SubmitOptions = {
                "id": id,
                "display_input": display_input,
                "raw_input": raw_input,
                "max_rounds": max_turns,
                "settings": settings,
            }
            return await self._turn.take(self._run(prompt, output, options, verbatim))
        finally:
            self._queue.leave()

    async def _run(
        self, prompt: Prompt, output: OutputKind[OutputT] | None, options: SubmitOptions, verbatim: bool
    ) -> RunResult[OutputT] | CommandResult | None:
        """What became of a prompt, or of the command it calls; `None` if it was aborted before it began."""
        session, assembly = self._session, self._assembly
        if session is None or (assembly is not None and assembly.live.has_news(instructions=True)):
            session = await self.ready()
        if assembly is not None:
            assembly.live.tell()
        made = verbatim or options.get("raw_input") is not None  # so it calls no command again
        line = None if made else read_slash(prompt, self.commands)
        if line is not None and not self._is_stopped():
            answer = await run_command(self, line.command, line.args)
            if not isinstance(answer.effect, SubmitPrompt):
                stopped = not answer.success and self._is_stopped()
                return None if stopped else await carry_out(self, answer)
            prompt = answer.effect.input
            options["display_input"] = answer.effect.display_input
            options["raw_input"], verbatim = answer.effect.raw_input, answer.effect.verbatim
        if self._is_stopped():
            return None
        if assembly is None:
            return await session.submit(prompt, output=output, **options)
        with (kit := assembly.kit).skills.turn(prompt, options) as skill:
            text = prompt if isinstance(prompt, str) else prompt_text(prompt)
            words = options.get("raw_input") or text
            await kit.prepare(words)
            if "@" in text and not verbatim:
                sent = await kit.expand(prompt, lenient=skill is not None)
                if sent is not prompt:
                    options["raw_input"], prompt = words, sent
                    options["display_input"] = options.get("display_input") or words
            return None if self._is_stopped() else await session.submit(prompt, output=output, **options)

    def _is_stopped(self) -> bool:
        """Whether the turn under way was told to end since somebody asked for it."""
        return self._queue.busy and self._aborts != self._aborts_before

    async def execute_command(self, name: str, args: str = "") -> CommandResult | None:
        """The answer of the command of that name, `None` when there is none. What it wants of its caller is
        the effect of the answer, and is not done."""
        await self.ready()
        return await run_named(self, name, args)

    def list_commands(self) -> list[CommandName]:
        """The names and descriptions of all commands."""
        return [CommandName(each.name, each.description) for each in self.commands.commands()]

    async def stream(
        self, prompt: Prompt, display_input: str | None = None, raw_input: str | None = None, **options: Any
    ) -> AsyncGenerator[TurnEvent, None]:
        """`submit`, as the events of the turn; the last says how it ended. Leaving early stops it."""
        await self._queue.require_free()
        events = self.events.open()
        task = asyncio.ensure_future(self.submit(prompt, display_input, raw_input, **options))
        task.add_done_callback(lambda _: events.close())
        try:
            async for event in events:
                yield event
            if (error := (await task).error) is not None and not isinstance(error, RobotaError):
                raise error
        finally:
            events.close()
            if not task.done():
                if self._session is not None and self._session.is_running:
                    self._session.abort()  # this turn alone: the next prompt may be waiting already
                else:
                    task.cancel()  # it has not begun
                await self._queue.wait_for_left(task)

    def run_sync(self, prompt: Prompt, **options: Any) -> ExecutionResult[Any]:
        """`submit` for code without an event loop; also in notebooks, any number of times."""
        from robota.core.sync import run_sync  # noqa: PLC0415 - starts a thread, for those who ask for it

        return run_sync(self.submit(prompt, **options))

    def steer(self, prompt: Prompt) -> None:
        """Tell the model something while it works: it hears it before its next round."""
        self.session.steer(prompt)

    def abort(self) -> None:
        """Stop the turn under way and take back what waits. Safe from any thread and from signal handlers;
        `interrupted` comes when it has ended."""
        self._aborts += 1
        self._in_loop(self._queue.cancel)
        if self._session is not None:
            self._session.abort()

    def cancel_queue(self) -> None:
        """Take back the prompt that waits; the turn under way goes on."""
        self._in_loop(self._queue.cancel)

    def __repr__(self) -> str:
        return f"<InteractiveSession {self.session_id} in {self.cwd}>"

    def _in_loop(self, action: Callable[[], None]) -> None:
        try:
            inside = asyncio.get_running_loop() is self._loop
        except RuntimeError:
            inside = False
        if inside or self._loop is None:
            action()
        if self._loop is not None and not self._loop.is_closed():
            # Inside we may be a signal handler, after which the loop would go on sleeping.
            self._loop.call_soon_threadsafe(_nothing if inside else action)
