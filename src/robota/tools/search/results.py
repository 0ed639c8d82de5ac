"""What a search printed, read back: paths, counts and lines, without what must not be shown."""

from __future__ import annotations

import os
from collections.abc import Callable

from msgspec import Struct
from msgspec.structs import replace

from robota.core.plain_text import strip_controls
from robota.tools.search import MAX_LINE_CHARACTERS
from robota.tools.search.engine import Child, Engine, Search, SearchError, Stop, write_command
from robota.tools.search.scope import Visible

MAX_LINE_BYTES = 8 * 1024 * 1024
"""Output of a search for lines that is read whole; of more only the beginning, in the order of paths."""
MAX_PATH_BYTES = 64 * 1024 * 1024
_FIRST_LOOK = 256 * 1024
FAILED = 2


class PatternError(SearchError):
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
    """Run it to its end, or as far as it is worth. Raises `PatternError` and `SearchError`.

    `window` is how many lines will be looked at. When there are far more than that, engines that do not keep
    the order of paths are started again in a way that does, and ended as soon as there are enough.
    """
    command = write_command(engine, search)
    if search.report in ("files", "paths"):
        ranking = Ranking(os.fsencode(os.path.join(directory, "")), visible)
        output = _run(command, directory, stop, ranking.add, MAX_PATH_BYTES)
        return replace(output, paths=ranking.newest_first())
    pieces: list[bytes] = []
    by_lines = search.report == "lines"
    output = _run(command, directory, stop, pieces.append, MAX_LINE_BYTES if by_lines else MAX_PATH_BYTES)
    if output.is_whole or output.timed_out or not by_lines or engine.is_ordered:
        return replace(output, data=b"".join(pieces))

    def is_enough() -> bool:
        return sum(file.count for file in read_lines(b"".join(pieces), search, visible)[:-1]) >= window

    pieces.clear()
    command = write_command(engine, search, ordered_limit=window)
    output = _run(command, directory, stop, pieces.append, MAX_LINE_BYTES, is_enough)
    return replace(output, data=b"".join(pieces), is_whole=False)


def _run(
    command: list[str],
    directory: str,
    stop: Stop,
    add: Callable[[bytes], None],
    limit: int,
    is_enough: Callable[[], bool] = lambda: False,
) -> Output:
    """Hand output on until it ends or there is enough of it."""
    size, next_look = 0, _FIRST_LOOK
    try:
        with Child(command, cwd=directory, stop=stop) as child:
            for piece in child.chunks():
                add(piece)
                size += len(piece)
                if size >= limit or (size >= next_look and is_enough()):
                    break
                if size >= next_look:  # ever less often: it costs time
                    next_look = 2 * size
    except (OSError, ValueError) as error:
        raise SearchError(f"The search failed: {error}", "failed") from error
    if child.was_stopped:
        return Output(is_whole=False, timed_out=stop.requested)
    if child.exit_code == FAILED and child.errors:
        raise PatternError(_reason(child.errors), "failed")
    if child.exit_code not in (0, 1, FAILED):
        why = child.errors.strip() or f"it ended with {child.exit_code}"
        raise SearchError(f"The search failed: {why}", "failed")
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
    return [(path, int(count)) for path, count in _split_by_file(data, b"\n", visible)]


def read_lines(data: bytes, search: Search, visible: Visible | None) -> list[FileLines]:
    """In the order of paths."""
    if search.is_single:
        return [FileLines(path=search.start, text=data.removesuffix(b"\n"))] if data else []
    return [
        FileLines(path=path, text=_without_warning(text.rstrip(b"\n")))
        for path, text in _split_by_file(data, b"\n\n", visible)
    ]


def _split_by_file(data: bytes, end: bytes, visible: Visible | None) -> list[tuple[str, bytes]]:
    """Paths and what was printed behind each, up to `end`; in the order of paths."""
    found = []
    path, *rests = data.split(b"\0")
    for rest in rests:
        text, _, following = rest.partition(end)
        name = os.fsdecode(path[2:])
        if visible is None or visible(name):
            found.append((name, text))
        path = following
    # By their parts: what is in a directory comes before names that begin like it.
    return sorted(found, key=lambda one: one[0].replace("/", "\0"))


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


class Ranking(Struct, eq=False):
    """Paths that a search finds, with their ages, which are looked up while it still runs."""

    directory: bytes
    """With a slash behind it."""
    visible: Visible | None
    _rest: bytes = b""
    _aged: list[tuple[bool, int, bytes]] = []

    def add(self, piece: bytes) -> None:
        """Output of a search: paths that begin with `./` and end with a NUL."""
        *paths, self._rest = (self._rest + piece).split(b"\0")
        for path in paths:
            path = path[2:]
            if self.visible is None or self.visible(os.fsdecode(path)):
                try:
                    age = -os.stat(self.directory + path, follow_symlinks=False).st_mtime_ns
                    self._aged.append((False, age, path.replace(b"/", b"\0")))
                except OSError:
                    self._aged.append((True, 0, path.replace(b"/", b"\0")))

    def newest_first(self) -> list[str]:
        """Files that are gone come last; of the same age, in the order of paths."""
        self._aged.sort()
        return [os.fsdecode(path.replace(b"\0", b"/")) for _, _, path in self._aged]
