"""Pytest fixtures for agents and providers. Enable them with `pytest_plugins = ["robota.testing.fixtures"]`.

Each fixture works in synchronous and in asynchronous tests, whatever plugin runs the latter.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from robota.core.provider import Capabilities
from robota.providers.scripted import Reply, ScriptedProvider
from robota.testing.model_script import ModelReply
from robota.testing.model_server import ModelServer
from robota.testing.ports import FixedPorts, fixed_ports


@pytest.fixture
def ports() -> FixedPorts:
    """Counting ids, a clock that ticks when asked, fixed randomness, waits that are only recorded."""
    return fixed_ports()


@pytest.fixture
def scripted(ports: FixedPorts) -> Callable[..., ScriptedProvider]:
    """`scripted(*replies, …)` makes a `ScriptedProvider` whose delays take no time."""

    def make(
        *replies: Reply,
        name: str = "scripted",
        repeat: bool = False,
        capabilities: Capabilities | None = None,
    ) -> ScriptedProvider:
        return ScriptedProvider(*replies, name=name, repeat=repeat, capabilities=capabilities, ports=ports)

    return make


@pytest.fixture
def model_server() -> Iterator[Callable[..., ModelServer]]:
    """`model_server(*replies, …)` starts a `ModelServer` in a thread; it is gone after the test."""
    with ExitStack() as running:

        def start(*replies: ModelReply, repeat: bool = False, strict: bool = True) -> ModelServer:
            return running.enter_context(ModelServer(*replies, repeat=repeat, strict=strict).in_thread())

        yield start
