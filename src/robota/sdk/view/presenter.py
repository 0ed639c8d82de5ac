"""From what a session tells to what is shown of it.

Events are taken in and worked off in frames: a view hears of them at most every `frame_seconds`, never for
longer than a few milliseconds at a time, always in their order. A tool call, a question or the end of a turn
finishes the open text first. What was shown is never taken back; only the tail may vanish.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeAlias

from robota.core.events import TextDelta, TurnEvent
from robota.sdk.view.heard import HEARD
from robota.sdk.view.markdown import BlockSplitter, Splitter
from robota.sdk.view.model import Block, Live, Say, Status, View
from robota.sdk.view.moment import Moment
from robota.sdk.view.neutral import neutralise
from robota.sdk.view.recap import recap
from robota.sdk.view.tool_view import show_seconds

if TYPE_CHECKING:
    from robota.core.messages import HistoryEntry
    from robota.sdk.commands.effects import CommandResult
    from robota.sdk.view.shown_session import ShownSession

FRAME_SECONDS = 0.05
TICK_SECONDS = 0.008
"""How long a view is kept busy at a time; keys are looked at in between."""
NEXT_TICK_SECONDS = 0.002
FED_AT_ONCE = 800
"""Characters that the splitter gets between two looks at the clock."""

Action: TypeAlias = Callable[[], object]


class Presenter:
    """Follows one session for one view."""

    def __init__(
        self,
        session: ShownSession,
        view: View,
        say: Say,
        *,
        frame_seconds: float = FRAME_SECONDS,
        splitter: Splitter | None = None,
        status: Callable[[], Status],
    ) -> None:
        """`status` tells how the session stands; `splitter` cuts answers into blocks, by default those of
        Markdown."""
        self.session = session
        self._read_status = status
        self.say = say
        self.frame_seconds = frame_seconds
        self.moment = Moment()
        self.failures = 0
        """Turns that ended with an error that was shown."""
        self.answers_command = False
        """Whether this front end waits for the answer of a command, which tells what the command does."""
        self._view = view
        self._waiting: deque[TurnEvent | Action] = deque()
        self._timer: asyncio.Handle | None = None
        self._ticked = 0.0
        self._splitter = splitter or BlockSplitter()
        self._held = ""
        """A carriage return that may be the first half of a line's end."""
        self._shown = 0
        self._live = Live()
        self._status: Status | None = None
        self._stop = session.events.subscribe(self._hear)

    def close(self) -> None:
        """Show what was heard, then hear no more."""
        self.flush()
        self._stop()
        if self._timer is not None:
            self._timer.cancel()

    # --- what front ends ask for ------------------------------------------------------------------------

    def flush(self) -> None:
        """Show everything that was heard, now: before a question, and at the end."""
        self._work(None)
        self._show_live()

    def refresh(self) -> None:
        """Show the status if it is another one, after a command that may have changed it."""
        status = self._read_status()
        if status != self._status:
            self._status = status
            self._view.status(status)

    def show_history(self, entries: Sequence[HistoryEntry]) -> None:
        """The end of an earlier conversation, as blocks."""
        self._later(*recap(self, entries))

    @contextmanager
    def answering(self, line: str) -> Iterator[None]:
        """While the block runs, what a command does is not told by events: its answer says it."""
        self.answers_command = line.startswith("/")
        try:
            yield
            self.flush()
        finally:
            self.answers_command = False

    @contextmanager
    def running(self, command: str) -> Iterator[Callable[[str], None]]:
        """A command of the user's own, as a call under way; gives who hears what it prints."""
        call_id = self.moment.start_shell(command)
        self._later()
        try:
            yield lambda text: self._later(lambda: self.moment.hear_output(call_id, text))
        finally:
            self._later(lambda: self.moment.end_tool(call_id))

    def show_command(self, line: str, result: CommandResult) -> None:
        """A command as it was typed, and what it answered."""
        self._later(
            lambda: self.emit("user", neutralise(line)),
            lambda: self.emit("command" if result.success else "error", neutralise(result.message.rstrip())),
        )

    def notice(self, text: str) -> None:
        """A remark of the front end, in its place among the blocks."""
        self._later(lambda: self.emit("notice", neutralise(text)))

    def error(self, text: str) -> None:
        """The same about something that went wrong."""
        self._later(lambda: self.emit("error", neutralise(text)))

    # --- what those who describe events ask for -----------------------------------------------------------

    def emit(self, kind: Any, text: str = "", **fields: Any) -> None:
        """Show a block; the open text comes first."""
        self.end_text()
        self._give(kind, text, fields)

    def add_text(self, text: str) -> None:
        """Go on with the answer."""
        self._end_thought()
        text = self._held + text
        self._held = "\r" if text.endswith("\r") else ""
        text = neutralise(text.removesuffix("\r"))
        for at in range(0, len(text), FED_AT_ONCE):
            self._give_pieces(self._splitter.feed(text[at : at + FED_AT_ONCE]))

    def end_text(self) -> None:
        """What is said next is another text."""
        self._end_thought()
        self._held = ""
        self._give_pieces(self._splitter.finish())

    def drop_text(self) -> bool:
        """Forget what was not shown for good; whether there had been any text."""
        began = not self._splitter.is_empty or self.moment.said
        self._splitter.discard()
        self._held = ""
        return began

    def _end_thought(self) -> None:
        if self.moment.thinking:
            thought, seconds = self.moment.end_thought()
            if thought.strip():
                shown = self.say("view.thought", time=show_seconds(seconds))
                self._give("thinking", shown, {"full": neutralise(thought.strip()), "seconds": seconds})

    def _give_pieces(self, pieces: Sequence[Any]) -> None:
        for piece in pieces:
            form = {"format": "code", "language": piece.language} if piece.is_code else {"format": "markdown"}
            self._give("answer", piece.text, {**form, "before": piece.before, "gap": not piece.continues})

    def _give(self, kind: Any, text: str, fields: dict[str, Any]) -> None:
        self._shown += 1
        self._view.block(Block(id=self._shown, kind=kind, text=text, **fields))

    # --- frames -------------------------------------------------------------------------------------------

    def _later(self, *actions: Action) -> None:
        self._waiting.extend(actions)
        self._arm()

    def _hear(self, event: TurnEvent) -> None:
        self._waiting.append(event)
        if self._timer is None:
            self._arm()

    def _arm(self) -> None:
        if self._timer is None:
            wait = self._ticked + self.frame_seconds - time.monotonic()
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(wait, self._tick) if wait > 0 else loop.call_soon(self._tick)

    def _tick(self) -> None:
        self._timer = None
        try:
            self._work(time.monotonic() + TICK_SECONDS)
            self._show_live()
        finally:
            self._ticked = time.monotonic()
            if self._waiting and self._timer is None:
                loop = asyncio.get_running_loop()
                self._timer = loop.call_later(NEXT_TICK_SECONDS, self._tick)

    def _work(self, deadline: float | None) -> None:
        """Work off what was heard, until the time is over."""
        waiting = self._waiting
        while waiting and (deadline is None or time.monotonic() < deadline):
            first = waiting.popleft()
            if isinstance(first, TextDelta):
                self._say(first)
            elif isinstance(first, TurnEvent):
                handler = HEARD.get(type(first))
                if handler is not None:
                    handler(self, first)
            else:
                first()

    def _say(self, first: TextDelta) -> None:
        """A piece of the answer with those that follow it, because they are many and small."""
        if not first.sequence and not first.text.strip():
            self.end_text()  # the engine's mark between two rounds
            self.moment.begin_round()
            return
        waiting, texts, size = self._waiting, [first.text], len(first.text)
        while waiting and size < FED_AT_ONCE:
            following = waiting[0]
            if not isinstance(following, TextDelta) or not (following.sequence or following.text.strip()):
                break
            waiting.popleft()
            texts.append(following.text)
            size += len(following.text)
        self.moment.hear_words(size)
        self.add_text("".join(texts))

    def _show_live(self) -> None:
        live = self.moment.live(self._splitter.tail, self.session.pending_prompt)
        if live != self._live:
            self._live = live
            self._view.live(live)
