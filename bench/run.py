"""robota beside the same loop written by hand on httpx2: one server, one interleaved run, a table.

    python bench/run.py [--quick] [--only round,delta] [--repeats 5] [--json FILE] [--profile round]

Each sample is a process of its own, the sides take turns, and the smallest sample counts. Figures are CPU
time except where it says wall. A missed goal is no failure; sides that did not do the same work are.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from hot_spots import summarise
from processes import HERE, DidNotWork, ModelService, run_worker, time_program
from rows import MEASURES, OTHER_WIRES, ROWS, Measure, Row

Samples = dict[str, list[dict[str, Any]]]
"""Per side, what its workers said."""

PROGRAMS = {
    "bare": ["-c", "pass"],
    "import": ["-c", "import robota"],
    "first": [str(HERE / "first_answer_floor.py"), "{url}/v1"],
    "first-no-trust": [str(HERE / "first_answer_floor.py"), "{url}/v1", "no-trust"],
    "first-robota": [str(HERE / "first_answer_robota.py"), "chat", "{url}/v1"],
    "first-robota-tools": [str(HERE / "first_answer_robota.py"), "chat", "{url}/v1", "tools"],
    **{
        f"first-robota@{wire}": [str(HERE / "first_answer_robota.py"), wire, "{url}/v1"]
        for wire in OTHER_WIRES
    },
    **{
        f"first-sdk@{wire}": [str(HERE / "first_answer_sdk.py"), wire, "{url}"]
        for wire in ("chat", *OTHER_WIRES)
    },
}


class Bench:
    def __init__(self, service: ModelService, *, quick: bool, repeats: int | None) -> None:
        self.service = service
        self.quick = quick
        self.repeats = repeats
        self.samples: dict[str, Samples] = {}

    def take(self, measure: Measure) -> None:
        """The samples of one measure, the sides in turn."""
        repeats = self.repeats or (measure.quick_repeats if self.quick else measure.repeats)
        samples: Samples = {side: [] for side in measure.sides}
        self.samples[measure.name] = samples
        bodies: dict[str, dict[str, Any]] = {}
        for side in measure.sides if measure.action == "program" else ():
            self.run_program(side)  # compiles what the process imports
        for _ in range(repeats):
            for side in measure.sides:
                if measure.action == "program":
                    samples[side].append(self.run_program(side))
                else:
                    figures, bodies[side] = self.run_worker(measure, side)
                    samples[side].append(figures)
        compare_requests(measure, bodies)

    def run_program(self, side: str) -> dict[str, Any]:
        url = f"{self.service.url}/cold/deltas-3"
        seconds, printed = time_program([part.format(url=url) for part in PROGRAMS[side]])
        if side.startswith("first") and len(printed) != 60:
            raise DidNotWork(f"{side} printed {printed!r} instead of the answer.")
        return {"cpu": [seconds]}

    def run_worker(self, measure: Measure, side: str, **more: str) -> tuple[dict[str, Any], dict[str, Any]]:
        """Its figures and the last request it sent, after a look at whether it did what it should."""
        server = self.service.secure_url if measure.secure else self.service.url
        options = {"server": server, "key": measure.name, **measure.options, **more}
        figures = run_worker(side, measure.action, options, self.service.authority if measure.secure else "")
        requests, last = self.service.seen(measure.name)
        if measure.requests and requests != measure.requests:
            raise DidNotWork(f"{measure.name}: {side} made {requests} requests, not {measure.requests}.")
        pieces, letters = figures.get("outcome", measure.pieces)
        whole = side.endswith(("-plain", "-run"))
        if letters != measure.pieces[1] or (not whole and pieces != measure.pieces[0]):
            raise DidNotWork(f"{measure.name}: {side} got {pieces} pieces of text with {letters} letters.")
        return figures, last

    def profile(self, measure: Measure, side: str, functions: int) -> str:
        if measure.action == "program":
            return "a whole process: try `python -X importtime`"
        with tempfile.TemporaryDirectory() as folder:
            file = str(Path(folder) / "profile")
            self.run_worker(measure, side, profile=file)
            return summarise(file, functions=functions)


def compare_requests(measure: Measure, bodies: dict[str, dict[str, Any]]) -> None:
    """The last request carries the whole conversation: all sides must have had the same, tools included."""
    seen = {side: (_conversation(body), body.get("tools")) for side, body in bodies.items() if body}
    first = next(iter(seen.values()), None)
    strict = not any("@" in side for side in seen)
    for side, (messages, tools) in seen.items():
        if first is None or len(messages) != len(first[0]) or (strict and messages != first[0]):
            raise DidNotWork(f"{measure.name}: {side} sent another conversation than the others.")
        if strict and tools != first[1]:
            raise DidNotWork(f"{measure.name}: {side} sent other tools than the others: {tools} {first[1]}")


def _conversation(body: dict[str, Any]) -> list[Any]:
    """Whatever the wire calls it. On the others than Chat Completions only its length is compared: they
    leave a client more than one way to say the same."""
    found: list[Any] = body.get("messages") or body.get("input") or body.get("contents") or []
    return found


# --- the table -----------------------------------------------------------------------------------------


def smallest(samples: Samples, side: str, row: Row) -> float:
    return min(min(figures[row.figure]) for figures in samples[side]) * row.scale


def judge(row: Row, ours: float, floor: float | None) -> tuple[float, bool | None]:
    """The figure that the goal speaks about, and whether it is met."""
    if row.kind == "figure" or floor is None:
        value = ours
    else:
        value = ours - floor if row.kind == "over" else ours / floor
    return value, None if row.goal is None else value <= row.goal


def lines_of(samples: dict[str, Samples]) -> list[dict[str, Any]]:
    lines = []
    for row in ROWS:
        taken = samples.get(row.measure)
        if taken is None:
            continue
        ours = smallest(taken, row.ours, row)
        floor = smallest(taken, row.floor, row) if row.floor in taken else None
        value, met = judge(row, ours, floor)
        lines.append(
            {"title": row.title, "measure": row.measure, "unit": row.unit, "kind": row.kind, "ours": ours}
            | {"floor": floor, "value": value, "goal": row.goal, "met": met, "side": row.ours}
        )
    return lines


def print_table(lines: list[dict[str, Any]]) -> None:
    print(f"\n| {'':34} | {'robota':>9} | {'by hand':>9} | {'ratio':>6} | {'goal':>8} | {'':4} |")
    print(f"|{'-' * 36}|{'-' * 10}:|{'-' * 10}:|{'-' * 7}:|{'-' * 9}:|{'-' * 6}|")
    for line in lines:
        unit, goal = line["unit"], line["goal"]
        floor = "" if line["floor"] is None else f"{show(line['floor'])} {unit}"
        ratio = "" if line["floor"] is None else f"{line['ours'] / line['floor']:.2f}×"
        if line["kind"] == "over":
            ratio = f"+{line['value']:.1f}"
        wanted = "" if goal is None else f"≤ {goal:g}×" if line["kind"] == "ratio" else f"≤ {goal:g} {unit}"
        verdict = {True: "ok", False: "miss", None: ""}[line["met"]]
        ours = f"{show(line['ours'])} {unit}"
        print(f"| {line['title']:34} | {ours:>9} | {floor:>9} | {ratio:>6} | {wanted:>8} | {verdict:4} |")


def show(figure: float) -> str:
    return f"{figure:.0f}" if figure >= 1000 else f"{figure:.3g}"


def print_growth(samples: Samples) -> None:
    print("\nms of CPU per round as the history grows:")
    for side, taken in samples.items():
        lengths = {int(number) for figures in taken for number in figures["at"]}
        best = {at: min(figures["at"][str(at)] for figures in taken) * 1e3 for at in sorted(lengths)}
        print(f"  {side:16}" + "".join(f"{at:>7}: {ms:.2f}" for at, ms in best.items()))


def read_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--only", help=f"some of {','.join(MEASURES)}")
    parser.add_argument(
        "--repeats", type=int, help="samples per side; every measure has a default of its own"
    )
    parser.add_argument("--quick", action="store_true", help="few samples: half a minute, rough figures")
    parser.add_argument("--json", metavar="FILE", help="write every sample to FILE")
    parser.add_argument(
        "--profile", metavar="MEASURE", choices=MEASURES, help="only show where its time goes"
    )
    return parser.parse_args()


def main() -> int:
    chosen = read_arguments()
    names = chosen.only.split(",") if chosen.only else list(MEASURES)
    unknown = [name for name in names if name not in MEASURES]
    if unknown:
        print(f"There is no measure {unknown[0]!r}; choose from {', '.join(MEASURES)}.", file=sys.stderr)
        return 2
    started = time.monotonic()
    try:
        with ModelService() as service:
            bench = Bench(service, quick=chosen.quick, repeats=chosen.repeats)
            if chosen.profile:
                measure = MEASURES[chosen.profile]
                for side in measure.sides:
                    print(f"{side}: {bench.profile(measure, side, 30)}\n")
                return 0
            for name in names:
                print(f"{name} …", file=sys.stderr, flush=True)
                bench.take(MEASURES[name])
            lines = lines_of(bench.samples)
            print_table(lines)
            for name in ("growth", "s-growth"):
                if name in bench.samples:
                    print_growth(bench.samples[name])
            for line in lines:
                if line["met"] is False:
                    spots = bench.profile(MEASURES[line["measure"]], line["side"], 8)
                    print(f"\nmissed: {line['title']}; own time by package: {spots}")
    except DidNotWork as problem:
        print(f"Did not work: {problem}", file=sys.stderr)
        return 1
    print(f"\nPython {platform.python_version()}, {time.monotonic() - started:.0f} s")
    if chosen.json:
        told = {"lines": lines, "samples": bench.samples, "python": platform.python_version()}
        Path(chosen.json).write_text(json.dumps(told, indent=1, ensure_ascii=False), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
