"""Writes the type stubs of the packages whose names are loaded lazily: `python -m robota._stubs`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

HEADER = '"""What type checkers see; written by `python -m robota._stubs`."""\n\n'


def stub_text(modules: Mapping[str, str], *, version: bool = False) -> str:
    lines = [HEADER]
    if version:
        lines.append("from robota._version import __version__ as __version__\n")
    for module in sorted(modules):
        lines += [f"from {module} import {name} as {name}\n" for name in sorted(modules[module].split())]
    return "".join(lines)


def stubs() -> dict[Path, str]:
    """Path and text of every stub."""
    import robota  # noqa: PLC0415 - the tables are read when asked for
    import robota.core  # noqa: PLC0415

    root = Path(robota.__file__).parent
    return {
        root / "__init__.pyi": stub_text(robota._MODULES, version=True),  # type: ignore[attr-defined]  # the stub hides it
        root / "core" / "__init__.pyi": stub_text(robota.core._MODULES),  # type: ignore[attr-defined]  # as above
    }


if __name__ == "__main__":
    for path, text in stubs().items():
        path.write_text(text)
