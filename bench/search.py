"""Grep and Glob over a tree of 50,000 files beside ripgrep itself: `python bench/search.py`.

Every row runs in this process as a tool call would, page cache warm, by turns with its yardstick, so that a
busy machine slows both; ratios are of the least times. On a busy machine the CPU column is the steadier.
The yardstick of Grep is ripgrep with the same flags, writing to a file; that of Glob is `rg --files` and a
stat of what matched.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable

from robota.core.tool import ToolContext
from robota.tools.builtins.search import glob_tool, grep_tool
from robota.tools.search.engine import Search, find_engine, write_command

BEGINNINGS = ("bar", "cor", "del", "fin", "gal", "mor", "pen", "tal")
ENDINGS = ("et", "ora", "ing", "um", "ax", "on")
WORDS = [first + last for first in BEGINNINGS for last in ENDINGS]
RARE, COMMON = r"RARE_\d+ = look_here", r"baret\s+corora"
GOALS = {"grep": 1.3, "fallback": 6.0, "glob": 2.0}


def make_tree(root: str, files: int, megabytes: int, seed: int) -> None:
    """Text in many small files, a fifth of them ignored."""
    source = random.Random(seed)
    pages = ["".join(_make_line(source) for _ in range(70)).encode() for _ in range(80)]
    mean = megabytes * 1_000_000 // files
    for number in range(files):
        part = "generated" if number % 5 == 0 else "source"
        directory = os.path.join(root, part, f"unit{number // 60 % 170}", f"part{number // 12 % 5}")
        os.makedirs(directory, exist_ok=True)
        size = max(150, int(source.expovariate(1 / mean)))
        body = b"".join(source.choices(pages, k=size // 3000 + 1))[:size]
        if number % 1000 == 7:
            body += b"\nRARE_%d = look_here(%d)\n" % (number, number)
        name = f"item_{number}.{('py', 'ts', 'md', 'json')[number % 4]}"
        with open(os.path.join(directory, name), "wb") as file:
            file.write(body)
    os.makedirs(os.path.join(root, ".git"))
    with open(os.path.join(root, ".gitignore"), "w", encoding="utf-8") as file:
        file.write("generated/\n*.log\n/build\n")


def _make_line(source: random.Random) -> str:
    return "    " * source.randint(0, 3) + " ".join(source.choices(WORDS, k=source.randint(3, 10))) + "\n"


def run_ripgrep(root: str, search: Search) -> bytes:
    """Into a file: a pipe would have to be emptied, which is not ripgrep's work."""
    command = write_command(find_engine(True), search)
    with tempfile.TemporaryFile() as output:
        subprocess.run(command, cwd=root, stdin=subprocess.DEVNULL, stdout=output, check=False)
        output.seek(0)
        return output.read()


def list_and_stat(root: str, name: str) -> int:
    paths = run_ripgrep(root, Search(report="files", names=(name,))).split(b"\0")[:-1]
    base = os.fsencode(root)
    return sum(os.stat(os.path.join(base, path)).st_mtime_ns > 0 for path in paths)


Job = Callable[[], Awaitable[object]]


def make_jobs(root: str) -> dict[str, tuple[str, Job, Job]]:
    """By name: which goal it has, the yardstick and the tool."""
    context = ToolContext(cwd=root)
    reports = {"files_with_matches": "paths", "content": "lines", "count": "counts"}
    jobs: dict[str, tuple[str, Job, Job]] = {}

    def add(name: str, goal: str, yardstick: Callable[[], object], tool: object, arguments: dict) -> None:
        async def floor() -> object:
            return yardstick()

        async def ours() -> object:
            result = await tool.run(arguments, context)
            if not result.ok:
                raise SystemExit(result.text)
            return result

        jobs[name] = (goal, floor, ours)

    for label, pattern in (("rare", RARE), ("common", COMMON)):
        for mode, report in reports.items():
            arguments = {"pattern": pattern, "output_mode": mode, "head_limit": 100}
            search = Search(report=report, pattern=pattern)
            for goal, ripgrep in (("grep", True), ("fallback", False)):
                yardstick = lambda search=search: run_ripgrep(root, search)  # noqa: E731
                add(f"{goal} {label} {mode}", goal, yardstick, grep_tool(ripgrep=ripgrep), arguments)
    for ripgrep in (True, False):
        name = "glob **/*.py" if ripgrep else "glob **/*.py without ripgrep"
        goal = "glob" if ripgrep else "fallback"
        add(
            name,
            goal,
            lambda: list_and_stat(root, "*.py"),
            glob_tool(ripgrep=ripgrep),
            {"pattern": "**/*.py"},
        )
    return jobs


def cpu_seconds() -> float:
    """Of this process and of its children that have ended."""
    usages = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


async def measure(floor: Job, ours: Job, rounds: int) -> list[tuple[float, float]]:
    """The least wall and CPU time of the yardstick and of the tool, run by turns."""
    runs: list[list[tuple[float, float]]] = [[], []]
    for _ in range(rounds):
        for number, job in enumerate((floor, ours)):
            started, used = time.perf_counter(), cpu_seconds()
            await job()
            runs[number].append((time.perf_counter() - started, cpu_seconds() - used))
    return [(min(wall for wall, _ in one), min(cpu for _, cpu in one)) for one in runs]


async def report(root: str, rounds: int) -> int:
    """Print a table; how many goals were missed."""
    jobs = make_jobs(root)
    for _, floor, ours in jobs.values():  # the first run of each warms the caches
        await floor()
        await ours()
    print(f"{'':36} {'rg':>7} {'robota':>7} {'wall':>6} {'cpu':>6} {'goal':>5}")
    missed = 0
    for name, (kind, floor, ours) in jobs.items():
        (floor_wall, floor_cpu), (wall, cpu) = await measure(floor, ours, rounds)
        met = wall / floor_wall <= GOALS[kind]
        missed += not met
        ratios = f"{wall / floor_wall:5.2f}x {cpu / floor_cpu:5.2f}x {GOALS[kind]:4.1f}x"
        print(f"{name:36} {floor_wall * 1e3:5.0f}ms {wall * 1e3:5.0f}ms {ratios} {'ok' if met else 'MISSED'}")
    return missed


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=50_000)
    parser.add_argument("--megabytes", type=int, default=400)
    parser.add_argument("--rounds", type=int, default=12)
    parser.add_argument("--seed", type=int, default=11)
    parser.add_argument("--tree", help="use this directory: made if it is missing, and kept")
    options = parser.parse_args()
    root = options.tree or tempfile.mkdtemp(prefix="robota-search-")
    try:
        if not os.path.exists(os.path.join(root, ".gitignore")):
            os.makedirs(root, exist_ok=True)
            make_tree(root, options.files, options.megabytes, options.seed)
        missed = asyncio.run(report(root, options.rounds))
    finally:
        if not options.tree:
            shutil.rmtree(root, ignore_errors=True)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
