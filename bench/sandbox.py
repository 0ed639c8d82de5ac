"""What the Bash tool adds to a command: `true` through it beside starting the same thing bare.

    python bench/sandbox.py [--quick]

The sides take turns; the median counts. Without a sandbox the yardstick is `subprocess.run`, with one it is
bubblewrap over the whole file system with no other rules. Goals are for time on the clock; in brackets stands
the CPU time of this process and its children, to which what runs under Landlock does not belong. A goal that
is missed is no failure.
"""

from __future__ import annotations

import argparse
import asyncio
import resource
import shutil
import statistics
import subprocess
import tempfile
import time
from collections.abc import Awaitable, Callable
from typing import TypeAlias

from robota.core.tool import ToolContext
from robota.tools.builtins.bash import bash_tool
from robota.tools.sandbox.sandbox import Backend, Sandbox

GOAL = 2.0
BARE = ("bwrap", "--unshare-all", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--")
COMMAND = ("bash", "-c", "true")
Job: TypeAlias = Callable[[], Awaitable[object]]


def start(*argv: str) -> Job:
    def run() -> object:
        return subprocess.run(argv, capture_output=True, check=True, stdin=subprocess.DEVNULL)

    async def run_here() -> object:
        return run()

    return run_here


def call_tool(backend: Backend | None, cwd: str) -> Job:
    sandbox = "off" if backend is None else Sandbox("auto", backends=(backend,), network="on")
    tool = bash_tool(sandbox=sandbox)

    async def run() -> object:
        result = await tool.run({"command": "true"}, ToolContext(cwd=cwd))
        assert result.ok, result.text
        assert result.metadata.get("sandbox") == backend, result.metadata
        return result

    return run


def cpu_seconds() -> float:
    usages = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


async def measure(jobs: list[Job], rounds: int) -> list[tuple[float, float]]:
    """The medians of wall and CPU time in milliseconds, run by turns."""
    samples: list[list[tuple[float, float]]] = [[] for _ in jobs]
    for _ in range(rounds):
        for own, job in zip(samples, jobs, strict=True):
            began, used = time.perf_counter(), cpu_seconds()
            await job()
            own.append((time.perf_counter() - began, cpu_seconds() - used))
    return [
        (statistics.median(wall for wall, _ in own) * 1e3, statistics.median(cpu for _, cpu in own) * 1e3)
        for own in samples
    ]


async def report(cwd: str, rounds: int) -> None:
    rows: list[tuple[str, tuple[str, ...], Backend | None]] = [("no sandbox", COMMAND, None)]
    if shutil.which("bwrap") is None:
        print("bubblewrap is not installed: no yardstick for the sandboxes")
    else:
        rows += [("bubblewrap", BARE + COMMAND, "bubblewrap"), ("Landlock", BARE + COMMAND, "landlock")]
    print(f"{'`true`':12} {'bare':>16} {'robota':>16} {'wall':>7} {'goal':>6}")
    for name, argv, backend in rows:
        jobs = [start(*argv), call_tool(backend, cwd)]
        for job in jobs:
            await job()
        (bare, bare_cpu), (wall, cpu) = await measure(jobs, rounds)
        sides = f"{bare:5.1f} ({bare_cpu:4.1f}) ms  {wall:5.1f} ({cpu:4.1f}) ms"
        verdict = f"{GOAL:5.1f}x {'ok' if wall <= GOAL * bare else 'MISSED'}"
        print(f"{name:12} {sides:>33} {wall / bare:6.2f}x {verdict}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="robota-bench-") as directory:
        subprocess.run(["git", "init", "-q", directory], check=True)
        asyncio.run(report(directory, 20 if options.quick else 200))
