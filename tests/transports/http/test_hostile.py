"""Clients that are wrong, foreign, slow or gone: a precise answer, and nothing for the others to notice."""

from __future__ import annotations

import asyncio
import gzip
import json
from pathlib import Path

import httpx2
import pytest
from tests.support.serving import TOKEN, Serving, ended, numbers, parse_events, serving, until

from robota.core.errors import ConfigurationError
from robota.testing import ScriptedProvider, Stall
from robota.transports.http import call as calls
from robota.transports.http import server as servers
from robota.transports.http import sse, turn_stream
from robota.transports.http.security import Guard, require_token
from robota.transports.http.server import bind

pytestmark = pytest.mark.anyio
BEARER = {"authorization": f"Bearer {TOKEN}"}


async def send(server: Serving, data: bytes) -> bytes:
    """Bytes over a connection of their own, and all that comes back."""
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    writer.write(data)
    answer = await reader.read()
    writer.close()
    return answer


REFUSALS: list[tuple[str, str, dict[str, str], bytes | None, int]] = [
    ("GET", "/sessions", {}, None, 401),
    ("GET", "/sessions", {"authorization": "Bearer wrong"}, None, 401),
    ("GET", "/sessions", {"authorization": f"Basic {TOKEN}"}, None, 401),
    ("GET", f"/sessions?token={TOKEN}", {}, None, 401),
    ("GET", "/metrics", {}, None, 401),
    ("GET", "/openapi.json", {}, None, 401),
    ("GET", "/health", {}, None, 200),
    ("GET", "/sessions", {**BEARER, "origin": "http://evil.example"}, None, 403),
    ("GET", "/sessions", {**BEARER, "origin": "null"}, None, 403),
    ("GET", "/sessions", {**BEARER, "host": "evil.example"}, None, 403),
    ("GET", "/sessions", {**BEARER, "host": "127.0.0.1.evil.example"}, None, 403),
    ("GET", "/sessions", {**BEARER, "host": "user@127.0.0.1"}, None, 403),
    ("GET", "/health", {"host": "evil.example"}, None, 403),
    ("GET", "/sessions", {**BEARER, "host": "localhost"}, None, 200),
    ("GET", "/sessions/none", BEARER, None, 404),
    ("GET", "/sessions/..%2f..%2fetc", BEARER, None, 404),
    ("GET", "/sessions/none/events", BEARER, None, 404),
    ("GET", "/nothing", BEARER, None, 404),
    ("PUT", "/sessions", BEARER, None, 405),
    ("POST", "/sessions", {**BEARER, "content-type": "application/json"}, b"{not json", 400),
    ("POST", "/sessions", {**BEARER, "content-type": "application/json"}, b"[" * 100_000, 400),
    ("POST", "/sessions", {**BEARER, "content-type": "text/plain"}, b"{}", 415),
    ("POST", "/sessions", BEARER, b'{"nme": "x"}', 422),
    ("POST", "/sessions", BEARER, b'{"cwd": 7}', 422),
    ("POST", "/sessions", BEARER, b'{"cwd": "/does/not/exist"}', 422),
    ("POST", "/sessions", BEARER, b'{"permissionMode": "godlike"}', 422),
    ("POST", "/sessions", BEARER, b'{"resume": "none"}', 404),
    ("POST", "/submit", BEARER, b'{"prompt": "  "}', 422),
    ("POST", "/submit", BEARER, b'{"prompt": "", "images": [{"mediaType": "a/b", "data": ""}]}', 422),
    ("POST", "/command", BEARER, b"{}", 400),
    ("POST", "/command", BEARER, b'{"name": "nonsense"}', 404),
    ("GET", "/events", {**BEARER, "last-event-id": "yesterday"}, None, 400),
    ("GET", "/events?after=x", BEARER, None, 422),
    ("GET", "/sessions?limit=0", BEARER, None, 422),
    ("GET", "/sessions?cursor=none", BEARER, None, 422),
    ("GET", "/sessions", {**BEARER, "host": "[::1]:7070"}, None, 200),
    ("GET", "/sessions", {**BEARER, "host": "LOCALHOST.:80", "origin": "http://localhost.:80"}, None, 200),
    ("GET", "/sessions", {**BEARER, "host": "[::1", "origin": "http://[::1"}, None, 403),
    ("GET", "/sessions", {**BEARER, "host": "127.0.0.1:7070", "origin": "http://127.0.0.1:7071"}, None, 403),
    ("GET", "/sessions", {**BEARER, "host": "0x7f.0.0.1"}, None, 403),
    ("GET", "/sessions", {"authorization": f"Bearer {TOKEN}, Bearer {TOKEN}"}, None, 401),
    ("GET", "/sessions/%00", BEARER, None, 404),
    ("GET", "/sessions/%2e%2e/export", BEARER, None, 404),
    ("GET", "/..%2f..%2f..%2fetc/passwd", {}, None, 404),
    ("GET", "/%2e%2e/http/app.py", {}, None, 404),
    ("GET", "/sessions/none/images", BEARER, None, 404),
    ("GET", "/images/1/-1", BEARER, None, 404),
    ("DELETE", "/sessions/..", BEARER, None, 405),
    ("POST", "/sessions", {**BEARER, "content-encoding": "gzip"}, gzip.compress(b"{}"), 415),
    ("POST", "/trust", BEARER, b'{"trust": true}', 422),
    ("POST", "/questions/none", BEARER, b'{"answer": true}', 409),
]  # fmt: skip


