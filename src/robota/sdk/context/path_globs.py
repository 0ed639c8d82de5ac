"""Globs of paths, as rules and settings have them."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from robota.core.messages import Json
from robota.tools.search.glob_pattern import GlobError, compile_paths, expand_braces, translate


@lru_cache(maxsize=1_000)
def compile_globs(globs: tuple[str, ...]) -> Callable[[str], bool]:
    """Whether a path matches one of them; a leading slash is the same on both sides."""
    sources = [translate(one.strip("/")) for glob in globs for one in expand_braces(glob)]
    expression = compile_paths(sources)

    def matches(path: str) -> bool:
        text = path.strip("/").encode("utf-8", "surrogateescape")
        return expression is not None and expression.fullmatch(text) is not None

    return matches


def read_globs(value: Json) -> tuple[tuple[str, ...], str]:
    """Globs given as a list or as a text with commas between them, and what is wrong with them."""
    if value is None:
        return (), ""
    given = value if isinstance(value, list) else _split(str(value))
    globs = tuple(text.removeprefix("./") for each in given if (text := str(each).strip()))
    try:
        for glob in globs:
            for one in expand_braces(glob):
                translate(one)
    except GlobError as error:
        return (), f"The glob {glob} cannot be used, because {error}"
    return globs, ""


def _split(text: str) -> list[str]:
    """At commas that do not stand in braces."""
    words, depth = [""], 0
    for letter in text.strip().removeprefix("[").removesuffix("]"):
        depth += (letter == "{") - (letter == "}")
        if letter == "," and not depth:
            words.append("")
        else:
            words[-1] += letter
    return [word.strip().strip("\"'") for word in words]
