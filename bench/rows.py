"""What is measured and what is wanted of it: a measure takes samples of sides, a row compares two of them."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

Figure = Literal["cpu", "wall", "kib"]


class Measure(NamedTuple):
    name: str
    action: str
    """Of `worker.py`; `program` times whole processes instead."""
    sides: tuple[str, ...]
    options: dict[str, Any] = {}  # noqa: RUF012 - never changed
    requests: int = 0
    """How many model requests one worker makes outside its warm-up; 0 leaves it unchecked."""
    repeats: int = 5
    quick_repeats: int = 2
    pieces: tuple[int, int] = (1, 20)
    """Pieces of text of the last answer and their letters together."""
    secure: bool = False
    """Over TLS."""


class Row(NamedTuple):
    title: str
    measure: str
    unit: str
    scale: float
    """From seconds (or KiB) to the unit, per round or delta where the title says so."""
    goal: float | None = None
    """`None`: for information."""
    kind: Literal["ratio", "over", "figure"] = "ratio"
    """What the goal limits: robota / floor, robota - floor, or robota's own figure."""
    figure: Figure = "cpu"
    ours: str = "robota"
    floor: str = "floor"


def _pieces(deltas: int) -> tuple[int, int]:
    return deltas, deltas * 20


OTHER_WIRES = {"messages": "Messages", "responses": "Responses", "gemini": "Gemini"}


def on(wire: str) -> tuple[str, str]:
    return f"floor@{wire}", f"robota@{wire}"


COLD_WIRES = tuple(f"first-robota@{wire}" for wire in OTHER_WIRES)
COLD_SDKS = tuple(f"first-sdk@{wire}" for wire in ("chat", *OTHER_WIRES))
BOTH = ("floor", "robota")
SESSIONS = ("floor", "session", "session-durable")
ALL = ("floor", "robota", "floor-plain", "robota-run")

MEASURES = {
    measure.name: measure
    for measure in (
        Measure("import", "program", ("bare", "import"), repeats=20, quick_repeats=8),
        Measure(
            "cold",
            "program",
            ("first", "first-no-trust", "first-robota", "first-robota-tools", *COLD_WIRES, *COLD_SDKS),
            repeats=8,
        ),
        Measure("build", "build", ("robota",), {"scenario": "rounds-0", "times": 200}, quick_repeats=1),
        Measure("fresh", "fresh", ALL[:3], {"scenario": "rounds-0", "times": 20}, 201, repeats=8),
        Measure("round", "runs", ALL, {"scenario": "rounds-50", "times": 4}, 204),
        Measure(
            "delta",
            "runs",
            ("floor", "robota", "robota-listen"),
            {"scenario": "deltas-20000", "warm": "rounds-1.deltas-50", "times": 1},
            1,
            pieces=_pieces(20_000),
        ),
        Measure(
            "trickle",
            "runs",
            BOTH,
            {"scenario": "deltas-400.trickle-1", "warm": "rounds-1.deltas-50", "times": 1},
            1,
            repeats=4,
            pieces=_pieces(400),
        ),
        Measure(
            "growth",
            "growth",
            BOTH,
            {"scenario": "rounds-1000.tool-stamp", "warm": "rounds-2.tool-stamp"},
            1001,
            repeats=2,
            quick_repeats=1,
        ),
        Measure(
            "parallel",
            "runs",
            BOTH,
            {"scenario": "rounds-1.calls-100.tool-nap", "warm": "rounds-1.calls-3.tool-nap", "times": 5},
            10,
        ),
        Measure(
            "together",
            "together",
            ALL[:3],
            {"scenario": "rounds-5.wait-200", "times": 200},
            1200,
            repeats=3,
            quick_repeats=1,
        ),
        *(
            Measure(f"{wire}-round", "runs", on(wire), {"scenario": "rounds-50", "times": 4}, 204)
            for wire in OTHER_WIRES
        ),
        *(
            Measure(
                f"{wire}-delta",
                "runs",
                on(wire),
                {"scenario": "deltas-20000", "warm": "rounds-1.deltas-50", "times": 1},
                1,
                pieces=_pieces(20_000),
            )
            for wire in OTHER_WIRES
        ),
        Measure("tls-round", "runs", BOTH, {"scenario": "rounds-50", "times": 4}, 204, secure=True),
        Measure(
            "tls-delta",
            "runs",
            BOTH,
            {"scenario": "deltas-20000", "warm": "rounds-1.deltas-50", "times": 1},
            1,
            pieces=_pieces(20_000),
            secure=True,
        ),
        Measure("s-build", "build", ("session",), {"scenario": "rounds-0", "times": 200}, quick_repeats=1),
        Measure("s-fresh", "fresh", SESSIONS, {"scenario": "rounds-0", "times": 20}, 201, repeats=8),
        Measure("s-round", "runs", SESSIONS, {"scenario": "rounds-50", "times": 4}, 204),
        Measure(
            "s-delta",
            "runs",
            ("floor", "session"),
            {"scenario": "deltas-20000", "warm": "rounds-1.deltas-50", "times": 1},
            1,
            pieces=_pieces(20_000),
        ),
        Measure(
            "s-trickle",
            "runs",
            ("floor", "session"),
            {"scenario": "deltas-400.trickle-1", "warm": "rounds-1.deltas-50", "times": 1},
            1,
            repeats=4,
            pieces=_pieces(400),
        ),
        Measure(
            "s-growth",
            "growth",
            SESSIONS,
            {"scenario": "rounds-1000.tool-stamp", "warm": "rounds-2.tool-stamp"},
            1001,
            repeats=2,
            quick_repeats=1,
        ),
        Measure(
            "s-parallel",
            "runs",
            SESSIONS,
            {"scenario": "rounds-1.calls-100.tool-nap", "warm": "rounds-1.calls-3.tool-nap", "times": 5},
            10,
        ),
        Measure(
            "s-together",
            "together",
            SESSIONS,
            {"scenario": "rounds-5.wait-200", "times": 200},
            1200,
            repeats=3,
            quick_repeats=1,
        ),
    )
}

