"""The terminal interface while an answer streams: bytes and CPU a frame, the echo of keys, its start.

    python bench/terminal.py [--quick] [--json FILE]

Beside it, in the same run: the same text through the same splitter and renderer without a live region
("bare"), and the echo of a bare prompt_toolkit prompt that nothing disturbs. Goals are those of the design; a
missed one is no failure. Each side is a process on a pseudo-terminal of its own.
"""

from __future__ import annotations

import argparse
import fcntl
import json
import os
import pty
import re
import select
import statistics
import struct
import sys
import tempfile
import termios
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pyte

HERE = Path(__file__).parent
ROWS, COLUMNS = 30, 90
BEGIN, END = b"\x1b[?2026h", b"\x1b[?2026l"
KEY_SECONDS = 0.04
"""Between two keys: a fast typist."""
LINE_KEYS = 40
FIRST_KEY = 0x4E00
"""Keys are assigned characters that the stream never contains, each another one."""


class Side:
    """One process on a pseudo-terminal."""

    def __init__(self, side: str, deltas: int, rate: int, home: str) -> None:
        self.log = bytearray()
        self.echoes: list[float] = []
        self.report = Path(home) / f"{side}-{rate}.json"
        self.began = time.perf_counter()
        self.pid, self.file = pty.fork()
        if self.pid == 0:
            fcntl.ioctl(1, termios.TIOCSWINSZ, struct.pack("4H", ROWS, COLUMNS, 0, 0))
            os.chdir(home)
            argv = [
                sys.executable,
                str(HERE / "terminal_side.py"),
                side,
                str(deltas),
                str(rate),
                str(self.report),
            ]
            os.execve(sys.executable, argv, {**os.environ, "TERM": "xterm-256color", "ROBOTA_HOME": home})

    def pump(self, wait: float) -> bool:
        if not select.select([self.file], [], [], wait)[0]:
            return True
        try:
            data = os.read(self.file, 65536)
        except OSError:
            return False
        self.log += data
        return bool(data)

    def until(self, mark: bytes) -> float:
        start = 0
        while mark not in self.log[start:]:
            start = max(0, len(self.log) - len(mark))
            if not self.pump(5.0):
                raise SystemExit(f"ended without {mark!r}:\n{self.log.decode(errors='replace')[-2000:]}")
        return time.perf_counter() - self.began

    def type(self, keys: bytes) -> None:
        os.write(self.file, keys)

    def measure_key(self, number: int) -> None:
        """Type one key and wait until it stands on the screen."""
        key = chr(FIRST_KEY + number).encode()
        place = len(self.log)
        began = time.perf_counter()
        self.type(key)
        while key not in self.log[place:]:
            if time.perf_counter() - began > 5 or not self.pump(1.0):
                raise SystemExit(f"key {number} was never echoed")
        self.echoes.append((time.perf_counter() - began) * 1000)

    def rest(self, seconds: float) -> None:
        deadline = time.perf_counter() + seconds
        while (left := deadline - time.perf_counter()) > 0 and self.pump(left):
            pass

    def end(self, keys: bytes) -> dict[str, Any]:
        self.type(keys)
        while self.pump(5.0):
            pass
        os.waitpid(self.pid, 0)
        os.close(self.file)
        told: dict[str, Any] = json.loads(self.report.read_text())
        return told


def stream(side: str, deltas: int, rate: int, home: str, *, keys: bool) -> dict[str, Any]:
    """One answer on a terminal; with keys typed all the while."""
    run = Side(side, deltas, rate, home)
    run.until(b"READY" if side == "bare" else b"Context:")
    run.type(b"go\r" if side == "ui" else b"\r")
    if side == "ui":
        run.until(b"Esc stops")  # keys that come with Enter in one read would be a paste
    start, began = len(run.log), time.perf_counter()
    last = time.perf_counter() + deltas / rate * 0.9
    number = 0
    while keys and time.perf_counter() < last:
        run.measure_key(number)
        run.rest(KEY_SECONDS)
        number += 1
        if number % LINE_KEYS == 0:
            run.type(b"\x15")  # a line is as long as lines are
    run.until(b"the last word")
    seconds = time.perf_counter() - began
    run.rest(0.5)
    log = bytes(run.log[start:])
    told = run.end(b"\x15\x04" if side == "ui" else b"\r")
    frames = [part.partition(END)[0] for part in log.split(BEGIN)[1:]]
    plain = [len(frame) for frame in frames if b"\x1b[J" not in frame]
    return {
        **told,
        "bytes": len(log),
        "seconds": seconds,
        "frames": len(frames),
        "frame_bytes": statistics.median(plain) if plain else 0,
        "erases_alone": sum(b"\x1b[J" in part.partition(END)[2] for part in log.split(BEGIN)[1:]),
        "echoes": run.echoes,
        "lost": lost(bytes(run.log), told["marks"]),
    }


