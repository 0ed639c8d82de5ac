"""Questions before a session is there: who shall answer, and which session it is to be."""

from __future__ import annotations

import os
import select
import signal
import sys

from robota.cli.signals import Signalled, Signals
from robota.sdk.view.neutral import visible

CHUNK = 4096


class Questioner:
    """Asks the user on the terminal, in the loop's own thread: nothing else goes on yet."""

    __slots__ = ("_signals", "has_screen")

    def __init__(self, signals: Signals, *, has_screen: bool) -> None:
        self._signals = signals
        self.has_screen = has_screen
        """Whether the interface takes over, and not line mode."""

    def ask(self, question: str) -> str | None:
        """A line, `None` at the end of the input; a list of what can be answered may come before it. A pipe
        is not asked: what comes through it are prompts."""
        if not sys.stdin.isatty():
            return None
        print(*map(visible, question.split("\n")), sep="\n", end="", flush=True)
        line = self._read_line()
        if line is None:
            print()
        return line

    def confirm(self, question: str) -> bool:
        """Enter alone is a yes."""
        answer = self.ask(f"{question} [Y/n] ")
        return answer is not None and answer.strip().lower() in ("", "y", "yes")

    def _read_line(self) -> str | None:
        """Terminals give lines away one by one. A signal just before the wait is remembered by a pipe: else
        it would be noticed only at the next key."""
        noticed, notice = os.pipe()
        os.set_blocking(notice, False)
        earlier = signal.set_wakeup_fd(notice)
        keyboard = sys.stdin.fileno()
        try:
            with self._signals.acting(self._signals.unwind):
                if self._signals.code:  # it came before we could say what to do about it
                    raise Signalled(self._signals.code - 128)
                while keyboard not in (ready := select.select([keyboard, noticed], [], [])[0]):
                    os.read(ready[0], CHUNK)
                typed = os.read(keyboard, CHUNK)
                return typed.decode(sys.stdin.encoding, "replace") if typed else None
        except OSError:
            return None  # the terminal is gone
        finally:
            signal.set_wakeup_fd(earlier)
            os.close(noticed)
            os.close(notice)
