"""Files as the editor has them, for the tools that read and write them."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from robota.core.errors import RobotaError
from robota.transports.acp.client import AcpClient

T = TypeVar("T")
ANSWER_SECONDS = 10.0
"""How long an editor may take; then the disk counts."""


class ClientFiles:
    """Called in worker threads. An editor that fails has nothing to say."""

    def __init__(self, client: AcpClient) -> None:
        self._client = client
        self._loop = asyncio.get_running_loop()
        self.session_id = ""

    def read(self, path: str) -> str | None:
        fs = self._client.can.fs
        if fs is None or not fs.read_text_file:
            return None
        return self._wait(self._client.read_file(self.session_id, path))

    def write(self, path: str, text: str) -> bool:
        fs = self._client.can.fs
        if fs is None or not fs.write_text_file:
            return False
        return bool(self._wait(self._client.write_file(self.session_id, path, text)))

    def _wait(self, answer: Coroutine[Any, Any, T]) -> T | None:
        waiting = asyncio.run_coroutine_threadsafe(answer, self._loop)
        try:
            return waiting.result(ANSWER_SECONDS)
        except RobotaError:
            return None
        except TimeoutError:
            waiting.cancel()
            return None
