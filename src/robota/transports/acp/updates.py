"""What happens in a session, as updates that an editor shows.

A listener to the session's events; it may be called outside of turns as well.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from acp.schema import (
    AgentMessageChunk,
    AgentPlanUpdate,
    AgentThoughtChunk,
    Cost,
    CurrentModeUpdate,
    PlanEntry,
    TerminalToolCallContent,
    ToolCallProgress,
    ToolCallStart,
    UsageUpdate,
)
from msgspec import Struct

from robota.core.events import (
    Compacted,
    ContextUpdated,
    ModelChanged,
    Noticed,
    ProviderRetried,
    ReasoningDelta,
    RunCompleted,
    SubagentEvent,
    TextDelta,
    ToolEnded,
    ToolProgressed,
    ToolStarted,
    TurnEvent,
)
from robota.core.messages import Json
from robota.sdk.view.neutral import neutralise
from robota.sdk.view.tool_view import read_todos
from robota.transports.acp.client import Update
from robota.transports.acp.content import text_block
from robota.transports.acp.tool_calls import (
    Content,
    fence,
    find_diff,
    find_locations,
    kind_of_call,
    read_before,
    say,
    title_of_call,
)

if TYPE_CHECKING:
    from robota.sdk.interactive import InteractiveSession

OUTPUT_SHOWN = 30_000
"""Characters of a result."""
LIVE_SHOWN = 8_000
"""Characters of the end of what a running call has said."""
LIVE_SECONDS = 0.1
"""Between two updates of what a running call says: each repeats it all."""
PRINTING = ("Bash", "BashOutput", "Grep", "Glob")
"""Tools whose results are what a program printed, not Markdown."""


class Running(Struct, kw_only=True):
    """A call under way."""

    before: str | None = None
    """What the file held that it writes."""
    said: str = ""
    terminal: str = ""
    """The terminal of the client that it runs in."""
    timer: asyncio.TimerHandle | None = None


class Updates:
    """Tells the client of a session, event by event."""

    def __init__(self, session: InteractiveSession, send: Callable[[Update], None]) -> None:
        self._session = session
        self._send = send
        self._running: dict[str, Running] = {}
        self._mode = ""
        self.spoke = False
        """Whether the turn under way has said anything."""

    def hear(self, event: TurnEvent) -> None:
        match event:
            case TextDelta(text=text):
                self.say(text)
            case ReasoningDelta(text=text):
                self.think(text)
            case ToolStarted():
                self._start(event)
            case ToolProgressed():
                self._hear_progress(event)
            case ToolEnded():
                self._end(event)
            case SubagentEvent():
                self._hear_subagent(event)
            case ContextUpdated():
                self._tell_usage(event)
            case RunCompleted(text=text):
                self._finish(text)
            case _:
                if remark := describe_remark(event):
                    self.think(f"{remark}\n\n")

    def say(self, text: str) -> None:
        if not self.spoke and not text.strip():
            return  # what stands between rounds, before any words
        self.spoke = True
        self._send(
            AgentMessageChunk(session_update="agent_message_chunk", content=text_block(neutralise(text)))
        )

    def think(self, text: str) -> None:
        self._send(
            AgentThoughtChunk(session_update="agent_thought_chunk", content=text_block(neutralise(text)))
        )

    def _finish(self, text: str) -> None:
        """The words of a run that ended without any of the model's own."""
        if text.strip() and not self.spoke:
            self.say(text)

    def tell_mode(self) -> None:
        """Which permission mode counts, if it is another than before."""
        mode = self._session.permission_mode
        if mode != self._mode:
            known, self._mode = self._mode, mode
            if known:
                self._send(CurrentModeUpdate(session_update="current_mode_update", current_mode_id=mode))

    # --- calls -------------------------------------------------------------------------------------------

    def _start(self, event: ToolStarted, agent: str = "") -> None:
        self.tell_mode()
        cwd = self._session.cwd
        self._running[event.call_id] = Running(before=read_before(event.tool_name, event.arguments, cwd))
        title = title_of_call(event.tool_name, event.arguments)
        self._send(
            ToolCallStart(
                session_update="tool_call",
                tool_call_id=event.call_id,
                title=f"{agent}: {title}" if agent else title,
                kind=kind_of_call(event.tool_name),
                status="in_progress",
                locations=find_locations(event.tool_name, event.arguments, cwd),
                raw_input=dict(event.arguments),
            )
        )

    def _hear_progress(self, event: ToolProgressed) -> None:
        running = self._running.get(event.call_id)
        if running is None or running.terminal:
            return  # a terminal shows by itself what is printed in it
        running.said = f"{running.said}{event.text}\n"[-LIVE_SHOWN:]
        if running.timer is None:
            loop = asyncio.get_running_loop()
            running.timer = loop.call_later(LIVE_SECONDS, self._show_progress, event.call_id)

    def _show_progress(self, call_id: str) -> None:
        running = self._running.get(call_id)
        if running is not None:
            running.timer = None
            self._update(call_id, [say(fence(running.said))])

    def show_terminal(self, call_id: str, terminal_id: str) -> None:
        """A call runs in a terminal of the client, which shows it by itself."""
        running = self._running.get(call_id)
        if running is not None:
            running.terminal = terminal_id
            self._update(call_id, [TerminalToolCallContent(type="terminal", terminal_id=terminal_id)])

    def _update(self, call_id: str, content: list[Content]) -> None:
        self._send(
            ToolCallProgress(
                session_update="tool_call_update",
                tool_call_id=call_id,
                status="in_progress",
                content=content,
            )
        )

    def _end(self, event: ToolEnded) -> None:
        running = self._running.pop(event.call_id, None) or Running()
        if running.timer is not None:
            running.timer.cancel()
        line = event.metadata.get("startLine")
        self._send(
            ToolCallProgress(
                session_update="tool_call_update",
                tool_call_id=event.call_id,
                status="completed" if event.outcome == "success" else "failed",
                content=self._result(event, running),
                locations=find_locations(event.tool_name, event.arguments, self._session.cwd, line),
                raw_output=describe_output(event.content, event.error, event.metadata),
            )
        )
        todos = read_todos(event)
        if todos is not None:
            entries = [PlanEntry(content=each.text, priority="medium", status=each.state) for each in todos]
            self._send(AgentPlanUpdate(session_update="plan", entries=entries))
        self.tell_mode()

    def _result(self, event: ToolEnded, running: Running) -> list[Content]:
        shown: list[Content] = []
        if running.terminal:
            shown.append(TerminalToolCallContent(type="terminal", terminal_id=running.terminal))
        if event.outcome != "success":
            return [*shown, say(neutralise(event.error or event.content or "It failed."))]
        diff = find_diff(event.tool_name, event.arguments, self._session.cwd, running.before)
        if diff is not None:
            return [diff]
        return shown or show_output(event.tool_name, event.content)

    def _hear_subagent(self, event: SubagentEvent) -> None:
        """Of a subagent its calls are shown, as the calls they are."""
        match event.inner:
            case ToolStarted() as started:
                self._start(started, event.agent_id)
            case ToolProgressed() | ToolEnded() | SubagentEvent() | Noticed() as inner:
                self.hear(inner)
            case _:
                return

    # --- figures -----------------------------------------------------------------------------------------

    def _tell_usage(self, event: ContextUpdated) -> None:
        spent = self._session.session.usage.total.cost_usd
        self._send(
            UsageUpdate(
                session_update="usage_update",
                used=event.used_tokens,
                size=event.max_tokens,
                cost=Cost(amount=spent, currency="USD") if spent else None,
            )
        )


def describe_remark(event: TurnEvent) -> str:
    """What the user should know beside the answer, for which the protocol has no place of its own."""
    match event:
        case Noticed(message=message):
            return message
        case ProviderRetried(message=message, delay=delay):
            return f"{message} Trying again in {delay:.1f} s."
        case Compacted():
            return "The conversation was summarized to make room."
        case ModelChanged(model=model, notes=notes):
            return "\n".join([f"{model} answers from now on.", *notes])
        case _:
            return ""


def show_output(tool: str, content: str) -> list[Content]:
    """What a tool said, as Markdown."""
    if not content.strip():
        return []
    shown = content[:OUTPUT_SHOWN]
    return [say(fence(shown) if tool in PRINTING else neutralise(shown))]


def describe_output(content: str, error: str | None, metadata: Mapping[str, Json]) -> Json:
    """For those who look at a call closely."""
    told: dict[str, Json] = {"output": content[:OUTPUT_SHOWN]}
    if error:
        told["error"] = error
    if "exitCode" in metadata:
        told["exitCode"] = metadata["exitCode"]
    return told