async def test_what_cannot_be_answered_is_refused_with_a_status_and_a_sentence(project: Path) -> None:
    async with serving(ScriptedProvider(), project) as server, httpx2.AsyncClient() as client:
        replies = [
            await client.request(method, server.url + path, headers=headers, content=body)
            for method, path, headers, body, _ in REFUSALS
        ]

    wrong = [
        (*asked, reply.status_code)
        for asked, reply in zip(REFUSALS, replies, strict=True)
        if asked[-1] != reply.status_code
    ]
    assert not wrong
    for reply in replies:
        assert "access-control-allow-origin" not in reply.headers
        if reply.status_code not in (200, 409):
            assert reply.json()["error"]["code"]
            assert reply.json()["error"]["message"].endswith(".")
            assert TOKEN not in reply.text


async def test_a_large_body_is_refused_and_the_server_goes_on(project: Path) -> None:
    async with serving(ScriptedProvider("Fine."), project) as server:
        large = json.dumps({"prompt": "x" * (10 << 20)}).encode()
        declared = await server.client.post("/submit", content=large)

        async def drip() -> object:
            for start in range(0, len(large), 1 << 16):
                yield large[start : start + (1 << 16)]

        streamed = await server.client.post("/submit", content=drip())
        id = await server.new()
        await server.submit(id, "hi")
        events = await server.read(id, ended)

    assert (declared.status_code, streamed.status_code) == (413, 413)
    assert events[-1].name == "complete"


async def test_heads_that_are_too_large_are_refused(project: Path) -> None:
    async with serving(ScriptedProvider(), project) as server:
        at_once = await send(
            server, b"GET /health HTTP/1.1\r\nhost: localhost\r\nx: " + b"y" * 80_000 + b"\r\n\r\n"
        )
        endless = await send(server, b"GET /health HTTP/1.1\r\nhost: localhost\r\nx: " + b"y" * 600_000)
        nonsense = await send(server, b"\x16\x03\x01 this is no HTTP\r\n\r\n")

    assert at_once.startswith(b"HTTP/1.1 431")
    assert endless.startswith(b"HTTP/1.1 431")
    assert nonsense.startswith(b"HTTP/1.1 400")


