"""The pytest plugin `robota_cassette`: a fixture that records provider traffic once and replays it offline.

Pytest loads this module in every run, so it loads nothing but what pytest has loaded; a test that asks for
the fixture pays for the rest. A cassette is written when its test passed.
"""

from __future__ import annotations

import os
import re
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from robota.testing.cassette import Cassette, Mode

MODES = ("none", "once", "all")
OPTIONS = ("name", "errors", "ignore")
PROPERTY = "robota_cassette"
LONGEST_NAME = 120
_CASSETTE: pytest.StashKey[Cassette] = pytest.StashKey()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.getgroup("robota").addoption(
        "--robota-cassette",
        choices=MODES,
        default=None,
        help="none: only replay cassettes; once: record those that do not exist; all: record every one anew. "
        "The default is none where CI is set, else once.",
    )


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers",
        "robota_cassette(name=..., errors=False, ignore=()): the cassette's file below cassettes/, whether "
        "replies that are errors are recorded, and fields of JSON bodies that do not count.",
    )


@pytest.fixture
def robota_cassette(request: pytest.FixtureRequest) -> Iterator[Cassette]:
    """Traffic of this test: from its cassette, or recorded into it."""
    from robota.testing.cassette import Cassette  # noqa: PLC0415 - see the module's docstring

    options = _options(request.node)
    path = cassette_path(request.node, options.pop("name", None))
    cassette = Cassette(path, mode=_mode(request.config), **options)
    request.node.stash[_CASSETTE] = cassette
    yield cassette
    del request.node.stash[_CASSETTE]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """What differs from the recording fails the test, also when the code under test swallowed the error."""
    passed = False
    try:
        result = yield
        passed = True
    finally:
        cassette = item.stash.get(_CASSETTE, None)
        if cassette is not None and not passed and cassette.misses:
            item.add_report_section("call", "robota_cassette", cassette.complaint())
    if cassette is not None:
        _finish(cassette, item)
    return result


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    reports = [report for found in terminalreporter.stats.values() for report in found]
    notes = [
        note
        for report in reports
        if getattr(report, "when", None) == "call"
        for name, note in report.user_properties
        if name == PROPERTY
    ]
    if notes:
        terminalreporter.section("robota cassettes")
        for note in notes:
            terminalreporter.write_line(str(note))


def cassette_path(item: pytest.Item, name: str | None) -> Path:
    """`cassettes/<module>/<test>.yaml` beside the test's file, or what the marker says below `cassettes`."""
    home = item.path.parent / "cassettes"
    if name is not None:
        return home / f"{name.removesuffix('.yaml')}.yaml"
    return home / item.path.stem / f"{_file_name(item)}.yaml"


def _file_name(item: pytest.Item) -> str:
    """A name that the test shares with no other: its classes, its function, its parameters."""
    whole = ".".join(item.nodeid.split("::")[1:])
    test, bracket, parameters = whole.removesuffix("]").partition("[")
    name = f"{test}-{parameters}" if bracket else test
    if re.fullmatch(r"[\w.-]+", name) and len(name) <= LONGEST_NAME:
        return name
    from hashlib import sha256  # noqa: PLC0415 - for parameters that no file can be named after

    plain = re.sub(r"[^\w.-]+", "-", name)[:LONGEST_NAME]
    return f"{plain}-{sha256(whole.encode()).hexdigest()[:8]}"


def _finish(cassette: Cassette, item: pytest.Item) -> None:
    from robota.core.errors import ConfigurationError  # noqa: PLC0415 - see the module's docstring
    from robota.testing.cassette import CassetteMismatch  # noqa: PLC0415

    try:
        notes = cassette.finish()
    except (CassetteMismatch, ConfigurationError, OSError) as error:
        raise pytest.fail.Exception(str(error), pytrace=False) from None
    item.user_properties.extend((PROPERTY, note) for note in notes)


def _options(item: pytest.Item) -> dict[str, Any]:
    """What the markers of the test say; the nearest wins."""
    options: dict[str, Any] = {}
    for marker in reversed(list(item.iter_markers("robota_cassette"))):
        unknown = [name for name in marker.kwargs if name not in OPTIONS]
        if marker.args or unknown:
            wrong = ", ".join(unknown) or repr(marker.args[0])
            pytest.fail(
                f"@pytest.mark.robota_cassette does not know {wrong}; it takes {', '.join(OPTIONS)} by name.",
                pytrace=False,
            )
        options.update(marker.kwargs)
    return options


def _mode(config: pytest.Config) -> Mode:
    chosen: Mode | None = config.getoption("--robota-cassette")
    if chosen is not None:
        return chosen
    return "none" if os.environ.get("CI", "").lower() not in ("", "0", "false") else "once"
