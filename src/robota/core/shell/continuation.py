"""Lines joined by a backslash at their end.

Bash joins them while it reads characters, before it sees words, operators, keywords or `$(`. Single quotes,
comments and quoted here-documents keep both characters: `JoinedText.written` gives them back. Only a comment
ends at such a line end, so a line that may hold one is left as it is; whoever meets the backslash there skips
it where it stands between words and asks everywhere else.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from itertools import pairwise

JOINT = "\\\n"

_JOINT = re.compile(r"(?<!\\)(?:\\\\)*(\\\n)")
"""An odd number of backslashes: those before the last one escape each other."""
_COMMENT_START = re.compile(r"(?<![^\s;&|()<>`])#")


class JoinedText:
    """A text as bash reads it, and where line ends were taken out."""

    __slots__ = ("_joints", "text")

    def __init__(self, source: str) -> None:
        self.text = source
        self._joints: list[int] = []
        if JOINT in source:
            self._join(source)

    def _join(self, source: str) -> None:
        kept: list[str] = []
        start = 0
        for found in _JOINT.finditer(source):
            position = found.start(1)
            line = source.rfind("\n", 0, position) + 1
            if _COMMENT_START.search(source, line, position) is None:
                kept.append(source[start:position])
                start = position + len(JOINT)
                self._joints.append(start - len(JOINT) * (len(self._joints) + 1))
        self.text = "".join([*kept, source[start:]])

    def written(self, start: int, end: int) -> str:
        """The stretch between two positions as it was written."""
        joints = self._joints[bisect_left(self._joints, start) : bisect_right(self._joints, end)]
        if not joints:
            return self.text[start:end]
        return JOINT.join(self.text[a:b] for a, b in pairwise([start, *joints, end]))
