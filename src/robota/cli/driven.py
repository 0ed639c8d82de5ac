"""A call of the command by a program that speaks stream-json: what its options mean for the connection."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from robota.transports.stream_json.driver import DriveOptions
from robota.transports.stream_json.permissions import DONT_ASK
from robota.transports.stream_json.server import run_stream_json

if TYPE_CHECKING:
    from robota.cli.assistant import Assistant
    from robota.cli.options import Options
    from robota.cli.session_choice import SessionChoice
    from robota.sdk.assembly import MoreOptions
    from robota.sdk.interactive import InteractiveSession

CLIENT = "CLAUDE_AGENT_SDK_VERSION"
"""Set by the client that reads transcripts where another program keeps them."""


async def drive(assistant: Assistant, options: Options) -> int:
    """Serve the connection to its end."""
    choice: SessionChoice | None = None

    def check() -> None:
        """Before anything is answered: a session that is not there must not look as if it were."""
        nonlocal choice
        if options.resume is not None or options.continue_last:
            from robota.cli.session_choice import SessionChoice  # noqa: PLC0415 - loads the store

            choice = SessionChoice(options)

    made: list[InteractiveSession] = []

    @asynccontextmanager
    async def open_session(wishes: MoreOptions) -> AsyncIterator[InteractiveSession]:
        async with assistant.open(options, choice, **wishes) as session:
            made.append(session)
            yield session

    wanted = DriveOptions(
        partial_messages=options.partial_messages,
        hook_events=options.hook_events,
        replay_user_messages=options.replay_user_messages,
        asks_host=options.permission_prompt_tool == "stdio",
        mode=options.mode if options.mode == DONT_ASK else "",
        schema=options.json_schema,
        model=options.model or "",
        mirror=options.session_mirror,
        transcript=(CLIENT in os.environ or options.session_mirror) and not options.no_save,
        resume_at=options.resume_at or "",
        resume_drops=options.resume_drops or None,
        notes=options.without_effect,
    )
    stdin, stdout = take_streams()
    code = await run_stream_json(open_session, wanted, check=check, stdin=stdin, stdout=stdout)
    return code or 1 if made and assistant.tell_trouble(made[0]) else code


def take_streams() -> tuple[int, int]:
    """Standard input and output for the frames alone: what anybody else prints goes to standard error, and
    what anybody else reads is empty. No other process gets them."""
    stdin, stdout = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    return stdin, stdout
