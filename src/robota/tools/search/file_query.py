"""A search for files by their paths, newest first, as the Glob tool answers it."""

from __future__ import annotations

from msgspec import Struct

from robota.core.tool import ToolResult
from robota.tools.search.answer import NO_MATCHES, Searcher
from robota.tools.search.child import Stop
from robota.tools.search.command import Search
from robota.tools.search.results import show_text
from robota.tools.search.scope import ScopeError, Selection, find_place, read_pattern


class FileQuery(Struct, frozen=True, kw_only=True):
    pattern: str
    directory: str
    limit: int
    include_ignored: bool


async def search_files(searcher: Searcher, query: FileQuery) -> ToolResult:
    return await searcher.answer(lambda stop: _list_files(searcher, stop, query))


def _list_files(searcher: Searcher, stop: Stop, query: FileQuery) -> str:
    place = find_place(query.directory)
    if place.file:
        raise ScopeError(f"Path is not a directory: {query.directory}", "not_a_directory")
    wanted = read_pattern(query.pattern, place.directory, include_ignored=query.include_ignored)
    search = Search(
        report="files",
        start=wanted.start,
        names=wanted.names,
        max_depth=wanted.max_depth,
        include_ignored=query.include_ignored,
    )
    visible = Selection.of(wanted).visible_in(place, searcher.denied)
    output = searcher.run(search, place.directory, stop, window=query.limit, visible=visible)
    shown = [show_text(path) for path in output.paths[: query.limit]] or [NO_MATCHES]
    total = len(output.paths)
    if total > query.limit:
        shown.append(f"[Showing {query.limit} of {total} matches. Use limit parameter to see more.]")
    return "\n".join([*shown, *searcher.notes(output)])