async def test_a_client_that_never_ends_its_request_is_let_go(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(servers, "HEAD_SECONDS", 0.05)
    monkeypatch.setattr(calls, "BODY_SECONDS", 0.05)
    async with serving(ScriptedProvider(), project) as server:
        silent = await send(server, b"")
        half = await send(server, b"GET /health HTTP/1.1\r\nhost: loc")
        head = f"POST /submit HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {TOKEN}\r\n"
        body = await send(server, f"{head}connection: close\r\ncontent-length: 100\r\n\r\n{{".encode())

    assert silent.startswith(b"HTTP/1.1 408")
    assert half.startswith(b"HTTP/1.1 408")
    assert body.startswith(b"HTTP/1.1 408")


@pytest.mark.slow
async def test_a_reader_who_does_not_read_stalls_nobody_and_is_cut_off(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sse, "PING_SECONDS", 0.05)
    monkeypatch.setattr(sse, "STALLED_SECONDS", 0.2)
    reply = ["x" * 5_000] * 1_200  # more than the buffers of two sockets
    async with serving(ScriptedProvider(reply), project) as server:
        id = await server.new()
        kept, writer = await asyncio.open_connection("127.0.0.1", server.port)
        head = (
            f"GET /sessions/{id}/events HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {TOKEN}\r\n\r\n"
        )
        writer.transport.pause_reading()
        writer.write(head.encode())
        hosted = server.host.sessions[id]
        await until(lambda: hosted.readers)
        (stuck,) = hosted.readers

        await server.submit(id, "talk")
        await until(lambda: stuck not in hosted.readers)
        monkeypatch.undo()  # whoever reads is not to be taken for one who does not, on a busy machine
        events = await server.read(id, ended)
        writer.close()
        del kept

    assert sum(event.name == "text_delta" for event in events) == len(reply)
    assert numbers(events) == list(range(1, len(numbers(events)) + 1))


def open_streams() -> bool:
    """Whether the server has an answer under way that is a stream."""
    return any(getattr(task.get_coro(), "__name__", "") == "wait_for_leave" for task in asyncio.all_tasks())


@pytest.mark.slow
async def test_a_prompt_goes_on_when_who_sent_it_does_not_read_and_is_cut_off(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sse, "STALLED_SECONDS", 0.2)
    reply = ["x" * 5_000] * 1_200  # more than the buffers of two sockets
    async with serving(ScriptedProvider(reply), project) as server:
        id = await server.new()
        answer = server.client.stream("POST", f"/sessions/{id}/submit", json={"prompt": "talk"})
        async with answer as unread:
            await until(open_streams)
            events = await server.read(id, ended)
            await until(lambda: not open_streams())
            with pytest.raises(httpx2.RemoteProtocolError):  # it ends, and not as an answer does
                await unread.aread()

    assert events[-1].name == "complete"
    assert sum(event.name == "text_delta" for event in events) == len(reply)


async def test_who_fell_far_behind_the_answer_to_a_prompt_is_told_how_it_ended(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(turn_stream, "MOST_WAITING", 10)
    reply = ["x" * 100_000] * 120  # more than the buffers of two sockets
    async with serving(ScriptedProvider(reply), project) as server:
        id = await server.new()
        hosted = server.host.sessions[id]
        async with server.client.stream("POST", f"/sessions/{id}/submit", json={"prompt": "talk"}) as answer:
            await until(lambda: hosted.session.events.seq > len(reply) and hosted.state == "idle")
            events = [each async for each in parse_events(answer.aiter_lines())]

    assert sum(event.name == "text_delta" for event in events) < len(reply)
    assert [event.name for event in events if ended(event)] == ["complete"]
    assert events[-2].data["response"] == "".join(reply)
    assert events[-1].data == {"isThinking": False}


async def test_a_client_who_leaves_in_mid_stream_leaves_nothing_behind(project: Path) -> None:
    async with serving(ScriptedProvider(["Begun", Stall()]), project) as server:
        id = await server.new()
        hosted = server.host.sessions[id]
        async with server.client.stream("POST", f"/sessions/{id}/submit", json={"prompt": "hi"}) as reply:
            async for line in reply.aiter_lines():
                if "Begun" in line:
                    break
        watching = asyncio.create_task(server.read(id, ended))
        await until(lambda: hosted.readers)
        still = (await server.client.get(f"/sessions/{id}/executing")).json()

        await server.client.post(f"/sessions/{id}/abort")
        events = await watching
        await until(lambda: not hosted.readers)

    assert still == {"executing": True}
    assert events[-1].name == "interrupted"


async def test_the_number_of_sessions_is_bounded_and_idle_ones_make_room(project: Path) -> None:
    async with serving(ScriptedProvider("One.", ["Two", Stall()]), project, limit=1) as server:
        first = await server.new()
        await server.submit(first, "hi")
        await server.read(first, ended)
        await until(lambda: not server.host.sessions[first].readers)
        second = await server.new()
        assert list(server.host.sessions) == [second]

        await server.submit(second, "hi")
        await server.read(second, lambda event: event.name == "text_delta")
        refused = await server.client.post("/sessions", json={})

    assert refused.status_code == 429


async def test_a_server_that_only_shows_lets_nobody_do_anything(project: Path) -> None:
    async with serving(ScriptedProvider("Hello."), project) as server:
        id = await server.new()
        await server.submit(id, "hi")
        await server.read(id, ended)
    async with serving(ScriptedProvider(), project, read_only=True) as server:
        client = server.client
        refused = [
            await client.post("/sessions", json={}),
            await client.post(f"/sessions/{id}/submit", json={"prompt": "x"}),
            await client.delete(f"/sessions/{id}"),
        ]
        shown = (await client.get(f"/sessions/{id}")).json()
        events = await server.read(id, ended)

    assert [reply.status_code for reply in refused] == [403, 403, 403]
    assert shown["readOnly"] is True
    assert events[-1].name == "complete"


async def test_a_second_server_on_the_same_store_is_told_that_a_session_is_open(project: Path) -> None:
    async with serving(ScriptedProvider("Mine.", "Mine again."), project) as one:
        id = await one.new()
        await one.submit(id, "hi")
        await one.read(id, ended)
        async with serving(ScriptedProvider("Yours."), project) as two:
            seen = await two.read(id, ended)
            refused = await two.submit(id, "hi")
            other = await two.new()
            fine = await two.submit(other, "hi")
        again = await one.submit(id, "again")

    assert seen[-1].name == "complete"
    assert refused.status_code == 409
    assert refused.json()["error"]["code"] == "session_locked"
    assert (fine.status_code, again.status_code) == (202, 202)


async def test_a_cursor_from_the_future_counts_as_the_last_event(project: Path) -> None:
    async with serving(ScriptedProvider("One.", "Two."), project) as server:
        id = await server.new()
        await server.submit(id, "hi")
        first = await server.read(id, ended)
        waiting = asyncio.create_task(server.read(id, ended, after=10**9))
        await until(lambda: server.host.sessions[id].readers)
        await server.submit(id, "again")
        second = await waiting

    assert numbers(second)[0] > numbers(first)[-1]
    assert second[-1].name == "complete"


def test_a_port_in_use_is_told_in_a_sentence() -> None:
    with bind("127.0.0.1", 0) as taken:
        taken.listen()
        with pytest.raises(ConfigurationError, match=r"Port \d+ on 127.0.0.1 cannot be used"):
            bind("127.0.0.1", taken.getsockname()[1])
    with pytest.raises(ConfigurationError, match=r"host no\.such\.name cannot be used"):
        bind("no.such.name", 0)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "example.com"])
def test_others_are_let_in_only_with_a_token_that_somebody_chose(host: str) -> None:
    require_token("127.0.0.1", None)
    require_token("::1", "short")
    with pytest.raises(ConfigurationError, match="Others can reach"):
        require_token(host, None)
    with pytest.raises(ConfigurationError, match="Others can reach"):
        require_token(host, "short")
    require_token(host, "long-enough-to-be-one")
    with pytest.raises(ConfigurationError, match="printable"):
        require_token("127.0.0.1", "with blank")


def test_a_server_on_all_addresses_answers_to_addresses_and_to_no_other_name() -> None:
    guard = Guard(TOKEN, "0.0.0.0")

    guard.check_place({"headers": [(b"host", b"192.0.2.7:7070")]})
    with pytest.raises(Exception, match="does not answer"):
        guard.check_place({"headers": [(b"host", b"rebound.example:7070")]})
