"""Processes that write a session and are killed at random moments: nothing they acknowledged may be missing.

    python fuzz/kills.py --runs 500 --seed 1

Every run starts a real process that goes on with a session where the last one was killed. It numbers what it
writes and acknowledges each number over a pipe when it is written. What the process does is a `Program`; to
torture something larger than the journal, add another one to `PROGRAMS`.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from killed_session import find_numbers, find_unanswered, write_session

from robota.core.errors import StorageError
from robota.core.jsontext import encode
from robota.sessions.journal.file.file_journal import FileJournal
from robota.sessions.journal.file.payloads import PayloadStore
from robota.sessions.journal.file.reader import read_lines
from robota.sessions.journal.port import JournalProblem
from robota.sessions.journal.writer import INLINE_LIMIT
from robota.sessions.store.session_store import SessionStore

RUNS_PER_SESSION = 10


class Found(NamedTuple):
    """What is left of a session after a kill."""

    numbers: list[int]
    problems: list[str]
    """Everything that a reader complains about, except for one record that was being written."""
    torn: bool
    payloads: int


class Program(NamedTuple):
    """What a process does until it is killed, and how its work is looked at afterwards."""

    write: Callable[[Path, str, int, random.Random, Callable[[int], None]], None]
    """In the process: go on with this session at this number, for ever; acknowledge every number."""
    read: Callable[[Path, str], Found]
    """After the kill: find everything, without and with repairing it."""


class Counts(NamedTuple):
    """The outcome of many runs."""

    runs: int
    sessions: int
    acknowledged: int
    found: int
    torn: int
    payloads: int
    failures: list[str]


def write_journal(
    directory: Path, session_id: str, first: int, rng: random.Random, acknowledge: Callable[[int], None]
) -> None:
    """Append records of all sizes, the large ones as payloads or in the line."""
    journal = FileJournal(str(directory), session_id)
    payloads = PayloadStore(str(directory), session_id)
    asyncio.run(journal.open())
    number = first
    while True:
        value = encode(make_text(number, rng.choice((10, 200, 2000, 50_000, 3_000_000))))
        if len(value) > INLINE_LIMIT and rng.random() < 0.5:
            value = payloads.put(value)
        journal.append(b'"event":"message","n":%d,"text":%b}' % (number, value), event=0)
        acknowledge(number)
        if rng.random() < 0.1:
            journal.sync_now()
        number += 1


def read_back(directory: Path, session_id: str) -> Found:
    """Read the journal as it is, then let a writer repair it and read it again."""
    path = str(directory / f"{session_id}.jsonl")
    if not os.path.exists(path):
        return Found([], [], False, 0)
    before, problems, payloads = collect(directory, session_id)
    torn = [problem for problem in problems if problem.kind == "torn"]
    journal = FileJournal(str(directory), session_id)
    asyncio.run(journal.open())
    complaints = [problem.message for problem in problems if problem.kind != "torn"] + [journal.trouble]
    asyncio.run(journal.aclose())
    after, problems, _ = collect(directory, session_id)
    complaints += [problem.message for problem in problems]
    if before != after:
        complaints.append(f"repairing changed the records: {len(before)} became {len(after)}")
    return Found(after, [complaint for complaint in complaints if complaint], bool(torn), payloads)


def collect(directory: Path, session_id: str) -> tuple[list[int], list[JournalProblem], int]:
    store = PayloadStore(str(directory), session_id)
    numbers: list[int] = []
    problems: list[JournalProblem] = []
    payloads = 0
    for item in read_lines(str(directory / f"{session_id}.jsonl"), session_id=session_id):
        if isinstance(item, JournalProblem):
            problems.append(item)
            continue
        fields = item.fields()
        text = store.resolve(fields["text"])
        payloads += text is not fields["text"]
        if text != make_text(fields["n"], len(text)):
            raise AssertionError(f"record {fields['n']} has another text")
        numbers.append(fields["n"])
    return numbers, problems, payloads


def make_text(number: int, length: int) -> str:
    mark = f"{number:x} "
    return (mark * (length // len(mark) + 1))[:length]


def read_session(directory: Path, session_id: str) -> Found:
    """Load the session twice: as the store gives it, and once more, which must not change anything."""
    store = SessionStore(str(directory))
    try:
        record = store.load(session_id)
    except StorageError:
        if b"\n" in (directory / f"{session_id}.jsonl").read_bytes():
            raise
        return Found([], [], True, 0)  # killed before its first record was whole: it has not begun
    if record is None:
        return Found([], [], False, 0)
    messages = record.parse_messages()
    again = store.load(session_id)
    problems = find_unanswered(messages)
    if again is None or again.messages != record.messages:
        problems.append("loading it again gives another conversation")
    torn = any("being written" in problem for problem in record.problems)
    return Found(find_numbers(messages), problems, torn, 0)


PROGRAMS = {
    "journal": Program(write_journal, read_back),
    "session": Program(write_session, read_session),
}


def run_kills(directory: Path, *, program: str = "journal", runs: int, seed: int) -> Counts:
    """Kill `runs` processes and compare what they acknowledged with what is there."""
    rng = random.Random(seed)
    found = Found([], [], False, 0)
    acknowledged = records = torn = payloads = 0
    failures = []
    for run in range(runs):
        if run % RUNS_PER_SESSION == 0:
            found = Found([], [], False, 0)
        session_id = f"session-{seed}-{run // RUNS_PER_SESSION}"
        before = found
        first = max(before.numbers) + 1 if before.numbers else 0
        new = kill_one(directory, program, session_id, first, rng)
        found = PROGRAMS[program].read(directory, session_id)
        expected = [*before.numbers, *new]
        missing = sorted(set(expected) - set(found.numbers))
        more = len(found.numbers) - len(expected)
        # What was being written at the end may be there without having been acknowledged.
        if missing or len(set(found.numbers)) != len(found.numbers) or more > 1 or found.problems:
            failures.append(f"run {run}: {missing} missing, {more} more; {' '.join(found.problems)}")
        acknowledged += len(new)
        records += len(found.numbers) - len(before.numbers)
        torn += found.torn
        payloads += found.payloads - before.payloads
    sessions = -(-runs // RUNS_PER_SESSION)
    return Counts(runs, sessions, acknowledged, records, torn, payloads, failures)


def kill_one(directory: Path, program: str, session_id: str, first: int, rng: random.Random) -> list[int]:
    """Fork a process, kill it at a random moment, and return the numbers it acknowledged."""
    chance = random.Random(rng.randrange(1 << 30))
    wanted = rng.choice((0, 1, 3, 10, 30))
    heard, tells = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.write(tells, b"started\n")
            tell = lambda number: os.write(tells, b"%d\n" % number) and None  # noqa: E731 - this and no other
            PROGRAMS[program].write(directory, session_id, first, chance, tell)
        finally:
            os._exit(1)
    os.close(tells)
    with open(heard, "rb") as pipe:
        pipe.readline()  # it has started
        lines = [pipe.readline() for _ in range(wanted)]
        time.sleep(rng.random() ** 2 * 0.01)
        os.kill(child, signal.SIGKILL)
        lines += pipe.read().splitlines(keepends=True)
    _, status = os.waitpid(child, 0)
    if os.waitstatus_to_exitcode(status) != -signal.SIGKILL:
        raise AssertionError("the process ended by itself")
    return [int(line) for line in lines if line.endswith(b"\n")]


def describe(counts: Counts, seed: int) -> str:
    return (
        f"{counts.runs} kills in {counts.sessions} sessions (seed {seed}): {counts.acknowledged} records "
        f"acknowledged, {counts.found} found, {counts.torn} torn ends, {counts.payloads} payloads compared, "
        f"{len(counts.failures)} failures"
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--runs", type=int, default=500)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--program", choices=sorted(PROGRAMS), default="journal")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        counts = run_kills(Path(directory), program=options.program, runs=options.runs, seed=options.seed)
    for failure in counts.failures:
        print(failure)
    print(describe(counts, options.seed))
    return 1 if counts.failures else 0


if __name__ == "__main__":
    sys.exit(main())
