"""Saving and restoring a workspace beside `cp -a` of the same tree: `python bench/undo.py [--quick]`.

The sides take turns, so that a busy machine slows both, and the least times count. `first save` begins with
an empty store and reads everything, `save again` and `finish` find nothing changed, `restore` takes back that
everything was moved away. Nothing is removed before the end: ext4 is slow to use the inodes of removed files
again, minutes later and for every program. `cp -a` leaves its copy in memory where undo waits for the disk;
the second column of ratios is beside `cp -a` and a sync. CPU is that of the process and its children.
"""

from __future__ import annotations

import argparse
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from robota.tools.undo.plan import plan_command
from robota.tools.undo.store import UndoStore

T = TypeVar("T")
CLOCK_SECONDS = 2.1
"""What changed a moment ago is read again; a workspace at work is older."""
GOALS = {"first save": 2.0, "save again": 2.0, "restore": 3.0}


def make_tree(root: Path, files: int, seed: int) -> None:
    """Text of a few kilobytes in directories of forty files, with some links of both kinds."""
    source = random.Random(seed)
    words = [f"{source.randrange(1 << 24):x}" for _ in range(4000)]
    for number in range(files):
        directory = root / f"part{number // 1600}" / f"unit{number // 40 % 40}"
        if number % 40 == 0:
            directory.mkdir(parents=True)
        path = directory / f"item_{number}.txt"
        path.write_text(f"{number} " + " ".join(source.choices(words, k=int(source.expovariate(1 / 600)))))
        if number % 200 == 7:
            (directory / f"name_{number}").hardlink_to(path)
        if number % 200 == 9:
            (directory / f"link_{number}").symlink_to(path.name)


class Sample:
    """The least wall and CPU time of something done several times."""

    wall = cpu = float("inf")


def take(sample: Sample, act: Callable[[], T]) -> T:
    os.sync()
    began, used = time.perf_counter(), cpu_seconds()
    result = act()
    sample.wall = min(sample.wall, time.perf_counter() - began)
    sample.cpu = min(sample.cpu, cpu_seconds() - used)
    return result


def cpu_seconds() -> float:
    usages = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def run_round(base: Path, place: Path, samples: dict[str, Sample]) -> None:
    """A round with copies and a store of its own in `place`."""
    work, copy, gone = base / "work", place / "copy", place / "gone"
    gone.mkdir(parents=True)
    commands = {"cp -a": f"cp -a {work} {copy}", "cp -a, sync": f"cp -a {work} {copy}2 && sync -f {copy}2"}
    for name, command in commands.items():
        take(samples[name], lambda: subprocess.run(["sh", "-c", command], check=True))  # noqa: B023
    time.sleep(CLOCK_SECONDS)
    store, plan = UndoStore(place / "store"), plan_command("make", str(work), [str(work)])
    assert plan is not None
    first = take(samples["first save"], lambda: store.save(plan, "first"))
    take(samples["finish"], lambda: store.finish(str(first.entry_id)))
    again = take(samples["save again"], lambda: store.save(plan, "again"))
    for entry in work.iterdir():
        entry.rename(gone / entry.name)
    store.finish(str(again.entry_id))
    take(samples["restore"], lambda: store.undo(str(again.entry_id)))
    subprocess.run(["diff", "-r", "--no-dereference", work, copy], check=True)


def report(samples: dict[str, Sample]) -> None:
    plain, synced = samples["cp -a"], samples["cp -a, sync"]
    print(f"{'':14} {'wall':>8} {'/cp -a':>8} {'/synced':>8} {'cpu':>8} {'/cp -a':>8} {'goal':>6}")
    for name, sample in samples.items():
        goal = GOALS.get(name)
        ratios = f"{sample.wall / plain.wall:7.2f}x {sample.wall / synced.wall:7.2f}x"
        cpu = f"{sample.cpu * 1e3:6.0f}ms {sample.cpu / plain.cpu:7.2f}x"
        met = goal is not None and sample.wall <= goal * plain.wall
        verdict = "" if goal is None else f"{goal:5.1f}x {'ok' if met else 'MISSED'}"
        print(f"{name:14} {sample.wall * 1e3:6.0f}ms {ratios} {cpu} {verdict}".rstrip())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="2,000 files, three rounds")
    parser.add_argument("--files", type=int, default=8_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seed", type=int, default=11)
    parser.add_argument("--directory", help="where to work: another file system than that of temporary files")
    options = parser.parse_args()
    files, rounds = (2_000, 3) if options.quick else (options.files, options.rounds)
    names = ("cp -a", "cp -a, sync", "first save", "finish", "save again", "restore")
    samples = {name: Sample() for name in names}
    with tempfile.TemporaryDirectory(prefix="robota-undo-", dir=options.directory) as directory:
        base = Path(directory)
        make_tree(base / "work", files, options.seed)
        for number in range(rounds):
            run_round(base, base / str(number), samples)
    print(f"{files:,} files, the least of {rounds} rounds")
    report(samples)
    return 0


if __name__ == "__main__":
    sys.exit(main())
