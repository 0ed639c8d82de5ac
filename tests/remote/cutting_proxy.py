"""A way to a server on loopback that ends after so many bytes of its answer, whatever they are."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from types import TracebackType
from typing import Self


class CuttingProxy:
    def __init__(self, port: int) -> None:
        self.after = -1
        """Bytes that the next connection passes on; below 0 all of them."""
        self.passed = 0
        """Bytes that the last connection passed on."""
        self._port = port
        self._listener: asyncio.Server | None = None
        self._serving: set[asyncio.Task[None]] = set()

    @property
    def url(self) -> str:
        assert self._listener is not None
        return f"http://127.0.0.1:{self._listener.sockets[0].getsockname()[1]}"

    async def __aenter__(self) -> Self:
        self._listener = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._listener is not None
        self._listener.close()
        await asyncio.gather(*self._serving)
        await self._listener.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        serving = asyncio.current_task()
        assert serving is not None
        self._serving.add(serving)
        serving.add_done_callback(self._serving.discard)
        self.passed, limit = 0, self.after
        there, out = await asyncio.open_connection("127.0.0.1", self._port)

        async def ask() -> None:
            while data := await reader.read(65536):
                out.write(data)
            out.close()

        asking = asyncio.create_task(ask())
        try:
            while limit < 0 or self.passed < limit:
                data = await there.read(65536 if limit < 0 else limit - self.passed)
                if not data:
                    break
                self.passed += len(data)
                writer.write(data)
                await writer.drain()
        finally:
            asking.cancel()
            for side in (out, writer):
                side.close()
                with suppress(OSError):
                    await side.wait_closed()
