"""`robota tour`: the assistant itself, with real tools, in a project of its own, on a model that has a part.

Nothing is sent anywhere and nothing stays behind: the model is a server on loopback, and the project and the
home of this one session are removed at the end. What the user sees is the program they will use, so the tour
has no screens of its own: its model says what to try next.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from shutil import get_terminal_size
from tempfile import TemporaryDirectory
from textwrap import fill

import click

from robota.cli.assistant import TOUR
from robota.cli.offline import count_tokens
from robota.core.provider import Chunk
from robota.providers.choice import KEYS
from robota.testing import call
from robota.testing.http_server import ReceivedRequest
from robota.testing.model_server import ModelServer

MODEL = NAME = "tour"
RUN_TESTS = "python3 -B test_prices.py"
FILES = {
    "prices.py": '''\
def total(prices, discount=0):
    """The sum of the prices, less a discount in percent."""
    return sum(prices) * (1 - discount)
''',
    "test_prices.py": """\
from prices import total

assert total([10, 20]) == 30
assert total([10, 20], discount=50) == 15, f"50 % off 30 should be 15, and is {total([10, 20], 50)}"
print("All tests pass.")
""",
    "AGENTS.md": f"The tests are run with `{RUN_TESTS}`.\n",
}
WRONG, RIGHT = "(1 - discount)", "(1 - discount / 100)"
INTRODUCTION = (
    "This is the tour: a throw-away project with a failing test, real tools, and a model that only plays a "
    "part, so nothing is sent anywhere."
)
NEXT = """\
The test passes. What you can try now:

- `/undo` takes my edit back, `/redo` brings it again, `/rewind` goes back to an earlier prompt
- `/context` shows what the model is sent, and what it costs
- `!ls` runs a command of your own; `@prices.py` in a prompt shows me a file
- `/exit` leaves, and then the whole session is replayed without a model
"""
LOOK = ("I will look at the code ", "and run its test first.")
TEST = ("The discount is in percent. ", "Let me see what the test says.")
EDIT = (
    "The discount is taken as a fraction, ",
    "so 50 % becomes 50 times too much. I will divide it by 100.",
)
AGAIN = (
    "I only play a part and have shown all of it. Try `/undo`, `/redo` or `/context`, and leave with `/exit`."
)
DECLINED = (
    "You said no, so I stop here: nothing ran or changed that you did not allow. Type anything to try again."
)


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
def command() -> int:
    """Try robota in five minutes: no key, real tools, a throw-away project."""
    if not sys.stdin.isatty():
        raise click.UsageError("The tour is for people: run it in a terminal.")
    return take_tour()


def take_tour() -> int:
    with TemporaryDirectory(prefix="robota-tour-", ignore_cleanup_errors=True) as place:
        project, home = Path(place, "project"), Path(place, "home")
        project.mkdir()
        for name, text in FILES.items():
            (project / name).write_text(text, encoding="utf-8")
        environment = _environment(home)
        print(fill(INTRODUCTION, max(20, get_terminal_size().columns - 1)), file=sys.stderr)
        print("Type: fix the failing test", file=sys.stderr)
        with (
            ModelServer(Part(project).play, repeat=True, models=(MODEL,)).in_thread() as server,
            _interrupts_for_the_child(),
        ):
            there = ("--base-url", f"{server.url}/v1", "--model", MODEL, "--context-window", "100000")
            code = _robota(*there, "--name", NAME, project=project, environment=environment)
            if code == 0 and any(home.glob("sessions/*.jsonl")):
                print("The session again, without a model and without running anything:", file=sys.stderr)
                code = _robota("replay", NAME, project=project, environment=environment)
    print(
        "The tour is over: its project and its session are gone. `robota setup` chooses a real model.",
        file=sys.stderr,
    )
    return code


class Part:
    """What the model of the tour says: look, see the test fail, correct the code, see it pass.

    It goes by what really happened to the project: a no, an undo or a correction by hand leads somewhere."""

    def __init__(self, project: Path) -> None:
        self._code = project / "prices.py"

    def play(self, request: ReceivedRequest) -> list[str | Chunk]:
        reply = self._reply(request)
        return [*reply, count_tokens(request, reply)]

    def _reply(self, request: ReceivedRequest) -> list[str | Chunk]:
        results = _results(request)
        step, last = len(results), results[-1] if results else ""
        corrected = RIGHT in self._code.read_text(encoding="utf-8")
        if step == 0:
            return [AGAIN] if corrected else [*LOOK, call("Read", file_path="prices.py")]
        if step == 1:
            return [*TEST, call("Bash", command=RUN_TESTS)]
        if "All tests pass." in last:
            return [NEXT]
        if not corrected and "should be 15" in last:
            return [*EDIT, call("Edit", file_path="prices.py", old_string=WRONG, new_string=RIGHT)]
        if corrected and "should be 15" not in last:
            return ["Now the test again.", call("Bash", command=RUN_TESTS)] if step == 3 else [DECLINED]
        return [DECLINED]


def _results(request: ReceivedRequest) -> list[str]:
    """What tools gave since the user spoke last."""
    found: list[str] = []
    for turn in request.conversation.turns:
        if turn.role == "user" and turn.text:
            found.clear()
        elif turn.role == "tool":
            found.append(turn.text)
    return found


def _environment(home: Path) -> dict[str, str]:
    """The user's, without keys: a tour must not reach anybody. Nobody goes on with its session."""
    kept = {name: value for name, value in os.environ.items() if name not in KEYS}
    return {**kept, "ROBOTA_HOME": str(home), "ROBOTA_SANDBOX": "off", TOUR: "1"}


def _robota(*arguments: str, project: Path, environment: dict[str, str]) -> int:
    command = [sys.executable, "-m", "robota", *arguments]
    return subprocess.run(command, cwd=project, env=environment, check=False).returncode


@contextmanager
def _interrupts_for_the_child() -> Iterator[None]:
    """Ctrl-C reaches both of us; the program that is shown decides what it means."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
