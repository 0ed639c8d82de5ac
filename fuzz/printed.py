"""What a user saw is in the session: the command on a terminal, ended at random moments.

    python fuzz/printed.py --runs 300 --seed 1

Every run starts the real command on a pseudo-terminal and reads what appears, until it is ended: by kill -9,
by a signal, or by closing the terminal. A scripted model talks at its own pace, falls silent, runs a tool.
Then what was on the screen is held against the conversation that is read back. After signals nothing may be
missing. After kill -9 what was on the screen for `SETTLED` seconds has to be there, except for the last
unbroken word. Some answers hold a secret: no file may have it.
"""

from __future__ import annotations

import argparse
import os
import pty
import random
import select
import signal
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from robota.core.errors import StorageError
from robota.core.messages import AssistantMessage
from robota.sessions.start import restore
from robota.sessions.store.session_store import SessionStore
from robota.testing import Delay, ModelServer, Stall, call

SETTLED = 0.6
"""Seconds: the 0.25 of the session, and what a busy machine adds."""
WORDS = (
    "the", "of", "river", "mountain", "answer", "because", "window", "lantern", "sentence,", "paragraph.",
    "list:\n", "table\n\n", "한국어", "문장", "漢字仮名", "naïve", "(brackets)", "`code`",
    "x=1", "path/to/file.py",
)  # fmt: skip
SECRETS = ("ghp_16C7e42F292c6912E7710c838347Ae178B4a", "AKIAQ3EGRIJ5RKZXBQ7N", "velvet0tterQ9x")
ENDS = ("KILL", "KILL", "TERM", "HUP", "INT", "close")


class Seen(NamedTuple):
    """Text on the screen, and when it came."""

    at: float
    text: bytes


class Outcome(NamedTuple):
    end: str
    shown: int
    """Letters on the screen, blanks aside."""
    lost: int
    """Of these, letters that are not in the session."""
    problems: tuple[str, ...]


def make_reply(rng: random.Random, secret: str) -> list[object]:
    """Words at some pace, a silence somewhere; with a secret, a sentence that gives it away."""
    pace, steps = rng.choice((0.0, 0.005, 0.03, 0.12)), []
    for _ in range(rng.choice((3, 30, 120))):
        steps.append("".join(f"{rng.choice(WORDS)} " for _ in range(rng.choice((1, 1, 2, 6)))))
        steps.append(Delay(pace * rng.random()))
    if rng.random() < 0.5:
        steps.append(f"{rng.choice(WORDS)}{rng.choice(WORDS)}")  # ends in mid-word
    if secret:
        at = rng.randrange(len(steps))
        half = rng.randrange(1, len(secret))
        steps[at:at] = [f"the password={secret[:half]}", Delay(0.3), f"{secret[half:]} is it\n"]
    return steps


def run_one(directory: Path, rng: random.Random) -> Outcome:
    secret, end = rng.choice(("", "", *SECRETS)), rng.choice(ENDS)
    (directory / "notes.txt").write_text("milk\n")
    first = make_reply(rng, secret)
    script = [[*first, Stall()]]
    if rng.random() < 0.3:
        script = [[*first, call("Read", file_path="notes.txt")], [*make_reply(rng, ""), Stall()]]
    with ModelServer(*script).in_thread() as server:
        pid, screen = start(directory, server)
        seen = watch(screen, rng)
        stop(pid, screen, end, seen)
    return compare(directory, end, seen, secret)


def start(directory: Path, server: ModelServer) -> tuple[int, int]:
    variables = {
        "PATH": os.environ["PATH"], "HOME": str(directory), "ROBOTA_HOME": str(directory / "home"),
        "PYTHONIOENCODING": "utf-8", "ROBOTA_BASE_URL": f"{server.url}/v1", "ROBOTA_MODEL": "scripted",
    }  # fmt: skip
    pid, screen = pty.fork()
    if pid == 0:
        os.chdir(directory)
        os.dup2(os.open("remarks", os.O_WRONLY | os.O_CREAT), 2)  # the screen is for the answer
        os.execve(sys.executable, [sys.executable, "-m", "robota", "-p", "go"], variables)
    return pid, screen


