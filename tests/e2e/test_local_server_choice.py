from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from tests.support.terminal import Terminal

ANSWER = {"id": "c1", "model": "pulled:8b", "choices": [{"index": 0, "delta": {"content": "From here."}}]}
LAST = {**ANSWER, "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}


class Ollama(BaseHTTPRequestHandler):
    """Answers as Ollama does, as far as it is asked."""

    protocol_version = "HTTP/1.1"
    asked: list[str]

    def do_GET(self) -> None:
        self.asked.append(self.path)
        answers = {
            "/v1/models": {"object": "list", "data": [{"id": "pulled:8b", "owned_by": "library"}]},
            "/api/version": {"version": "0.20.0"},
            "/api/tags": {"models": [{"name": "pulled:8b"}]},
        }
        self._send(200 if self.path in answers else 404, json.dumps(answers.get(self.path, {})).encode())

    def do_POST(self) -> None:
        self.asked.append(json.loads(self.rfile.read(int(self.headers["content-length"])))["model"])
        events = [f"data: {json.dumps(event)}\n\n" for event in (ANSWER, LAST)]
        self._send(200, "".join([*events, "data: [DONE]\n\n"]).encode(), "text/event-stream")

    def _send(self, status: int, body: bytes, kind: str = "application/json") -> None:
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        return


@pytest.fixture
def ollama() -> Iterator[tuple[str, list[str]]]:
    asked: list[str] = []
    handler = type("Handler", (Ollama,), {"asked": asked})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"127.0.0.1:{server.server_address[1]}", asked
    server.shutdown()
    server.server_close()
    thread.join()


def test_a_server_that_runs_here_is_offered_first_and_kept(
    tmp_path: Path, ollama: tuple[str, list[str]]
) -> None:
    place, asked = ollama
    terminal = Terminal(tmp_path, OLLAMA_HOST=place, ROBOTA_HOME=str(tmp_path / "home"))
    terminal.wait_for(f"1  ollama at http://{place}/v1, with pulled:8b")
    terminal.wait_for("to leave")
    assert "pulled:8b" not in asked
    terminal.type("\n")
    terminal.wait_for("robota> ")
    terminal.type("hello\n")
    terminal.wait_for("From here.")
    terminal.wait_for("robota> ")
    terminal.type("/exit\n")

    assert terminal.leave() == 0
    assert asked[-1] == "pulled:8b"


def test_a_model_that_a_local_server_has_is_found_by_its_name(
    tmp_path: Path, ollama: tuple[str, list[str]]
) -> None:
    place, _ = ollama
    terminal = Terminal(tmp_path, "--model", "pulled:8b", OLLAMA_HOST=place)
    terminal.wait_for("Use it with pulled:8b?")
    terminal.type("y\n")
    terminal.wait_for("robota> ")
    terminal.type("/exit\n")

    assert terminal.leave() == 0
