from __future__ import annotations

import json
import socket
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from tests.support.llama_server import llama_server
from tests.support.scripted_gguf import write_scripted_gguf

from robota.providers.local.detect import LocalServer, ServedModel, ask_local_server, detect_local_servers
from robota.providers.openai_compatible import OpenAICompatibleProvider
from robota.testing.reply_conformance import listen

pytestmark = pytest.mark.anyio

PATIENCE = 20.0


class Site:
    """Answers by path; what it was asked is remembered."""

    def __init__(self, answers: Mapping[str, Any], server: str) -> None:
        self.answers = answers
        self.server = server
        self.asked: list[tuple[str, str]] = []
        self.on_request: Callable[[str], None] = lambda _: None
        self.url = ""


@contextmanager
def site(answers: Mapping[str, Any], *, server: str = "uvicorn") -> Iterator[Site]:
    made = Site(answers, server)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            made.asked.append((self.command, self.path))
            made.on_request(self.path)
            body = made.answers.get(self.path, made.answers.get("*"))
            self.send_response_only(404 if body is None else 200)
            data = body if isinstance(body, bytes) else json.dumps(body).encode()
            self.send_header("server", made.server)
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        do_POST = do_HEAD = do_GET

        def log_message(self, format: str, *args: object) -> None: ...

    server_ = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server_.daemon_threads = True
    made.url = f"http://127.0.0.1:{server_.server_port}"
    thread = Thread(target=server_.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield made
    finally:
        server_.shutdown()
        thread.join()
        server_.server_close()


def listing(*entries: dict[str, Any]) -> dict[str, Any]:
    return {"object": "list", "data": list(entries)}


OLLAMA = {
    "/v1/models": listing({"id": "llama3:8b", "object": "model", "owned_by": "library"}),
    "/api/version": {"version": "0.12.3"},
    "/api/tags": {"models": [{"name": "llama3:8b", "model": "llama3:8b", "size": 1}]},
}
LM_STUDIO = {
    "/v1/models": listing({"id": "gemma-3", "object": "model", "owned_by": "organization_owner"}),
    "/api/v0/models": listing(
        {"id": "gemma-3", "type": "vlm", "state": "loaded", "loaded_context_length": 8192},
        {"id": "nomic", "object": "model", "type": "embeddings", "state": "not-loaded"},
    ),
}
LLAMA_CPP = {
    "/v1/models": listing({"id": "a.gguf", "owned_by": "llamacpp", "meta": {"n_params": 494_000_000}}),
    "/props": {"default_generation_settings": {"n_ctx": 4096}, "total_slots": 1},
}
VLLM = {
    "/v1/models": listing({"id": "Qwen/Qwen3-1.7B", "owned_by": "vllm", "max_model_len": 32768}),
    "/version": {"version": "0.11.0"},
}


@pytest.mark.parametrize(
    ("answers", "header", "kind", "models"),
    [
        (OLLAMA, "", "ollama", (ServedModel("llama3:8b", None, 8_000_000_000),)),
        ({**OLLAMA, "/api/ps": {"models": [{"name": "llama3:8b", "context_length": 4096}]}}, "", "ollama",
         (ServedModel("llama3:8b", 4096, 8_000_000_000),)),
        ({**OLLAMA, "/v1/models": {"object": "list", "data": None}, "/api/tags": {"models": []}}, "",
         "ollama", ()),
        (LM_STUDIO, "", "lmstudio", (ServedModel("gemma-3", 8192),)),
        (LLAMA_CPP, "llama.cpp", "llama.cpp", (ServedModel("a.gguf", 4096, 494_000_000),)),
        (VLLM, "uvicorn", "vllm", (ServedModel("Qwen/Qwen3-1.7B", 32768, 1_700_000_000),)),
    ],
)  # fmt: skip
async def test_a_server_is_known_by_its_answers(
    answers: Mapping[str, Any], header: str, kind: str, models: tuple[ServedModel, ...]
) -> None:
    with site(answers, server=header) as there:
        found = await detect_local_servers([there.url], deadline=PATIENCE)

    assert found == [LocalServer(kind, f"{there.url}/v1", models)]  # type: ignore[arg-type]
    assert {method for method, _ in there.asked} == {"GET"}


IMPOSTORS: dict[str, tuple[Mapping[str, Any], str]] = {
    "a web page for every path": ({"*": b"<!doctype html><title>My app</title>"}, "nginx"),
    "the same JSON for every path": ({"*": {"version": "1", "models": []}}, "nginx"),
    "a number for every path": ({"*": 1}, "nginx"),
    "an empty answer": ({"*": b""}, "nginx"),
    "an endless answer": ({"*": b"[" + b"1," * (1 << 20)}, "nginx"),
    "an API of that shape by another service": (
        {"/v1/models": listing({"id": "gpt", "object": "model", "owned_by": "me"})}, "gateway",
    ),
    "a version and no models": ({**OLLAMA, "/api/tags": {"error": "no"}}, "x"),
    "the header alone": ({"/v1/models": listing()}, "llama.cpp"),
    "the owner alone": ({"/v1/models": VLLM["/v1/models"]}, "uvicorn"),
    "models without a state": ({**LM_STUDIO, "/api/v0/models": LM_STUDIO["/v1/models"]}, "x"),
    "nothing": ({}, "x"),
}  # fmt: skip


@pytest.mark.parametrize("name", IMPOSTORS)
async def test_an_impostor_is_not_believed(name: str) -> None:
    answers, header = IMPOSTORS[name]
    with site(answers, server=header) as there:
        assert await detect_local_servers([there.url], deadline=PATIENCE) == []


async def test_a_server_that_is_something_else_is_asked_once() -> None:
    with site({"*": b"<!doctype html>"}) as there:
        await detect_local_servers([there.url], deadline=PATIENCE)

    assert there.asked == [("GET", "/v1/models")]


async def test_several_are_found_at_once_in_the_order_asked_for() -> None:
    with ExitStack() as stack:
        sites = [stack.enter_context(site(answers)) for answers in (VLLM, OLLAMA, LM_STUDIO)]
        free = socket.create_server(("127.0.0.1", 0))
        nobody = f"http://127.0.0.1:{free.getsockname()[1]}"
        free.close()
        found = await detect_local_servers(
            [sites[0].url, nobody, sites[1].url, f"{sites[2].url}/"], deadline=PATIENCE
        )

    assert [server.kind for server in found] == ["vllm", "ollama", "lmstudio"]
    assert found[2].base_url == f"{sites[2].url}/v1"


async def test_one_that_says_nothing_does_not_hold_up_the_others() -> None:
    with site(OLLAMA) as there, silent() as quiet:
        found = await detect_local_servers([quiet, there.url], deadline=2.0)

    assert [server.kind for server in found] == ["ollama"]


@contextmanager
def silent() -> Iterator[str]:
    """Takes connections and never says a word."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"


async def test_a_proxy_in_the_environment_is_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    with site({}) as proxy, site(OLLAMA) as there:
        for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
            monkeypatch.setenv(name, proxy.url)
        found = await detect_local_servers([there.url], deadline=PATIENCE)

    assert len(found) == 1
    assert proxy.asked == []


async def test_a_real_llama_server_is_found_and_answers(tmp_path: Path) -> None:
    model = write_scripted_gguf(tmp_path / "real.gguf", "Here I am.")
    with llama_server(model) as url:
        (found,) = await detect_local_servers([url], deadline=PATIENCE)
        assert (found.kind, found.base_url) == ("llama.cpp", f"{url}/v1")
        assert len(found.models) == 1
        async with OpenAICompatibleProvider(base_url=found.base_url, model=found.models[0]) as provider:
            assert (await listen(provider)).text == "Here I am."


async def test_a_model_that_ollama_has_not_loaded_is_loaded_to_learn_its_window() -> None:
    answers = dict(OLLAMA)

    def load(path: str) -> None:
        if path == "/api/generate":
            answers["/api/ps"] = {"models": [{"name": "llama3:8b", "context_length": 4096}]}

    answers["/api/generate"] = {"done": True, "done_reason": "load"}
    with site(answers) as there:
        there.on_request = load
        server = await ask_local_server(f"{there.url}/v1", load="llama3:8b")
        again = await ask_local_server(f"{there.url}/v1", load="llama3:8b")
    assert server == again
    assert server is not None
    assert server.served == (ServedModel("llama3:8b", 4096, 8_000_000_000),)
    assert [path for method, path in there.asked if method == "POST"] == ["/api/generate"]


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("qwen2.5-coder-1.5b-instruct-q4_k_m.gguf", 1_500_000_000),
        ("Qwen/Qwen3-0.6B", 600_000_000),
        ("494.03M", 494_030_000),
        ("gemma3:270m", 270_000_000),
        ("gpt-oss:20b", 20_000_000_000),
        ("llama3", None),
        ("bge-m3", None),
        ("phi-4", None),
    ],
)
async def test_the_size_of_a_model_is_read_from_its_name(name: str, parameters: int | None) -> None:
    answers = {**VLLM, "/v1/models": listing({"id": name, "owned_by": "vllm"})}
    with site(answers) as there:
        server = await ask_local_server(there.url)
    assert server is not None
    assert server.find(name) == ServedModel(name, None, parameters)
