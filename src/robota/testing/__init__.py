"""What robota's own tests are made of, for the tests of people who build on it.

Names are loaded with their first use. The provider test suite is `robota.testing.conformance`, that of
session stores `robota.testing.store_conformance`. Pytest finds the fixture `robota_cassette` by itself; other
fixtures are in `robota.testing.fixtures`.
"""

from __future__ import annotations

import sys

from robota._lazy import lazy_names

_MODULES = {
    "robota.providers.scripted": "Delay Fail ScriptedProvider Stall call",
    "robota.testing.cassette": "Cassette CassetteMismatch",
    "robota.testing.http_server": "ReceivedRequest",
    "robota.testing.model_script": (
        "CallIds ContentType Crlf Cut Drip ErrorEvent Forever Gate HttpError KeepAlive Malformed NoEndMark "
        "RawBytes Tap UnknownEvent"
    ),
    "robota.testing.model_server": "ModelServer",
    "robota.testing.ports": "FixedPorts fixed_ports",
    "robota.testing.remote_host": "RemoteHost",
}
_HOMES = {name: module for module, names in _MODULES.items() for name in names.split()}

__all__ = list(_HOMES)

__getattr__, __dir__ = lazy_names(__name__, _HOMES, globals())

if "pytest" in sys.modules:  # a suite that others inherit should explain its failures as their own tests do
    sys.modules["pytest"].register_assert_rewrite(
        f"{__name__}.store_conformance", f"{__name__}.conformance", f"{__name__}.reply_conformance"
    )
