"""A position in a shell text, and lines joined by a backslash at their end.

Bash joins lines while it reads characters, before it sees words, operators, keywords or `$(`. Single quotes,
comments and quoted here-documents keep both characters: `Reader.written` gives them back. Only a comment
ends at such a line end, so a line that may hold one is left as it is; whoever meets the backslash there skips
it where it stands between words and asks everywhere else.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable
from itertools import pairwise

from msgspec import Struct

from robota.core.shell.script import Redirection, Script, ShellSyntaxError

MAXIMUM_DEPTH = 30
JOINT = "\\\n"

_JOINT = re.compile(r"(?<!\\)(?:\\\\)*(\\\n)")
"""An odd number of backslashes: those before the last one escape each other."""
_COMMENT_START = re.compile(r"(?<![^\s;&|()<>`])#")


def _join_lines(source: str) -> tuple[str, list[int]]:
    """A text as bash reads it, and where in it line ends were taken out."""
    kept: list[str] = []
    joints: list[int] = []
    start = 0
    for found in _JOINT.finditer(source):
        position = found.start(1)
        line = source.rfind("\n", 0, position) + 1
        if _COMMENT_START.search(source, line, position) is None:
            kept.append(source[start:position])
            start = position + len(JOINT)
            joints.append(start - len(JOINT) * (len(joints) + 1))
    return "".join([*kept, source[start:]]), joints


class Reader(Struct, eq=False):
    """A position in the text, what has been found so far, and how deep we are."""

    src: str
    script: Script
    read_commands: Callable[[Reader, str], None]
    depth: int = 0
    scope: tuple[int, ...] = ()
    chain: int = 0
    piped: bool = False
    pos: int = 0
    heredocs: list[tuple[str, bool, bool, Redirection]] = []
    joints: list[int] = []

    def __post_init__(self) -> None:
        if JOINT in self.src:
            self.src, self.joints = _join_lines(self.src)

    def written(self, start: int, end: int) -> str:
        """The stretch between two positions as it was written."""
        joints = self.joints[bisect_left(self.joints, start) : bisect_right(self.joints, end)]
        return JOINT.join(self.src[a:b] for a, b in pairwise([start, *joints, end]))

    def peek(self, length: int = 1) -> str:
        return self.src[self.pos : self.pos + length]

    def skip(self, text: str) -> bool:
        """Move over a text, if it is here."""
        found = self.src.startswith(text, self.pos)
        self.pos += len(text) if found else 0
        return found

    def take(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        """Move over what a pattern matches here, if it does."""
        found = pattern.match(self.src, self.pos)
        self.pos = self.pos if found is None else found.end()
        return found

    def at_end(self) -> bool:
        return self.pos >= len(self.src)

    def enter(self) -> None:
        self.depth += 1
        if self.depth > MAXIMUM_DEPTH:
            raise ShellSyntaxError("nested too deeply to be judged")

    def leave(self) -> None:
        self.depth -= 1

    def read_nested(self, closing: str) -> None:
        """Read commands in a subshell of their own up to and including `closing`."""
        outer = self.scope, self.chain, self.piped, self.heredocs
        self.enter()
        self.scope, self.heredocs = (*self.scope, self.script.next_scope()), []
        self.read_commands(self, closing)
        self.leave()
        self.scope, self.chain, self.piped, self.heredocs = outer

    def read_inner_source(self, source: str) -> None:
        """Read commands from text that had to be unescaped first (backquotes)."""
        Reader(source, self.script, self.read_commands, self.depth, self.scope).read_nested("")
