from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
from contextlib import contextmanager

import httpx2
import pytest
from tests.support.wires import WIRES

COMMAND = [sys.executable, "-m", "robota", "testing", "serve-model"]


@contextmanager
def serving(*arguments: str, cwd=None):
    """The running command and where it serves; it must have ended when the block is over."""
    process = subprocess.Popen(
        [*COMMAND, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=cwd
    )
    with process:
        try:
            yield process, json.loads(process.stdout.readline())
        finally:
            if process.poll() is None:
                process.kill()


def ask(wire, base: str, *, stream: bool = False, **options) -> httpx2.Response:
    url = wire.url(base, stream=stream)
    return httpx2.post(url, json=wire.request(stream=stream), timeout=30, **options)


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*COMMAND, *arguments], capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 0)])
def test_it_serves_every_protocol_until_a_signal_comes(number, code):
    with serving("--say", "Good day.") as (process, where):
        for wire in WIRES:
            for stream in (True, False):
                answer = ask(wire, where["url"], stream=stream)
                assert wire.text(answer.text, stream=stream) == "Good day."
        process.send_signal(number)
        assert process.wait(30) == code
        log = process.stderr.read()
    assert set(where["base_urls"]) == {wire.name for wire in WIRES}
    for wire in WIRES:
        assert wire.url(where["url"], stream=False).startswith(where["base_urls"][wire.name])
    assert log.splitlines()[0].startswith(
        '#1 POST /v1/chat/completions (chat, streamed) user "Hello" -> 200, '
    )
    assert len(log.splitlines()) == 8


def test_it_echoes():
    with serving("--echo") as (_, where):
        assert WIRES[0].text(ask(WIRES[0], where["url"]).text, stream=False) == "Hello"


def test_it_plays_a_file_in_order_and_over_again(tmp_path):
    (tmp_path / "script.yaml").write_text("- error: 529\n- [{echo: true}, '!']\n")
    with serving("--script", "script.yaml", cwd=tmp_path) as (_, where):
        answers = [ask(WIRES[0], where["url"]) for _ in range(3)]
    assert [answer.status_code for answer in answers] == [529, 200, 529]
    assert WIRES[0].text(answers[1].text, stream=False) == "Hello!"


def test_it_goes_on_when_the_script_is_over_and_says_so(tmp_path):
    (tmp_path / "script.yaml").write_text("replies: [Hi]\nrepeat: false\n")
    with serving("--script", "script.yaml", cwd=tmp_path) as (process, where):
        assert [ask(WIRES[0], where["url"]).status_code for _ in range(3)] == [200, 400, 400]
        process.terminate()
        assert process.wait(30) == 0
        assert "The script has no reply for model request 2" in process.stderr.read()


def test_the_log_shows_requests_without_secrets():
    key = "sk-proj-abcdefghijklmnopqrstuvwxyz0123456789"
    with serving("--verbose") as (process, where):
        body = {"model": "m", "messages": [{"role": "user", "content": f"my key is {key}\x1b[31m"}]}
        url = f"{where['url']}/v1/chat/completions?key={key}"
        headers = {"authorization": f"Bearer {key}", "x-api-key": key, "x-mine": "seen"}
        httpx2.post(url, json=body, headers=headers, timeout=30)
        httpx2.get(f"{where['url']}/nowhere", timeout=30)
        process.terminate()
        process.wait(30)
        log = process.stderr.read()
    assert key not in log
    assert "\x1b" not in log
    assert "x-mine: seen" in log
    assert '"role": "user"' in log
    assert "This model server has nothing at GET /nowhere." in log


def test_a_request_that_a_service_would_refuse_is_refused_unless_told_otherwise():
    for arguments, status in (([], 400), (["--lenient"], 200)):
        with serving(*arguments) as (_, where):
            url = f"{where['url']}/v1/chat/completions"
            for messages in ([], [{}], [1]):
                answer = httpx2.post(url, json={"messages": messages}, timeout=30)
                assert answer.status_code == status


def test_a_port_that_is_taken_is_one_sentence():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = run("--port", str(port))
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith(f"robota: Port {port} on 127.0.0.1 cannot be used: ")
    assert len(done.stderr.splitlines()) == 1


def test_a_bad_script_is_one_sentence(tmp_path):
    script = tmp_path / "script.yaml"
    script.write_text("- Hello\n- eror: 429\n")
    done = run("--script", str(script))
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == f"robota: {script}, line 2: `eror` is not a step; did you mean `error`?\n"


def test_only_one_source_of_replies_is_taken():
    done = run("--echo", "--say", "Hi")
    assert done.returncode == 2
    assert "Give one of --say, --script and --echo." in done.stderr


def test_an_output_that_is_full_is_named() -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            COMMAND, stdout=full, stderr=subprocess.PIPE, text=True, timeout=60, check=False
        )
    assert (done.returncode, done.stderr) == (1, "robota: No space left on device: the output\n")
