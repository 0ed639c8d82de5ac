"""What robota's own tests are made of, for the tests of people who build on it.

The scripted provider is loaded with the package, the model server with its first use. The provider test suite
is `robota.testing.conformance`, the pytest plugin `robota.testing.fixtures`.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import TYPE_CHECKING

from robota.providers.scripted import Delay, Fail, ScriptedProvider, Stall, call

if TYPE_CHECKING:
    from robota.testing.http_request import ReceivedRequest
    from robota.testing.model_script import (
        ContentType,
        Crlf,
        Cut,
        Drip,
        ErrorEvent,
        Gate,
        HttpError,
        KeepAlive,
        Malformed,
        NoEndMark,
        RawBytes,
    )
    from robota.testing.model_server import ModelServer
    from robota.testing.ports import FixedPorts, fixed_ports

__all__ = [
    "ContentType", "Crlf", "Cut", "Delay", "Drip", "ErrorEvent", "Fail", "FixedPorts", "Gate", "HttpError",
    "KeepAlive", "Malformed", "ModelServer", "NoEndMark", "RawBytes", "ReceivedRequest", "ScriptedProvider",
    "Stall", "call", "fixed_ports",
]  # fmt: skip

_HOMES = {
    "FixedPorts": "ports",
    "ModelServer": "model_server",
    "ReceivedRequest": "http_request",
    "fixed_ports": "ports",
}

if "pytest" in sys.modules:  # a suite that others inherit should explain its failures as their own tests do
    sys.modules["pytest"].register_assert_rewrite(f"{__name__}.conformance", f"{__name__}.reply_conformance")


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_HOMES.get(name, 'model_script')}"), name)
    globals()[name] = value
    return value