MS, US = 1e3, 1e6
ROWS = (
    Row("`import robota`, over bare python", "import", "ms", MS, 3, "over", ours="import", floor="bare"),
    Row("cold process to its first answer", "cold", "ms", MS, 0.75, ours="first-robota", floor="first"),
    Row("… httpx2 without its trust store", "cold", "ms", MS, ours="first-robota", floor="first-no-trust"),
    Row("… ours with ten tools", "cold", "ms", MS, ours="first-robota-tools", floor="first"),
    Row("… against the OpenAI package", "cold", "ms", MS, 0.5, ours="first-robota", floor="first-sdk@chat"),
    *(
        Row(title, "cold", "ms", MS, goal, ours=f"first-robota@{wire}", floor=floor)
        for wire, name in OTHER_WIRES.items()
        for title, floor, goal in (
            (f"{name}: cold process", "first", 0.75),
            ("… against the vendor's package", f"first-sdk@{wire}", 0.5),
        )
    ),
    Row("`Robota` with ten tools", "build", "µs", US, 5, "figure", floor=""),
    Row("new agent and one answer", "fresh", "ms", MS, 1.05),
    Row("… against a plain post", "fresh", "ms", MS, floor="floor-plain"),
    Row("tool round, streamed", "round", "ms", MS / 51, 0.5),
    Row("… `run()` without a listener", "round", "ms", MS / 51, ours="robota-run"),
    Row("… against plain posts", "round", "ms", MS / 51, floor="floor-plain"),
    Row("text delta, `stream()`", "delta", "µs", US / 20_000, 0.4),
    Row("… with a plain listener", "delta", "µs", US / 20_000, ours="robota-listen"),
    Row("… when they come 1 ms apart", "trickle", "µs", US / 400),
    Row("round 1,000 of one conversation", "growth", "ms", MS, 0.5),
    Row("100 parallel tools of 50 ms, wall", "parallel", "ms", MS, 60, "figure", "wall"),
    Row("… CPU of the whole run", "parallel", "ms", MS),
    Row("one of 200 sessions at once", "together", "ms", MS, 0.5),
    Row("… against plain posts", "together", "ms", MS, floor="floor-plain"),
    Row("… memory", "together", "KiB", 1, 45, "figure", "kib"),
    *(
        Row(f"{name}: {title}", f"{wire}-{what}", unit, scale, goal, ours=on(wire)[1], floor=on(wire)[0])
        for wire, name in OTHER_WIRES.items()
        for title, what, unit, scale, goal in (
            ("tool round, streamed", "round", "ms", MS / 51, 0.5),
            ("text delta, `stream()`", "delta", "µs", US / 20_000, 0.4),
        )
    ),
    Row("over TLS: tool round, streamed", "tls-round", "ms", MS / 51, 0.5),
    Row("over TLS: text delta, `stream()`", "tls-delta", "µs", US / 20_000, 0.4),
    Row("`Session` with ten tools", "s-build", "µs", US, 20, "figure", ours="session", floor=""),
    Row("new session and one answer", "s-fresh", "ms", MS, 1.5, ours="session"),
    Row("… with its fdatasyncs", "s-fresh", "ms", MS, 1.8, ours="session-durable"),
    Row("session: tool round, streamed", "s-round", "ms", MS / 51, 1.2, ours="session"),
    Row("… with its fdatasyncs", "s-round", "ms", MS / 51, 1.2, ours="session-durable"),
    Row("session: text delta, whole journal", "s-delta", "µs", US / 20_000, 0.6, ours="session"),
    Row("… when they come 1 ms apart", "s-trickle", "µs", US / 400, ours="session"),
    Row("session: round 1,000", "s-growth", "ms", MS, 0.5, ours="session"),
    Row("… with its fdatasyncs", "s-growth", "ms", MS, 0.6, ours="session-durable"),
    Row("session: 100 parallel tools, wall", "s-parallel", "ms", MS, 65, "figure", "wall", ours="session"),
    Row("… with fdatasyncs", "s-parallel", "ms", MS, 90, "figure", "wall", ours="session-durable"),
    Row("session: one of 200 at once", "s-together", "ms", MS, 1.25, ours="session"),
    Row("… with fdatasyncs", "s-together", "ms", MS, 1.5, ours="session-durable"),
    Row("… memory", "s-together", "KiB", 1, 60, "figure", "kib", ours="session"),
)
