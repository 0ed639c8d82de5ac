from __future__ import annotations

import subprocess
import sys

USERS_TESTS = """
import httpx2
import pytest

from robota.core.messages import UserMessage
from robota.core.provider import ChatRequest
from robota.testing import Delay

pytest_plugins = ["robota.testing.fixtures"]
HELLO = ChatRequest(model="m", messages=[UserMessage("Hello")])


@pytest.mark.anyio
async def test_scripted(scripted, ports):
    provider = scripted([Delay(60), "Hi"], name="mine")
    chunks = [chunk async for chunk in provider.stream(HELLO)]
    assert (provider.name, chunks[0].text, ports.sleeps) == ("mine", "Hi", [60])


def test_model_server(model_server):
    server = model_server("Hi", repeat=True)
    body = {"model": "m", "messages": [{"role": "user", "content": "Hello"}]}
    assert httpx2.post(f"{server.url}/v1/chat/completions", json=body, timeout=30).status_code == 200
    assert len(server.requests) == 1


@pytest.fixture
def anyio_backend():
    return "asyncio"
"""


def test_the_fixtures_work_in_somebody_elses_project(tmp_path):
    (tmp_path / "test_theirs.py").write_text(USERS_TESTS)
    finished = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", str(tmp_path)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert "2 passed" in finished.stdout, finished.stdout
