"""The prompts of a project, as they were typed, for the next session in it."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable
from contextlib import suppress

import msgspec
from prompt_toolkit.history import History

KEPT = 2000
"""Prompts that are loaded."""
LONGEST = 20_000
"""Characters of a prompt that is kept."""


class PromptHistory(History):
    """A file with one JSON text a line, the newest at the end; what cannot be read is not there."""

    def __init__(self, path: str) -> None:
        super().__init__()
        self._path = path

    def load_history_strings(self) -> Iterable[str]:
        try:
            with open(self._path, "rb") as file:
                lines = file.read().splitlines()[-KEPT:]
        except OSError:
            return
        for line in reversed(lines):
            with suppress(msgspec.DecodeError):
                yield msgspec.json.decode(line, type=str)

    def store_string(self, string: str) -> None:
        if len(string) > LONGEST:
            return
        with suppress(OSError):
            os.makedirs(os.path.dirname(self._path), mode=0o700, exist_ok=True)
            file = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
            try:
                os.write(file, msgspec.json.encode(string) + b"\n")  # one write, so that sessions do not mix
            finally:
                os.close(file)


def history_path(robota_home: str, cwd: str) -> str:
    name = os.path.basename(cwd) or "root"
    digest = hashlib.sha256(os.fsencode(cwd)).hexdigest()[:12]
    return os.path.join(robota_home, "prompts", f"{name}-{digest}.jsonl")
