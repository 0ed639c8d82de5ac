"""What ends the program from outside: Ctrl-C, SIGTERM and SIGHUP, from its first moment to its last.

All of them come to one `Signals`. What they do depends on what is going on: whoever starts something that
must be stopped in good order says how, with `acting`. Until then there is nothing to put away, and the
process ends at once. SIGHUP stays ignored where it was when we were started, as under nohup.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TypeAlias

Act: TypeAlias = Callable[[int], None]
NAMES = ("SIGINT", "SIGTERM", "SIGHUP")
INTERRUPTED = 128 + signal.SIGINT


class Signalled(KeyboardInterrupt):
    """A signal, where work is left by an exception."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number


class Signals:
    """One for the process."""

    __slots__ = ("act", "code", "count", "noticed")

    def __init__(self) -> None:
        self.code = 0
        """The exit code that a signal asked for; 0 while the program goes on."""
        self.count = 0
        """Signals that have come."""
        self.act: Act = self._end_at_once
        """What a signal does now; it may happen between any two steps of the main thread."""
        self.noticed = -1
        """A descriptor that can be read when a signal has come, inside `waking`."""

    def install(self) -> None:
        for name in NAMES:
            number = getattr(signal, name, None)
            if number is None:
                continue  # Windows has no SIGHUP
            nohup = name == "SIGHUP" and signal.getsignal(number) is signal.SIG_IGN
            if not nohup:
                signal.signal(number, self._receive)

    def ask_to_end(self, number: int) -> None:
        """Note the code of the first signal that ends the program: the others only follow it."""
        self.code = self.code or 128 + number

    @contextmanager
    def acting(self, act: Act) -> Iterator[None]:
        """Let signals do this instead of what they did."""
        before, self.act = self.act, act
        try:
            yield
        finally:
            self.act = before

    @contextmanager
    def waking(self) -> Iterator[int]:
        """Let a signal end any wait that minds `noticed`. Without it one that comes just before the wait, or
        to another thread, is handled only when the wait is over."""
        self.noticed, notice = os.pipe()
        os.set_blocking(notice, False)
        before = signal.set_wakeup_fd(notice, warn_on_full_buffer=False)
        try:
            yield self.noticed
        finally:
            signal.set_wakeup_fd(before)
            os.close(self.noticed)
            os.close(notice)

    def unwind(self, number: int) -> None:
        """For what blocks the main thread; whoever catches it passes the signal on."""
        raise Signalled(number)

    def _receive(self, number: int, frame: FrameType | None) -> None:
        self.count += 1
        self.act(number)

    def _end_at_once(self, number: int) -> None:
        os._exit(self.code or 128 + number)
