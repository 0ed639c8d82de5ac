"""Commands that are prompts: what they ask of the model is written in `prompts.md`, one part for each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from robota.sdk.commands.effects import CommandResult, SubmitPrompt
from robota.tools.function_tool import text_beside

if TYPE_CHECKING:
    from robota.sdk.interactive import InteractiveSession


def init(host: InteractiveSession, args: str) -> CommandResult:
    return _ask("init", 0, args)


def review(host: InteractiveSession, args: str) -> CommandResult:
    return _ask("review", 1, args)


def commit(host: InteractiveSession, args: str) -> CommandResult:
    return _ask("commit", 2, args)


def _ask(name: str, part: int, args: str) -> CommandResult:
    typed, wish = f"/{name} {args}".rstrip(), args.strip()
    text = text_beside(__file__, part)()
    prompt = SubmitPrompt(f"{text}\n\nThe user adds: {wish}" if wish else text, typed, typed)
    return CommandResult(typed, effect=prompt)
