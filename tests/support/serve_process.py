"""`robota serve` in a process of its own, with a scripted model behind it."""

from __future__ import annotations

import asyncio
import json
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
from msgspec import Struct
from tests.support.command import environment, place
from tests.support.serving import SseEvent, read_events

from robota.testing.model_server import ModelServer


class ServeProcess(Struct):
    """The process, and a client with its token."""

    process: Process
    url: str
    token: str
    client: httpx2.AsyncClient

    async def new(self, **fields: Any) -> str:
        reply = await self.client.post("/sessions", json=fields)
        assert reply.status_code == 201, reply.text
        return str(reply.json()["id"])

    async def submit(self, id: str, prompt: str) -> None:
        body = {"prompt": prompt, "stream": False}
        reply = await self.client.post(f"/sessions/{id}/submit", json=body)
        assert reply.status_code == 202, reply.text

    async def read(self, id: str, until: Any, after: int = 0) -> list[SseEvent]:
        return await read_events(self.client, f"/sessions/{id}/events?after={after}", until)


@asynccontextmanager
async def served(
    cwd: Path, model: ModelServer, *arguments: str, **variables: str
) -> AsyncIterator[ServeProcess]:
    """Afterwards it is killed, if it has not ended."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "robota", "serve", "--port", "0", "--json", *arguments),
        cwd=cwd,
        env=environment(**place(model), **variables),
        stdout=PIPE,
        stderr=PIPE,
    )
    try:
        assert process.stdout is not None
        where = json.loads(await process.stdout.readline())
        url, token = where["url"].rstrip("/"), where["token"]
        headers = {"authorization": f"Bearer {token}"}
        async with httpx2.AsyncClient(base_url=url, headers=headers, timeout=60) as client:
            yield ServeProcess(process, url, token, client)
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()
