"""What may run without a question: the mode, and what users allowed."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast, get_args

from robota.core.permissions import PermissionMode
from robota.sdk.commands.arguments import split_first
from robota.sdk.commands.effects import CommandResult, ModeSet, PermissionsShown, failure

if TYPE_CHECKING:
    from robota.sdk.interactive import InteractiveSession


def mode(host: InteractiveSession, args: str) -> CommandResult:
    wanted, _ = split_first(args)
    if not wanted:
        current = host.session.permission_mode
        return CommandResult(f"Current mode: {current}", effect=ModeSet(current))
    if wanted not in get_args(PermissionMode):
        return failure(f"Invalid mode. Valid: {' | '.join(get_args(PermissionMode))}")
    host.permission_mode = cast("PermissionMode", wanted)
    return CommandResult(f"Permission mode set to: {wanted}", effect=ModeSet(wanted))


def permissions(host: InteractiveSession, args: str) -> CommandResult:
    live = host.session.rules
    allowed, rules = live.granted, live.rules
    lines = [f"Permission mode: {rules.mode}"]
    lines.append(f"Allowed for this session: {', '.join(allowed) or 'nothing'}")
    for name, texts in (("Deny", rules.deny), ("Ask", rules.ask), ("Allow", rules.allow)):
        lines += [f"{name}: {text}" for text in texts]
    return CommandResult("\n".join(lines), effect=PermissionsShown(rules.mode, allowed))
