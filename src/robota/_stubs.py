"""Writes the type stubs of the packages whose names are loaded lazily: `python -m robota._stubs`."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from pathlib import Path

HEADER = '"""What type checkers see; written by `python -m robota._stubs`."""\n\n'
PACKAGES = (
    "robota", "robota.core", "robota.core.hooks", "robota.core.permissions", "robota.plugins",
    "robota.sessions", "robota.tools", "robota.sdk", "robota.sdk.settings", "robota.testing",
    "robota.transports",
)  # fmt: skip


def stub_text(modules: Mapping[str, str], *, version: bool = False) -> str:
    lines = [HEADER]
    if version:
        lines.append("from robota._version import __version__ as __version__\n")
    for module in sorted(modules):
        lines += [f"from {module} import {name} as {name}\n" for name in sorted(modules[module].split())]
    return "".join(lines)


def stubs() -> dict[Path, str]:
    """Path and text of every stub."""
    found = {}
    for name in PACKAGES:
        package = import_module(name)
        path = Path(str(package.__file__)).with_suffix(".pyi")
        found[path] = stub_text(package._MODULES, version=name == "robota")
    return found


if __name__ == "__main__":
    for path, text in stubs().items():
        path.write_text(text)
