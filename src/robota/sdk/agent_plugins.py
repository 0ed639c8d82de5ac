"""The plugins of a session's agent: those that its user's settings name, and those that a program gave.

Only what settings name is loaded: one of our own, or one that an installed package offers by the entry point
group `robota.plugins`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from robota.core.errors import ConfigurationError, describe_exception
from robota.core.given import suggest
from robota.core.messages import Json
from robota.core.plugin import Plugin
from robota.core.robota import Robota
from robota.sdk.places import Places
from robota.sdk.problems import Problem
from robota.sdk.settings.settings import Settings

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP = "robota.plugins"
BUILT_IN = {
    "conversation-history": "ConversationHistoryPlugin",
    "error-handling": "ErrorHandlingPlugin",
    "execution-analytics": "ExecutionAnalyticsPlugin",
    "limits": "LimitsPlugin",
    "logging": "LoggingPlugin",
    "performance": "PerformancePlugin",
    "telemetry": "TelemetryPlugin",
    "usage": "UsagePlugin",
    "webhook": "WebhookPlugin",
}
_GUARDS = frozenset(("limits",))
"""Without these a session would do what its user meant to forbid."""
_FILES = {"file": "jsonl", "sqlite": "db"}


class Plugins:
    """Owned by a session: closed with it, while it can still tell what went wrong."""

    def __init__(self, agent: Robota) -> None:
        self._agent = agent

    async def __aenter__(self) -> None:
        """They are initialized with the first run."""

    async def __aexit__(self, *_: object) -> None:
        await self._agent.chain.dispose()


def make_plugins(
    settings: Settings, places: Places, given: Sequence[Plugin]
) -> tuple[tuple[Plugin, ...], tuple[Problem, ...]]:
    """Those of the settings, then those that were given, which take the place of settings' of their names."""
    taken = {plugin.name for plugin in given}
    wanted: Mapping[str, Mapping[str, Any]] = settings.get("plugins") or {}
    found: list[Plugin] = []
    problems: list[Problem] = []
    for name, entry in wanted.items():
        enabled, options = entry.get("enabled", True), entry.get("options") or {}
        if name in taken or enabled is False:
            continue
        try:
            if enabled is not True or not isinstance(options, dict):
                raise ConfigurationError("`enabled` is true or false, and `options` an object")
            found.append(_make(name, options, places))
        except ConfigurationError as error:
            if name in _GUARDS:
                raise
            source = next(iter(settings.origins.get("plugins", ())), "settings")
            sentence = f"{str(error).rstrip('.')}. It is left out."
            problems.append(Problem(source, sentence, subject=f"plugins.{name}"))
    return (*found, *given), tuple(problems)


def _make(name: str, options: Mapping[str, Json], places: Places) -> Plugin:
    factory = _find(name)
    arguments = {_snake(option): value for option, value in options.items()}
    if name in BUILT_IN:
        _check_names(name, factory, arguments)
        _choose_file(name, arguments, places)
    try:
        plugin = factory(**arguments)
    except ConfigurationError:
        raise
    except Exception as error:  # the code of somebody else
        raise ConfigurationError(
            f"The plugin {name!r} cannot be made: {describe_exception(error)}."
        ) from error
    if not isinstance(plugin, Plugin):
        raise ConfigurationError(f"What {name!r} gives is no plugin, but {type(plugin).__name__}.")
    plugin.name = plugin.name or name
    return plugin


def _find(name: str) -> Callable[..., Any]:
    if name in BUILT_IN:
        from robota import plugins  # noqa: PLC0415 - for those who name one

        found: Callable[..., Any] = getattr(plugins, BUILT_IN[name])
        return found
    points = {point.name: point for point in _entry_points()}
    if name not in points:
        raise ConfigurationError(f"There is no plugin {name!r}; {suggest(name, (*BUILT_IN, *points))}")
    try:
        loaded: Callable[..., Any] = points[name].load()
        return loaded
    except Exception as error:  # the code of somebody else
        raise ConfigurationError(
            f"The plugin {name!r} of the package {_package(points[name])} cannot be loaded: "
            f"{describe_exception(error)}."
        ) from error


def _entry_points() -> Iterator[EntryPoint]:
    from importlib.metadata import entry_points  # noqa: PLC0415 - looks through every installed package

    yield from entry_points(group=GROUP)


def _package(point: EntryPoint) -> str:
    return point.dist.name if point.dist is not None else point.value


def _check_names(name: str, factory: Callable[..., Any], arguments: Mapping[str, Json]) -> None:
    """An option that is misspelt is named; those of the storage are checked by the plugin."""
    from inspect import Parameter, signature  # noqa: PLC0415 - for those who name one

    parameters = signature(factory).parameters
    if any(each.kind is Parameter.VAR_KEYWORD for each in parameters.values()):
        return
    for option in arguments:
        if option not in parameters:
            raise ConfigurationError(
                f"The plugin {name!r} has no option {option!r}; {suggest(option, parameters)}"
            )


def _choose_file(name: str, arguments: dict[str, Json], places: Places) -> None:
    """Files lie below robota's home, unless the user says where; a screen is not written on."""
    if name == "logging":
        arguments.setdefault("strategy", "file")
    ending = _FILES.get(str(arguments.get("strategy")))
    if ending is not None:
        path = os.path.expanduser(str(arguments.get("path") or f"{name}.{ending}"))
        arguments["path"] = os.path.join(places.user("plugins"), path)


def _snake(option: str) -> str:
    return re.sub(r"(?<=[a-z0-9])([A-Z])", lambda found: "_" + found[1].lower(), option)


def describe_plugins(agent: Robota) -> str:
    """The plugins of an agent, in the order in which they are called."""
    shown = [(plugin.get_status(), plugin) for plugin in agent.chain.plugins]
    return ", ".join(
        status.name + ("" if status.enabled else " (disabled)") + _trouble(plugin) for status, plugin in shown
    )


def _trouble(plugin: Plugin) -> str:
    trouble = plugin.get_stats().get("trouble")
    return f" ({trouble})" if trouble else ""
