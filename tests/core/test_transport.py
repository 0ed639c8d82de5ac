from __future__ import annotations

import subprocess
import sys

import pytest

from robota.core.transport import SessionLike, TransportAdapter

pytestmark = pytest.mark.anyio


class Bare:
    session_id = "s-1"


class Line:
    name = "line"

    def __init__(self) -> None:
        self.attached = ""
        self.running = False

    def attach(self, session: SessionLike) -> None:
        self.attached = session.session_id

    async def start(self) -> None:
        self.running = True

    async def stop(self) -> None:
        self.running = False


def test_a_session_needs_an_id_and_nothing_else_to_be_carried() -> None:
    assert isinstance(Bare(), SessionLike)
    assert not isinstance(object(), SessionLike)


async def test_a_transport_attaches_starts_and_stops() -> None:
    transport: TransportAdapter = Line()
    assert isinstance(transport, Line)
    transport.attach(Bare())
    assert (transport.attached, transport.running) == ("s-1", False)
    await transport.start()
    assert transport.running
    await transport.stop()
    assert not transport.running


def test_an_object_without_stop_is_no_transport() -> None:
    assert isinstance(Line(), TransportAdapter)
    assert not isinstance(Bare(), TransportAdapter)


def test_a_transport_can_be_written_without_loading_the_sdk() -> None:
    script = (
        "import sys, robota.core.transport\n"
        "loaded = [name for name in sys.modules if name.startswith(('robota.sdk', 'robota.sessions'))]\n"
        "assert not loaded, loaded\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True)
