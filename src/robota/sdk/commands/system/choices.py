"""Choices that the caller carries out: another model, another language, another provider."""

from __future__ import annotations

from typing import TYPE_CHECKING

from robota.sdk.commands.arguments import split_first, usage
from robota.sdk.commands.effects import CommandResult, LanguageChosen, ModelChosen, ProviderChosen

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


def provider(host: InteractiveSession, args: str) -> CommandResult:
    word, name = split_first(args)
    profiles = host.project.settings.profiles
    if word in ("", "current"):
        agent = host.session.agent
        profile = f", profile {profiles.current}" if profiles.current else ""
        return CommandResult(f"Provider: {agent.provider.name}, model {agent.model}{profile}")
    if word == "list":
        lines = [
            f"{'*' if name == profiles.current else ' '} {name}: "
            + ", ".join(filter(None, (each.type, each.model)))
            for name, each in profiles.profiles.items()
        ]
        return CommandResult("\n".join(lines) or "No provider profiles are configured.")
    if word != "switch" or not name:
        return usage("provider", "[current | list | switch NAME]")
    profiles.get(name)  # raises for a name that is not there
    return CommandResult(f"Provider: {name}", effect=ProviderChosen(name))
