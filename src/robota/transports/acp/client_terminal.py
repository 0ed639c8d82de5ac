"""Commands in a terminal of the editor, where their user sees them run."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress

from acp.schema import CreateTerminalRequest, EnvVariable

from robota.core.errors import RobotaError
from robota.core.plain_text import to_plain_text
from robota.core.process import OUTPUT_LIMIT, ProcessResult
from robota.transports.acp.client import AcpClient

ENDING_SECONDS = 2.0
"""For putting a terminal away."""


class ClientTerminal:
    """Used for commands that somebody waits for; what runs in the background runs here."""

    def __init__(self, client: AcpClient, show: Callable[[str, str], None]) -> None:
        """`show` is told which call runs in which terminal."""
        self._client = client
        self._show = show
        self.session_id = ""

    async def run(
        self, argv: Sequence[str], *, cwd: str, env: Mapping[str, str], timeout: float, call_id: str
    ) -> ProcessResult | None:
        if not self._client.can.terminal:
            return None
        request = CreateTerminalRequest(
            session_id=self.session_id,
            command="env",
            args=[*_unset(env), *argv],
            env=[EnvVariable(name=name, value=value) for name, value in env.items()],
            cwd=cwd,
            output_byte_limit=2 * OUTPUT_LIMIT,
        )
        try:
            terminal = await self._client.create_terminal(request)
        except RobotaError:
            return None
        self._show(call_id, terminal)
        try:
            return await self._follow(terminal, timeout)
        except RobotaError as error:
            return ProcessResult(error=f"The editor lost its terminal: {error}")
        finally:
            await asyncio.shield(self._put_away(terminal))

    async def _follow(self, terminal: str, timeout: float) -> ProcessResult:
        timed_out = False
        try:
            async with asyncio.timeout(timeout):
                await self._client.wait_for_terminal(self.session_id, terminal)
        except TimeoutError:
            timed_out = True
            await self._client.kill_terminal(self.session_id, terminal)
        output = await self._client.read_terminal(self.session_id, terminal)
        status = output.exit_status
        return ProcessResult(
            exit_code=None if status is None else status.exit_code,
            signal=None if status is None else status.signal,
            stdout=to_plain_text(output.output.encode()),
            stdout_dropped=int(output.truncated),
            timed_out=timed_out,
        )

    async def _put_away(self, terminal: str) -> None:
        """End the command, if it still runs, and let the editor forget it."""
        with suppress(RobotaError, TimeoutError):
            async with asyncio.timeout(ENDING_SECONDS):
                await self._client.release_terminal(self.session_id, terminal)


def _unset(env: Mapping[str, str]) -> list[str]:
    """The editor adds variables to its own, which are ours too: what a command must not have is taken out."""
    return [word for name in os.environ if name not in env for word in ("-u", name)]
