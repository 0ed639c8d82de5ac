"""What an engineer does in the first hour: `help`, completion, and asking a name for its signature."""

from __future__ import annotations

import asyncio
import inspect
import pydoc
from importlib import import_module

import pytest

from robota import Plugin, Robota, Session, _stubs, run_sync, tool
from robota.core import SessionBusyError
from robota.testing import ScriptedProvider

HAVE_NONE = (BaseException, dict)
"""Types whose constructors are not ours to describe."""


def public_names() -> list[tuple[str, str]]:
    return [(package, name) for package in _stubs.PACKAGES for name in sorted(import_module(package)._HOMES)]


@pytest.mark.parametrize("package", _stubs.PACKAGES)
def test_help_of_a_package_names_what_it_has(package: str) -> None:
    text = pydoc.plain(pydoc.render_doc(import_module(package)))

    assert all(name in text for name in import_module(package).__all__)


def test_help_and_signature_of_every_public_name() -> None:
    failed = []
    for package, name in public_names():
        value = getattr(import_module(package), name)
        try:
            if not isinstance(value, str):
                assert pydoc.render_doc(value)
            if inspect.isfunction(value) or (inspect.isclass(value) and not issubclass(value, HAVE_NONE)):
                inspect.signature(value)
        except Exception as error:  # noqa: BLE001 - all failures are listed at once
            failed.append(f"{package}.{name}: {error!r}")
    assert failed == []


def test_every_public_class_and_function_says_what_it_is() -> None:
    silent = [
        f"{package}.{name}"
        for package, name in public_names()
        if inspect.isclass(value := getattr(import_module(package), name)) or inspect.isfunction(value)
        if not (value.__doc__ or "").strip() or (value.__doc__ or "").startswith(name + "(")
    ]
    assert silent == []


def test_a_tool_keeps_its_signature() -> None:
    @tool
    def add(a: int, b: int = 2) -> int:
        """Add."""
        return a + b

    assert str(inspect.signature(add)) == "(a: 'int', b: 'int' = 2) -> 'int'"
    assert add(1) == 3


def test_code_without_a_loop_closes_what_it_used() -> None:
    disposed = []

    class Watch(Plugin):
        name = "watch"

        async def dispose(self) -> None:
            disposed.append(self.name)

    with Robota(ScriptedProvider("hello"), plugins=[Watch()]) as agent:
        assert agent.run_sync("hi").text == "hello"
    assert disposed == ["watch"]

    with Session(provider=ScriptedProvider("hello")) as session:
        assert session.run_sync("hi") == "hello"
    with pytest.raises(SessionBusyError, match="was shut down"):
        session.run_sync("again")
    assert run_sync(asyncio.sleep(0, "done")) == "done"
