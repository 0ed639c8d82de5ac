"""Options of plugins: checked where they are given, so that a slip is told before the first run."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from typing import Any, TypedDict

from robota.core.errors import ConfigurationError
from robota.core.given import require_texts, suggest
from robota.plugins.storage.port import Storage


class StorageOptions(TypedDict, total=False):
    """Where a plugin keeps what it gathers, besides the name of the strategy."""

    path: str | os.PathLike[str]
    """The file of `file` and `sqlite`."""
    url: str
    """The server of `remote` and `postgres`."""
    headers: Mapping[str, str]
    """What `remote` sends along."""
    allowed_hosts: tuple[str, ...]
    """Hosts that `remote` may contact although their address is not public."""
    table: str
    """Of `sqlite` and `postgres`; by default named after the plugin."""
    storage: Storage
    """Of `database`: any object with the methods of `Storage`."""


_NEEDS = {
    "file": ("path",),
    "sqlite": ("path",),
    "postgres": ("url",),
    "remote": ("url",),
    "database": ("storage",),
}
_TAKES = {
    "file": ("path",),
    "sqlite": ("path", "table"),
    "postgres": ("url", "table"),
    "remote": ("url", "headers", "allowed_hosts"),
    "database": ("storage",),
}
STORAGE_STRATEGIES = tuple(_TAKES)


def check_strategy(plugin: str, strategy: object, known: Collection[str]) -> str:
    if not isinstance(strategy, str) or strategy not in known:
        raise ConfigurationError(
            f"The plugin {plugin!r} has no strategy {strategy!r}; {suggest(str(strategy), known)}"
        )
    return strategy


def check_number(
    plugin: str, name: str, value: object, *, least: float = 0, whole: bool = False, above: bool = False
) -> Any:
    """The number, if it is one of at least `least`, or `above` it."""
    kinds = int if whole else (int, float)
    good = isinstance(value, kinds) and not isinstance(value, bool)
    if not good or not (value > least if above else value >= least):  # type: ignore[operator]
        bound = f"above {least:g}" if above else f"of at least {least:g}"
        kind = "a whole number" if whole else "a number"
        raise ConfigurationError(
            f"The option {name} of the plugin {plugin!r} is {kind} {bound}, not {value!r:.80}."
        )
    return value


def make_storage(plugin: str, strategy: str, limit: int, options: StorageOptions) -> Storage | None:
    """The storage of a strategy, `None` for those that keep nothing outside memory."""
    takes = _TAKES.get(strategy, ())
    for name in options:
        if name not in StorageOptions.__annotations__:
            raise ConfigurationError(
                f"The plugin {plugin!r} has no option {name!r}; "
                f"{suggest(name, StorageOptions.__annotations__)}"
            )
        if name not in takes:
            raise ConfigurationError(
                f"The option {name} of the plugin {plugin!r} does not belong to the strategy {strategy!r}."
            )
    for name in _NEEDS.get(strategy, ()):
        if not options.get(name):
            raise ConfigurationError(
                f"The strategy {strategy!r} of the plugin {plugin!r} needs the option {name}."
            )
    return _make(plugin, strategy, limit, options)


def _make(plugin: str, strategy: str, limit: int, options: StorageOptions) -> Storage | None:
    table = options.get("table", f"robota_{plugin.replace('-', '_')}")
    match strategy:
        case "file":
            from robota.plugins.storage.file_storage import FileStorage  # noqa: PLC0415 - if it is chosen

            return FileStorage(_path(plugin, options["path"]), limit=limit)
        case "sqlite":
            from robota.plugins.storage.sqlite_storage import SqliteStorage  # noqa: PLC0415 - likewise

            return SqliteStorage(_path(plugin, options["path"]), table=table, limit=limit)
        case "postgres":
            from robota.plugins.storage.postgres_storage import PostgresStorage  # noqa: PLC0415 - likewise

            return PostgresStorage(options["url"], table=table, limit=limit)
        case "remote":
            from robota.plugins.posting import Poster  # noqa: PLC0415 - likewise
            from robota.plugins.storage.remote_storage import RemoteStorage  # noqa: PLC0415 - likewise

            hosts = require_texts(f"{plugin}.allowed_hosts", options.get("allowed_hosts", ()))
            poster = Poster(options["url"], headers=options.get("headers"), allowed_hosts=hosts)
            return RemoteStorage(poster, collection=plugin)
        case "database":
            storage = options["storage"]
            if not isinstance(storage, Storage):
                raise ConfigurationError(
                    f"The storage of the plugin {plugin!r} needs the methods write, read and remove."
                )
            return storage
        case _:
            return None


def _path(plugin: str, path: object) -> str | os.PathLike[str]:
    if not isinstance(path, str | os.PathLike):
        raise ConfigurationError(f"The path of the plugin {plugin!r} is a text, not {path!r:.80}.")
    return path
