"""A git worktree of its own for a whole session, as subagents have them for a task."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from msgspec.structs import replace

from robota.core.messages import JsonObject
from robota.core.ports import new_uuid
from robota.sdk.agents.runner import SubagentOptions
from robota.sdk.agents.worktree import create_worktree, settle_worktree
from robota.sdk.places import Places
from robota.sdk.project import ProjectOptions, load_project
from robota.sdk.trust import Trust, TrustStore
from robota.sessions.hooks import LiveHooks

NAME = "session"


@asynccontextmanager
async def own_worktree(
    checkout: ProjectOptions, name: str, tell: Callable[[str], object]
) -> AsyncIterator[str]:
    """A directory in a new worktree of the repository, called after `name`. Behind the block it is removed if
    nothing was changed in it; else `tell` hears where it is. It is trusted as far as the checkout is."""
    project, places = load_project(checkout), checkout.places
    settings = project.settings

    def describe(event: str) -> JsonObject:
        return {"hook_event_name": event, "cwd": places.cwd, "session_id": ""}

    hooks = LiveHooks(settings.hooks, common=describe, report=lambda outcome, call: None)
    options = SubagentOptions.of(settings).worktrees
    tree = await create_worktree(places.cwd, name or NAME, hooks, new_uuid, options)
    store = TrustStore(places.robota_home, home=places.home)
    try:
        _hand_on_trust(store, project.trust, replace(places, cwd=tree.cwd))
        yield tree.cwd
    finally:
        facts = await settle_worktree(tree, hooks)
        if facts["worktreeStatus"] == "removed":
            _forget(store, tree.cwd)
        else:
            tell(f"The worktree is {tree.path}. {facts['worktreeNextAction']}")


def _forget(store: TrustStore, directory: str) -> None:
    if os.path.realpath(directory) in store.directories:
        store.forget(directory)


def _hand_on_trust(store: TrustStore, trust: Trust, places: Places) -> None:
    """What the user agreed to in the checkout they agree to here; anything else is asked about."""
    if trust.state == "trusted":
        wishes = load_project(ProjectOptions(places=places)).trust.wishes
        if wishes and set(wishes.all) <= set(trust.wishes.all):
            store.trust(places.cwd, wishes)