def watch(screen: int, rng: random.Random) -> list[Seen]:
    """Read until a random moment, or until the model has been silent for long enough."""
    seen: list[Seen] = []
    wanted = rng.choice((1, 20, 200, 100_000))
    while sum(len(each.text) for each in seen) < wanted:
        if not select.select([screen], [], [], 5.0 if not seen else 2 * SETTLED)[0] and seen:
            break
        read_into(seen, screen)
    until = time.monotonic() + rng.choice((0.0, 0.05, SETTLED)) * rng.random()
    while (left := until - time.monotonic()) > 0:
        if select.select([screen], [], [], left)[0]:
            read_into(seen, screen)
    return seen


def read_into(seen: list[Seen], screen: int) -> bool:
    try:
        data = os.read(screen, 65536)
    except OSError:
        return False
    seen.append(Seen(time.monotonic(), data))
    return bool(data)


def stop(pid: int, screen: int, end: str, seen: list[Seen]) -> None:
    if end == "close":
        os.close(screen)
        os.waitpid(pid, 0)
        return
    os.kill(pid, getattr(signal, f"SIG{end}"))
    if end == "KILL":
        os.waitpid(pid, 0)
        seen.append(Seen(time.monotonic(), b""))  # the moment of the kill
    while read_into(seen, screen):
        pass
    os.close(screen)
    if end != "KILL":
        os.waitpid(pid, 0)


def compare(directory: Path, end: str, seen: list[Seen], secret: str) -> Outcome:
    problems: list[str] = []
    shown = letters(join(seen))
    kept = letters(read_session(directory / "home" / "sessions", problems))
    if secret:
        problems += [
            f"{path.name} has the secret" for path in (directory / "home").rglob("*")
            if path.is_file() and secret.encode() in path.read_bytes()
        ]  # fmt: skip
        return Outcome(end, 0, 0, tuple(problems))
    lost = 0 if kept.startswith(shown) else len(shown) - common(shown, kept)
    if lost and end != "KILL":
        problems.append(f"{shown[-lost:]!r} was on the screen and is not in the session")
    elif lost:
        ended = next(each.at for each in reversed(seen) if not each.text)
        settled = join([each for each in seen if each.at < ended - SETTLED])
        due = letters(settled.rsplit(maxsplit=1)[0] if settled and not settled[-1].isspace() else settled)
        if common(due, kept) < len(due):
            problems.append(f"{due[common(due, kept) :]!r} was on the screen for {SETTLED} s and is lost")
    return Outcome(end, len(shown), lost, tuple(problems))


def join(seen: list[Seen]) -> str:
    return b"".join(each.text for each in seen).decode("utf-8", "ignore")


def letters(text: str) -> str:
    """Text without blanks: a terminal and the breaks between rounds have their own."""
    return "".join(text.split())


def common(first: str, second: str) -> int:
    pairs = enumerate(zip(first, second, strict=False))
    return next((at for at, (one, other) in pairs if one != other), min(len(first), len(second)))


def read_session(sessions: Path, problems: list[str]) -> str:
    for journal in sessions.glob("*.jsonl") if sessions.is_dir() else ():
        try:
            start = restore(SessionStore(str(sessions)), journal.stem)
        except StorageError as error:
            problems.append(str(error))
            continue
        return "".join(each.content for each in start.messages if isinstance(each, AssistantMessage))
    return ""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--runs", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell in the background had it ignored
    shown: dict[str, int] = {}
    lost: dict[str, int] = {}
    worst = failures = 0
    for run in range(options.runs):
        with tempfile.TemporaryDirectory() as directory:
            outcome = run_one(Path(directory), random.Random(f"{options.seed}-{run}"))
        end = "kill -9" if outcome.end == "KILL" else "signals"
        shown[end] = shown.get(end, 0) + outcome.shown
        lost[end] = lost.get(end, 0) + outcome.lost
        worst = max(worst, outcome.lost)
        failures += bool(outcome.problems)
        for problem in outcome.problems:
            print(f"run {run} ({outcome.end}): {problem}", flush=True)
    figures = "; ".join(f"{end}: {shown[end]} letters shown, {lost[end]} lost" for end in sorted(shown))
    print(
        f"{options.runs} ends (seed {options.seed}): {figures}; at most {worst} at once; {failures} failures"
    )
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
