"""A real server on loopback, in the test's own loop, and clients of it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
from msgspec import Struct

from robota import InteractiveSession
from robota.core.provider import Provider
from robota.sdk.kept_sessions import SessionStore
from robota.transports.host import SessionHost
from robota.transports.http.app import ServerFacts, create_app
from robota.transports.http.openai_routes import ROUTES as OPENAI
from robota.transports.http.route import Route
from robota.transports.http.security import Guard
from robota.transports.http.server import bind, running
from robota.transports.session_maker import SessionFactory, SessionWish

TOKEN = "a-token-of-the-tests"


class SseEvent(Struct):
    """An event as a client reads it; without a number, `id` is 0."""

    name: str
    data: Any
    id: int = 0


class Serving(Struct):
    """The server, and a client with the token."""

    url: str
    client: httpx2.AsyncClient
    host: SessionHost
    port: int

    async def new(self, **fields: Any) -> str:
        reply = await self.client.post("/sessions", json=fields)
        assert reply.status_code == 201, reply.text
        return str(reply.json()["id"])

    async def submit(self, id: str, prompt: str, **fields: Any) -> httpx2.Response:
        return await self.client.post(
            f"/sessions/{id}/submit", json={"prompt": prompt, "stream": False, **fields}
        )

    async def read(
        self, id: str, until: Callable[[SseEvent], bool], after: int = 0, **headers: str
    ) -> list[SseEvent]:
        """The events of a session, to the first that is wanted or the end of the stream."""
        return await read_events(self.client, f"/sessions/{id}/events?after={after}", until, **headers)


async def until(condition: Callable[[], object]) -> None:
    """Let others go on until something is so, which no event tells of."""
    while not condition():  # noqa: ASYNC110
        await asyncio.sleep(0.001)


def ended(event: SseEvent) -> bool:
    return event.name in ("complete", "interrupted", "error")


def numbers(events: list[SseEvent]) -> list[int]:
    return [event.id for event in events if event.id]


async def read_events(
    client: httpx2.AsyncClient, path: str, until: Callable[[SseEvent], bool], **headers: str
) -> list[SseEvent]:
    found: list[SseEvent] = []
    async with client.stream("GET", path, headers=headers) as reply:
        assert reply.status_code == 200, await reply.aread()
        async for event in parse_events(reply.aiter_lines()):
            found.append(event)
            if until(event):
                break
    return found


async def parse_events(lines: AsyncIterator[str]) -> AsyncIterator[SseEvent]:
    fields: dict[str, str] = {}
    async for line in lines:
        name, _, value = line.partition(": ")
        if line:
            fields[name] = value
        elif "event" in fields:
            yield SseEvent(fields["event"], json.loads(fields["data"]), int(fields.get("id", 0)))
            fields = {}
        else:
            fields = {}


def make_factory(provider: Provider, cwd: Path, store: SessionStore, **options: Any) -> SessionFactory:
    async def make(wish: SessionWish) -> InteractiveSession:
        return InteractiveSession(
            provider=provider,
            model=wish.model or "scripted",
            cwd=wish.cwd or cwd,
            permission_mode=wish.permission_mode or options.get("permission_mode"),
            session_store=store,
            session_name=wish.name,
            resume_session_id=wish.resume,
            fork_session=wish.fork,
            setting_sources=options.get("setting_sources", ()),
        )

    return make


@asynccontextmanager
async def serving(
    provider: Provider,
    cwd: Path,
    *,
    read_only: bool = False,
    limit: int = 100,
    port: int = 0,
    routes: Sequence[Route] = (),
    **options: Any,
) -> AsyncIterator[Serving]:
    store = SessionStore(cwd.parent / "store")
    host = SessionHost(make_factory(provider, cwd, store, **options), store=store, limit=limit)
    facts = ServerFacts(guard=Guard(TOKEN), read_only=read_only)
    listener = bind("127.0.0.1", port)
    port = listener.getsockname()[1]
    url = f"http://127.0.0.1:{port}"
    headers = {"authorization": f"Bearer {TOKEN}"}
    async with (
        running(create_app(host, facts, more_routes=[*OPENAI, *routes]), listener),
        aclosing(host),
        httpx2.AsyncClient(base_url=url, headers=headers, timeout=60) as client,
    ):
        yield Serving(url, client, host, port)
