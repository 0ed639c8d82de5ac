"""Lines that begin with a slash: which command they name, and what stands behind it."""

from __future__ import annotations

from msgspec import Struct

from robota.core.messages import Prompt
from robota.sdk.commands.registry import Command, CommandRegistry


class SlashLine(Struct, frozen=True):
    command: Command
    args: str


def read_slash(text: Prompt, registry: CommandRegistry) -> SlashLine | None:
    """The command that a line calls. One whose first word names nothing known is ordinary text: paths begin
    with a slash too."""
    if not isinstance(text, str) or not text.startswith("/"):
        return None
    word, *rest = text[1:].split(maxsplit=1) if text[1:2].strip() else [""]
    command = registry.find(word) if word else None
    return None if command is None else SlashLine(command, rest[0].rstrip() if rest else "")
