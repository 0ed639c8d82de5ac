"""What goes on inside, written where `ROBOTA_LOG` says."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING

from robota.core.errors import ConfigurationError

if TYPE_CHECKING:
    import logging

    from robota.core.events import Event
    from robota.sdk.interactive import InteractiveSession

VARIABLE = "ROBOTA_LOG"
LONGEST = 300
"""Characters of one event."""


def start_log(environment: Mapping[str, str], *, debug: bool | str = False) -> bool:
    """Have the loggers below `robota` write to standard error from a level on (`debug`, `warning` …), or all
    of it to a file; to `debug` is to write all to standard error, or to the file that is named, where the
    variable says nothing. Whether every step is to be told."""
    named = debug if isinstance(debug, str) else "debug" if debug else ""
    wanted = environment.get(VARIABLE, "").strip() or named
    if not wanted:
        return False
    import logging  # noqa: PLC0415 - for those who ask for it

    level = logging.getLevelNamesMapping().get(wanted.upper())
    handler: logging.Handler
    try:
        handler = _open_file(os.path.expanduser(wanted)) if level is None else logging.StreamHandler()
    except OSError as error:
        raise ConfigurationError(
            f"The log cannot be written to {wanted} ({error.strerror}): name another file, or in {VARIABLE} "
            "a level such as debug."
        ) from error
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    logger = logging.getLogger("robota")
    logger.addHandler(handler)
    logger.setLevel(logging.DEBUG if level is None else level)
    return logger.level == logging.DEBUG


def _open_file(path: str) -> logging.Handler:
    """A file for nobody else, if it is new: what is said in a session is in it."""
    import logging  # noqa: PLC0415 - see above

    os.close(os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600))
    return logging.FileHandler(path)


def log_events(session: InteractiveSession) -> None:
    """Write down every step of a session but the pieces of its answers."""
    import logging  # noqa: PLC0415 - see above

    import msgspec  # noqa: PLC0415

    from robota.core.event_names import event_to_wire  # noqa: PLC0415
    from robota.core.events import TextDelta  # noqa: PLC0415

    logger = logging.getLogger("robota.session")

    def tell(event: Event) -> None:
        if not isinstance(event, TextDelta):
            text = msgspec.json.encode(event_to_wire(event)).decode()
            logger.debug("%s", text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…")

    session.events.subscribe(tell)
