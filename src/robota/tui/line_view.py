"""A session as plain lines: the answer to stdout as it comes, everything else to stderr, one line per event.

There are no colours, no spinner and nothing that is drawn again: what a screen reader, a log or a terminal
without a cursor can follow.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from typing import TextIO

from robota.sdk.view.model import Block, Live, RunningTool, Status
from robota.sdk.view.tool_view import show_seconds
from robota.tui.line_input import LineInput

PROGRESS_SECONDS = 5.0
"""How often the last line of a long command is shown."""
_MARKS = {"success": "✓", "error": "✗", "denied": "⊘", None: "·"}
_REMARKS = {"user": "> ", "thinking": "✻ ", "notice": "", "error": "✗ ", "command": "", "todo": ""}


class LineView:
    """Shows blocks; `gone` is called once when nobody can read the answer any more."""

    def __init__(self, out: TextIO, err: TextIO, input: LineInput, gone: Callable[[str], None]) -> None:
        self._out = out
        self._err = err
        self._input = input
        self._gone = gone
        self._is_gone = False
        self.typed: list[str] = []
        """Prompts that are on the screen because somebody typed them there."""
        self.errors = 0
        """How many blocks told of one."""
        self._partial = ""
        """What is shown of a line that is not finished."""
        self._told: dict[str, float] = {}
        """When something was said about a running call."""

    # --- what the presenter calls -------------------------------------------------------------------------

    def block(self, block: Block) -> None:
        if block.kind == "answer":
            self._finish(block.text)
            return
        self.end_line()
        if block.kind == "user" and block.text in self.typed:
            self.typed.remove(block.text)
        elif block.kind == "tool":
            self._show_call(block)
        elif block.kind == "diff":
            self.remark("\n".join(f"  {line}" for line in block.text.split("\n")))
        else:
            self.errors += block.kind == "error"
            agent = f"[{block.agent}] " if block.agent else ""
            self.remark(f"{_REMARKS[block.kind]}{agent}{block.text}")

    def live(self, live: Live) -> None:
        self._show_tail(live.tail)
        for tool in live.tools:
            self._follow(tool)
        running = {tool.call_id for tool in live.tools}
        self._told = {id: at for id, at in self._told.items() if id in running}

    def status(self, status: Status) -> None:
        """There is no place for one; /status tells it."""

    # --- writing ------------------------------------------------------------------------------------------

    def remark(self, text: str) -> None:
        """Lines beside the answer, never in the middle of one of its lines."""
        self.end_line()
        with self._input.aside(), suppress(OSError):  # the answer does not depend on it
            self._err.write(f"{text}\n")
            self._err.flush()

    def end_line(self) -> None:
        if self._partial:
            self._partial = ""
            self._answer("\n")

    def _show_tail(self, tail: str) -> None:
        if self._input.is_asking or not tail:
            return  # a half line and a prompt cannot be in the same row
        if not tail.startswith(self._partial):
            self.end_line()
        self._answer(tail[len(self._partial) :])
        self._partial = tail

    def _finish(self, line: str) -> None:
        shown, self._partial = self._partial, ""
        if not line.startswith(shown):
            line = f"\n{line}"  # it began again
            shown = ""
        with self._input.aside():
            self._answer(f"{line[len(shown) :]}\n")

    def _show_call(self, block: Block) -> None:
        name = f"{block.title}({block.about})" if block.about else block.title
        took = f" {show_seconds(block.seconds)}" if block.seconds is not None else ""
        lines = [
            f"{_MARKS[block.state]} {name}{took}",
            *(f"  {line}" for line in block.text.split("\n") if line),
        ]
        self.remark("\n".join(lines))

    def _follow(self, tool: RunningTool) -> None:
        """That a call began, and now and then where it is."""
        now, agent = time.monotonic(), f"[{tool.agent}] " if tool.agent else ""
        if tool.call_id not in self._told:
            self._told[tool.call_id] = now
            if not tool.is_shell:  # that is on the screen: somebody typed it there
                self.remark(f"● {agent}{tool.shown}")
        elif tool.lines and now - self._told[tool.call_id] >= PROGRESS_SECONDS:
            self._told[tool.call_id] = now
            self.remark(f"  {agent}{tool.name} {show_seconds(now - tool.since)}: {tool.lines[-1]}")

    def _answer(self, text: str) -> None:
        if self._is_gone or not text:
            return
        try:
            self._out.write(text)
            self._out.flush()
        except BrokenPipeError:
            self._lose("")
        except OSError as error:
            self._lose(str(error))

    def _lose(self, why: str) -> None:
        self._is_gone = True
        self._gone(why)
