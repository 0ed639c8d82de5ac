"""Replies, honest and not, read by our HTTP client and by h11: they must agree on what a server said.

    python fuzz/http_replies.py --cases 100000 --seed 1

Three things are checked. However the bytes are cut into packets, the outcome is the same. When both
understand a reply, they understand the same, and a connection that h11 would not use again is not used again.
When only one of them does, the reply has a flaw on which they are known to differ (`KNOWN`), or was damaged.
"""

from __future__ import annotations

import argparse
import random
import sys
from itertools import pairwise
from types import SimpleNamespace
from typing import Any, NamedTuple

import h11

from robota.http.connection import Connection

KNOWN = {
    "folded header": "llhttp refuses what RFC 9112 calls obsolete",
    "same length twice": "llhttp refuses it, as RFC 9110 allows",
    "blank before colon": "h11 takes it in replies",
    "bare LF in chunks": "only heads may end their lines so",
    "tab after chunked": "llhttp would not see the chunks, so we refuse it",
    "hint of HTTP/1.0": "which has none; llhttp takes it for the answer's end",
    "blank before chunk extension": "RFC 9112 allows it, h11 does not",
    "odd version": "llhttp takes what h11 does not",
    "odd status": "both have their own ideas of a number",
    "control character": "each has its own list",
}
"""Flaws that one of them minds and the other does not."""


class Case(NamedTuple):
    data: bytes
    method: str
    flaws: frozenset[str]
    damaged: bool


class Outcome(NamedTuple):
    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes
    whole: bool
    reusable: bool


# --- replies --------------------------------------------------------------------------------------------


