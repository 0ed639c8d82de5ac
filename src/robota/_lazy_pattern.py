"""Regular expressions that are compiled when they are first used.

Compiling takes as long as a search of many pages, and a program that asks one question needs few of the
patterns that its modules have.
"""

from __future__ import annotations

import re
from typing import Any, AnyStr, cast

_METHODS = ("findall", "finditer", "fullmatch", "match", "search", "split", "sub", "subn")


class _LazyPattern:
    __slots__ = ("_flags", "_source", *_METHODS)

    def __init__(self, source: str | bytes, flags: int) -> None:
        self._source = source
        self._flags = flags

    def __getattr__(self, name: str) -> Any:
        """Called once for a method, because the methods are not there before."""
        compiled = re.compile(self._source, self._flags)
        for method in _METHODS:
            setattr(self, method, getattr(compiled, method))
        return getattr(compiled, name)


def lazy_pattern(source: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """Stands for the compiled pattern wherever its methods are called."""
    return cast("re.Pattern[AnyStr]", _LazyPattern(source, flags))
