"""Frames of the terminal: what drawing one takes."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from types import FrameType

import pytest
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.layout import BufferControl, Layout, Window

from robota.tui.surface import FramedApplication, FrameOutput, read_size


class Calls:
    """How often a function is called."""

    def __init__(self, function: object) -> None:
        self._code = function.__code__  # type: ignore[attr-defined]
        self.number = 0

    def __call__(self, frame: FrameType, event: str, argument: object) -> None:
        self.number += event == "call" and frame.f_code is self._code


def test_the_size_is_asked_for_once_a_frame(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with open(tmp_path / "out", "w") as out:
        monkeypatch.setattr(sys, "stdout", out)
        output, calls = FrameOutput(None, "xterm"), Calls(read_size)
        before = sys.getprofile()
        sys.setprofile(calls)
        try:
            with output.frame():
                sizes = {output.get_size() for _ in range(12)}
            within = calls.number
            output.get_size()
            output.get_size()
        finally:
            sys.setprofile(before)
    assert (len(sizes), within, calls.number) == (1, 1, 3)
    assert os.path.getsize(tmp_path / "out") == 0


def test_what_redraws_is_looked_for_once() -> None:
    application = FramedApplication(layout=Layout(Window(BufferControl(Buffer()))))
    application._update_invalidate_events()
    known = application._invalidate_events
    application._update_invalidate_events()
    assert known
    assert application._invalidate_events is known


@pytest.mark.anyio
async def test_what_waits_to_be_drawn_is_drawn_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with open(tmp_path / "out", "w") as out, create_pipe_input() as keys:
        monkeypatch.setattr(sys, "stdout", out)
        application = FramedApplication(
            layout=Layout(Window(BufferControl(Buffer()))), input=keys, output=FrameOutput(None, "xterm")
        )
        drawn = asyncio.Event()
        application.after_render += lambda _: drawn.set()
        running = asyncio.create_task(application.run_async(handle_sigint=False))
        await drawn.wait()
        first = application.render_counter
        application.invalidate()
        application._redraw()  # as a commit does
        waits = application.invalidated
        await asyncio.sleep(0)
        committed = application.render_counter
        drawn.clear()
        await asyncio.to_thread(application.invalidate)
        await drawn.wait()
        last = application.render_counter
        application.exit(result=0)
        await running

    assert not waits
    assert (committed, last) == (first + 1, first + 2)
