"""Other rules, hooks and directories for a session at work."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, TypedDict

from msgspec import to_builtins

from robota.core.errors import ConfigurationError
from robota.core.events import SettingsChanged
from robota.core.messages import Json
from robota.sessions.hooks import GivenHooks, LiveHooks
from robota.sessions.permissions.live_rules import PermissionRules

if TYPE_CHECKING:
    from robota.sessions.session import Session


class Changes(TypedDict, total=False):
    """What may be given to `Session.reload`."""

    rules: PermissionRules
    hooks: GivenHooks
    additional_dirs: Iterable[str]


def reload(
    session: Session,
    *,
    rules: PermissionRules | None = None,
    hooks: GivenHooks = None,
    additional_dirs: Iterable[str] | None = None,
) -> None:
    changed: dict[str, Json] = {}
    if rules is not None:
        session.rules.check(rules)  # before anything has changed
    if hooks is not None:
        if not isinstance(session.hooks, LiveHooks):
            raise ConfigurationError("This session was given somebody who runs its hooks; ask them.")
        session.hooks.replace(hooks)
        changed["hooks"] = sorted(hooks)
    session.rules.replace(rules, additional_dirs=additional_dirs)
    if rules is not None:
        changed["permissions"] = to_builtins(rules)
    if additional_dirs is not None:
        changed["directories"] = list(session.rules.additional_dirs)
    if session.log.opened:  # before that its first record says so, and no number may be given
        session.log.tell(SettingsChanged, keys=tuple(changed), values=changed)