def lost(log: bytes, marks: int) -> list[str]:
    """Marks that the scrollback does not show exactly once."""
    screen = pyte.HistoryScreen(COLUMNS, ROWS, history=200_000)
    pyte.ByteStream(screen).feed(log)
    lines = [*screen.history.top, *(screen.buffer[row] for row in range(ROWS))]
    text = "\n".join("".join(line[column].data for column in range(COLUMNS)) for line in lines)
    found = Counter(re.findall(r"mark\d+x*", text))
    repeats = (1, 5, 4, 8)  # lines of a paragraph, a list, a table and a fence
    wanted = (f"mark{number}{'x' * row}" for number in range(marks) for row in range(repeats[number % 4]))
    return [mark for mark in wanted if found[mark] != 1]


def echo_of_a_prompt(count: int, home: str) -> list[float]:
    run = Side("prompt", 0, 1, home)
    run.until(b">")
    for number in range(count):
        run.measure_key(number)
        run.rest(KEY_SECONDS)
    run.end(b"\x15\x04")
    return run.echoes


def first_prompt(home: str) -> float:
    """Milliseconds from the start of the process to the first prompt, the smallest of some."""
    samples = []
    for _ in range(5):
        run = Side("robota", 0, 1, home)
        samples.append(run.until(b"Context:") * 1000)
        run.type(b"\x04")
        while run.pump(5.0):
            pass
        os.waitpid(run.pid, 0)
        os.close(run.file)
    return min(samples)


def at(samples: list[float], part: float) -> float:
    ordered = sorted(samples)
    return ordered[min(len(ordered) - 1, int(len(ordered) * part))] if ordered else 0.0


def compare(deltas: int, rate: int, home: str, *, keys: bool) -> dict[str, float]:
    ui = stream("ui", deltas, rate, home, keys=False)
    bare = stream("bare", deltas, rate, home, keys=False)
    echoes = stream("ui", deltas, rate, home, keys=True)["echoes"] if keys else []
    frames = max(ui["frames"], 1)
    if ui["lost"] or ui["erases_alone"]:
        raise SystemExit(f"lost or repeated: {ui['lost'][:10]}; erases alone: {ui['erases_alone']}")
    return {
        "finished text (bytes/text)": bare["bytes"] / bare["characters"],
        "bytes/text": ui["bytes"] / ui["characters"],
        "kB/s": ui["bytes"] / ui["seconds"] / 1000,
        "frame bytes without a commit": ui["frame_bytes"],
        "frames/s": ui["frames"] / ui["seconds"],
        "CPU of a core, %": ui["cpu"] / ui["seconds"] * 100,
        "CPU/bare": ui["cpu"] / max(bare["cpu"], 1e-9),
        "CPU ms/frame over bare": (ui["cpu"] - bare["cpu"]) / frames * 1000,
        **({"echo p50 ms": at(echoes, 0.5), "echo p99 ms": at(echoes, 0.99)} if keys else {}),
    }


GOALS = {
    100: {
        "finished text (bytes/text)": 1.8,
        "frame bytes without a commit": 130,
        "frames/s": 20,
        "kB/s": 5,
        "CPU of a core, %": 7,
        "CPU ms/frame over bare": 2.5,
    },
    1000: {
        "finished text (bytes/text)": 1.8,
        "kB/s": 20,
        "CPU/bare": 1.7,
        "CPU ms/frame over bare": 2.5,
        "echo p99 ms": 15,
    },
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--quick", action="store_true", help="a tenth of the deltas")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    part = 10 if arguments.quick else 1
    figures: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as home:
        for rate, deltas in ((100, 2000), (1000, 20_000)):
            figures[str(rate)] = found = compare(deltas // part, rate, home, keys=rate == 1000)
            print(f"{deltas // part} deltas of Markdown, {rate} a second, {ROWS}x{COLUMNS}")
            for name, value in found.items():
                goal = GOALS[rate].get(name)
                verdict = "" if goal is None else f"  goal {goal}: {'met' if value <= goal else 'MISSED'}"
                print(f"  {name:28} {value:9.2f}{verdict}")
        prompt = echo_of_a_prompt(100 // part + 20, home)
        ratio = figures["1000"]["echo p99 ms"] / at(prompt, 0.99)
        print(f"echo of a bare prompt: p50 {at(prompt, 0.5):.2f} ms, p99 {at(prompt, 0.99):.2f} ms")
        print(
            f"echo p99 beside it while streaming: {ratio:.1f}x  goal 3: {'met' if ratio <= 3 else 'MISSED'}"
        )
        figures["echo ratio"] = ratio
        figures["first prompt ms"] = first_prompt(home)
        print(f"start to the first prompt: {figures['first prompt ms']:.0f} ms")
    if arguments.json:
        arguments.json.write_text(json.dumps(figures, indent=2))


if __name__ == "__main__":
    main()
