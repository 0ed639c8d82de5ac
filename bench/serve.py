"""`robota serve` beside a bare Starlette application that streams the same events.

Each server is a process of its own on loopback, and tells what it used. Printed are three figures and their
limits: processor time per delivered event (in multiples of the bare application), memory per idle session,
and events lost while many sessions stream at the same time.

    python bench/serve.py [--sessions 500] [--deltas 100]
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

TOKEN = "a-token-of-the-bench"
MOST_TIMES = 3.0
MOST_KILOBYTES = 300.0
IDLE = 100


# --- the servers --------------------------------------------------------------------------------------------


def memory() -> float:
    """Kilobytes."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1024


async def serve(app: Any, meter: dict[str, float]) -> None:
    """Say where, and at the end of the input what was used since the first line of it."""
    from robota.transports.http.server import bind, running

    listener = bind("127.0.0.1", 0)
    loop = asyncio.get_running_loop()
    async with running(app, listener):
        print(listener.getsockname()[1], flush=True)
        await loop.run_in_executor(None, sys.stdin.readline)
        before = time.process_time()
        await loop.run_in_executor(None, sys.stdin.read)
        print(json.dumps({"cpu": time.process_time() - before, **meter}), flush=True)


async def serve_bare(deltas: int) -> None:
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import StreamingResponse
    from starlette.routing import Route

    async def events(request: Request) -> StreamingResponse:
        async def stream() -> AsyncIterator[bytes]:
            for number in range(1, deltas + 1):
                data = {"event": "text_delta", "executionId": "run", "seq": number, "text": f"word {number} "}
                yield f"id: {number}\nevent: text_delta\ndata: {json.dumps(data)}\n\n".encode()
                await asyncio.sleep(0)
            yield b"event: complete\ndata: {}\n\n"

        return StreamingResponse(stream(), media_type="text/event-stream")

    await serve(Starlette(routes=[Route("/sessions/{id}/events", events)]), {})


async def serve_robota(sessions: int, deltas: int) -> None:
    from robota import InteractiveSession
    from robota.sdk.kept_sessions import SessionStore
    from robota.testing import ScriptedProvider
    from robota.transports.host import SessionHost
    from robota.transports.http.app import ServerFacts, create_app
    from robota.transports.http.security import Guard
    from robota.transports.session_maker import SessionWish

    words = [f"word {number} " for number in range(1, deltas + 1)]
    directory = tempfile.mkdtemp(prefix="robota-bench-")
    os.environ["HOME"] = os.environ["ROBOTA_HOME"] = directory
    store = SessionStore(os.path.join(directory, "sessions"))

    async def make(wish: SessionWish) -> InteractiveSession:
        return InteractiveSession(
            provider=ScriptedProvider(words, repeat=True),
            model="scripted",
            cwd=directory,
            session_store=store,
        )

    host = SessionHost(make, store=store, limit=sessions + IDLE)
    for _ in range(10):  # what is loaded with the first ones belongs to all
        await host.create(SessionWish())
    gc.collect()
    before = memory()
    for _ in range(IDLE):
        await host.create(SessionWish())
    gc.collect()
    meter = {"kilobytes": (memory() - before) / IDLE}
    while len(host.sessions) < sessions:
        await host.create(SessionWish())
    print(json.dumps(list(host.sessions)[:sessions]), flush=True)
    try:
        await serve(create_app(host, ServerFacts(guard=Guard(TOKEN)), page=False), meter)
    finally:
        await host.aclose()
        await asyncio.to_thread(subprocess.run, ["rm", "-rf", directory], check=False)


# --- the clients --------------------------------------------------------------------------------------------


