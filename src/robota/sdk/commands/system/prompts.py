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
    attribution = host.project.settings.get("attribution.commit")
    if attribution is None:
        return _ask("commit", 2, args)
    said = f"End each message with these lines:\n{attribution}" if attribution else "Do not say who wrote it."
    return _ask("commit", 2, args, said)


def _ask(name: str, part: int, args: str, more: str = "") -> CommandResult:
    typed, wish = f"/{name} {args}".rstrip(), args.strip()
    text = "\n\n".join(filter(None, (text_beside(__file__, part)(), more)))
    prompt = SubmitPrompt(f"{text}\n\nThe user adds: {wish}" if wish else text, typed, typed)
    return CommandResult(typed, effect=prompt)