class Maker:
    """Makes replies by the grammar, with a flaw now and then."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.flaws: set[str] = set()

    def flaw(self, name: str, chance: float = 0.02) -> bool:
        if self.rng.random() < chance:
            self.flaws.add(name)
            return True
        return False

    def make(self) -> Case:
        rng = self.rng
        method = rng.choice(["GET", "POST", "POST", "HEAD"])
        hints = b"".join(self.hint() for _ in range(rng.choice([0, 0, 0, 1, 2])))
        data = hints + self.reply(method)
        if rng.random() < 0.1:
            data += rng.choice([b"\r\n", b"x", b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"])
        if rng.random() < 0.15:
            data = data[: rng.randrange(len(data) + 1)]
        damaged = rng.random() < 0.25
        if damaged:
            data = self.damage(data)
        return Case(data, method, frozenset(self.flaws), damaged)

    def hint(self) -> bytes:
        return self.head(self.rng.choice([100, 102, 103]), self.fields(self.rng.randrange(3)))

    def reply(self, method: str) -> bytes:
        rng = self.rng
        status = rng.choice([200, 200, 200, 201, 204, 304, 302, 400, 404, 500, 599])
        fields = self.fields(rng.randrange(5))
        body = rng.randbytes(rng.choice([0, 1, 5, 30, 300]))
        framing = rng.choice(["length", "length", "chunked", "chunked", "end", "both"])
        if self.flaw("transfer coding", 0.01):
            fields.append((b"Transfer-Encoding", rng.choice([b"gzip", b"gzip, chunked", b"identity"])))
        if framing in ("length", "both"):
            fields.append((b"Content-Length", b"%d" % (len(body) if framing == "length" else len(body) + 3)))
            if self.flaw("same length twice"):
                fields.append(fields[-1])
        if framing in ("chunked", "both"):
            fields.append(
                (
                    rng.choice([b"Transfer-Encoding", b"transfer-encoding"]),
                    rng.choice([b"chunked", b"Chunked"]),
                )
            )
            body = self.chunks(body)
        if rng.random() < 0.2:
            fields.append((b"Connection", rng.choice([b"close", b"keep-alive", b"Close", b"x, close"])))
        rng.shuffle(fields)
        if method == "HEAD" or status in (204, 304):
            body = b""
        return self.head(status, fields) + body

    def head(self, status: int, fields: list[tuple[bytes, bytes]]) -> bytes:
        rng = self.rng
        end = b"\n" if rng.random() < 0.05 else b"\r\n"
        version = b"HTTP/1.1" if rng.random() < 0.9 else b"HTTP/1.0"
        if status < 200 and version == b"HTTP/1.0":
            self.flaws.add("hint of HTTP/1.0")
        if self.flaw("odd version", 0.01):
            version = rng.choice([b"HTTP/2.0", b"HTTP/0.9", b"RTSP/1.0", b"HTTP/1.2", b"http/1.1"])
        number = b"%d" % status
        if self.flaw("odd status", 0.01):
            number = rng.choice([b"99", b"1000", b"099", b"2x0", b""])
        reason = rng.choice([b" OK", b" ", b"", b" Not  Here", b" \xc3\xbc"])
        lines = [version + b" " + number + reason, *(self.field(name, value, end) for name, value in fields)]
        return end.join([*lines, b"", b""])

    def field(self, name: bytes, value: bytes, end: bytes) -> bytes:
        if self.flaw("folded header", 0.005):
            value += end + b" more"
        if self.flaw("blank before colon", 0.005):
            name += b" "
        if self.flaw("control character", 0.005):
            value += self.rng.choice([b"\x00", b"\x01", b"\x7f", b"\x0b"])
        blank = self.rng.choice([b"", b"", b" ", b"\t"])
        if value.lower() == b"chunked" and name.lower() == b"transfer-encoding" and blank == b"\t":
            self.flaws.add("tab after chunked")
        return name + self.rng.choice([b": ", b":", b":  "]) + value + blank

    def fields(self, count: int) -> list[tuple[bytes, bytes]]:
        names = [b"X-A", b"x-a", b"Server", b"Date", b"ETag", b"Set-Cookie"]
        values = [b"", b"1", b"a b", b'"x"', b"\xc3\xa9", b"a,b", b"chunked"]
        return [(self.rng.choice(names), self.rng.choice(values)) for _ in range(count)]

    def chunks(self, body: bytes) -> bytes:
        rng = self.rng
        end = b"\n" if self.flaw("bare LF in chunks", 0.01) else b"\r\n"
        made = b""
        while body:
            size = rng.randrange(1, len(body) + 1)
            extension = rng.choice([b"", b"", b"", b";a", b";a=b", b' ;a="c;d"', b" "])
            if b" ;" in extension:
                self.flaws.add("blank before chunk extension")
            made += (rng.choice([b"%x", b"%X", b"00%x"]) % size) + extension + end + body[:size] + end
            body = body[size:]
        trailers = b"".join(
            name + b": " + value + end for name, value in self.fields(rng.choice([0, 0, 0, 1, 2]))
        )
        return made + b"0" + end + trailers + end

    def damage(self, data: bytes) -> bytes:
        rng = self.rng
        for _ in range(rng.randrange(1, 4)):
            place = rng.randrange(len(data) + 1)
            match rng.randrange(4):
                case 0:
                    data = data[:place] + rng.randbytes(1) + data[place + 1 :]
                case 1:
                    data = data[:place] + data[place + 1 :]
                case 2:
                    data = data[:place] + rng.choice([b"\r\n", b"\n", b":", b" ", b"0", b"\0"]) + data[place:]
                case 3:
                    data = data[:place] + data[place : place + 9] + data[place:]
        return data


# --- the two readers ------------------------------------------------------------------------------------


class _Transport:
    """What a connection needs of one that is not there."""

    def abort(self) -> None: ...
    def pause_reading(self) -> None: ...
    def get_write_buffer_size(self) -> int:
        return 0


def read_ours(packets: list[bytes], method: str) -> Outcome:
    connection = Connection(_POOL, ("http", "a.example", 80))
    connection.connection_made(_Transport())  # type: ignore[arg-type]
    connection.begin(bodiless=method == "HEAD")
    for packet in packets:
        if not connection.closed:
            connection.data_received(packet)
    reusable = connection.complete and connection._keep and not connection.closed
    if not connection.closed:
        connection.eof_received()
    headers = tuple(sorted(connection.headers.items())) if connection.status else ()
    return Outcome(connection.status, headers, b"".join(connection.parts), connection.complete, reusable)


_POOL: Any = SimpleNamespace(loop=None)


def read_theirs(data: bytes, method: str) -> Outcome:
    connection = h11.Connection(h11.CLIENT)
    connection.send(
        h11.Request(method=method, target="/", headers=[("host", "a.example"), ("content-length", "0")])
    )
    connection.send(h11.EndOfMessage())
    status, headers, body, whole, reusable = 0, {}, b"", False, False
    try:
        connection.receive_data(data)
        ended = False
        while not whole:
            event = connection.next_event()
            match event:
                case h11.Response():
                    status = event.status_code
                    for name, value in event.headers:
                        key, text = name.decode("latin-1").lower(), value.decode("latin-1")
                        headers[key] = f"{headers[key]}, {text}" if key in headers else text
                case h11.Data():
                    body += event.data
                case h11.EndOfMessage():
                    whole = True
                    # Bytes that are left over are nobody's; so is the end of a body that only the end marks.
                    reusable = connection.their_state is h11.DONE and not connection.trailing_data[0].lstrip(
                        b"\r\n"
                    )
                case h11.NEED_DATA if not ended:
                    ended = True
                    connection.receive_data(b"")
                case h11.ConnectionClosed() | h11.NEED_DATA | h11.PAUSED:
                    break
    except h11.RemoteProtocolError:
        pass
    return Outcome(status, tuple(sorted(headers.items())), body, whole, reusable)


# --- what must hold -------------------------------------------------------------------------------------

_FRAMING = ("content-length", "transfer-encoding")


def find_problem(case: Case, rng: random.Random) -> str:
    """What is wrong with how the reply was read; empty if nothing is."""
    ours = read_ours([case.data] if case.data else [], case.method)
    for cuts in (cut(case.data, rng, 6), cut(case.data, rng, 60), [bytes([byte]) for byte in case.data]):
        again = read_ours(cuts, case.method)
        if case.data.endswith((b"\r", b"\n")):  # an empty line after a reply is a stray byte if it comes late
            again = again._replace(reusable=again.reusable or ours.reusable)
        if again != ours:
            return f"cut into packets it is {again} instead of {ours}"
    theirs = read_theirs(case.data, case.method)
    if ours.whole and theirs.whole:
        mine, other = (
            (one.status, tuple(pair for pair in one.headers if pair[0] not in _FRAMING), one.body)
            for one in (ours, theirs)
        )
        if mine != other:
            return f"it is {ours} for us and {theirs} for h11"
        if ours.reusable and not theirs.reusable:
            return "we would use the connection again, h11 would not"
    elif ours.whole != theirs.whole and not case.damaged and not case.flaws & set(KNOWN):
        return f"only {'we understand' if ours.whole else 'h11 understands'} it: {ours} {theirs}"
    return ""


def cut(data: bytes, rng: random.Random, pieces: int) -> list[bytes]:
    places = sorted({rng.randrange(len(data) + 1) for _ in range(pieces)} | {0, len(data)})
    return [data[start:end] for start, end in pairwise(places)]


def run(cases: int, seed: int) -> tuple[list[str], int]:
    """The problems of so many replies, and how many both understood; the same seed makes the same replies."""
    problems, understood = [], 0
    for number in range(cases):
        rng = random.Random(f"{seed}/{number}")
        case = Maker(rng).make()
        problem = find_problem(case, rng)
        understood += read_theirs(case.data, case.method).whole
        if problem:
            problems.append(f"{seed}/{number} {case.method} {case.data!r} {sorted(case.flaws)}: {problem}")
    return problems, understood


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--cases", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    chosen = parser.parse_args()
    problems, understood = run(chosen.cases, chosen.seed)
    print(*problems[:20], f"{chosen.cases} replies, {understood} whole, {len(problems)} problems", sep="\n")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