async def follow(port: int, id: str, ready: asyncio.Event | None = None) -> int:
    """Events that came with a number, to the end of the turn; each must be one above the last."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 20)
    head = f"GET /sessions/{id}/events HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {TOKEN}\r\n\r\n"
    writer.write(head.encode())
    last = 0
    try:
        while True:
            line = await reader.readline()
            if ready is not None:
                ready.set()
            if line.startswith(b"id: "):
                number = int(line[4:])
                if number != last + 1:
                    raise SystemExit(f"Event {last + 1} of session {id} was lost: {number} came.")
                last = number
            elif line == b"event: complete\n":
                return last
            elif not line:
                raise SystemExit(f"The stream of session {id} ended behind event {last}.")
    finally:
        writer.close()


async def submit(port: int, id: str) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    body = b'{"prompt":"talk","stream":false}'
    head = f"POST /sessions/{id}/submit HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {TOKEN}\r\n"
    writer.write(f"{head}connection: close\r\ncontent-length: {len(body)}\r\n\r\n".encode() + body)
    answer = await reader.read()
    writer.close()
    if b" 202 " not in answer.split(b"\r\n")[0]:
        raise SystemExit(f"A prompt was refused: {answer[:200]!r}")


async def wait_for_end(port: int, sessions: int) -> None:
    """Until no session runs, by the server's own metrics."""
    while True:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        head = f"GET /metrics HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {TOKEN}\r\n"
        writer.write(f"{head}connection: close\r\n\r\n".encode())
        text = (await reader.read()).decode()
        writer.close()
        if 'robota_sessions{state="running"} 0' in text:
            return
        await asyncio.sleep(0.5)


class Subject:
    """A server in a process of its own."""

    def __init__(self, name: str, sessions: int, deltas: int) -> None:
        self._process = subprocess.Popen(
            [
                sys.executable,
                __file__,
                "--subject",
                name,
                "--sessions",
                str(sessions),
                "--deltas",
                str(deltas),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.ids = [str(at) for at in range(sessions)] if name == "bare" else json.loads(self._line())
        self.port = int(self._line())

    def _line(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline()

    def begin(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()

    def end(self) -> dict[str, float]:
        assert self._process.stdin is not None
        self._process.stdin.close()
        used: dict[str, float] = json.loads(self._line())
        self._process.wait()
        return used


async def measure_bare(sessions: int, deltas: int) -> float:
    subject = Subject("bare", sessions, deltas)
    subject.begin()
    counts = await asyncio.gather(*(follow(subject.port, id) for id in subject.ids))
    return subject.end()["cpu"] / sum(counts)


async def measure_robota(sessions: int, deltas: int, *, read: bool) -> tuple[float, int, float]:
    """Seconds of the processor, events that were delivered, kilobytes of an idle session."""
    subject = Subject("robota", sessions, deltas)
    subject.begin()
    if not read:
        await asyncio.gather(*(submit(subject.port, id) for id in subject.ids))
        await wait_for_end(subject.port, sessions)
        return subject.end()["cpu"], 0, 0.0
    begun = [asyncio.Event() for _ in subject.ids]
    reading = [
        asyncio.create_task(follow(subject.port, id, ready))
        for id, ready in zip(subject.ids, begun, strict=True)
    ]
    for ready in begun:
        await ready.wait()
    await asyncio.gather(*(submit(subject.port, id) for id in subject.ids))
    counts = await asyncio.gather(*reading)
    used = subject.end()
    return used["cpu"], sum(counts), used["kilobytes"]


async def compare(sessions: int, deltas: int) -> bool:
    bare = await measure_bare(sessions, deltas)
    alone, _, _ = await measure_robota(sessions, deltas, read=False)
    cpu, delivered, kilobytes = await measure_robota(sessions, deltas, read=True)
    delivery = max(0.0, cpu - alone) / delivered
    print(f"{sessions} sessions stream {deltas} deltas each at the same time: {delivered} events, 0 lost")
    print(f"bare Starlette                {bare * 1e6:7.1f} µs per event")
    times, whole = delivery / bare, cpu / delivered
    print(f"robota, to deliver one        {delivery * 1e6:7.1f} µs  {times:5.2f}×  (at most {MOST_TIMES:g}×)")
    print(f"robota, to make it as well    {whole * 1e6:7.1f} µs  {whole / bare:5.2f}×")
    print(f"an idle session               {kilobytes:7.1f} kB         (at most {MOST_KILOBYTES:g} kB)")
    return times <= MOST_TIMES and kilobytes <= MOST_KILOBYTES


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--sessions", type=int, default=500)
    parser.add_argument("--deltas", type=int, default=100)
    parser.add_argument("--subject", choices=("bare", "robota"), help=argparse.SUPPRESS)
    given = parser.parse_args()
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    if given.subject == "bare":
        asyncio.run(serve_bare(given.deltas))
    elif given.subject == "robota":
        asyncio.run(serve_robota(given.sessions, given.deltas))
    elif not asyncio.run(compare(given.sessions, given.deltas)):
        raise SystemExit(1)


if __name__ == "__main__":
    main()
