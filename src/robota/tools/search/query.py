"""Searches for text and for files, from the arguments of Grep and Glob to their answers.

Files come newest first; counts and lines in the order of paths. What was left out is always said.
"""

from __future__ import annotations

import os
from collections.abc import Callable

from msgspec import Struct
from msgspec.structs import replace

from robota.core.messages import JsonObject
from robota.core.tool import ToolResult
from robota.tools.files.path import locate
from robota.tools.search import (
    DEFAULT_LIMIT,
    DEFAULT_TIMEOUT,
    FILE_TYPES,
    MAX_CONTEXT_LINES,
    MAX_OUTPUT_CHARACTERS,
    MAX_PATTERN_CHARACTERS,
)
from robota.tools.search.engine import Report, Search, SearchError, Stop, find_engine, run_stoppable
from robota.tools.search.results import (
    FileLines,
    Output,
    PatternError,
    read_counts,
    read_lines,
    run_search,
    show_line,
    show_text,
)
from robota.tools.search.scope import (
    Denied,
    Root,
    Selection,
    Visible,
    find_root,
    is_denied_file,
    read_pattern,
)

NO_MATCHES = "(no matches)"
_REPORTS: dict[str, Report] = {"files_with_matches": "paths", "content": "lines", "count": "counts"}


class Searcher(Struct, frozen=True, kw_only=True):
    """How a tool searches."""

    ripgrep: str | bool = True
    """Where ripgrep is, or whether to look for it."""
    denied: Denied | None = None
    timeout: float = DEFAULT_TIMEOUT

    async def answer(self, work: Callable[[Stop], str]) -> ToolResult:
        """Do the work in a thread; it may raise what this package raises."""
        try:
            return ToolResult(content=await run_stoppable(work, self.timeout))
        except SearchError as error:
            return ToolResult.failure(str(error), error.code)

    def notes(self, output: Output) -> list[str]:
        """What the reader should know about a result."""
        notes = []
        if output.timed_out:
            notes.append(f"[The search was ended after {self.timeout:g} s: there may be more.]")
        if output.has_gaps:
            notes.append("[Some files or directories could not be read.]")
        return notes


async def search_text(searcher: Searcher, arguments: JsonObject, cwd: str) -> ToolResult:
    """`arguments` fit the schema of the tool."""
    fault = _find_fault(arguments["pattern"])
    if fault:
        return ToolResult.failure(f"Invalid regex pattern: {fault}", "invalid_regex")
    query = _Query.read(arguments, cwd or os.getcwd())
    return await searcher.answer(lambda stop: _grep(searcher, stop, query))


def _find_fault(pattern: str) -> str | None:
    """Why a pattern cannot even be handed over."""
    if len(pattern) > MAX_PATTERN_CHARACTERS:
        return f"it has more than {MAX_PATTERN_CHARACTERS:,} characters"
    if "\0" in pattern:
        return "it holds a NUL character; write `\\x00`"
    if pattern != pattern.encode("utf-8", "replace").decode():
        return "it is not valid Unicode text"
    return None


class _Query(Struct, frozen=True, kw_only=True):
    path: str
    cwd: str
    glob: str
    type: str
    search: Search
    """What to look for, in whatever files these are."""
    numbers: bool
    limit: int
    offset: int

    @classmethod
    def read(cls, arguments: JsonObject, cwd: str) -> _Query:
        """From arguments that fit the schema; numbers may arrive as `3.0`."""
        around = int(arguments.get("-C", 0))
        return cls(
            path=locate(arguments.get("path") or ".", cwd),
            cwd=cwd,
            glob=arguments.get("glob", ""),
            type=arguments.get("type", ""),
            search=Search(
                report=_REPORTS[arguments.get("output_mode", "files_with_matches")],
                include_ignored=arguments.get("include_ignored", False),
                pattern=arguments["pattern"],
                ignore_case=arguments.get("-i", False),
                multiline=arguments.get("multiline", False),
                before=min(int(arguments.get("-B", around)), MAX_CONTEXT_LINES),
                after=min(int(arguments.get("-A", around)), MAX_CONTEXT_LINES),
            ),
            numbers=arguments.get("-n", True),
            limit=int(arguments.get("head_limit", 0)) or DEFAULT_LIMIT,
            offset=int(arguments.get("offset", 0)),
        )

    @property
    def window(self) -> int:
        return self.offset + self.limit


class _Page(Struct, frozen=True, kw_only=True):
    """The results to show, and how many there are before and behind them."""

    lines: list[str]
    shown: int
    """Results among the lines; a separator is none."""
    total: int


