"""Public names that are loaded when they are first used."""

from __future__ import annotations

import sys

TYPE_CHECKING = False  # keeps `typing` and `collections.abc` out of `import robota`
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


def lazy_names(
    package: str, homes: Mapping[str, str], namespace: dict[str, object], extras: Mapping[str, str] = {}
) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """`__getattr__` and `__dir__` for a package whose names live in other modules.

    `homes` maps a name to its module, `extras` a module to the extra that installs what it imports. A name
    that was asked for once is put into `namespace`.
    """

    def load(name: str) -> object:
        home = homes.get(name)
        if home is None:
            words = f"module {package!r} has no attribute {name!r}"
            raise AttributeError(words, name=name, obj=sys.modules[package])  # Python says which was meant
        from importlib import import_module  # noqa: PLC0415 - importing the package must not cost this

        try:
            value = namespace[name] = getattr(import_module(home), name)
        except ModuleNotFoundError as error:
            if home not in extras:
                raise
            sentence = f"{name} needs the package {error.name}: pip install 'robota[{extras[home]}]'"
            raise ModuleNotFoundError(sentence, name=error.name) from None
        return value

    return load, lambda: sorted({*homes, *namespace})
