"""Choices that the caller carries out: another model, another language."""

from __future__ import annotations

from typing import TYPE_CHECKING

from robota.sdk.commands.arguments import split_first, usage
from robota.sdk.commands.effects import CommandResult, LanguageChosen, ModelChosen

if TYPE_CHECKING:
    from robota.sdk.interactive import InteractiveSession


def model(host: InteractiveSession, args: str) -> CommandResult:
    wanted, _ = split_first(args)
    if not wanted:
        return usage("model", "<id>", f"The model is {host.session.model}.")
    return CommandResult(f"Model: {wanted}", effect=ModelChosen(wanted))


def language(host: InteractiveSession, args: str) -> CommandResult:
    wanted, _ = split_first(args)
    if not wanted:
        return usage("language", "<code> (such as ko, en, ja, zh)")
    return CommandResult(f"Language: {wanted}", effect=LanguageChosen(wanted))
