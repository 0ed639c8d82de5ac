"""The prompts of a project, as they were typed, for the next session in it."""

from __future__ import annotations

import hashlib
import os
from contextlib import suppress

import msgspec

from robota.core.private_directory import make_private_directories
from robota.sdk.view.shown_session import ShownSession, hide_secrets

KEPT = 2000
"""Prompts that are loaded."""
LONGEST = 20_000
"""Characters of a prompt that is kept."""


def load_prompts(path: str) -> list[str]:
    """The prompts of a file with one JSON text a line, the newest last; what cannot be read is not there."""
    try:
        with open(path, "rb") as file:
            lines = file.read().splitlines()[-KEPT:]
    except OSError:
        return []
    prompts: list[str] = []
    for line in lines:
        with suppress(msgspec.DecodeError):
            prompts.append(msgspec.json.decode(line, type=str))
    return prompts


def keep_prompt(path: str, prompt: str, session: ShownSession) -> None:
    """Add one, without the secrets in it; without a place for it, it is not kept."""
    if len(prompt) > LONGEST:
        return
    kept = hide_secrets(session, prompt)
    with suppress(OSError):
        make_private_directories(os.path.dirname(path))
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            os.write(file, msgspec.json.encode(kept) + b"\n")  # one write, so that sessions do not mix
        finally:
            os.close(file)


def history_path(robota_home: str, cwd: str) -> str:
    name = os.path.basename(cwd) or "root"
    digest = hashlib.sha256(os.fsencode(cwd)).hexdigest()[:12]
    return os.path.join(robota_home, "prompts", f"{name}-{digest}.jsonl")
