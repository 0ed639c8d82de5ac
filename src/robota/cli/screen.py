"""The door to the terminal: nothing that goes through it moves the cursor or turns text around.

Whoever prints need not think of it: models, files, servers and arguments all have their say in some sentence.
"""

from __future__ import annotations

import io
import os
import sys
from typing import TextIO

from robota.sdk.view.neutral import strip_all


class Screen(io.TextIOWrapper):
    """A text stream that is written to through `strip_all`, and that takes every character. That it cannot
    be written is raised once; whatever is written then leads nowhere."""

    def __init__(self, stream: TextIO) -> None:
        super().__init__(
            stream.buffer,
            encoding=stream.encoding,
            errors="replace",
            line_buffering=stream.isatty(),
        )
        self._wrapped = stream  # which closes the file when nobody has it any more

    def write(self, text: str) -> int:
        super().write(strip_all(text))
        return len(text)

    def flush(self) -> None:
        try:
            super().flush()
        except OSError:
            lead_nowhere(self.fileno())
            raise


def lead_nowhere(fd: int) -> None:
    """Let what could not be written be gone, or it is tried again with everything that follows."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, fd)
    os.close(nowhere)


def prepare_output() -> None:
    """Have standard streams that exist and that are screens. Where stdout is closed whatever is written
    fails, as on a full disk: an answer that nobody gets is no success. A closed stderr leads nowhere."""
    for name, flags in (("stdout", os.O_RDONLY), ("stderr", os.O_WRONLY)):
        stream = getattr(sys, name)
        if stream is None:
            stream = open(os.open(os.devnull, flags), "w", encoding="utf-8")  # noqa: SIM115 - lives with us
        if hasattr(stream, "buffer"):
            setattr(sys, name, Screen(stream))


def prepare_input() -> None:
    """Read what is typed as UTF-8 where the locale knows only ASCII: whoever types more has a terminal that
    knows more, and the rest is the same."""
    import codecs  # noqa: PLC0415 - Python has loaded it

    if codecs.lookup(sys.stdin.encoding).name == "ascii":
        sys.stdin.reconfigure(encoding="utf-8")  # type: ignore[union-attr]  # it is a TextIOWrapper


def say_warnings_in_one_line() -> None:
    """Let what libraries log or warn of be a sentence, without where in the code it came from."""
    import logging  # noqa: PLC0415 - asyncio has loaded it
    import warnings  # noqa: PLC0415

    class OneLine(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            print(f"robota: {record.getMessage()}", file=sys.stderr)

    logging.lastResort = OneLine(logging.WARNING)
    warnings.showwarning = lambda message, *_: print(f"robota: {message}", file=sys.stderr)
