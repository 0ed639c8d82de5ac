"""The directories a session works in, and the question that comes before a file elsewhere is touched.

The permission table lets reading tools run everywhere; this guard adds what it cannot know: reading outside
the workspace asks once per directory, writing outside asks every time.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from robota.core.messages import Json
from robota.tools.files.path import contained

_READERS = {"Read": "file_path", "Glob": "path", "Grep": "path"}
_WRITERS = {"Write": "file_path", "Edit": "file_path"}
_OTHER_SPELLINGS = {"file_path": "filePath"}


class Workspace:
    def __init__(self, root: str, additional: Sequence[str] = ()) -> None:
        self._root = root
        self._writable = (root, *additional)
        self._readable = [root, *additional]

    def outside(self, tool_name: str, arguments: Mapping[str, Json]) -> str | None:
        """The directory outside the workspace that this call would touch, if it would."""
        field = _READERS.get(tool_name) or _WRITERS.get(tool_name)
        if field is None:
            return None
        given = arguments.get(field, arguments.get(_OTHER_SPELLINGS.get(field, field)))
        if not isinstance(given, str):
            return None
        path = os.path.join(self._root, given)
        roots = self._readable if tool_name in _READERS else self._writable
        if contained(path, roots):
            return None
        return path if os.path.isdir(path) else os.path.dirname(path)

    def remember(self, tool_name: str, directory: str) -> None:
        """The user let this tool go there: a reader is not asked again."""
        if tool_name in _READERS:
            self._readable.append(directory)
