"""`robota replay`: a session run again, without a network. The conversation goes to stdout, verdicts to
stderr."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from robota.cli.progress import progress
from robota.sdk.kept_sessions import create_project_session_store, find_session
from robota.sdk.past_sessions import fork_at, load_record, replay_kept
from robota.sdk.places import find_places

if TYPE_CHECKING:
    from robota.core.events import TurnEvent
    from robota.core.messages import Message


@click.command(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.argument("session")
@click.option("--at", type=click.IntRange(0), metavar="N", help="Stop after N messages and show them.")
@click.option("--fork-at", type=click.IntRange(0), metavar="N", help="Begin a new session after N messages.")
@click.option(
    "--against",
    type=click.Choice(["tools"]),
    help="Run what only looks (Read, Glob, Grep) for real, on the files as they are now.",
)
@click.option("--events", is_flag=True, help="Print every event as JSON, one per line.")
def command(session: str, at: int | None, fork_at: int | None, against: str | None, events: bool) -> int:
    """Run SESSION, an id or a name, again through the same code: nothing is sent, started or written.

    Exit code 0: it went as it was recorded; 1: it did not, and stderr says where.
    """
    store = create_project_session_store()
    id = find_session(store, session, find_places().cwd)
    if fork_at is not None:
        if at is not None or against is not None:
            raise click.UsageError(
                "--fork-at begins a session and replays none: leave --at and --against out."
            )
        return _fork(id, fork_at)
    import asyncio  # noqa: PLC0415 - after the arguments, which are often wrong

    total = at or len(load_record(store, id).messages)
    with progress("replay") as advance:
        report = asyncio.run(
            replay_kept(
                store,
                id,
                until=at,
                real_tools=against is not None,
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


def _fork(id: str, step: int) -> int:
    new = fork_at(create_project_session_store(), id, step)
    print(new)
    print(f"Go on with it: robota -r {new}", file=sys.stderr)
    return 0


def _print_event(event: TurnEvent) -> None:
    from robota.core.event_wire import event_to_wire  # noqa: PLC0415 - for those who want them
    from robota.core.jsontext import encode  # noqa: PLC0415

    print(encode(event_to_wire(event)).decode())


def describe(message: Message) -> str:
    """A message with who said it, and the calls that it makes."""
    calls = "".join(
        f"\n  ● {call.name} {call.arguments}" for call in getattr(message, "tool_calls", None) or ()
    )
    name = getattr(message, "name", None)
    return f"{message.role}{f' {name}' if name else ''}: {message.content}{calls}"
