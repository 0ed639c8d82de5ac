"""Something that happens before each line of our own code, as a signal handler may."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, NamedTuple

import robota


class Line(NamedTuple):
    file: str
    number: int


def source_files(*names: str) -> frozenset[str]:
    """Files of the package, as frames name them."""
    return frozenset(str(Path(robota.__file__).parent / name) for name in names)


def lines_of(function: Callable[..., object]) -> frozenset[Line]:
    text, first = inspect.getsourcelines(function)
    return frozenset(Line(inspect.getsourcefile(function) or "", first + at) for at in range(len(text)))


@cache
def numbers_of(code: CodeType) -> frozenset[int | None]:
    return frozenset(number for _, _, number in code.co_lines())


@contextmanager
def before_each_line(
    files: frozenset[str], act: Callable[[Line], None], only: Line | None = None
) -> Iterator[None]:
    """Call `act` before each line of these files that the current thread runs; with `only`, before those of
    the functions that have this line, since looking at all of them takes most of the time."""

    def enter(frame: FrameType, kind: str, detail: object) -> Any:
        code = frame.f_code
        if code.co_filename not in files:
            return None
        if only is not None and (code.co_filename != only.file or only.number not in numbers_of(code)):
            return None
        return step

    def step(frame: FrameType, kind: str, detail: object) -> Any:
        if kind == "line":
            act(Line(frame.f_code.co_filename, frame.f_lineno))
        return step

    before = sys.gettrace()
    sys.settrace(enter)
    try:
        yield
    finally:
        sys.settrace(before)
