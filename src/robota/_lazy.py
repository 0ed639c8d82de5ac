"""Public names that are loaded when they are first used."""

from __future__ import annotations

TYPE_CHECKING = False  # keeps `typing` and `collections.abc` out of `import robota`
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


def lazy_names(
    package: str, homes: Mapping[str, str], namespace: dict[str, object]
) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """`__getattr__` and `__dir__` for a package whose names live in other modules.

    `homes` maps a name to its module. A name that was asked for once is put into `namespace`.
    """

    def load(name: str) -> object:
        home = homes.get(name)
        if home is None:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        from importlib import import_module  # noqa: PLC0415 - importing the package must not cost this

        value = namespace[name] = getattr(import_module(home), name)
        return value

    return load, lambda: sorted({*homes, *namespace})
