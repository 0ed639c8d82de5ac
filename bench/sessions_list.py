"""Listing many sessions beside a bare `os.scandir` with stat: `python bench/sessions_list.py`.

Every session has a snapshot and a journal. Each row runs by turns with the yardstick in this process, page
cache warm; ratios are of the least times. `cold` has no index yet, `changed` one in a hundred sessions anew.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
import zlib
from collections.abc import Callable

import msgspec

from robota.core.messages import AssistantMessage, UserMessage
from robota.sessions.store.message_codec import message_to_record
from robota.sessions.store.session_store import SessionStore

GOAL = 10.0
WORDS = (
    "the",
    "quick",
    "brown",
    "fox",
    "jumps",
    "over",
    "a",
    "lazy",
    "dog",
    "writing",
    "tests",
    "for",
    "parsers",
)


def make_sessions(directory: str, count: int, rounds: int) -> None:
    os.makedirs(directory, exist_ok=True)
    for number in range(count):
        id = f"{number:08x}-5c0e-4a63-9a51-7ad1ad6e9f3c"
        write_session(directory, id, number, rounds)


def write_session(directory: str, id: str, number: int, rounds: int) -> None:
    stamp = f"2026-03-{number % 28 + 1:02}T12:00:00.{number % 1000:03}Z"
    messages = []
    for turn in range(rounds):
        text = " ".join(WORDS[(number + turn + at) % len(WORDS)] for at in range(60))
        messages += [message_to_record(UserMessage(text)), message_to_record(AssistantMessage(text * 4))]
    record = {
        "id": id,
        "cwd": f"/srv/project{number % 20}",
        "createdAt": stamp,
        "updatedAt": stamp,
        "messages": messages,
        "history": [],
        "journalSeq": len(messages) + 1,
        "version": 1,
    }
    with open(f"{directory}/{id}.json", "wb") as file:
        file.write(msgspec.json.format(msgspec.json.encode(record), indent=2))
    bodies = [{"event": "session_init", "cwd": record["cwd"]}]
    bodies += [{"event": "message", "index": at, "message": m} for at, m in enumerate(messages)]
    with open(f"{directory}/{id}.jsonl", "wb") as file:
        for seq, body in enumerate(bodies, 1):
            rest = msgspec.json.encode({"v": 1, "seq": seq, "timestamp": stamp, "sessionId": id, **body})[1:]
            file.write(b'{"crc":"%08x",%s\n' % (zlib.crc32(rest), rest))


def bare_listing(directory: str) -> int:
    with os.scandir(directory) as entries:
        return sum(entry.stat().st_size for entry in entries)


def least(work: Callable[[], object], yardstick: Callable[[], object], turns: int) -> tuple[float, float]:
    """The least times of both, measured by turns."""
    times: tuple[list[float], list[float]] = ([], [])
    for _ in range(turns):
        for measured, run in zip(times, (work, yardstick), strict=True):
            start = time.perf_counter()
            run()
            measured.append(time.perf_counter() - start)
    return min(times[0]), min(times[1])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sessions", type=int, default=5000)
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--turns", type=int, default=7)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as home:
        directory = f"{home}/sessions"
        make_sessions(directory, options.sessions, options.rounds)
        store = SessionStore(directory)

        def change_some() -> None:
            for number in range(0, options.sessions, 100):
                os.utime(f"{directory}/{number:08x}-5c0e-4a63-9a51-7ad1ad6e9f3c.json")

        def list_changed() -> None:
            change_some()
            store.list()

        rows = {
            "cold": least(store.list, lambda: bare_listing(directory), 1),
            "warm": least(store.list, lambda: bare_listing(directory), options.turns),
            "changed": least(list_changed, lambda: bare_listing(directory), options.turns),
            "search, first": least(lambda: store.search("lazy dog"), lambda: bare_listing(directory), 1),
            "search": least(lambda: store.search("lazy dog"), lambda: bare_listing(directory), options.turns),
        }
        assert len(store.list()) == options.sessions
    print(f"{options.sessions} sessions, snapshot and journal each; scandir and stat are 1.0")
    for name, (ours, bare) in rows.items():
        print(f"{name:14} {ours * 1000:9.1f} ms {ours / bare:9.1f} x   (bare {bare * 1000:.1f} ms)")
    ours, bare = rows["warm"]
    print(f"goal: warm within {GOAL:.0f} x: {'met' if ours / bare <= GOAL else 'MISSED'}")
    return 0 if ours / bare <= GOAL else 1


if __name__ == "__main__":
    sys.exit(main())