def _grep(searcher: Searcher, stop: Stop, query: _Query) -> str:
    root = find_root(query.path)
    if root.file and is_denied_file(searcher.denied, root.path):
        raise SearchError(f"Access denied: {query.path}", "denied")
    selection = Selection() if root.file else _select_files(query, root)
    visible = selection.visible_in(root, searcher.denied)
    if root.is_binary:
        return f"{NO_MATCHES}\n[{query.path} is a binary file and was not searched.]"
    search = _search_in(root, selection, query.search)
    try:
        engine = find_engine(searcher.ripgrep)
        output = run_search(engine, search, root.directory, stop, window=query.window, visible=visible)
    except PatternError as error:
        raise SearchError(f"Invalid regex pattern: {search.pattern} ({error})", "invalid_regex") from error
    page = _make_page(query, root, search, output, visible)
    return "\n".join([*page.lines, *_remarks(query, page, output), *searcher.notes(output)])


def _search_in(root: Root, selection: Selection, search: Search) -> Search:
    """The search in those files, as far as they are told to the engine."""
    pushed = selection.pushed
    start = root.file or pushed.start
    return replace(search, start=start, names=pushed.names, max_depth=pushed.max_depth)


def _select_files(query: _Query, root: Root) -> Selection:
    if query.type and query.type not in FILE_TYPES:
        raise SearchError(f"Unknown file type: {query.type}. Known: {', '.join(FILE_TYPES)}.", "unknown_type")
    globs = [glob for glob in (query.glob, FILE_TYPES.get(query.type)) if glob]
    return Selection.of(
        *(
            read_pattern(glob, root.directory, include_ignored=query.search.include_ignored, by_name=True)
            for glob in globs
        )
    )


def _make_page(query: _Query, root: Root, search: Search, output: Output, visible: Visible | None) -> _Page:
    if search.report == "lines":
        return _show_lines(query, root, read_lines(output.data, search, visible))
    window = slice(query.offset, query.window)
    if search.report == "counts":
        counts = read_counts(output.data, search, visible)
        total = len(counts)
        shown = [f"{_show_path(query, root, path)}:{count}" for path, count in counts[window]]
    else:
        total = len(output.paths)
        shown = [_show_path(query, root, path) for path in output.paths[window]]
    return _Page(lines=shown, shown=len(shown), total=total)


def _show_path(query: _Query, root: Root, path: str) -> str:
    """As other tools find it: relative to the working directory, or absolute."""
    return show_text(os.path.join(root.directory, path).removeprefix(os.path.join(query.cwd, "")))


def _show_lines(query: _Query, root: Root, files: list[FileLines]) -> _Page:
    lines: list[str] = []
    total, shown, room = 0, 0, MAX_OUTPUT_CHARACTERS
    for file in files:
        before, total = total, total + file.count
        if total <= query.offset or before >= query.window or room < 0:
            continue
        path = _show_path(query, root, file.path)
        separate = bool(lines) and bool(query.search.before or query.search.after)
        position = before
        for text in file.text.split(b"\n"):
            if text == b"--":
                separate = bool(lines)
                continue
            position += 1
            if position <= query.offset or position > query.window or room < 0:
                continue
            line = _show_line(query, path, text)
            lines += ["--", line] if separate else [line]
            separate = False
            shown += 1
            room -= len(line) + 1
    return _Page(lines=lines, shown=shown, total=total)


def _show_line(query: _Query, path: str, text: bytes) -> str:
    """From `12:text` or `12-text`."""
    digits = len(text) - len(text.lstrip(b"0123456789"))
    mark = text[digits : digits + 1].decode()
    line = show_line(text[digits + 1 :])
    return f"{path}:{text[:digits].decode()}{mark}{line}" if query.numbers else f"{path}{mark}{line}"


def _remarks(query: _Query, page: _Page, output: Output) -> list[str]:
    if not page.total:
        return [NO_MATCHES]
    if not page.shown:
        return [f"(no results from offset {query.offset} on: there are {page.total})"]
    rest = page.total - query.offset - page.shown
    if not output.is_whole and not output.timed_out:
        return ["(many more results truncated by head_limit)"]
    return [f"(+{rest} more results truncated by head_limit)"] if rest > 0 else []


async def search_files(
    searcher: Searcher, pattern: str, directory: str, *, limit: int, include_ignored: bool
) -> ToolResult:
    def list_files(stop: Stop) -> str:
        root = find_root(directory)
        if root.file:
            raise SearchError(f"Path is not a directory: {directory}", "not_a_directory")
        selection = Selection.of(read_pattern(pattern, root.directory, include_ignored=include_ignored))
        search = _search_in(root, selection, Search(report="files", include_ignored=include_ignored))
        visible = selection.visible_in(root, searcher.denied)
        engine = find_engine(searcher.ripgrep)
        output = run_search(engine, search, root.directory, stop, window=limit, visible=visible)
        shown = [show_text(path) for path in output.paths[:limit]] or [NO_MATCHES]
        total = len(output.paths)
        if total > limit:
            shown.append(f"[Showing {limit} of {total} matches. Use limit parameter to see more.]")
        return "\n".join([*shown, *searcher.notes(output)])

    return await searcher.answer(list_files)
