"""Bash as the judge of our reader: what it starts and writes was named, or the reader had not understood.

`python fuzz/oracle.py --cases 20000 --seed 1` makes shell texts from the grammar of docs/permissions.md, from
its borders (the same texts with something foreign in them) and from known tricks, and runs each in bash in a
throw-away directory. Programs are stubs that log their directory and words; a name that is no stub is logged
as well. With `--strace` the kernel's own account of every file opened for writing is looked at too.

For a text that the reader understood, every program that bash started is one of its invocations, in a
directory it named, with words that fit; and every file that changed is a redirection's target. For a text
that rules let run unasked, the words that really arrived, written out, would run unasked too, and nothing was
written. A program that ran and a file that was written are never past a rule that denies them.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import select
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from oracle_texts import STUBS, make_text

from robota.core.permissions import evaluate_permission
from robota.core.permissions.evaluate import Terms
from robota.core.shell.builtins import find_outside
from robota.core.shell.effects import Touch, find_touches, known_path
from robota.core.shell.grammar import parse_shell
from robota.core.shell.invocations import Invocation, find_invocations, find_steering, walk
from robota.core.shell.script import ShellSyntaxError, Word

BASH, STRACE = shutil.which("bash"), shutil.which("strace")
RULES = [
    rule
    for name in (*STUBS, "cd", "export", "read", "set", "unset", "declare")
    for rule in (f"Bash({name}:*)",)
]
RUNNERS = {
    "env": 'while case $1 in *=*) true;; *) false;; esac; do shift; done; [ $# -gt 0 ] && exec "$@"',
    "nice": '[ $# -gt 0 ] && exec "$@"',
    "xargs": '[ $# -gt 0 ] && exec "$@"',
}
# One write for each program, so that programs beside each other do not mix their words.
STUB = """#!/bin/sh
line="$PWD\037${0##*/}\037"
for word; do line="$line$word\037"; done
printf '%s\036' "$line" >> "$ORACLE_LOG"
"""
# What separates words is not in the function itself, whose text `$(declare)` hands on.
PRELUDE = """enable -n echo kill suspend true false
_word='\037' _end='\036'
command_not_found_handle() {
  local line="$(builtin pwd)$_word" word
  for word; do line="$line$word$_word"; done
  builtin printf '%s' "$line$_end" >> "$ORACLE_LOG"; return 1; }
ulimit -f 64 -t 2
trap 'builtin mapfile -d "\036" _started < "$ORACLE_LOG"
[ "$((_count += 1))" -gt 60 -o "${#_started[@]}" -gt 20 ] && builtin exit' DEBUG
set -T
"""
"""Whatever a text does, it ends after some sixty commands or twenty programs."""
PLAIN_NAME = re.compile(r"[\w./-]+")
SECONDS = 10
EXECUTED = re.compile(r'execve\("([^"]*)".*\) = 0$', re.MULTILINE)
OPENED = re.compile(r'openat?\((?:AT_FDCWD, )?"([^"]*)", [^)\n]*O_(?:WRONLY|RDWR)')


class Start(NamedTuple):
    """A program that bash started."""

    directory: str
    words: tuple[str, ...]


class Run(NamedTuple):
    started: list[Start]
    written: set[str]
    finished: bool


class Reading(NamedTuple):
    """What our reader says about a text that it understood."""

    invocations: list[Invocation]
    touches: list[Touch]


class Report(NamedTuple):
    counts: Counter[str]
    failures: list[str]


class Place:
    """A throw-away directory with stubs, and the tree that commands run in."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.stubs, self.home = root / "stubs", root / "tree" / "home"
        self.work, self.log = root / "tree" / "deep" / "er" / "work", root / "log"
        self.stubs.mkdir(parents=True)
        for name in STUBS:
            stub = self.stubs / name
            stub.write_text(STUB + RUNNERS.get(name, "exit $(( ($# + ${#1}) % 2 ))") + "\n")
            stub.chmod(0o755)
        (root / "prelude").write_text(PRELUDE)
        self._fill()

    def _fill(self) -> None:
        shutil.rmtree(self.root / "tree", ignore_errors=True)
        for directory in (self.work / "sub" / "in", self.work / "src", self.home / "sub"):
            directory.mkdir(parents=True)
        for name in ("a", "b.py", "-o", "-exec", "x y", "src/c.py", "src/-d", "sub/a"):
            (self.work / name).write_text("content\n")
        shutil.copy(self.stubs / "ls", self.work / "ls")
        (self.work / "link").symlink_to("sub/in")
        self._before = self._look()

    def _look(self) -> dict[str, tuple[int, int, int]]:
        found = {}
        for folder, _, files in os.walk(self.root / "tree"):
            for path in [folder, *(os.path.join(folder, name) for name in files)]:
                state = os.lstat(path)
                changed = 0 if path == folder else state.st_mtime_ns
                found[path] = (state.st_ino, state.st_size if path != folder else 0, changed)
        return found

    def changes(self) -> set[str]:
        """Files that are new, gone or different; the tree is made anew when there are any."""
        after = self._look()
        changed = {path for path in {*self._before, *after} if self._before.get(path) != after.get(path)}
        if changed:
            self._fill()
        return changed


