"""One side of bench/terminal.py, on a terminal of its own.

python bench/terminal_side.py ui|bare|prompt|robota DELTAS RATE REPORT
"""

from __future__ import annotations

import asyncio
import json
import os
import resource
import sys
import time
from collections.abc import AsyncGenerator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from robota.core.provider import Capabilities, ChatRequest, Chunk, StopChunk, TextChunk

if TYPE_CHECKING:
    from robota import InteractiveSession
    from robota.sdk.view.model import Status

SIZE = 5
"""Characters of a delta."""
SENTENCE = "Some **bold** words follow each other here as they do when models explain what they did. "
LAST = "\n\nthe last word\n"


def make_text(characters: int) -> tuple[str, int]:
    """Markdown of about that length, as models write it, with a mark in every block; and how many marks."""
    parts: list[str] = []
    length = number = 0
    while length < characters:
        items = "".join(
            f"- item {row} of **mark{number + 1}{'x' * row}** with a few words\n" for row in range(5)
        )
        cells = "".join(f"| row {row} of mark{number + 2}{'x' * row} | {row * 7} |\n" for row in range(4))
        code = "".join(f"    total += value * {row}  # mark{number + 3}{'x' * row}\n" for row in range(8))
        part = (
            f"## Heading {number}\n\n{SENTENCE * 4}And mark{number} `code`, 漢字 and 한글.\n\n{items}\n"
            f"| left | right |\n|---|---|\n{cells}\n{SENTENCE * 3}\n\n"
            f"```python\ndef function(value, total=0):\n{code}    return total\n```\n\n"
        )
        parts.append(part)
        length += len(part)
        number += 4
    return "".join(parts), number


class Metronome:
    """Answers with a text in small pieces at a steady rate."""

    name = "metronome"
    capabilities = Capabilities()

    def __init__(self, deltas: int, rate: int) -> None:
        self.text, self.marks = make_text(deltas * SIZE)
        self.rate = rate
        self.cpu = 0.0

    async def stream(self, request: ChatRequest) -> AsyncGenerator[Chunk, None]:
        began, used = time.perf_counter(), cpu_seconds()
        for number, at in enumerate(range(0, len(self.text), SIZE)):
            late = began + number / self.rate - time.perf_counter()
            if late > 0:
                await asyncio.sleep(late)
            yield TextChunk(self.text[at : at + SIZE])
        yield TextChunk(LAST)
        self.cpu = cpu_seconds() - used
        yield StopChunk("end_turn")


def cpu_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


class NoHost:
    """Little is asked of it here."""

    def setting(self, name: str) -> None:
        return None

    def read_status(self, session: InteractiveSession) -> Status:
        from robota.sdk.view.status import read_status

        return read_status(session)

    def stop_turn(self) -> None: ...


async def run_ui(provider: Metronome) -> None:
    from robota import InteractiveSession
    from robota.tui.app import run_terminal

    async with InteractiveSession(provider=provider, model="m", context_window=10_000_000) as session:
        await run_terminal(session, NoHost())  # type: ignore[arg-type]


async def run_bare(provider: Metronome) -> None:
    """The same splitter and renderer, printed."""
    from robota import InteractiveSession
    from robota.sdk.view.model import Block, Live
    from robota.sdk.view.presenter import Presenter
    from robota.sdk.view.status import read_status
    from robota.tui.blocks import render_block
    from robota.tui.memory import keep_what_is_loaded
    from robota.tui.printing import SAMPLE
    from robota.tui.theme import choose_theme
    from robota.tui.words import load_words

    theme = choose_theme("dark", {})

    class Printer:
        def block(self, block: Block) -> None:
            lines = render_block(block, 90, theme)
            os.write(1, ("\n".join(lines) + "\n").encode())

        def live(self, live: Live) -> None: ...
        def status(self, status: Status) -> None: ...

    async with InteractiveSession(provider=provider, model="m", context_window=10_000_000) as session:
        presenter = Presenter(session, Printer(), load_words("en"), status=partial(read_status, session))
        await session.ready()
        presenter.flush()
        render_block(Block(id=0, kind="answer", text=SAMPLE, format="markdown"), 90, theme)
        keep_what_is_loaded()  # as the interface does, once its samples are drawn
        print("READY", flush=True)
        sys.stdin.readline()
        await session.submit("go")
        presenter.close()
        sys.stdin.readline()


async def run_prompt() -> None:
    from prompt_toolkit import PromptSession

    try:
        await PromptSession().prompt_async("> ")
    except EOFError:
        return


def main() -> None:
    side, deltas, rate, report = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), Path(sys.argv[4])
    if side == "robota":
        os.execv(sys.executable, [sys.executable, "-m", "robota", "--provider", "scripted"])
    provider = Metronome(deltas, rate)
    asyncio.run({"ui": run_ui, "bare": run_bare}[side](provider) if side != "prompt" else run_prompt())
    told = {"cpu": provider.cpu, "characters": len(provider.text.encode()), "marks": provider.marks}
    report.write_text(json.dumps(told))


if __name__ == "__main__":
    main()
