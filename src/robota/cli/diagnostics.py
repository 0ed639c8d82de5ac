"""What goes wrong inside, written where `ROBOTA_LOG` says."""

from __future__ import annotations

import os
from collections.abc import Mapping

from robota.core.errors import ConfigurationError

VARIABLE = "ROBOTA_LOG"


def start_log(environment: Mapping[str, str]) -> None:
    """Have the loggers below `robota` write to standard error from a level on (`debug`, `warning` …), or all
    of it to a file."""
    wanted = environment.get(VARIABLE, "").strip()
    if not wanted:
        return
    import logging  # noqa: PLC0415 - for those who ask for it

    level = logging.getLevelNamesMapping().get(wanted.upper())
    handler: logging.Handler
    try:
        handler = (
            logging.FileHandler(os.path.expanduser(wanted)) if level is None else logging.StreamHandler()
        )
    except OSError as error:
        raise ConfigurationError(
            f"{VARIABLE} names a file that cannot be written, {wanted} ({error.strerror}): name another or "
            "a level such as debug."
        ) from error
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    logger = logging.getLogger("robota")
    logger.addHandler(handler)
    logger.setLevel(logging.DEBUG if level is None else level)