def run_in_bash(text: str, place: Place, *, strace: bool = False) -> Run:
    place.log.write_bytes(b"")
    read_end, write_end = os.pipe()
    trace = place.root / "trace"
    environment = {
        "PATH": str(place.stubs), "HOME": str(place.home), "ORACLE_LOG": str(place.log),
        "BASH_ENV": str(place.root / "prelude"),
    }  # fmt: skip
    tracer = [
        str(STRACE),
        "-f",
        "-qq",
        "-e",
        "trace=execve,open,openat,creat",
        "-s",
        "4096",
        "-o",
        str(trace),
    ]
    process = subprocess.Popen(
        [
            *(tracer if strace else []),
            *(str(BASH), "--noprofile", "--norc", "-c", text),
        ],
        cwd=place.work,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        pass_fds=(write_end,),
        start_new_session=True,
    )
    os.close(write_end)
    ended, _, _ = select.select(
        [read_end], [], [], SECONDS
    )  # end of file: no descendant holds the pipe any more
    os.close(read_end)
    if not ended:
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    records = place.log.read_bytes().decode(errors="surrogateescape").split("\036")
    fields = [record.split("\037")[:-1] for record in records if record]
    started = [Start(each[0], tuple(each[1:])) for each in fields if len(each) > 1]
    written = place.changes()
    if strace:
        seen = trace.read_text(errors="surrogateescape")
        ours = ("/dev/", str(place.log))
        # Relative paths are told by what changed in the tree.
        written |= {
            path for path in OPENED.findall(seen) if path.startswith("/") and not path.startswith(ours)
        }
        known = (str(place.root), str(BASH))
        started += [
            Start(str(place.work), (path,)) for path in EXECUTED.findall(seen) if not path.startswith(known)
        ]
    return Run(started, written, bool(ended))


def read(text: str, place: Place) -> Reading | None:
    """What the reader says; None when it did not understand."""
    try:
        script = parse_shell(text)
    except ShellSyntaxError:
        return None
    here, home = (str(place.work),), str(place.home)
    invocations = walk(find_invocations(script, here, home))
    if any(each.computed or each.opaque or find_outside(each.words, each.script) for each in invocations):
        return None
    if find_steering(script, invocations) is not None:
        return None
    return Reading(invocations, list(find_touches(script, invocations, here, home)))


def is_named(start: Start, reading: Reading) -> bool:
    line = "".join(word + "\0" for word in start.words)
    for each in reading.invocations:
        wanted = [re.escape(each.program) + "\0", *map(word_pattern, each.words[1:])]
        known = {os.path.realpath(directory) for directory in each.directories if directory is not None}
        place = None in each.directories or os.path.realpath(start.directory) in known
        if place and re.fullmatch("".join(wanted), line, re.DOTALL):
            return True
    return False


