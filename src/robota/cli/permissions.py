"""`robota permissions`: what the rules of this directory say about calls, without running them."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator

import click
from msgspec import Struct

from robota.cli.options import read_object
from robota.cli.progress import progress
from robota.core.errors import ConfigurationError
from robota.core.messages import JsonObject
from robota.sdk.kept_sessions import create_project_session_store
from robota.sdk.past_sessions import Judge, PastCall, is_unchanged, past_calls
from robota.sdk.places import find_places
from robota.sdk.project import ProjectOptions, load_project

WORDS = {"auto": "runs", "approve": "asks", "deny": "refused"}
_HOW = f"write {', '.join(WORDS.values())} and then a call, as in refused Read(.env)."
_SUBJECTS = {
    "Bash": "command", "Read": "file_path", "Write": "file_path", "Edit": "file_path", "Glob": "pattern",
    "Grep": "pattern", "WebFetch": "url", "WebSearch": "query",
}  # fmt: skip
"""The argument of each tool that rules are about."""


@click.group(
    help="What the rules of this directory say about calls. CALL is a command, such as 'git push', or a "
    "call, such as 'Read(.env)'.",
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
def command() -> None: ...


options = click.option("--settings", metavar="JSON", default="", help="More settings, as JSON or a file.")
mode_option = click.option("--permission-mode", "mode", metavar="MODE", help="In this mode.")


@command.command()
@click.argument("call")
@options
@mode_option
def why(call: str, settings: str, mode: str | None) -> int:
    """Say whether CALL runs, asks or is refused, and which rule of which file decides.

    Exit code 0: it runs; 3: it asks; 1: it is refused.
    """
    judge = make_judge(settings, mode)
    verdict = judge.foresee(*read_call(call))
    print(WORDS[verdict.decision])
    if verdict.rule:
        origin = judge.find_origin(verdict.rule)
        print(f"rule: {verdict.rule}{f' ({origin})' if origin else ''}")
    if verdict.part:
        print(f"part: {verdict.part}")
    if verdict.reason:
        print(verdict.reason)
    return {"auto": 0, "approve": 3, "deny": 1}[verdict.decision]


@command.command()
@click.argument("file")
@options
@mode_option
def test(file: str, settings: str, mode: str | None) -> int:
    """Check the rules with examples: lines `runs|asks|refused CALL` in FILE; `#` begins a remark.

    Exit code 1: a call is not judged as its line says, or there are no examples.
    """
    judge = make_judge(settings, mode)
    wrong = total = 0
    for example in _read_examples(file):
        total += 1
        verdict = judge.foresee(*read_call(example.call))
        if WORDS[verdict.decision] != example.expected:
            wrong += 1
            rule = f" by {verdict.rule}" if verdict.rule else ""
            found = f"{WORDS[verdict.decision]}{rule}: {verdict.reason}"
            print(f"{file}:{example.line}: {example.call}: expected {example.expected}, {found}")
    if not total:
        raise ConfigurationError(f"{file} has no examples: {_HOW}")
    print(f"{total - wrong} of {total} as expected.", file=sys.stderr)
    return 1 if wrong else 0


@command.command()
@options
@mode_option
@click.option("--all", "everywhere", is_flag=True, help="Sessions of all directories.")
def replay(settings: str, mode: str | None, everywhere: bool) -> None:
    """Judge the calls of past sessions by today's rules, and show those that would be decided differently."""
    judge, store = make_judge(settings, mode), create_project_session_store()
    known = [each for each in store.list(None if everywhere else find_places().cwd) if each.has_journal]
    count, changed = 0, 0
    with progress("sessions") as advance:
        for number, summary in enumerate(known):
            for call in past_calls(store, summary.id):
                count += 1
                verdict = judge.explain(call.tool_name, call.arguments, call.cwd)
                if not is_unchanged(call.decided, call.by, verdict):
                    changed += 1
                    print(_describe_change(call, WORDS[verdict.decision]))
            advance(number + 1, len(known))
    print(
        f"{changed} of {count} calls in {len(known)} sessions would be decided differently.", file=sys.stderr
    )


def _describe_change(call: PastCall, now: str) -> str:
    subject = str(next(iter(call.arguments.values()), ""))
    flat = " ".join(subject.split())
    shown = flat if len(flat) <= 80 else f"{flat[:79]}…"
    return f"{WORDS[call.decided]} -> {now}  {call.tool_name}({shown})  {call.session_id}"


class Example(Struct, frozen=True):
    line: int
    expected: str
    call: str


def _read_examples(file: str) -> Iterator[Example]:
    try:
        with open(file, encoding="utf-8") as opened:
            lines = opened.read().splitlines()
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise ConfigurationError(f"{file} cannot be read ({why}): name a file with examples.") from error
    for number, line in enumerate(lines, 1):
        expected, _, call = line.strip().partition(" ")
        if not expected or expected.startswith("#"):
            continue
        if expected not in WORDS.values() or not call.strip():
            raise ConfigurationError(f"{file}:{number} is not an example: {_HOW}")
        yield Example(number, expected, call.strip())


def read_call(text: str) -> tuple[str, JsonObject]:
    """`Read(.env)`, `Tool {"json": …}`, or a command alone."""
    if not text.strip():
        raise ConfigurationError("There is no call to judge: give a command, or a call such as 'Read(.env)'.")
    name, brace, rest = text.partition("{")
    if brace and name.strip().isidentifier():
        return name.strip(), read_object("{" + rest, "CALL")
    name, mark, rest = text.partition("(")
    if mark and rest.endswith(")") and name.replace("_", "").isalnum() and name[:1].isupper():
        if name not in _SUBJECTS:
            known = ", ".join(_SUBJECTS)
            raise ConfigurationError(
                f'{name}(…) does not say which argument is meant: write {name} {{"argument": …}}. That is '
                f"not needed for {known}."
            )
        return name, {_SUBJECTS[name]: rest[:-1]}
    return "Bash", {"command": text}


def make_judge(settings: str, mode: str | None) -> Judge:
    """By what a session would go by that was started here."""
    from robota.cli.flags import MODES, UsageError  # noqa: PLC0415 - only for a mistake

    if mode is not None and mode not in MODES:
        raise UsageError(f"--permission-mode takes one of {', '.join(MODES)}, not {mode!r}.")
    flags: JsonObject = {} if mode is None else {"permissions": {"defaultMode": mode}}
    places = find_places()
    project = load_project(ProjectOptions(places=places, flags=flags, given=settings, environment=os.environ))
    for problem in project.settings.problems:
        if not problem.harmless:
            print(problem, file=sys.stderr)
    return Judge(project.settings, places)
