"""What a search printed, read back: paths, counts and lines, without what must not be shown."""

from __future__ import annotations

import os
from collections.abc import Callable

from msgspec import Struct
from msgspec.structs import replace

from robota.core.plain_text import strip_controls
from robota.tools.search.child import Child, Stop
from robota.tools.search.command import Search, write_command
from robota.tools.search.engine import Engine
from robota.tools.search.limits import MAX_LINE_CHARACTERS
from robota.tools.search.ranking import Ranking, path_order
from robota.tools.search.scope import Visible

MAX_LINE_BYTES = 8 * 1024 * 1024
"""Output of a search for lines that is read whole; of more only the beginning, in the order of paths."""
MAX_PATH_BYTES = 64 * 1024 * 1024
_FIRST_LOOK = 256 * 1024
FAILED = 2


class SearchFailure(Exception):
    """Why the engine did not do its work."""


class PatternError(SearchFailure):
    """Why the engine refuses the pattern."""


class Output(Struct, frozen=True, kw_only=True):
    data: bytes = b""
    """Counts or lines, as they were printed."""
    paths: list[str] = []
    """Newest first."""
    is_whole: bool = True
    timed_out: bool = False
    has_gaps: bool = False
    """Something could not be read."""


class FileLines(Struct, frozen=True, kw_only=True):
    path: str
    text: bytes
    """`12:a matching line` or `13-a line beside one`, and `--` between groups."""

    @property
    def count(self) -> int:
        return self.text.count(b"\n") + 1 - self.text.count(b"\n--\n")


def run_search(
    engine: Engine, search: Search, directory: str, stop: Stop, *, window: int, visible: Visible | None
) -> Output:
    """Run it to its end, or as far as it is worth. Raises `PatternError` and `SearchFailure`.

    `window` is how many lines will be looked at. When there are far more than that, engines that do not keep
    the order of paths are started again in a way that does, and ended as soon as there are enough.
    """
    command = write_command(engine, search)
    if search.report in ("files", "paths"):
        ranking = Ranking(directory, visible)
        output = _run(command, directory, stop, _Feed(MAX_PATH_BYTES, ranking.add))
        return replace(output, paths=ranking.newest_first())
    pile = _Pile()
    by_lines = search.report == "lines"
    output = _run(command, directory, stop, _Feed(MAX_LINE_BYTES if by_lines else MAX_PATH_BYTES, pile.add))
    if output.is_whole or output.timed_out or not by_lines or engine.is_ordered:
        return replace(output, data=pile.data)

    def is_enough() -> bool:
        return sum(file.count for file in read_lines(pile.data, search, visible)[:-1]) >= window

    pile = _Pile()
    command = write_command(engine, search, ordered_limit=window)
    output = _run(command, directory, stop, _Feed(MAX_LINE_BYTES, pile.add, is_enough))
    return replace(output, data=pile.data, is_whole=False)


class _Pile:
    """Output as it comes."""

    __slots__ = ("_pieces", "add")

    def __init__(self) -> None:
        self._pieces: list[bytes] = []
        self.add = self._pieces.append

    @property
    def data(self) -> bytes:
        return b"".join(self._pieces)


class _Feed:
    """Hands output on until there is enough of it."""

    __slots__ = ("_add", "_is_enough", "_limit", "_next_look", "_size")

    def __init__(
        self, limit: int, add: Callable[[bytes], None], is_enough: Callable[[], bool] | None = None
    ) -> None:
        self._limit = limit
        self._add = add
        self._is_enough = is_enough
        self._size = 0
        self._next_look = _FIRST_LOOK

    def take(self, piece: bytes) -> bool:
        """Whether more is wanted. Whether there is enough is asked ever less often: it costs time."""
        self._add(piece)
        self._size += len(piece)
        if self._is_enough is not None and self._size >= self._next_look:
            self._next_look = 2 * self._size
            if self._is_enough():
                return False
        return self._size < self._limit


def _run(command: list[str], directory: str, stop: Stop, feed: _Feed) -> Output:
    try:
        with Child(command, cwd=directory, stop=stop) as child:
            for piece in child.chunks():
                if not feed.take(piece):
                    break
    except (OSError, ValueError) as error:
        raise SearchFailure(f"{error}") from error
    if child.was_stopped:
        return Output(is_whole=False, timed_out=stop.requested)
    if child.exit_code == FAILED and child.errors:
        raise PatternError(_reason(child.errors))
    if child.exit_code not in (0, 1, FAILED):
        raise SearchFailure(child.errors.strip() or f"it ended with {child.exit_code}")
    return Output(has_gaps=child.exit_code == FAILED)


def _reason(errors: str) -> str:
    """The sentence in a refusal that says why."""
    lines = [line.strip() for line in errors.splitlines() if line.strip()]
    named = [line.partition("error:")[2].strip() for line in lines if line.startswith("error:")]
    return (named or [lines[0].removeprefix("rg:").strip()])[0].rstrip(".")


def read_counts(data: bytes, search: Search, visible: Visible | None) -> list[tuple[str, int]]:
    """In the order of paths."""
    if search.is_single:
        return [(search.start, int(data))] if data.strip() else []
    found = []
    path, *rests = data.split(b"\0")
    for rest in rests:
        count, _, following = rest.partition(b"\n")
        name = os.fsdecode(path[2:])
        if visible is None or visible(name):
            found.append((name, int(count)))
        path = following
    return sorted(found, key=lambda one: path_order(one[0]))


def read_lines(data: bytes, search: Search, visible: Visible | None) -> list[FileLines]:
    """In the order of paths."""
    if search.is_single:
        return [FileLines(path=search.start, text=data.removesuffix(b"\n"))] if data else []
    found = []
    path, *rests = data.split(b"\0")
    for rest in rests:
        text, _, following = rest.partition(b"\n\n")
        name = os.fsdecode(path[2:])
        if visible is None or visible(name):
            found.append(FileLines(path=name, text=_without_warning(text.rstrip(b"\n"))))
        path = following
    return sorted(found, key=lambda one: path_order(one.path))


def _without_warning(text: bytes) -> bytes:
    """ripgrep says in a last line that it met a NUL."""
    body, newline, last = text.rpartition(b"\n")
    return text if not newline or last[:1].isdigit() else body


def show_text(text: str) -> str:
    """One line, safe to show: no control sequences, no bytes that are no characters."""
    clean = strip_controls(text.encode("utf-8", "surrogateescape").decode("utf-8", "replace"))
    return clean.replace("\n", " ")


def show_line(text: bytes) -> str:
    line = text.decode("utf-8", "replace")
    cut = len(line) > MAX_LINE_CHARACTERS
    shown = strip_controls(line[:MAX_LINE_CHARACTERS].removesuffix("\r")).replace("\n", " ")
    return f"{shown}… [the line goes on]" if cut else shown