def word_pattern(word: Word) -> str:
    """What a word may become: itself, one word, or any number of them."""
    if word.literal and not word.tilde:
        return re.escape(word.text) + "\0"
    several = not {"@", "*"}.isdisjoint(word.variables) or word.globbed or word.tilde
    open_pieces = (kind for kind, _, quoted in word.pieces if kind != "text" and not quoted)
    return "(?:[^\0]*\0)*" if several or any(open_pieces) else "[^\0]*\0"


def is_target(path: str, reading: Reading, place: Place) -> bool:
    for touch in reading.touches:
        if touch.kind == "read":
            continue
        for directory in touch.directories:
            known = known_path(touch.word, directory, str(place.home), frozenset())
            if known is None or os.path.realpath(known) == os.path.realpath(path):
                return True
    return False


def judge(text: str, run: Run, place: Place) -> Iterator[str]:
    """What bash did and our code did not expect."""
    yield from _unnamed(text, run, place)
    yield from _past_rules(text, run, {"cwd": str(place.work), "home": str(place.home)})


def _unnamed(text: str, run: Run, place: Place) -> Iterator[str]:
    reading = read(text, place)
    if reading is None:
        return
    for start in run.started:
        if not is_named(start, reading):
            where = os.path.relpath(start.directory, place.root)
            yield f"bash started {start.words} in {where}, which was not named"
    for path in sorted(run.written):
        if not is_target(path, reading, place):
            yield f"bash wrote {os.path.relpath(path, place.work)}, which was not named"


def _past_rules(text: str, run: Run, place: dict[str, str]) -> Iterator[str]:
    def decide(command: str, allow: list[str], deny: Sequence[str] = ()) -> str:
        terms = Terms(allow=allow, deny=deny, cwd=place["cwd"], home=place["home"])
        return evaluate_permission("Bash", {"command": command}, **terms)

    if decide(text, RULES) == "auto":
        yield from (f"auto, but {path} was written" for path in run.written)
        for start in run.started:
            if decide(shlex.join(start.words), RULES) != "auto":
                yield f"auto, but bash started {start.words}, which is not"
    denied = {
        f"Bash({start.words[0]}:*)" for start in run.started if PLAIN_NAME.fullmatch(start.words[0])
    } | {f"Write({path})" for path in run.written}
    for rule in sorted(denied):
        if decide(text, ["Bash"], [rule]) == "auto":
            yield f"auto although {rule} is denied"


def run_cases(cases: int, seed: int, *, strace: bool = False, keep: int = 10) -> Report:
    rng = random.Random(seed)
    counts: Counter[str] = Counter()
    failures: list[str] = []
    with tempfile.TemporaryDirectory() as scratch:
        place = Place(Path(scratch).resolve())
        for _ in range(cases):
            label, text = make_text(rng)
            run = run_in_bash(text, place, strace=strace)
            understood = read(text, place) is not None
            counts[f"{label}: {'understood' if understood else 'asked about'}"] += 1
            counts["programs started"] += len(run.started)
            counts["files written"] += len(run.written)
            counts["did not end"] += not run.finished
            failures += [f"{label}: {complaint}\n    {text!r}" for complaint in judge(text, run, place)]
    counts["failed"] = len(failures)
    return Report(counts, sorted(failures, key=len)[:keep])


def main(argv: Sequence[str] | None = None) -> int:
    options = argparse.ArgumentParser(description="Compare our reading of shell texts with bash.")
    options.add_argument("--cases", type=int, default=20_000)
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--strace", action="store_true", help="see execve and open through strace as well")
    chosen = options.parse_args(argv)
    report = run_cases(chosen.cases, chosen.seed, strace=chosen.strace)
    for label, count in sorted(report.counts.items()):
        print(f"{count:>8}  {label}")
    for failure in report.failures:
        print(failure)
    return 1 if report.failures else 0


if __name__ == "__main__":
    sys.exit(main())
