"""Whether what somebody gave is what belongs there, and what they may have meant by a name that is wrong.

A slip in an option that guards something must not turn the guard off: it raises where it is made.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from msgspec import Struct, StructMeta

from robota.core.errors import ConfigurationError


def require_texts(place: str, given: object) -> tuple[str, ...]:
    """A list of strings as a tuple. A bare string would be read letter by letter, so it is refused."""
    if isinstance(given, str):
        raise ConfigurationError(
            f"{place} is a list of strings, not one string: write {place.rpartition('.')[2]}=({given!r},)."
        )
    if not isinstance(given, list | tuple) and (
        isinstance(given, (Mapping, bytes)) or not isinstance(given, Iterable)
    ):
        raise ConfigurationError(f"{place} is a list of strings, not {kind_of_value(given)}.")
    texts = tuple(given)
    for position, text in enumerate(texts):
        if not isinstance(text, str):
            raise ConfigurationError(
                f"{place}[{position}] is {kind_of_value(text)}; only strings belong there."
            )
    return texts


def refuse_unknown(what: str, given: Iterable[str], known: Iterable[str]) -> None:
    """Raise for an option that is not there, as Python does for a function that takes no others."""
    names = tuple(known)
    for name in given:
        if name not in names:
            raise TypeError(f"{what} has no option {name!r}; {suggest(name, names)}")


if TYPE_CHECKING:
    OptionMeta = StructMeta  # a `__call__` of its own would hide the fields from type checkers
else:

    class OptionMeta(StructMeta):
        """Says which field was meant: msgspec names neither the class nor the field."""

        def __call__(self, *given, **fields):
            try:
                return super().__call__(*given, **fields)
            except TypeError:
                refuse_unknown(self.__name__, fields, self.__struct_fields__)
                raise


class Options(Struct, frozen=True, kw_only=True, metaclass=OptionMeta):
    """Options that people write: a misspelt one is named, with what was probably meant."""


def require_kind(place: str, given: object, *kinds: type[Any]) -> None:
    if not isinstance(given, kinds):
        names = " or ".join(kind.__name__ for kind in kinds if kind is not type(None))
        raise ConfigurationError(f"{place} takes {names}, not {kind_of_value(given)}.")


_PLAIN: dict[str, tuple[tuple[type, ...], str]] = {
    "bool": ((bool,), "True or False"),
    "int": ((int,), "a whole number"),
    "int | None": ((int, type(None)), "a whole number or None"),
    "float": ((int, float), "a number"),
    "float | None": ((int, float, type(None)), "a number or None"),
    "str": ((str,), "a string"),
    "str | None": ((str, type(None)), "a string or None"),
}


def check_fields(options: object) -> None:
    """Refuse values of the wrong type in the fields of plain types; the others are for whoever uses them."""
    for name, annotation in type(options).__annotations__.items():
        kinds, words = _PLAIN.get(annotation, ((object,), ""))
        value = getattr(options, name)
        if not isinstance(value, kinds):
            raise ConfigurationError(
                f"{type(options).__name__}.{name} takes {words}, not {kind_of_value(value)}."
            )


def check_count(name: str, value: int) -> int:
    """A usable limit: a whole number, not negative."""
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return value
    raise ConfigurationError(f"{name} must be a non-negative integer, not {value!r}.")


def kind_of_value(value: object) -> str:
    """What a value is, in words."""
    names = {type(None): "None", dict: "a dict", list: "a list", tuple: "a tuple", str: "a string"}
    return names.get(type(value)) or f"a value of type {type(value).__name__}"


def nearest(name: str, known: Iterable[str], likeness: float = 0.6) -> str | None:
    """The known name that somebody who wrote this one probably meant."""
    from difflib import get_close_matches  # noqa: PLC0415 - only a mistake needs it

    spellings = {each.casefold(): each for each in known}
    longer = [each for each in spellings if name.casefold() in each.split("_")]
    if len(longer) == 1:
        return spellings[longer[0]]
    close = get_close_matches(name.casefold(), spellings, 1, likeness)
    return spellings[close[0]] if close else None


def suggest(name: str, known: Iterable[str]) -> str:
    """The end of a sentence about a wrong name: which one was meant, or which there are."""
    names = tuple(known)
    near = nearest(name, names)
    return f"did you mean {near!r}?" if near else f"there are {', '.join(sorted(names)) or 'none'}."
