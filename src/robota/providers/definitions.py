"""Every provider introduces itself here, as data: `all_definitions()` has ours and those of other packages.

Other packages come through entry points of the group `robota.providers`, each naming a `ProviderDefinition`
or a function that gives one. Ours are in a table: reading entry points means looking through every installed
package (tens of milliseconds), which a start with a known provider need not pay, and the table also works
where robota is not installed but on the path.

A vendor is one module or package, with its facts, its provider and `define`. Loading all of them loads no
dialect, which encodes requests and reads replies, and no HTTP; and making a provider loads no definition.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING

from robota.core.errors import describe_exception
from robota.core.provider_definition import ProviderDefinition, find_provider_definition

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP = "robota.providers"
OURS = (
    "anthropic", "openai", "gemini", "openai-compatible", "deepseek", "qwen", "openrouter", "gemma",
    "lmstudio", "ollama", "vllm", "local", "remote", "scripted",
)  # fmt: skip
"""The types that come with the package; each is called like its module."""


def our_definitions() -> tuple[ProviderDefinition, ...]:
    """The providers that come with the package."""
    return tuple(map(_define, OURS))


def all_definitions(on_problem: Callable[[str], None] | None = None) -> tuple[ProviderDefinition, ...]:
    """Ours and those of other packages; one that cannot be used is reported and left out."""
    report = _log if on_problem is None else on_problem
    known = list(our_definitions())
    for point in _entry_points():
        try:
            found = point.load()
            definition = found() if callable(found) else found
        except Exception as error:  # noqa: BLE001 - other people's code, and the rest must go on
            report(
                f"The provider {point.name!r} of {_origin(point)} is left out: {describe_exception(error)}."
            )
            continue
        problem = _objection(definition, known)
        if problem:
            report(f"The provider {point.name!r} of {_origin(point)} is left out: {problem}.")
        else:
            known.append(definition)
    return tuple(known)


def find_definition(
    type_or_alias: str, on_problem: Callable[[str], None] | None = None
) -> ProviderDefinition | None:
    """The definition of that name; other packages are looked through only for names that are not ours."""
    if type_or_alias in OURS:
        return _define(type_or_alias)
    return find_provider_definition(our_definitions(), type_or_alias) or find_provider_definition(
        all_definitions(on_problem), type_or_alias
    )


@cache
def _define(type: str) -> ProviderDefinition:
    vendor = import_module(f"robota.providers.{type.replace('-', '_')}")
    definition: ProviderDefinition = vendor.define()
    return definition


def _entry_points() -> Iterator[EntryPoint]:
    from importlib.metadata import entry_points  # noqa: PLC0415 - looks through every installed package

    yield from entry_points(group=GROUP)


def _objection(definition: object, known: list[ProviderDefinition]) -> str | None:
    if not isinstance(definition, ProviderDefinition):
        return f"{type(definition).__name__} is no ProviderDefinition"
    taken = {name for other in known for name in (other.type, *other.aliases)}
    clash = next((name for name in (definition.type, *definition.aliases) if name in taken), None)
    return f"the name {clash!r} is taken" if clash else None


def _origin(point: EntryPoint) -> str:
    return point.dist.name if point.dist is not None else point.value


def _log(problem: str) -> None:
    import logging  # noqa: PLC0415 - nothing goes wrong as a rule

    logging.getLogger(GROUP).warning(problem)
