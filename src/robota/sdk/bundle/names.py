"""Names that become parts of paths: of plugins, marketplaces and versions. Anything else is refused."""

from __future__ import annotations

import re

from robota._lazy_pattern import lazy_pattern
from robota.core.errors import RobotaError

_SAFE = lazy_pattern(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,99}")


class BundleError(RobotaError, code="BUNDLE_ERROR", category="user"):
    """A plugin or a marketplace cannot be used, or what was asked for cannot be done."""


def is_safe(name: str) -> bool:
    """Whether it is one component of a path, on every system."""
    return _SAFE.fullmatch(name) is not None and not name.endswith(".")


def require_safe(name: str, what: str) -> str:
    if not is_safe(name):
        raise BundleError(
            f"{name!r} cannot be the name of a {what}: letters, digits, dots, hyphens and underscores, at "
            "most 100 of them, beginning with a letter or digit."
        )
    return name


def split_id(id: str) -> tuple[str, str]:
    """`name@marketplace` as its two parts; the second is empty for a plugin of no marketplace."""
    name, _, marketplace = id.partition("@")
    return name, marketplace


def make_id(name: str, marketplace: str) -> str:
    return f"{name}@{marketplace}" if marketplace else name


def version_key(version: str) -> list[tuple[int, int, str]]:
    """By which versions are compared: numbers in them count as numbers, so that 1.10 comes after 1.9."""
    parts = re.findall(r"\d+|[^\d.+-]+", version)
    return [(1, int(part), "") if part.isdecimal() else (0, 0, part) for part in parts]
