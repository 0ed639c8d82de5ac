"""A model service made of prepared bytes, so lean that it never is what a benchmark measures.

What it answers stands in the address: `http://127.0.0.1:PORT/KEY/SCENARIO/v1/chat/completions`, where KEY is
any word under which requests are counted and SCENARIO is words such as `rounds-50.tool-add`. The end of
the address says which wire is spoken (`replies.py`). The round a request is in follows from the tool results
it carries, so nothing is remembered about conversations.
`GET /seen/KEY` tells how many requests came and what the last one said.

On a second port it speaks TLS, with a certificate of an authority that it writes into the file it is called
with. It prints both ports, and ends when its standard input closes.
"""

from __future__ import annotations

import asyncio
import json
import ssl
import sys
from functools import lru_cache

import trustme
from replies import Scenario, Wire, chat_body, find_wire, read_scenario

HEAD = (
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncache-control: no-cache\r\n"
    b"transfer-encoding: chunked\r\n\r\n"
)
LAST_CHUNK = b"0\r\n\r\n"


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


def with_length(body: bytes) -> bytes:
    return b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%s" % (
        len(body),
        body,
    )


@lru_cache(maxsize=8192)
def answer_of(wire: Wire, scenario: Scenario, number: int) -> tuple[bytes, ...]:
    """What to write: all at once, or piece by piece for a scenario that trickles."""
    if scenario.plain:
        return (with_length(chat_body(scenario, number)),)
    pieces = [HEAD, *map(chunk, wire.events(scenario, number)), LAST_CHUNK]
    return tuple(pieces) if scenario.trickle else (b"".join(pieces),)


class Seen:
    def __init__(self) -> None:
        self.requests = 0
        self.last = b""


seen: dict[str, Seen] = {}


class Connection(asyncio.Protocol):
    def __init__(self) -> None:
        self.received = bytearray()
        self.path = ""
        self.body_at = 0
        """Where the body of the request begins; 0 while its head is incomplete."""
        self.length = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.received += data
        while self.read_head() and len(self.received) >= self.body_at + self.length:
            end = self.body_at + self.length
            body = bytes(self.received[self.body_at : end])
            del self.received[:end]
            self.body_at = 0
            self.serve(self.path, body)

    def read_head(self) -> bool:
        if not self.body_at:
            end = self.received.find(b"\r\n\r\n")
            if end < 0:
                return False
            request, *lines = bytes(self.received[:end]).lower().split(b"\r\n")
            self.path = request.split(b" ")[1].decode()
            lengths = [line[15:] for line in lines if line.startswith(b"content-length:")]
            self.length = int(lengths[0]) if lengths else 0
            self.body_at = end + 4
        return True

    def serve(self, path: str, body: bytes) -> None:
        _, key, words, *_ = path.split("/")
        if key == "seen":
            known = seen.pop(words, None) or Seen()
            told = {"requests": known.requests, "last": known.last.decode()}
            self.transport.write(with_length(json.dumps(told).encode()))
            return
        known = seen.setdefault(key, Seen())
        known.requests += 1
        known.last = body
        scenario, wire = read_scenario(words), find_wire(path)
        done = body.count(wire.result_mark) // scenario.calls
        pieces = answer_of(wire, scenario, min(done, scenario.rounds))
        if scenario.wait:
            asyncio.get_running_loop().call_later(scenario.wait / 1000, self.transport.write, pieces[0])
        elif scenario.trickle:
            self.trickle(pieces, 0, scenario.trickle / 1000)
        else:
            self.transport.write(pieces[0])

    def trickle(self, pieces: tuple[bytes, ...], at: int, pause: float) -> None:
        self.transport.write(pieces[at])
        if at + 1 < len(pieces):
            asyncio.get_running_loop().call_later(pause, self.trickle, pieces, at + 1, pause)


async def serve(authority: str) -> None:
    loop = asyncio.get_running_loop()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    made = trustme.CA()
    made.cert_pem.write_to_path(authority)
    made.issue_cert("127.0.0.1").configure_cert(context)
    ports = []
    for tls in (None, context):
        listener = await loop.create_server(Connection, "127.0.0.1", 0, backlog=1024, ssl=tls)
        ports.append(listener.sockets[0].getsockname()[1])
    print(*ports, flush=True)
    gone = asyncio.Event()
    loop.add_reader(sys.stdin, gone.set)
    await gone.wait()


if __name__ == "__main__":
    asyncio.run(serve(sys.argv[1]))
