"""The command, sent a signal at every moment of its life: it ends at once, with its code and without noise.

    python fuzz/signals.py --step 5 --until 800 --signals INT TERM HUP

Every run starts the real command against a scripted model and signals it so many milliseconds after its
start. It has to end by itself with 128 plus the number of the signal, to print no traceback and no warning,
to leave no process behind, and to leave a session whose messages are the model's words and nothing else.

The first milliseconds belong to Python and to the script that pip made, which print a traceback of their
own: such runs are counted, and not as failures.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple
from uuid import uuid4

from robota.core.errors import StorageError
from robota.core.messages import AssistantMessage
from robota.sessions.start import restore
from robota.sessions.store.session_store import SessionStore
from robota.testing import Stall, call
from robota.testing.model_server import ModelServer

COMMAND = Path(sys.executable).with_name("robota")
PATIENCE = 30.0
NOISE = ("Traceback", "Warning", "Exception ignored", "never awaited", "Fatal")
PYTHON_STARTED = -1000
"""In the place of an exit code: `main` had not begun."""
ANSWER = "Half an answer "
SCRIPTS = {
    "stalls": ([ANSWER, Stall()],),
    "runs a tool": ([ANSWER, call("Bash", command="sleep 1000")],),
    "answers": (ANSWER,),
}
"""What the model does; the last lets the signal meet a process that is about to end by itself."""


class Ending(NamedTuple):
    """How one process ended."""

    name: str
    """Of the signal."""
    after: int
    """Milliseconds."""
    script: str
    code: int
    errors: str
    problems: tuple[str, ...]


def run_signals(names: Sequence[str], moments: Sequence[int], scripts: Sequence[str]) -> Iterator[Ending]:
    for script in scripts:
        for after in moments:
            for name in names:
                with (
                    tempfile.TemporaryDirectory() as directory,
                    ModelServer(*SCRIPTS[script], repeat=True).in_thread() as server,
                ):
                    yield signal_one(Path(directory), server, name, after, script)


def signal_one(directory: Path, server: ModelServer, name: str, after: int, script: str) -> Ending:
    number, mark, home = getattr(signal, f"SIG{name}"), uuid4().hex, directory / "home"
    work = directory / "work"
    work.mkdir()
    variables = {
        "PATH": os.environ["PATH"], "HOME": str(directory), "ROBOTA_HOME": str(home),
        "ROBOTA_TEST_MARK": mark, "ROBOTA_BASE_URL": f"{server.url}/v1", "ROBOTA_MODEL": "scripted",
    }  # fmt: skip
    process = subprocess.Popen(
        [COMMAND, "-p", "go", "--allow", "Bash(sleep *)"],
        cwd=work, env=variables, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        text=True,
    )  # fmt: skip
    time.sleep(after / 1000)
    process.send_signal(number)
    problems: list[str] = []
    try:
        out, errors = process.communicate(timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        process.kill()
        out, errors = process.communicate()
        problems.append("it ignored the signal")
    code, wanted = process.returncode, 128 + number
    if "KeyboardInterrupt" in errors and "robota/__main__.py" not in errors:
        return Ending(name, after, script, PYTHON_STARTED, errors, ())
    if code not in (wanted, -number) and not (code == 0 and script == "answers" and out.endswith("\n")):
        problems.append(f"it ended with {code}, not {wanted}")
    problems += [f"{noise!r} on stderr" for noise in NOISE if noise in errors]
    if left := list(find_marked(mark)):
        problems.append(f"processes were left: {left}")
    problems += look_at_sessions(home, out)
    return Ending(name, after, script, code, errors, tuple(problems))


def find_marked(mark: str) -> Iterator[str]:
    """Commands of processes that our process started."""
    for directory in Path("/proc").iterdir():
        try:
            if directory.name.isdigit() and mark.encode() in (directory / "environ").read_bytes():
                yield (directory / "cmdline").read_text().replace("\0", " ").strip()
        except OSError:
            continue


def look_at_sessions(home: Path, out: str) -> Iterator[str]:
    """What is wrong with the session, held against what was printed."""
    sessions = home / "sessions"
    said = ""
    for journal in sessions.glob("*.jsonl") if sessions.is_dir() else ():
        try:
            start = restore(SessionStore(str(sessions)), journal.stem)
        except StorageError as error:
            if b"\n" in journal.read_bytes():
                yield f"the session cannot be read: {error}"
            continue
        said = "".join(each.content for each in start.messages if isinstance(each, AssistantMessage))
        if said not in (ANSWER, ""):
            yield f"the session has {said!r}"
    if out.strip() and out.strip() != said.strip():
        yield f"{out!r} was printed, and the session has {said!r}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--signals", nargs="+", default=["INT", "TERM", "HUP"])
    parser.add_argument("--scripts", nargs="+", default=list(SCRIPTS), choices=list(SCRIPTS))
    parser.add_argument("--first", type=int, default=0, help="milliseconds after the start")
    parser.add_argument("--until", type=int, default=800)
    parser.add_argument("--step", type=int, default=5)
    options = parser.parse_args()
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell in the background had it ignored
    moments = range(options.first, options.until + 1, options.step)
    runs = failures = 0
    codes: dict[int, int] = {}
    for ending in run_signals(options.signals, moments, options.scripts):
        runs += 1
        codes[ending.code] = codes.get(ending.code, 0) + 1
        if ending.problems:
            failures += 1
            print(f"SIG{ending.name} after {ending.after} ms ({ending.script}): {'; '.join(ending.problems)}")
            print("".join(f"    | {line}\n" for line in ending.errors.splitlines()[-4:]), end="", flush=True)
    early = codes.pop(PYTHON_STARTED, 0)
    print(
        f"{runs} signals, {early} of them while Python itself started, "
        f"exit codes {dict(sorted(codes.items()))}, {failures} failures"
    )
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
