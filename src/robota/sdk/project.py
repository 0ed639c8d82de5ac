"""What a directory has to say to a session: everything that is read from files, as one value.

It is read in one go, before the session is made, and again when a file changes; nothing of it acts by itself.
"""

from __future__ import annotations

from msgspec import Struct

from robota.sdk.places import Places
from robota.sdk.problems import Problem


class Project(Struct, frozen=True, kw_only=True):
    """A project as it was when its files were read."""

    places: Places
    trusted: bool = False
    problems: tuple[Problem, ...] = ()


def load_project(places: Places, *, trust: bool | None = None) -> Project:
    """Read the files of a project and those of its user. `trust` overrides what the user once said."""
    return Project(places=places, trusted=bool(trust))
