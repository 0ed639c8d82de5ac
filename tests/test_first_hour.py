"""What an engineer does in the first hour: `help`, completion, and asking a name for its signature."""

from __future__ import annotations

import inspect
import pydoc
from importlib import import_module

import pytest

from robota import _stubs


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
            if (inspect.isclass(value) and not issubclass(value, BaseException)) or inspect.isfunction(value):
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
