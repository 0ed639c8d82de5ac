"""`robota replay`: a session run again, without a network. The conversation goes to stdout, verdicts to
stderr."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import click

from robota.cli.progress import progress
from robota.sdk.kept_sessions import SessionStore, create_project_session_store, find_session
from robota.sdk.past_sessions import fork_at, load_record, replay_kept
from robota.sdk.places import find_places

if TYPE_CHECKING:
    from robota.cli.options import Options
    from robota.core.events import TurnEvent
    from robota.core.messages import Message


@click.command(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.argument("session")
@click.option("--at", type=click.IntRange(0), metavar="N", help="Stop after N messages and show them.")
@click.option(
    "--fork-at",
    type=click.IntRange(0),
    metavar="N",
    help="Begin a new session after N messages, and go on with it; without a terminal print its id.",
)
@click.option(
    "--against",
    type=click.Choice(["tools", "rules", "model"]),
    help="What is not to be as it was recorded. tools: what only looks (Read, Glob, Grep) runs for real, on "
    "the files as they are now. rules: calls are judged by the settings of this directory as they are now. "
    "model: every round is put to the model of now as well (this asks its service); other calls are shown.",
)
@click.option("--provider", help="With --fork-at or --against model: who answers.")
@click.option("--model", help="With --fork-at or --against model: the model.")
@click.option("--events", is_flag=True, help="Print every event as JSON, one per line.")
def command(
    session: str,
    at: int | None,
    fork_at: int | None,
    against: str | None,
    events: bool,
    **who: str | None,
) -> int:
    """Run SESSION, an id or a name, again through the same code: nothing is sent, started or written.

    Exit code 0: it went as it was recorded; 1: it did not, and stderr says where.
    """
    store = create_project_session_store()
    id = find_session(store, session, find_places().cwd)
    if any(who.values()) and fork_at is None and against != "model":
        raise click.UsageError("--provider and --model go with --fork-at or --against model.")
    if fork_at is not None:
        if at is not None or against is not None:
            raise click.UsageError(
                "--fork-at begins a session and replays none: leave --at and --against out."
            )
        return _fork(store, id, fork_at, who)
    if against == "model":
        return _ask_again(store, id, at, who)
    return _replay(store, id, at, against, events)


def _replay(store: SessionStore, id: str, at: int | None, against: str | None, events: bool) -> int:
    import asyncio  # noqa: PLC0415 - after the arguments, which are often wrong

    judge = None
    if against == "rules":
        from robota.cli.permissions import make_judge  # noqa: PLC0415 - for those who want it

        judge = make_judge("", None)
    total = at or len(load_record(store, id).messages)
    with progress("replay") as advance:
        report = asyncio.run(
            replay_kept(
                store,
                id,
                until=at,
                real_tools=against == "tools",
                judge=judge,
                on_event=_print_event if events else None,
                on_step=None if events else lambda done: advance(done, total),
            )
        )
    for problem in report.problems:
        print(problem, file=sys.stderr)
    if at is not None and not events:
        for number, message in enumerate(report.messages, 1):
            print(f"[{number}] {describe(message)}")
    if report.divergence is not None:
        print(report.divergence, file=sys.stderr)
        return 1
    if at is not None and not report.stopped:
        print(f"The session has no {at} messages; these are all.", file=sys.stderr)
        return 1
    print(f"{len(report.messages)} messages, as they were recorded.", file=sys.stderr)
    return 0


def _fork(store: SessionStore, id: str, step: int, who: dict[str, str | None]) -> int:
    """Begin the session; whoever sits at a terminal is in it at once."""
    new = fork_at(store, id, step)
    wanted = [word for name, value in who.items() if value for word in (f"--{name}", value)]
    if sys.stdin.isatty() and sys.stdout.isatty():
        sys.stdout.flush()
        os.execv(sys.executable, [sys.executable, "-P", "-m", "robota", "-r", new, *wanted])
    print(new)
    print(f"Go on with it: robota -r {' '.join([new, *wanted])}", file=sys.stderr)
    return 0


def _ask_again(store: SessionStore, id: str, until: int | None, who: dict[str, str | None]) -> int:
    import asyncio  # noqa: PLC0415 - after the arguments, which are often wrong

    from robota.cli.flags import Parsed  # noqa: PLC0415 - for those who ask a model
    from robota.cli.options import read_options  # noqa: PLC0415

    given = Parsed()
    given.values.update({name: value for name, value in who.items() if value})
    options = read_options(given, os.environ)
    return asyncio.run(_compare_decisions(store, id, until, options))


async def _compare_decisions(store: SessionStore, id: str, until: int | None, options: Options) -> int:
    from robota.cli.chosen_provider import chosen_provider  # noqa: PLC0415 - as above
    from robota.cli.opening import provider_arguments, read_own_settings  # noqa: PLC0415
    from robota.sdk.asked_again import ask_again, describe_calls  # noqa: PLC0415

    settings = read_own_settings(os.environ)
    given = provider_arguments(options, settings, lambda note: print(note, file=sys.stderr), None)
    others, count = 0, 0
    total = until or len(load_record(store, id).messages)
    async with chosen_provider(given, settings.profiles) as chosen:
        with progress("rounds") as advance:
            async for decision in ask_again(store, id, chosen.provider, chosen.model, until=until):
                count += 1
                advance(decision.step + 1, total)
                if not decision.same:
                    others += 1
                    print(f"[{decision.step}] {describe_calls(decision.recorded)}")
                    print(f"{' ' * len(str(decision.step))}-> {describe_calls(decision.now)}")
    print(f"{chosen.model} decides otherwise in {others} of {count} rounds.", file=sys.stderr)
    return 1 if others else 0


def _print_event(event: TurnEvent) -> None:
    from robota.core.event_names import event_to_wire  # noqa: PLC0415 - for those who want them
    from robota.core.jsontext import encode  # noqa: PLC0415

    print(encode(event_to_wire(event)).decode())


def describe(message: Message) -> str:
    """A message with who said it, and the calls that it makes."""
    calls = "".join(
        f"\n  ● {call.name} {call.arguments}" for call in getattr(message, "tool_calls", None) or ()
    )
    name = getattr(message, "name", None)
    return f"{message.role}{f' {name}' if name else ''}: {message.content}{calls}"
