"""Questions on the screen: what is asked, what may be answered, and when keys count as an answer.

A dialog that opens while somebody types must not be answered by the next letter: it is armed only after half
a second without a key. What the user opened, such as a list of sessions, is armed at once.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from typing import Any

from msgspec import Struct

ARMING_SECONDS = 0.5
SHOWN_OPTIONS = 10


class Option(Struct, frozen=True, kw_only=True):
    """One of the answers."""

    label: str
    value: Any = None
    key: str = ""
    """The letter that chooses it."""
    detail: str = ""
    entry: bool = False
    """Choosing it opens a line to write in; the answer is `value(text)`."""
    text: str = ""
    """What stands in that line to begin with."""


class Line(Struct, frozen=True):
    """A line above the options, with the class of its style."""

    text: str
    style: str = ""
    mark: str | None = None
    """What every row of it begins with: such a line is shown whole, in as many rows as it takes."""


class Dialog:
    """One question, until somebody answers it."""

    def __init__(
        self,
        lines: Sequence[Line],
        options: Sequence[Option],
        *,
        default: int = 0,
        guarded: bool = True,
        filtered: bool = False,
        many: bool = False,
        escape: Any = None,
        closable: bool = False,
    ) -> None:
        self.lines = tuple(lines)
        self.options = tuple(options)
        self.at = default
        self.guarded = guarded
        self.filtered = filtered
        """Letters look for an option instead of choosing one."""
        self.many = many
        self.escape = escape
        self.closable = closable
        """Whether Esc closes it, with `escape` as the answer."""
        self.chosen: set[int] = set()
        self.needle = ""
        self.entry: Option | None = None
        """The option whose line is being written."""
        self.details: Callable[[], None] | None = None
        """Prints all of what is asked about above."""
        self.answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self.opened = time.monotonic()

    @property
    def shown(self) -> list[Option]:
        """The options that fit what was typed."""
        if not self.needle:
            return list(self.options)
        words = self.needle.casefold().split()
        return [
            each
            for each in self.options
            if all(word in f"{each.label} {each.detail}".casefold() for word in words)
        ]

    def move(self, step: int) -> None:
        count = len(self.shown)
        self.at = (self.at + step) % count if count else 0

    def choose(self) -> None:
        """Take the option that is marked."""
        shown = self.shown
        if not shown:
            return
        option = shown[min(self.at, len(shown) - 1)]
        if option.entry:
            self.entry = option
        elif self.many and self.chosen:
            self.settle(self._chosen_values())
        else:
            self.settle([option.value] if self.many else option.value)

    def type(self, letter: str) -> None:
        """A printable key, when keys count."""
        if self.filtered:
            self.needle += letter
            self.at = 0
        elif self.many and letter == " ":
            self._tick()
        else:
            for at, option in enumerate(self.options):
                if letter.lower() in option.key.split():
                    self.at = at
                    (self._tick if self.many else self.choose)()
                    return

    def _tick(self) -> None:
        """Choose the marked option beside others, or no longer; one to be written is written."""
        if self.options[self.at].entry:
            self.entry = self.options[self.at]
        else:
            self.chosen ^= {self.at}

    def _chosen_values(self) -> list[Any]:
        return [self.options[at].value for at in sorted(self.chosen)]

    def erase(self) -> None:
        self.needle = self.needle[:-1]
        self.at = 0

    def close(self) -> None:
        if self.entry is not None:
            self.entry = None
        elif self.closable:
            self.settle(self.escape)

    def write(self, text: str) -> None:
        """What was written in the line of an option."""
        option, self.entry = self.entry, None
        if option is not None:
            written = option.value(text)
            self.settle([*self._chosen_values(), written] if self.many else written)

    def settle(self, answer: Any) -> None:
        if not self.answer.done():
            self.answer.set_result(answer)


class Dialogs:
    """The open dialogs; the first is on the screen and the others wait for it."""

    def __init__(self, changed: Callable[[], None]) -> None:
        self._open: list[Dialog] = []
        self._first: Dialog | None = None
        self._changed = changed
        self._last_key = 0.0
        self._timer: asyncio.TimerHandle | None = None

    @property
    def current(self) -> Dialog | None:
        return self._open[0] if self._open else None

    @property
    def armed(self) -> bool:
        """Whether keys are answers now."""
        dialog = self.current
        if dialog is None:
            return False
        return not dialog.guarded or self._arms_at(dialog) <= time.monotonic()

    def _arms_at(self, dialog: Dialog) -> float:
        return max(dialog.opened, self._last_key) + ARMING_SECONDS

    def key_pressed(self) -> None:
        """Some key: while nobody looks at the dialog it is armed later."""
        if not self.armed:
            self._last_key = time.monotonic()
            self._await_arming()

    async def ask(self, dialog: Dialog) -> Any:
        """The answer; cancelled when nobody needs it any more."""
        self._open.append(dialog)
        self._shift()
        try:
            return await dialog.answer
        finally:
            self._open.remove(dialog)
            self._shift()

    def _shift(self) -> None:
        """A dialog that has become the first counts as opened now."""
        if self.current is not self._first and self.current is not None:
            self.current.opened = time.monotonic()
        self._first = self.current
        self._await_arming()
        self._changed()

    def _await_arming(self) -> None:
        """Show the moment in which keys begin to count."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        dialog = self.current
        if dialog is not None and dialog.guarded:
            wait = max(0.0, self._arms_at(dialog) - time.monotonic())
            self._timer = asyncio.get_running_loop().call_later(wait + 0.005, self._changed)
