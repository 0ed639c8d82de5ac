"""Times of what a run does: its model calls and its tools, begun and ended by the hooks of a plugin."""

from __future__ import annotations

from collections.abc import Callable, Iterator


class Stopwatch:
    """The run under way of one agent, and what is open in it."""

    __slots__ = ("_now", "call", "model", "run", "tools")

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self.run: float | None = None
        self.call: float | None = None
        """When the model was asked."""
        self.model = ""
        self.tools: dict[str, tuple[str, float]] = {}
        """Calls by their ids, which are unique among those of one round."""

    def start_run(self) -> None:
        self.run, self.call = self._now(), None
        self.tools.clear()

    def ask(self, model: str) -> None:
        self.model, self.call = model, self._now()

    def answer(self) -> float | None:
        """How long the model took, `None` if nobody asked it."""
        asked, self.call = self.call, None
        return None if asked is None else self._now() - asked

    def start_tool(self, call_id: str, name: str) -> None:
        self.tools[call_id] = (name, self._now())

    def end_tool(self, call_id: str) -> float | None:
        started = self.tools.pop(call_id, None)
        return None if started is None else self._now() - started[1]

    def end_run(self) -> float:
        started, self.run = self.run, None
        return 0.0 if started is None else self._now() - started

    def cut(self) -> Iterator[tuple[str, float]]:
        """Tools that never ended, because the run did before."""
        now = self._now()
        for name, started in self.tools.values():
            yield name, now - started
        self.tools.clear()
