"""Where the time goes: a profile's own time summed by package, and the functions that have most of it.

cProfile charges every call the same, so it overstates small functions: a pointer, not a measurement.
"""

from __future__ import annotations

import pstats
import re
from collections import defaultdict
from pathlib import Path
from typing import Any

Place = tuple[str, int, str]


def package_of(place: Place) -> str:
    path = place[0]
    if path == "~":
        return "built-in"
    if found := re.search(r"/src/robota/(\w+)/", path):
        return f"robota.{found[1]}"
    if found := re.search(r"site-packages/(\w+)", path):
        return found[1]
    if "/bench/" in path:
        return "bench"
    return Path(path).parent.name if "/asyncio/" in path else "standard library"


def own_times(stats: dict[Place, Any]) -> dict[Place, float]:
    """Own seconds per function; built-in functions are charged to those who call them."""
    times: dict[Place, float] = defaultdict(float)
    for place, (_, _, own, _, callers) in stats.items():
        if "'poll'" in place[2] or "gc.collect" in place[2]:
            continue  # waiting, and the order we make ourselves between two runs
        if place[0] == "~" and callers:
            whole = sum(caller[2] for caller in callers.values()) or 1.0
            for caller, (_, _, part, _) in callers.items():
                times[caller] += own * part / whole
        else:
            times[place] += own
    return times


def summarise(file: str, *, functions: int) -> str:
    stats: dict[Place, Any] = pstats.Stats(file).stats  # type: ignore[attr-defined]  # not in the stubs
    times = own_times(stats)
    total = sum(times.values()) or 1.0
    packages: dict[str, float] = defaultdict(float)
    for place, seconds in times.items():
        packages[package_of(place)] += seconds
    ranked = sorted(packages.items(), key=lambda item: -item[1])
    lines = [", ".join(f"{name} {seconds / total:.0%}" for name, seconds in ranked[:8])]
    for place, seconds in sorted(times.items(), key=lambda item: -item[1])[:functions]:
        calls = stats[place][1] if place in stats else 0
        where = f"{package_of(place)} {Path(place[0]).name}:{place[1]} {place[2]}"
        lines.append(f"  {seconds / total:6.1%} {seconds * 1e3:8.1f} ms {calls:8d} calls  {where}")
    return "\n".join(lines)
