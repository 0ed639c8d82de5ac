"""A status line of the user's own: a command that is told about the session and prints the line."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from typing import TYPE_CHECKING

from robota._version import __version__
from robota.core.jsontext import encode
from robota.core.messages import JsonObject
from robota.core.process import clean_environment, run_process

if TYPE_CHECKING:
    from robota.sdk.view.model import Status
    from robota.tui.app import TerminalApp

PAUSE_SECONDS = 0.3
"""Changes within this are told together."""
SCRIPT_SECONDS = 5.0
MOST_LINES = 3
MOST_BYTES = 4096
_STDOUT = 1


class StatusScript:
    """Runs the command after a change of the status, one at a time."""

    def __init__(self, app: TerminalApp) -> None:
        self._app = app
        self._timer: asyncio.TimerHandle | None = None
        self._running = False
        self._status: Status | None = None

    def run(self, status: Status) -> None:
        if not self._app.wishes.status_command:
            return
        self._status = status
        if self._timer is None and not self._running:
            self._timer = asyncio.get_running_loop().call_later(PAUSE_SECONDS, self._start)

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _start(self) -> None:
        self._timer = None
        status, self._status = self._status, None
        if status is not None:
            self._running = True
            self._app.spawn(self._ask(status))

    async def _ask(self, status: Status) -> None:
        try:
            wishes = self._app.wishes
            about = describe(status)
            self._app.region.script = await run_script(wishes.status_command, about, wishes.passed_variables)
            self._app.surface.invalidate()
        finally:
            self._running = False
        if self._status is not None:
            self.run(self._status)


async def run_script(command: str, about: JsonObject, passed: Collection[str] = ()) -> tuple[str, ...]:
    """The lines that it printed; none when it failed, so that the ordinary line is shown. `passed` names the
    credentials that it may have."""
    printed = bytearray()

    def collect(stream: int, data: bytes) -> None:
        if stream == _STDOUT:  # as it is: a result has no colours
            printed.extend(data[: MOST_BYTES - len(printed)])

    result = await run_process(
        ["/bin/sh", "-c", command],
        env=clean_environment(keep=passed),
        stdin=encode(about),
        timeout=SCRIPT_SECONDS,
        output_limit=MOST_BYTES,
        on_output=collect,
    )
    if result.exit_code != 0 or result.timed_out:
        return ()
    return tuple(printed.decode("utf-8", "replace").splitlines()[:MOST_LINES])


def describe(status: Status) -> JsonObject:
    """The session in the words that such scripts know."""
    return {
        "session_id": status.session_id,
        "session_name": status.name,
        "cwd": status.cwd,
        "workspace": {"current_dir": status.cwd, "project_dir": status.cwd, "added_dirs": []},
        "model": {"id": status.model, "display_name": status.model},
        "version": __version__,
        "output_style": {"name": "default"},
        "cost": {"total_cost_usd": status.cost_usd or 0.0},
        "context_window": {
            "context_window_size": status.max_tokens,
            "total_input_tokens": status.used_tokens,
            "used_percentage": status.context_percent,
            "remaining_percentage": 100 - status.context_percent,
        },
        "exceeds_200k_tokens": status.used_tokens > 200_000,
    }
