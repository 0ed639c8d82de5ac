"""`robota serve` as a process: what it prints, how it ends, and what clients find when it is back."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import sys
from asyncio.subprocess import PIPE
from pathlib import Path

import pytest
from tests.support.command import environment, place, robota
from tests.support.serve_process import served
from tests.support.serving import SseEvent, ended, numbers, until

from robota.testing import call
from robota.testing.model_server import ModelServer

pytestmark = [pytest.mark.anyio, pytest.mark.system]


@pytest.fixture
def home(project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ROBOTA_HOME", str(tmp_path / "robota"))
    return tmp_path / "robota"


async def test_clients_of_a_server_that_was_killed_catch_up_exactly(project: Path, home: Path) -> None:
    async with ModelServer(["One ", "two ", "three."], "And more.", strict=False) as model:
        async with served(project, model) as server:
            id = await server.new()
            one = asyncio.create_task(server.read(id, ended))
            two = asyncio.create_task(server.read(id, ended))
            await server.submit(id, "count")
            whole, same = await asyncio.gather(one, two)
            server.process.kill()
            await server.process.wait()
        assert [(event.id, event.name) for event in whole] == [(event.id, event.name) for event in same]

        async with served(project, model) as server:
            for seen in (0, 1, len(numbers(whole)) // 2, len(numbers(whole)) - 1):
                rest = await server.read(id, ended, after=numbers(whole)[seen])
                assert [(event.id, event.data) for event in rest if event.id] == [
                    (event.id, event.data) for event in whole if event.id
                ][seen + 1 :]
            await server.submit(id, "go on")
            later = await server.read(id, ended, after=numbers(whole)[-1])

    assert numbers(later)[0] > numbers(whole)[-1]
    assert len(set(numbers(whole) + numbers(later))) == len(numbers(whole)) + len(numbers(later))
    assert later[-1].data["text"] == "And more."


async def test_a_run_that_a_kill_cut_is_told_up_to_what_the_disk_has(project: Path, home: Path) -> None:
    def asked(event: SseEvent) -> bool:
        return event.name == "question_asked"

    write = call("Write", file_path="a.txt", content="x")
    async with ModelServer([write], "Done.", strict=False) as model:
        async with served(project, model) as server:
            id = await server.new()
            await server.submit(id, "write")
            before = await server.read(id, asked)
            server.process.kill()
            await server.process.wait()
        async with served(project, model) as server:
            after = await server.read(id, lambda event: event.name == "end")

    assert numbers(after)[: len(numbers(before))] == numbers(before)


async def test_sigterm_saves_sessions_and_ends_streams(project: Path, home: Path) -> None:
    async with ModelServer("Hello.", strict=False) as model, served(project, model) as server:
        id = await server.new()
        await server.submit(id, "hi")
        await server.read(id, ended)
        models = (await server.client.get("/models")).json()["models"]
        following = asyncio.create_task(server.read(id, lambda event: event.name == "end"))
        await asyncio.wait_for(_is_followed(server.client), 30)
        server.process.send_signal(signal.SIGTERM)
        events = await following
        code = await server.process.wait()
        told = await server.process.stderr.read() if server.process.stderr else b""

    assert models == [{"id": "scripted", "name": "scripted"}]
    assert events[-1].name == "end"
    assert code == 0
    assert b"Traceback" not in told
    last = (home / "sessions" / f"{id}.jsonl").read_text().splitlines()[-1]
    assert json.loads(last)["event"] == "session_shutdown"


async def _is_followed(client: object) -> None:
    while "robota_readers 1" not in (await client.get("/metrics")).text:  # type: ignore[attr-defined]
        pass


async def test_the_first_line_is_the_address_with_the_token(project: Path, home: Path) -> None:
    async with ModelServer("Hello.", strict=False) as model:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "robota", "serve", "--port", "0", "--token", "my-own"),
            cwd=project,
            env=environment(**place(model)),
            stdout=PIPE,
            stderr=PIPE,
        )
        assert process.stdout is not None
        line = (await process.stdout.readline()).decode()
        process.send_signal(signal.SIGINT)
        _, errors = await process.communicate()

    assert line.startswith("robota serves on http://127.0.0.1:")
    assert line.endswith("/#token=my-own\n")
    assert process.returncode == 130
    assert b"my-own" not in errors


async def test_curl_follows_a_session(project: Path, home: Path) -> None:
    curl = shutil.which("curl")
    async with ModelServer("Hello, curl.", strict=False) as model, served(project, model) as server:
        id = await server.new()
        await server.submit(id, "hi")
        await server.read(id, ended)
        if curl is None:
            return
        process = await asyncio.create_subprocess_exec(
            *(curl, "-sN", f"{server.url}/sessions/{id}/events?token={server.token}"), stdout=PIPE
        )
        assert process.stdout is not None
        lines = []
        while not lines or lines[-1] != b"event: complete\n":
            lines.append(await process.stdout.readline())
        process.terminate()
        await process.communicate()

    assert any(b"Hello, curl." in line for line in lines)


async def test_the_browser_is_shown_a_file_of_its_own_and_never_the_token(project: Path, home: Path) -> None:
    seen, script = project / "seen.txt", project / "browser.sh"
    script.write_text(
        f'#!/bin/sh\nexec > {seen}.part\nprintf "%s\\n" "$@"\ncat "${{1#file://}}"\nmv {seen}.part {seen}\n'
    )
    script.chmod(0o700)
    async with (
        ModelServer("Hello.", strict=False) as model,
        served(project, model, "--open", BROWSER=str(script)) as server,
    ):
        await until(seen.exists)
        address, page = seen.read_text().split("\n", 1)
        server.process.send_signal(signal.SIGTERM)
        await server.process.wait()

    path = address.removeprefix("file://")
    assert server.token not in address
    assert f"{server.url}/#token={server.token}" in page
    assert not os.path.exists(path)


def test_bad_options_are_told_in_a_sentence(project: Path, home: Path) -> None:
    for arguments, words in (
        (("--host", "0.0.0.0"), "Others can reach 0.0.0.0"),
        (("--cwd", "nowhere"), "--cwd nowhere cannot be used"),
        (("--port", "99999"), "not in the range"),
        (("--token", "a b"), "printable ASCII"),
    ):
        done = robota("serve", *arguments, cwd=project)
        assert done.returncode in (1, 2)
        assert words in done.stderr
        assert "Traceback" not in done.stderr
