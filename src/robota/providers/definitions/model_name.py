"""Names of models: whether two spellings mean the same one, and which known names are near a wrong one."""

from __future__ import annotations

from collections.abc import Iterable

NEAREST = 3
_NAMED_IN_FULL = 8


def is_listed(model: str, listed: Iterable[str]) -> bool:
    """Whether a service that lists these names has the model: a date or `latest` may be left out."""
    return any(_is_same(model, name) for name in listed)


def nearest_names(name: str, known: Iterable[str]) -> tuple[str, ...]:
    """The known names that look most like it, the best first."""
    from difflib import get_close_matches  # noqa: PLC0415 - only for names that are wrong

    by_key = {other.lower(): other for other in known}
    return tuple(by_key[key] for key in get_close_matches(name.lower(), by_key, NEAREST, 0.6))


def suggest(name: str, known: Iterable[str]) -> str:
    """`the nearest are a, b` for an error message; all of them when they are few and none is near."""
    names = tuple(known)
    near = nearest_names(name, names)
    if near:
        return f"the nearest {'is' if len(near) == 1 else 'are'} {', '.join(near)}"
    if not names:
        return "there are none"
    more = f" and {len(names) - _NAMED_IN_FULL} more" if len(names) > _NAMED_IN_FULL else ""
    return f"there {'is' if len(names) == 1 else 'are'} {', '.join(names[:_NAMED_IN_FULL])}{more}"


def _is_same(model: str, listed: str) -> bool:
    if listed == model:
        return True
    longer, shorter = (listed, model) if len(listed) > len(model) else (model, listed)
    rest = longer.removeprefix(shorter)
    return rest != longer and (
        rest in (":latest", "-latest")
        or (rest[:1] in "-@" and rest[1:].replace("-", "").isdecimal() and len(rest) > 8)
    )
