"""Something that happens before each line of our own code, as a signal handler may."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
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


@contextmanager
def before_each_line(files: frozenset[str], act: Callable[[Line], None]) -> Iterator[None]:
    """Call `act` before each line of these files that the current thread runs."""

    def enter(frame: FrameType, kind: str, detail: object) -> Any:
        return step if frame.f_code.co_filename in files else None

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
