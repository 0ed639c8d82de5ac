"""`Session`: one agent with permissions, hooks, a bounded context and a memory that outlives the process.

Construction does nothing but remember. The journal is opened, and `SessionStart` fires, when the session is
first used. What happens to a prompt is told in `session_turn`.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Self

from robota.core.bus import EventBus
from robota.core.context import ContextWindowState
from robota.core.conversation import ConversationStore
from robota.core.errors import SessionBusyError, ValidationError
from robota.core.history import HistoryEntry
from robota.core.messages import AssistantMessage, Message, Prompt, SystemMessage, ToolMessage, UserMessage
from robota.core.models import get_model_context_window
from robota.core.permissions import PermissionMode
from robota.core.ports import Ports, timestamp
from robota.core.provider import Provider
from robota.core.robota import AgentConfig, Robota
from robota.core.tool import Tool, ToolContext, ToolResult
from robota.core.tool_batch import PreparedCall
from robota.sessions.context_window_tracker import AutoCompactThreshold, ContextWindowTracker
from robota.sessions.session_options import DEFAULT_OPTIONS, SessionOptions

if TYPE_CHECKING:
    from robota.core.events import ModelChanged
    from robota.sessions.permissions.approval import PermissionHandler
    from robota.sessions.permissions.permission_enforcer import PermissionEnforcer
    from robota.sessions.session_life import SessionLife
    from robota.sessions.store.session_store import SessionStorePort

InjectedRole = Literal["user", "assistant", "system", "tool"]
_MESSAGE_TYPES: dict[str, type[Message]] = {
    "user": UserMessage,
    "assistant": AssistantMessage,
    "system": SystemMessage,
    "tool": ToolMessage,
}


class Session:
    """A conversation that is permitted, measured and kept.

    `run` takes one prompt to its answer. Everything that happens in between comes through `events`.
    """

    __slots__ = (
        "__weakref__", "_life", "_running", "_shutdown", "agent", "cwd", "message_count", "options",
        "permission_handler", "session_id", "store", "tracker",
    )  # fmt: skip

    def __init__(
        self,
        *,
        provider: Provider,
        model: str = "",
        tools: Iterable[Tool] = (),
        system_message: str | None = None,
        cwd: str | None = None,
        store: SessionStorePort | None = None,
        permission_handler: PermissionHandler | None = None,
        session_id: str | None = None,
        conversation: ConversationStore | None = None,
        options: SessionOptions = DEFAULT_OPTIONS,
    ) -> None:
        self.options = options
        self.session_id = options.ports.new_id() if session_id is None else session_id
        self.cwd = os.getcwd() if cwd is None else cwd
        self.store = store
        self.permission_handler = permission_handler
        self.message_count = 0
        """Prompts that were answered."""
        self._life: SessionLife | None = None
        self._running = False
        self._shutdown = False
        self.agent = Robota(
            provider,
            model=model,
            tools=tools,
            system_message=system_message,
            plugins=options.plugins,
            max_rounds=options.max_turns,
            settings=options.settings,
            conversation=conversation,
            config=AgentConfig(
                session_id=self.session_id,
                cwd=self.cwd,
                deps=options.deps,
                idle_timeout=options.idle_timeout,
                total_timeout=options.total_timeout,
                context_window=options.context_window,
                capacity_hint=options.capacity_hint,
                max_parallel_tools=options.max_parallel_tools,
                run_tool=self._run_tool,
                admit=lambda given: self.life.guard(given),
                ask=None if options.ask is None else self._ask,
                ports=options.ports,
            ),
        )
        window = options.context_window or get_model_context_window(model)
        self.tracker = ContextWindowTracker(self.agent.conversation, window, options.auto_compact_threshold)

    # --- what it is -----------------------------------------------------------------------------------

    @property
    def events(self) -> EventBus:
        return self.agent.events

    @property
    def messages(self) -> list[Message]:
        return self.agent.messages

    @property
    def history(self) -> list[HistoryEntry]:
        """The whole timeline: messages and events."""
        return self.agent.history

    @property
    def is_running(self) -> bool:
        return self._running

    @property
    def enforcer(self) -> PermissionEnforcer:
        return self.life.enforcer

    @property
    def permission_mode(self) -> PermissionMode:
        return self.enforcer.permission_mode

    @permission_mode.setter
    def permission_mode(self, mode: PermissionMode) -> None:
        self.enforcer.permission_mode = mode
        self.life.scribe.note_change("permissionMode", mode)

    @property
    def session_allowed_tools(self) -> tuple[str, ...]:
        """The rules the user allowed for this session."""
        return self.enforcer.session_allowed_rules

    def clear_session_allowed_tools(self) -> None:
        self.enforcer.clear_session_allowed()

    @property
    def context_state(self) -> ContextWindowState:
        return self.tracker.update()

    @property
    def auto_compact_threshold(self) -> AutoCompactThreshold:
        return self.tracker.threshold

    @auto_compact_threshold.setter
    def auto_compact_threshold(self, threshold: AutoCompactThreshold) -> None:
        self.tracker.threshold = threshold
        self.life.scribe.note_change("autoCompactThreshold", threshold)

    @property
    def model(self) -> str:
        return self.agent.model

    @model.setter
    def model(self, model: str) -> None:
        self.set_model(model)

    def set_model(self, model: str) -> ModelChanged:
        """Let another model of the same provider answer from the next request on, also in mid-run."""
        return self.set_provider(self.agent.provider, model)

    def set_provider(self, provider: Provider, model: str | None = None) -> ModelChanged:
        """The same with another provider, by default with its own model; tells what that means."""
        from robota.sessions.model_swap import swap_model  # noqa: PLC0415 - for those who change it

        return swap_model(self, provider, model)

    @property
    def name(self) -> str | None:
        return self.life.name

    @name.setter
    def name(self, name: str | None) -> None:
        self.life.name = name
        self.life.scribe.note_change("name", name)

    @property
    def trouble(self) -> str:
        """Why not everything is on the disk, in one sentence; empty when all is well."""
        return "" if self._life is None else self._life.trouble

    @property
    def life(self) -> SessionLife:
        """The parts that come with the first use: journal, hooks, compaction, usage."""
        if self._life is None:
            from robota.sessions.session_life import SessionLife  # noqa: PLC0415 - constructing costs nothing

            self._life = SessionLife(self)
        return self._life

    # --- running --------------------------------------------------------------------------------------

    async def run(self, prompt: Prompt, *, raw_input: str | None = None) -> str:
        """The answer to a prompt. An abort raises `AbortError`, a failing model its error; history stays.

        `raw_input` is what the user typed, when the prompt was made from it.
        """
        from robota.sessions.session_turn import SessionTurn  # noqa: PLC0415 - constructing costs nothing

        turn = SessionTurn(self, prompt, raw_input)
        self._enter()
        try:
            return await turn.take()
        finally:
            self._leave()

    async def compact(self, instructions: str | None = None) -> str | None:
        """Replace what the model sees of the conversation by a summary; the summary, `None` for no need."""
        from robota.sessions.session_turn import compact_session  # noqa: PLC0415 - as in run

        self._enter()
        try:
            return await compact_session(self, instructions)
        finally:
            self._leave()

    def abort(self) -> None:
        """Stop what is under way, if something is. Safe from any thread and from signal handlers."""
        if self._running:
            self.life.switch.abort()

    def _enter(self) -> None:
        if self._shutdown:
            raise SessionBusyError(f"Session {self.session_id} was shut down: resume it or start a new one.")
        if self._running:
            raise SessionBusyError(
                "This session is working on another prompt: wait for it, or abort() it first."
            )
        self._running = True

    def _leave(self) -> None:
        self._running = False
        self.life.switch.end()

    async def _ask(self, question: Any) -> Any:
        """Ask the user, and write down what was answered."""
        assert self.options.ask is not None
        answer = await self.options.ask(question)
        self.life.scribe.record_answer(question, answer)
        return answer

    async def _run_tool(self, call: PreparedCall, context: ToolContext) -> ToolResult:
        result = await self.enforcer.run_tool(call, context)
        if self.enforcer.stop_requested is not None:
            self.agent.abort()  # a hook ends the run with this result
        return result

    # --- the conversation -----------------------------------------------------------------------------

    def clear_history(self) -> None:
        """Begin an empty conversation; the journal keeps the old one."""
        self.life.scribe.clear()
        self.tracker.update()

    def add_history_entry(self, entry: HistoryEntry) -> None:
        self.life.scribe.record_entry(entry)

    def inject_message(
        self, role: InjectedRole, content: str, *, tool_call_id: str = "", name: str = ""
    ) -> Message:
        """Put a message into the conversation without asking the model."""
        message = _make_message(role, content, self.options.ports, tool_call_id, name)
        self.life.scribe.record(message)
        return message

    # --- the end --------------------------------------------------------------------------------------

    async def shutdown(self, reason: str = "other") -> None:
        """Stop what runs, save, and fire `SessionEnd` once; calling it again waits for the same end."""
        self._shutdown = True
        self.abort()
        await self.life.switch.wait_until_ended()
        await self.life.end(reason)
        await self.agent.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.shutdown()


def _make_message(role: str, content: str, ports: Ports, tool_call_id: str, name: str) -> Message:
    kind = _MESSAGE_TYPES.get(role)
    if kind is None:
        raise ValidationError(
            f"A message has the role user, assistant, system or tool, not {role!r}.", field="role"
        )
    about: dict[str, Any] = {"id": ports.new_id(), "timestamp": timestamp(ports.now())}
    if role == "tool":
        about |= {"tool_call_id": tool_call_id, "name": name}
    return kind(content, **about)
