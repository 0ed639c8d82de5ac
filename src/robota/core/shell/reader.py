"""A position in a shell text, and lines joined by a backslash at their end.

Bash joins lines while it reads characters, before it sees words, operators, keywords or `$(`. Single quotes,
comments and quoted here-documents keep both characters: `JoinedText.written` gives them back. Only a comment
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
    joined: JoinedText = JoinedText("")

    def __post_init__(self) -> None:
        self.joined = JoinedText(self.src)
        self.src = self.joined.text

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
