"""One measurement of one side in a process of its own: `worker.py SIDE ACTION OPTIONS` prints a line of JSON.

`run.py` starts it; by hand it is of use with `"profile": "FILE"` among the options.
"""

from __future__ import annotations

import asyncio
import gc
import json
import sys
import time
from collections.abc import Awaitable, Callable
from itertools import pairwise
from statistics import median
from typing import Any, Protocol

import workload

Outcome = tuple[int, int]
Figures = dict[str, Any]


class Side(Protocol):
    def new_agent(self) -> Any: ...
    async def run(self, agent: Any) -> Outcome: ...
    async def close(self) -> None: ...


def open_side(name: str, base_url: str) -> Side:
    """`kind-way@wire`, both ends optional."""
    side, _, wire = name.partition("@")
    kind, _, way = side.partition("-")
    if kind == "robota":
        from subject import Subject

        return Subject(base_url, way or "stream", wire or "chat")
    if kind == "session":
        from session_subject import SessionSubject

        return SessionSubject(base_url, durable=way == "durable")
    from floor_wires import FLOORS

    return FLOORS[wire or "chat"](base_url, plain=way == "plain")


def memory_kib(what: str) -> int:
    """`VmRSS`, what is resident, or `VmHWM`, the most that ever was.

    (`getrusage` would tell the most of the parent too, from before this program was loaded.)
    """
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith(f"{what}:"))


class Worker:
    """The actions. `scenario` is what is measured; `warm` is run before, so that nothing loads meanwhile."""

    def __init__(self, side: str, options: Figures) -> None:
        self.side = side
        self.server: str = options["server"]
        self.key: str = options["key"]
        self.scenario: str = options["scenario"] + (".plain-1" if side.endswith("-plain") else "")
        self.warm: str = options.get("warm", "rounds-2") + (".plain-1" if side.endswith("-plain") else "")
        self.times: int = options.get("times", 1)
        self.profile_file: str = options.get("profile", "")
        self.profile: Any = None

    def open(self, scenario: str, key: str) -> Side:
        return open_side(self.side, f"{self.server}/{key}/{scenario}/v1")

    async def ready(self) -> Side:
        """The side to measure, after one throw-away run of another instance of it."""
        other = self.open(self.warm, f"{self.key}warm")
        await other.run(other.new_agent())
        await other.close()
        side = self.open(self.scenario, self.key)
        if self.profile_file:
            import cProfile

            self.profile = cProfile.Profile()
            self.profile.enable()
        return side

    async def build(self) -> Figures:
        side = await self.ready()
        times = []
        for _ in range(20):
            gc.collect()
            started = time.process_time()
            agents = [side.new_agent() for _ in range(self.times)]
            times.append((time.process_time() - started) / self.times)
            del agents
        await side.close()
        return {"cpu": times}

    async def runs(self) -> Figures:
        """Whole runs one after the other, each of a new agent."""
        side = await self.ready()
        cpu, wall, outcome = [], [], (0, 0)
        for _ in range(self.times):
            agent = side.new_agent()
            gc.collect()
            wall_start, cpu_start = time.perf_counter(), time.process_time()
            outcome = await side.run(agent)
            cpu.append(time.process_time() - cpu_start)
            wall.append(time.perf_counter() - wall_start)
        await side.close()
        return {"cpu": cpu, "wall": wall, "outcome": outcome}

    async def fresh(self) -> Figures:
        """New agents with one answer each, in batches."""
        side = await self.ready()
        await side.run(side.new_agent())
        cpu, outcome = [], (0, 0)
        for _ in range(10):
            gc.collect()
            started = time.process_time()
            for _ in range(self.times):
                outcome = await side.run(side.new_agent())
            cpu.append((time.process_time() - started) / self.times)
        await side.close()
        return {"cpu": cpu, "outcome": outcome}

    async def together(self) -> Figures:
        """Agents that all run at the same time, and what memory they add."""
        side = await self.ready()
        gc.collect()
        before = memory_kib("VmRSS")
        wall_start, cpu_start = time.perf_counter(), time.process_time()
        outcomes = await asyncio.gather(*(side.run(side.new_agent()) for _ in range(self.times)))
        cpu, wall = time.process_time() - cpu_start, time.perf_counter() - wall_start
        grown = memory_kib("VmHWM") - before
        await side.close()
        same = outcomes[0] if len(set(outcomes)) == 1 else (0, 0)
        return {"cpu": [cpu / self.times], "wall": [wall], "kib": [grown / self.times], "outcome": same}

    async def growth(self) -> Figures:
        """One long run; the cost of a round at several lengths of history, from the stamps of its tool."""
        side = await self.ready()
        workload.stamps.clear()
        outcome = await side.run(side.new_agent())
        await side.close()
        marks = workload.stamps
        rounds = [later - earlier for earlier, later in pairwise(marks)]
        at = {str(number): median(rounds[number - 12 : number]) for number in (12, 100, 500, len(marks) - 1)}
        return {"cpu": [median(rounds[-12:])], "at": at, "outcome": outcome}

    def measure(self, action: str) -> Figures:
        """The figures; with a profile of everything after the warm-up if one is wanted."""
        actions: dict[str, Callable[[], Awaitable[Figures]]] = {
            "build": self.build, "runs": self.runs, "fresh": self.fresh,
            "together": self.together, "growth": self.growth,
        }  # fmt: skip
        figures = asyncio.run(_await(actions[action]()))
        if self.profile is not None:
            self.profile.disable()
            self.profile.dump_stats(self.profile_file)
        return figures


async def _await(work: Awaitable[Figures]) -> Figures:
    return await work


if __name__ == "__main__":
    _, chosen, action, text = sys.argv
    print(json.dumps(Worker(chosen, json.loads(text)).measure(action)))
