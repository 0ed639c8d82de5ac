from __future__ import annotations

import json
import subprocess
import sys
import threading

import httpx2
import pytest

from robota.core.errors import ConfigurationError
from robota.testing import Gate, ModelServer
from robota.testing.model_server import load_script, main

HELLO = {"model": "m", "messages": [{"role": "user", "content": "Hello"}]}


def ask(url: str) -> str:
    answer = httpx2.post(f"{url}/v1/chat/completions", json=HELLO, timeout=30)
    return answer.json()["choices"][0]["message"]["content"]


def test_a_server_in_a_thread_serves_synchronous_tests():
    with ModelServer("one", "two").in_thread() as server:
        assert [ask(server.url), ask(server.url)] == ["one", "two"]
        assert len(server.wait_for_requests_in_thread(2)) == 2
        with pytest.raises(TimeoutError, match="got 3 requests"):
            server.wait_for_requests_in_thread(3, timeout=0)
    with pytest.raises(httpx2.ConnectError):
        ask(server.url)


def test_a_gate_opens_from_another_thread():
    gate = Gate()
    answers: list[str] = []
    with ModelServer([gate, "Hi"]).in_thread() as server:
        asking = threading.Thread(target=lambda: answers.append(ask(server.url)))
        asking.start()
        gate.reached.wait_in_thread()
        assert answers == []
        gate.open()
        asking.join()
    assert answers == ["Hi"]


def ask_a_broken_script():
    with ModelServer().in_thread() as server:
        httpx2.post(f"{server.url}/v1/chat/completions", json=HELLO, timeout=30)


def test_a_failed_script_is_raised_in_the_thread_that_tests():
    with pytest.raises(ConfigurationError, match="no reply for model request 1"):
        ask_a_broken_script()


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ([], ["Hello from the scripted model."] * 2),
        (["--lenient", "--reply", "one", "--reply", "two"], ["one", "two", "one"]),
        (["--script", "greetings:script"], ["good morning", "Hello"]),
    ],
)
def test_a_server_process_says_where_it_is_and_ends_with_its_input(tmp_path, arguments, expected):
    (tmp_path / "greetings.py").write_text(
        "script = ['good morning', lambda request: request.conversation.texts('user')]\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-m", "robota.testing.model_server", "--port", "0", *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=tmp_path,
        text=True,
    )
    with process:
        where = json.loads(process.stdout.readline())
        assert where["url"] == f"http://127.0.0.1:{where['port']}"
        assert [ask(where["url"]) for _ in expected] == expected
        process.stdin.close()
        assert process.wait(30) == 0


def test_a_script_that_cannot_be_found_is_named():
    for name in ("json", "json:nothing"):
        with pytest.raises(ConfigurationError, match=f"--script {name}"):
            load_script(name)


def test_a_script_may_be_one_reply():
    assert load_script("string:digits") == ["0123456789"]


def test_wrong_arguments_end_with_usage(capsys):
    with pytest.raises(SystemExit):
        main(["--nonsense"])
    assert "usage: robota.testing.model_server" in capsys.readouterr().err
