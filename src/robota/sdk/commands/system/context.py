"""The context window: how full it is, and what is kept in it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from robota.sdk.commands.effects import CommandResult, ContextShown

if TYPE_CHECKING:
    from robota.sdk.interactive import InteractiveSession


def context(host: InteractiveSession, args: str) -> CommandResult:
    state = host.session.context_state
    used = f"{state.used_tokens:,} / {state.max_tokens:,} tokens ({state.used_percentage:.0f}%)"
    effect = ContextShown(state.used_tokens, state.max_tokens, state.used_percentage)
    return CommandResult(f"Context: {used}", effect=effect)
