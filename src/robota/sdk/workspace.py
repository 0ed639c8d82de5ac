"""The directories a session works in, and the question that comes before a file elsewhere is touched.

The permission table lets reading tools run everywhere; this guard adds what it cannot know: reading outside
the workspace asks once per directory, writing outside asks every time.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence

from robota.core.permissions.subjects import FILE_KINDS, Subject, subjects
from robota.core.tool_call import PreparedCall
from robota.sessions.permissions.live_rules import LiveRules
from robota.tools.files.path import contained


def find_outside(
    touched: Iterable[Subject], root: str, own: Sequence[str], visited: Sequence[str] = ()
) -> str | None:
    """The first directory outside of `own` that is touched; `visited` may be read too."""
    for subject in touched:
        if subject.kind in FILE_KINDS and isinstance(subject.value, str):
            path = os.path.join(root, subject.value)
            if not contained(path, own if subject.kind == "write" else (*own, *visited)):
                return path if os.path.isdir(path) else os.path.dirname(path)
    return None


class Workspace:
    def __init__(self, root: str, rules: LiveRules) -> None:
        """`rules` know which directories belong to it besides `root`, at any time."""
        self._root = root
        self._rules = rules
        self._visited: list[str] = []
        """Directories outside that the user let a call read."""

    def outside(self, call: PreparedCall) -> str | None:
        """The directory outside the workspace that this call would touch, if it would."""
        own = (self._root, *self._rules.additional_dirs)
        touched = subjects(call.request.name, call.arguments, call.tool)
        return find_outside(touched, self._root, own, self._visited)

    def remember(self, call: PreparedCall, directory: str) -> None:
        """The user let this call go there: for reading, nobody is asked again."""
        touched = subjects(call.request.name, call.arguments, call.tool)
        if all(subject.kind != "write" for subject in touched):
            self._visited.append(directory)
