"""Fixtures that every test may use."""

from __future__ import annotations

import gc
import os
import re
import signal
from collections.abc import Iterator
from pathlib import Path

import certifi
import pytest
from hypothesis import HealthCheck, settings
from tests.http.certificates import Authority
from tests.support.fork_server import close_fork_server

from robota.http import dial

# A busy machine takes long over any example: that is no fault of what is tested. The examples are the same in
# every run, so that a change is judged by what it changed; `--hypothesis-profile searching` looks for others.
settings.register_profile("searching", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("patient", settings.get_profile("searching"), derandomize=True)
settings.load_profile("patient")
SYSTEM_TESTS = re.compile(r"^pytestmark = .*\bpytest\.mark\.system\b", re.MULTILINE)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """A file of system tests is not loaded where they are not wanted."""
    if config.getoption("markexpr") != "not system" or collection_path.suffix != ".py":
        return None
    return bool(SYSTEM_TESTS.search(collection_path.read_text(encoding="utf-8"))) or None


def pytest_collection_finish() -> None:
    """The 700,000 objects that fourteen thousand tests are made of stay to the end: no collection of garbage
    need look at them again, which took a second each time."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session", autouse=True)
def robota_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Nothing a test starts writes into the home of whoever runs the tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(os.environ, "ROBOTA_HOME", str(tmp_path_factory.mktemp("robota-home")))
        yield


@pytest.fixture(scope="session", autouse=True)
def one_authority(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Nothing leaves this machine, so one certificate is as good as the hundreds that every client of others
    would read anew; what reads them is tested with `fresh_trust`."""
    bundle = Path(certifi.where()).read_text()
    first = tmp_path_factory.mktemp("trusted") / "one.pem"
    first.write_text(
        bundle[bundle.index("-----BEGIN") : bundle.index("END CERTIFICATE-----")] + "END CERTIFICATE-----\n"
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(os.environ, "SSL_CERT_FILE", str(first))
        yield


@pytest.fixture(scope="session", autouse=True)
def signals_heard() -> None:
    """What a test starts can be hung up on and interrupted, also when the tests themselves run under `nohup`
    or in the background of a script, where a shell has these signals ignored."""
    heard = {
        signal.SIGHUP: signal.SIG_DFL,
        signal.SIGINT: signal.default_int_handler,
        signal.SIGQUIT: signal.SIG_DFL,
    }
    for number, handler in heard.items():
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, handler)


@pytest.fixture(scope="session", autouse=True)
def fork_server_closed() -> Iterator[None]:
    """The process that the command is forked from ends with the tests."""
    yield
    close_fork_server()


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="session")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture
def fresh_trust(monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    """No variable names certificates to trust, and none are remembered."""
    monkeypatch.delenv("SSL_CERT_FILE", raising=False)
    monkeypatch.delenv("SSL_CERT_DIR", raising=False)
    dial._load.cache_clear()
    yield monkeypatch
    dial._load.cache_clear()
