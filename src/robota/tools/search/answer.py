"""A search as the answer of a tool: what it needs to know, and a sentence for every way to fail."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from robota.core.tool import ToolResult
from robota.tools.search.child import Stop, run_stoppable
from robota.tools.search.command import Search
from robota.tools.search.engine import EngineError, find_engine
from robota.tools.search.limits import DEFAULT_TIMEOUT
from robota.tools.search.results import Output, SearchFailure, run_search
from robota.tools.search.scope import Denied, ScopeError, Visible

NO_MATCHES = "(no matches)"


class Searcher(Struct, frozen=True, kw_only=True):
    """How a tool searches."""

    ripgrep: str | bool = True
    """Where ripgrep is, or whether to look for it."""
    denied: Denied | None = None
    timeout: float = DEFAULT_TIMEOUT

    def run(
        self, search: Search, directory: str, stop: Stop, *, window: int, visible: Visible | None
    ) -> Output:
        return run_search(find_engine(self.ripgrep), search, directory, stop, window=window, visible=visible)

    async def answer(self, work: Callable[[Stop], str]) -> ToolResult:
        """Do the work in a thread; it may raise what this package raises."""
        try:
            return ToolResult(content=await run_stoppable(work, self.timeout))
        except ScopeError as error:
            return ToolResult.failure(str(error), error.code)
        except EngineError as error:
            return ToolResult.failure(str(error), "unavailable")
        except SearchFailure as error:
            return ToolResult.failure(f"The search failed: {error}", "failed")

    def notes(self, output: Output) -> list[str]:
        """What the reader should know about a result."""
        notes = []
        if output.timed_out:
            notes.append(f"[The search was ended after {self.timeout:g} s: there may be more.]")
        if output.has_gaps:
            notes.append("[Some files or directories could not be read.]")
        return notes
