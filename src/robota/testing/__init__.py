"""What robota's own tests are made of, for the tests of people who build on it.

Names are loaded with their first use. The provider test suite is `robota.testing.conformance`, that of
session stores `robota.testing.store_conformance`. Pytest finds the fixture `robota_cassette` by itself; other
fixtures are in `robota.testing.fixtures`.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from robota._lazy import lazy_names

if TYPE_CHECKING:
    from robota.providers.scripted import Delay, Fail, ScriptedProvider, Stall, call
    from robota.testing.cassette import Cassette, CassetteMismatch
    from robota.testing.faulty_files import FaultyFiles, SimulatedCrash
    from robota.testing.http_server import ReceivedRequest
    from robota.testing.model_script import (
        CallIds,
        ContentType,
        Crlf,
        Cut,
        Drip,
        ErrorEvent,
        Forever,
        Gate,
        HttpError,
        KeepAlive,
        Malformed,
        NoEndMark,
        RawBytes,
        Tap,
        UnknownEvent,
    )
    from robota.testing.model_server import ModelServer
    from robota.testing.ports import FixedPorts, fixed_ports
    from robota.testing.remote_host import RemoteHost

__all__ = [
    "CallIds", "Cassette", "CassetteMismatch", "ContentType", "Crlf", "Cut", "Delay", "Drip", "ErrorEvent",
    "Fail", "FaultyFiles", "FixedPorts", "Forever", "Gate", "HttpError", "KeepAlive", "Malformed",
    "ModelServer", "NoEndMark", "RawBytes", "ReceivedRequest", "RemoteHost", "ScriptedProvider",
    "SimulatedCrash", "Stall", "Tap", "UnknownEvent", "call", "fixed_ports",
]  # fmt: skip

_MODULES = {
    "cassette": "Cassette CassetteMismatch",
    "faulty_files": "FaultyFiles SimulatedCrash",
    "http_server": "ReceivedRequest",
    "model_script": "CallIds ContentType Crlf Cut Drip ErrorEvent Forever Gate HttpError KeepAlive Malformed "
    "NoEndMark RawBytes Tap UnknownEvent",
    "model_server": "ModelServer",
    "ports": "FixedPorts fixed_ports",
    "remote_host": "RemoteHost",
}
_HOMES = {name: f"{__name__}.{module}" for module, names in _MODULES.items() for name in names.split()}
_HOMES |= dict.fromkeys(("Delay", "Fail", "ScriptedProvider", "Stall", "call"), "robota.providers.scripted")

__getattr__, __dir__ = lazy_names(__name__, _HOMES, globals())

if "pytest" in sys.modules:  # a suite that others inherit should explain its failures as their own tests do
    sys.modules["pytest"].register_assert_rewrite(
        f"{__name__}.store_conformance", f"{__name__}.conformance", f"{__name__}.reply_conformance"
    )
