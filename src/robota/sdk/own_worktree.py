"""A git worktree of its own for a whole session, as subagents have them for a task."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from robota.core.messages import JsonObject
from robota.core.ports import new_uuid
from robota.sdk.agents.runner import SubagentOptions
from robota.sdk.agents.worktree import create_worktree, settle_worktree
from robota.sdk.places import Places
from robota.sdk.project import ProjectOptions, load_project
from robota.sessions.hooks import LiveHooks

NAME = "session"


@asynccontextmanager
async def own_worktree(places: Places, name: str, tell: Callable[[str], object]) -> AsyncIterator[str]:
    """A directory in a new worktree of the repository, called after `name`. Behind the block it is removed if
    nothing was changed in it; else `tell` hears where it is."""
    settings = load_project(ProjectOptions(places=places)).settings

    def describe(event: str) -> JsonObject:
        return {"hook_event_name": event, "cwd": places.cwd, "session_id": ""}

    hooks = LiveHooks(settings.hooks, common=describe, report=lambda outcome, call: None)
    options = SubagentOptions.of(settings).worktrees
    tree = await create_worktree(places.cwd, name or NAME, hooks, new_uuid, options)
    try:
        yield tree.cwd
    finally:
        facts = await settle_worktree(tree, hooks)
        if facts["worktreeStatus"] != "removed":
            tell(f"The worktree is {tree.path}. {facts['worktreeNextAction']}")
