"""How far something has come: a bar on terminals, on those without a screen a line now and then, and so for
downloads everywhere. Always on standard error."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TypeAlias

from robota.sdk.view.neutral import neutral_line
from robota.tui.choice import NO_SCREEN

Advance: TypeAlias = Callable[[int, int | None], None]
"""Told how much is done, and of how much."""
_STEP = 10
"""Percent between two lines where there is no terminal."""


def megabytes(size: int) -> str:
    return f"{size / 1e6:.0f} MB"


def download(name: str) -> AbstractContextManager[Advance]:
    """Show how many bytes of `name` have come."""
    return progress(name, megabytes, is_download=True)


@contextmanager
def progress(name: str, show: Callable[[int], str] = str, *, is_download: bool = False) -> Iterator[Advance]:
    """Show how far `name` is; `show` writes an amount."""
    name = neutral_line(name)  # models and files are called by others
    watched = sys.stderr.isatty()
    if not watched or os.environ.get("TERM", "") in NO_SCREEN:
        yield _lines(name, show) if watched or is_download else lambda done, total: None
        return
    from rich.console import Console  # noqa: PLC0415 - 40 ms, for terminals only
    from rich.progress import (  # noqa: PLC0415
        BarColumn,
        DownloadColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    amount = DownloadColumn() if is_download else MofNCompleteColumn()
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), amount, TimeRemainingColumn())
    with Progress(*columns, console=Console(file=sys.__stderr__), transient=not is_download) as bar:
        task = bar.add_task(name, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def _lines(name: str, show: Callable[[int], str]) -> Advance:
    told = -1

    def tell(done: int, total: int | None) -> None:
        nonlocal told
        percent = done * 100 // total if total else -1
        if percent // _STEP > told:
            told = percent // _STEP
            print(f"{name}: {show(done)} of {show(total or 0)} ({percent}%)", file=sys.stderr)

    return tell
