"""HTTP for programs that embed robota."""

from __future__ import annotations

from pathlib import Path

import httpx2
import pytest

from robota import InteractiveSession
from robota.core.errors import ConfigurationError
from robota.testing import ScriptedProvider
from robota.transports import SessionWish, create_agent_routes, create_http_transport

pytestmark = pytest.mark.anyio
HEADERS = {"authorization": "Bearer secret"}


async def test_routes_make_sessions_with_a_factory_that_may_know_what_is_wished(project: Path) -> None:
    wished: list[SessionWish] = []

    def make(wish: SessionWish) -> InteractiveSession:
        wished.append(wish)
        return InteractiveSession(provider=ScriptedProvider("Hello."), cwd=project, setting_sources=())

    transport = httpx2.ASGITransport(create_agent_routes(session_factory=make, token="secret"))
    async with httpx2.AsyncClient(
        transport=transport, base_url="http://localhost", headers=HEADERS
    ) as client:
        made = await client.post("/sessions", json={"name": "mine"})
        messages = await client.get(f"/sessions/{made.json()['id']}/messages")
        page = await client.get("/")

    assert [wish.name for wish in wished] == ["mine"]
    assert messages.json() == {"messages": []}
    assert page.status_code == 404


async def test_a_factory_without_a_parameter_gives_the_session_at_the_root(project: Path) -> None:
    async with InteractiveSession(provider=ScriptedProvider(), cwd=project, setting_sources=()) as session:
        transport = httpx2.ASGITransport(create_agent_routes(session_factory=lambda: session, token="secret"))
        async with httpx2.AsyncClient(
            transport=transport, base_url="http://localhost", headers=HEADERS
        ) as client:
            executing = (await client.get("/executing")).json()
            shown = (await client.get(f"/sessions/{session.session_id}")).json()

    assert executing == {"executing": False}
    assert shown["id"] == session.session_id


async def test_a_transport_says_what_it_is_missing_and_the_session_outlives_it(project: Path) -> None:
    transport = create_http_transport()
    with pytest.raises(ConfigurationError, match="has no session yet"):
        await transport.start()
    with pytest.raises(ConfigurationError, match="Others can reach"):
        create_http_transport(host="0.0.0.0")
    provider = ScriptedProvider("One.", "Two.")
    async with InteractiveSession(provider=provider, cwd=project, setting_sources=()) as session:
        session.attach_transport(transport)
        await transport.start()
        headers = {"authorization": f"Bearer {transport.token}"}
        async with httpx2.AsyncClient(base_url=transport.url, headers=headers, timeout=60) as client:
            streamed = await client.post("/submit", json={"prompt": "hi"})
            refused = await client.post("/sessions", json={})
        await transport.stop()
        after = await session.submit("again")

    assert "One." in streamed.text
    assert refused.status_code == 422
    assert after.text == "Two."
