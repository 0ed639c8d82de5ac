"""A model service made of prepared bytes, so lean that it never is what a benchmark measures.

What it answers stands in the address: `http://127.0.0.1:PORT/KEY/SCENARIO/v1/chat/completions`, where KEY is
any word under which requests are counted and SCENARIO is words such as `rounds-50.tool-add`. The round a
request is in follows from the tool results it carries, so nothing is remembered about conversations.
`GET /seen/KEY` tells how many requests came and what the last one said.

It prints its port, and ends when its standard input closes.
"""

from __future__ import annotations

import asyncio
import json
import sys
from functools import lru_cache
from typing import NamedTuple

HEAD = (
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncache-control: no-cache\r\n"
    b"transfer-encoding: chunked\r\n\r\n"
)
LAST_CHUNK = b"0\r\n\r\n"
RESULT_MARK = b'"tool_call_id"'
LETTERS = "the quick brown fox jumps over the lazy dog "


class Scenario(NamedTuple):
    rounds: int = 0
    """Answers that ask for tools before the last one, which is text."""
    calls: int = 1
    tool: str = "add"
    deltas: int = 1
    letters: int = 20
    """Length of one delta."""
    wait: int = 0
    """Milliseconds before the answer begins."""
    trickle: int = 0
    """Milliseconds between two events; 0 sends everything at once."""
    plain: int = 0
    """1 answers with one JSON object instead of a stream."""


@lru_cache
def read_scenario(text: str) -> Scenario:
    words = dict(word.split("-") for word in text.split(".") if word)
    tool = words.pop("tool", "add")
    return Scenario(tool=tool, **{name: int(value) for name, value in words.items()})


def arguments_of(scenario: Scenario, number: int, call: int) -> str:
    if scenario.tool == "nap":
        return '{"ms":50}'
    return f'{{"number":{number}}}' if scenario.tool == "stamp" else f'{{"a":{number},"b":{call}}}'


def text_of(scenario: Scenario, delta: int) -> str:
    start = delta % len(LETTERS)
    return (LETTERS * (scenario.letters // len(LETTERS) + 2))[start : start + scenario.letters]


def calls_of(scenario: Scenario, number: int) -> list[dict[str, object]]:
    return [
        {
            "id": f"call_{number}_{at}",
            "type": "function",
            "function": {"name": scenario.tool, "arguments": arguments_of(scenario, number, at)},
        }
        for at in range(scenario.calls)
    ]


USAGE = {"prompt_tokens": 12, "completion_tokens": 6, "total_tokens": 18}
ENVELOPE = {"id": "chatcmpl-bench", "created": 1_700_000_000, "model": "bench-model"}


def event(delta: dict[str, object] | None, reason: str | None = None) -> bytes:
    choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": reason}
    rest = {"choices": [], "usage": USAGE} if delta is None else {"choices": [choice]}
    text = json.dumps({**ENVELOPE, "object": "chat.completion.chunk", **rest}, separators=(",", ":"))
    return f"data: {text}\n\n".encode()


def events_of(scenario: Scenario, number: int) -> list[bytes]:
    """One answer as a service streams it: a role, the pieces, a reason, the usage, the end mark."""
    if number < scenario.rounds:
        events = [event({"role": "assistant", "content": None})]
        for at, call in enumerate(calls_of(scenario, number)):
            function = dict(call["function"])  # type: ignore[call-overload]  # a dict of this module
            text = function.pop("arguments")
            events.append(
                event({"tool_calls": [{"index": at, **call, "function": {**function, "arguments": ""}}]})
            )
            events.append(event({"tool_calls": [{"index": at, "function": {"arguments": text}}]}))
        events.append(event({}, "tool_calls"))
    else:
        cycle = [event({"content": text_of(scenario, at)}) for at in range(len(LETTERS))]
        events = [event({"role": "assistant", "content": ""})]
        events += [cycle[at % len(cycle)] for at in range(scenario.deltas)]
        events.append(event({}, "stop"))
    return [*events, event(None), b"data: [DONE]\n\n"]


def body_of(scenario: Scenario, number: int) -> bytes:
    """The same answer as one JSON object."""
    wants_tools = number < scenario.rounds
    message: dict[str, object] = {"role": "assistant", "content": None}
    if wants_tools:
        message["tool_calls"] = calls_of(scenario, number)
    else:
        message["content"] = "".join(text_of(scenario, at) for at in range(scenario.deltas))
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if wants_tools else "stop"}
    reply = {**ENVELOPE, "object": "chat.completion", "choices": [choice], "usage": USAGE}
    return json.dumps(reply, separators=(",", ":")).encode()


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


def with_length(body: bytes) -> bytes:
    return b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%s" % (
        len(body),
        body,
    )


@lru_cache(maxsize=8192)
def answer_of(scenario: Scenario, number: int) -> tuple[bytes, ...]:
    """What to write: all at once, or piece by piece for a scenario that trickles."""
    if scenario.plain:
        return (with_length(body_of(scenario, number)),)
    pieces = [HEAD, *map(chunk, events_of(scenario, number)), LAST_CHUNK]
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
        scenario = read_scenario(words)
        pieces = answer_of(scenario, min(body.count(RESULT_MARK) // scenario.calls, scenario.rounds))
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


async def serve() -> None:
    loop = asyncio.get_running_loop()
    listener = await loop.create_server(Connection, "127.0.0.1", 0, backlog=1024)
    print(listener.sockets[0].getsockname()[1], flush=True)
    gone = asyncio.Event()
    loop.add_reader(sys.stdin, gone.set)
    await gone.wait()


if __name__ == "__main__":
    asyncio.run(serve())
