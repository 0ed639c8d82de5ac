"""Parts of robota that need packages which are not installed with it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from robota.core.errors import ConfigurationError


@contextmanager
def needing(extra: str, what: str) -> Iterator[None]:
    """Imports inside may fail because the extra is not installed: then one sentence says so."""
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("robota"):
            raise
        raise ConfigurationError(
            f"{what} needs the package {error.name}: pip install 'robota[{extra}]'"
        ) from error
