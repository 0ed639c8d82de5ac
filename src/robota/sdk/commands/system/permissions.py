"""What may run without a question: the mode, what users allowed, and what a project may."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast, get_args

from robota.core.permissions import PermissionMode, evaluate_permission
from robota.sdk.commands.arguments import split_first, usage
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


async def trust(host: InteractiveSession, args: str) -> CommandResult:
    found, word = host.project.trust, args.strip()
    if word == "yes":
        await host.trust_project()
        return CommandResult(f"You trust {found.directory}: what it wants counts from now on.")
    if word == "imports":
        await host.allow_outside_imports()
        return CommandResult("The instructions of this project may import files from outside it.")
    if word:
        return usage("trust", "[yes | imports]", f"{word!r} is no answer.")
    imports = host.describe_outside_imports()
    imports += ["If they may: /trust imports"] if imports else []
    if question := host.describe_trust():
        return CommandResult("\n".join([*question, "If you trust it: /trust yes", *imports]))
    state = "is trusted" if found.trusted else "is not trusted, and wants nothing that would need it"
    return CommandResult("\n".join([f"{found.directory} {state}.", *found.wishes.describe(), *imports]))


def is_denied(host: InteractiveSession, tool: str, **arguments: str) -> bool:
    """Whether a deny rule forbids what a command is about to do for its user; what would be asked about, the
    user has answered by calling it."""
    terms = host.session.rules.terms(host.session.cwd)
    facts = {**terms.as_arguments(), "mode": "bypassPermissions", "allow": (), "ask": ()}
    return evaluate_permission(tool, arguments, **facts) == "deny"
