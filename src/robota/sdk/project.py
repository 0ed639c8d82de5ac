"""What a directory has to say to a session: everything that is read from files, as one value.

It is read in one go, before the session is made, and again when a file changes; nothing of it acts by itself.
"""

from __future__ import annotations

from msgspec import Struct

from robota.sdk.agents.loader import Agents, load_agents
from robota.sdk.context.instructions import Reading
from robota.sdk.context.loading import ProjectContext, load_context
from robota.sdk.places import Places
from robota.sdk.problems import Problem


class Project(Struct, frozen=True, kw_only=True):
    """A project as it was when its files were read."""

    places: Places
    context: ProjectContext
    trusted: bool = False
    agents: Agents = Agents()
    problems: tuple[Problem, ...] = ()


def load_project(
    places: Places, *, trust: bool | None = None, allow_outside_imports: bool = False
) -> Project:
    """Read the files of a project and those of its user. `trust` overrides what the user once said."""
    context = load_context(Reading(places=places, imports_allowed=allow_outside_imports))
    agents = load_agents(places, trusted=bool(trust))
    return Project(
        places=places,
        trusted=bool(trust),
        context=context,
        agents=agents,
        problems=(*context.problems, *agents.problems),
    )
