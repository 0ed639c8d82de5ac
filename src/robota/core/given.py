"""Whether what somebody gave is what belongs there, and what they may have meant by a name that is wrong.

A slip in an option that guards something must not turn the guard off: it raises where it is made.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from robota.core.errors import ConfigurationError


def require_texts(place: str, given: object) -> tuple[str, ...]:
    """A list of texts as a tuple. A bare string would be read letter by letter, so it is refused."""
    if isinstance(given, str):
        raise ConfigurationError(
            f"{place} is a list of texts, not one text: write {place.rpartition('.')[2]}=({given!r},)."
        )
    if not isinstance(given, list | tuple) and (
        isinstance(given, (Mapping, bytes)) or not isinstance(given, Iterable)
    ):
        raise ConfigurationError(f"{place} is a list of texts, not {kind_of_value(given)}.")
    texts = tuple(given)
    for position, text in enumerate(texts):
        if not isinstance(text, str):
            raise ConfigurationError(
                f"{place}[{position}] is {kind_of_value(text)}; only texts belong there."
            )
    return texts


def refuse_unknown(what: str, given: Iterable[str], known: Iterable[str]) -> None:
    """Raise for an option that is not there, as Python does for a function that takes no others."""
    names = tuple(known)
    for name in given:
        if name not in names:
            raise TypeError(f"{what} has no option {name!r}; {suggest(name, names)}")


def require_kind(place: str, given: object, *kinds: type[Any]) -> None:
    if not isinstance(given, kinds):
        names = " or ".join(kind.__name__ for kind in kinds if kind is not type(None))
        raise ConfigurationError(f"{place} takes {names}, not {kind_of_value(given)}.")


def kind_of_value(value: object) -> str:
    """What a value is, in words."""
    names = {type(None): "None", dict: "a dict", list: "a list", tuple: "a tuple", str: "a text"}
    return names.get(type(value)) or f"a value of type {type(value).__name__}"


def nearest(name: str, known: Iterable[str], likeness: float = 0.6) -> str | None:
    """The known name that somebody who wrote this one probably meant."""
    from difflib import get_close_matches  # noqa: PLC0415 - only a mistake needs it

    spellings = {each.casefold(): each for each in known}
    close = get_close_matches(name.casefold(), spellings, 1, likeness)
    return spellings[close[0]] if close else None


def suggest(name: str, known: Iterable[str]) -> str:
    """The end of a sentence about a wrong name: which one was meant, or which there are."""
    names = tuple(known)
    near = nearest(name, names)
    return f"did you mean {near!r}?" if near else f"there are {', '.join(sorted(names)) or 'none'}."
