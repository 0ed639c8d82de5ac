"""Finished blocks on their way into the scrollback: all of them, in order, without holding up the keys."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING

from robota.sdk.view.model import Block
from robota.tui.blocks import render_block

if TYPE_CHECKING:
    from robota.sdk.view.model import Live
    from robota.tui.surface import Surface
    from robota.tui.theme import Theme

LARGE = 1500
"""Blocks with more characters are rendered in a thread."""
KEPT = 100
"""Blocks that can be shown again."""
SAMPLE = "# a\n\n| b |\n|---|\n| c |\n\n```python\nd = 1\n```\n"
SLICE = 200
"""Lines that are written at a time."""


class Printing:
    """Blocks that are not on the screen yet."""

    def __init__(self, surface: Surface, theme: Theme, show: Callable[[Live], None]) -> None:
        self._surface = surface
        self._show = show
        self._live: Live | None = None
        """The moment after the blocks that wait: shown before, it would take the tail away too early."""
        self._theme = theme
        self._blocks: deque[Block] = deque()
        self._lines: list[str] = []
        """Of the blocks that are drawn and wait for those behind them."""
        self._large: asyncio.Task[None] | None = None
        self._scheduled = False
        self._printed = asyncio.Event()
        self._printed.set()
        self._recent: deque[Block] = deque(maxlen=KEPT)
        self.show_thinking = False

    async def warm_up(self) -> None:
        """Load what draws code and tables while nobody waits for it: the first of them would hold up keys."""
        await asyncio.to_thread(self._render, Block(id=0, kind="answer", text=SAMPLE, format="markdown"))

    def add(self, block: Block) -> None:
        self._blocks.append(block)
        self._recent.append(block)
        self._printed.clear()
        if not self._scheduled and self._large is None:
            self._scheduled = True
            asyncio.get_running_loop().call_soon(self._print)

    async def done(self) -> None:
        """Until all of them are in the scrollback."""
        await self._printed.wait()

    def then(self, live: Live) -> None:
        """Show the moment that follows the blocks."""
        if self._scheduled or self._large is not None:
            self._live = live
        else:
            self._show(live)

    def _print(self) -> None:
        """What can be printed at once is one write. Keys are looked at after every block."""
        self._scheduled = False
        loop = asyncio.get_running_loop()
        if self._blocks and self._large is None:
            block = self._blocks.popleft()
            if len(block.text) > LARGE:
                self._large = loop.create_task(self._print_large(block))
            else:
                self._lines += self._render(block)
                if self._blocks:
                    self._scheduled = True
                    loop.call_soon(self._print)
                    return
        if self._live is not None and self._large is None:
            self._show(self._live)
            self._live = None
        if self._lines:
            lines, self._lines = self._lines, []
            self._surface.commit(lines)
        if self._large is None:
            self._printed.set()

    async def _print_large(self, block: Block) -> None:
        try:
            lines = await asyncio.to_thread(self._render, block)
            for start in range(0, len(lines), SLICE):
                self._surface.commit(lines[start : start + SLICE])
                await asyncio.sleep(0)
        finally:
            self._large = None
            self._print()

    def _render(self, block: Block) -> list[str]:
        whole = self.show_thinking and block.kind == "thinking"
        return render_block(block, self._surface.size.columns, self._theme, expanded=whole)

    def expand(self) -> bool:
        """Print what the last shortened block left out; false when there is none."""
        block = next((each for each in reversed(self._recent) if each.full), None)
        if block is not None:
            self._recent.remove(block)
            columns = self._surface.size.columns
            self._surface.commit(render_block(block, columns, self._theme, expanded=True))
        return block is not None

    def reprint(self) -> None:
        """The last screenful again, as after a resize that left it in disorder."""
        lines = [line for block in self._recent for line in self._render(block)]
        self._surface.commit(lines[-self._surface.size.rows :])

    async def finish(self) -> None:
        """The region is gone: print what is left as it comes."""
        if self._large is not None:
            await self._large
        lines, self._lines = [*self._surface.release(), *self._lines], []
        while self._blocks:
            lines += self._render(self._blocks.popleft())
        if lines:
            self._surface.write("\r\n".join(lines) + "\r\n")
