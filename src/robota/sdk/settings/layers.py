"""The layers of settings, as they were written: flags, the environment, and the files of project and user.

Nothing is judged here but whether a file can be read. One that cannot stops everything: it is never "no
settings", because a rule that forbids something may be in it.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Collection, Mapping
from functools import cached_property
from typing import Literal, TypeAlias

from msgspec import Struct

from robota._lazy_pattern import lazy_pattern
from robota.core.errors import ConfigurationError
from robota.core.given import kind_of_value, suggest
from robota.core.messages import Json, JsonObject
from robota.sdk.places import Places
from robota.sdk.settings import jsonc

LayerName: TypeAlias = Literal["flags", "environment", "local", "project", "user"]
Dialect: TypeAlias = Literal["robota", "claude"]
"""Whose meaning the rules and hooks of a file have."""

SOURCES: tuple[LayerName, ...] = ("user", "project", "local")
MAX_BYTES = 1 << 20
"""Of a settings file; more is a mistake."""

_VARIABLES: dict[str, tuple[str, ...]] = {
    "ROBOTA_PROVIDER": ("currentProvider",),
    "ROBOTA_MODEL": ("model",),
    "ROBOTA_BASE_URL": ("baseURL",),
    "ROBOTA_PERMISSION_MODE": ("permissions", "defaultMode"),
    "ROBOTA_LANGUAGE": ("language",),
    "ROBOTA_MEMORY": ("memory", "enabled"),
    "ROBOTA_SANDBOX": ("sandbox",),
    "ROBOTA_TELEMETRY": ("plugins", "telemetry", "enabled"),
}
"""The variables that are settings, and which. `ROBOTA_HOME` is a place and known before."""
_KEY = lazy_pattern(r'"\s*+:')
_SWITCHES = {"1": True, "true": True, "yes": True, "on": True, "0": False, "false": False, "no": False,
             "off": False}  # fmt: skip


class Layer(Struct, frozen=True, kw_only=True, dict=True):
    """One place where settings are written."""

    name: LayerName
    path: str
    """The file; for flags and the environment, in words."""
    dialect: Dialect = "robota"
    values: Mapping[str, Json]
    text: str = ""
    """As it was read, for the lines."""
    doubled: tuple[str, ...] = ()
    """Keys that one object of the file holds twice."""

    @property
    def of_project(self) -> bool:
        """Whether it came with the directory that was opened, so that it acts only after the user said so."""
        return self.name in ("local", "project")

    def line(self, *path: str | int) -> int:
        """Where a key or an entry of a list is written, or what it is part of; 0 when that is no file."""
        return jsonc.find_line(self.text, path, self._node) if self.text else 0

    @cached_property
    def _node(self) -> jsonc.Node:
        return jsonc.parse_jsonc(self.text)


def read_layers(
    places: Places,
    *,
    sources: Collection[str] | None = None,
    flags: Mapping[str, Json] | None = None,
    given: str = "",
    environment: Mapping[str, str] = os.environ,
    kept: Mapping[str, Layer | None] = {},
) -> tuple[Layer, ...]:
    """Every layer that says something, the highest first; `sources` picks among the files, `None` is all.
    `given` is JSON or the path of a file that somebody named; `kept` counts in the place of files."""
    wanted = SOURCES if sources is None else _check_sources(sources)
    found: list[Layer | None] = [
        Layer(name="flags", path="the settings of this session", values=flags) if flags else None,
        read_given(given, places.cwd) if given else None,
        _read_environment(environment),
    ]
    found += [
        kept[path] if path in kept else read_layer(path, name, dialect)
        for name, path, dialect in find_files(places)
        if name in wanted
    ]
    return tuple(layer for layer in found if layer is not None)


def find_files(places: Places) -> tuple[tuple[LayerName, str, Dialect], ...]:
    """Where settings may be, the highest first. A home that is opened as a project is the user's own."""
    of_project: tuple[tuple[LayerName, str, Dialect], ...] = (
        ("local", places.project(".robota", "settings.local.json"), "robota"),
        ("project", places.project(".robota", "settings.json"), "robota"),
        ("local", os.path.join(_find_root(places), ".claude", "settings.local.json"), "claude"),
        ("project", places.project(".claude", "settings.json"), "claude"),
    )
    of_user: tuple[tuple[LayerName, str, Dialect], ...] = (
        ("user", places.user("settings.json"), "robota"),
        ("user", places.claude("settings.json"), "claude"),
    )
    own = {path for _, path, _ in of_user}
    return (*(each for each in of_project if each[1] not in own), *of_user)


def _find_root(places: Places) -> str:
    """The top of the repository: there the other program keeps what is local to a checkout."""
    directory = places.cwd
    while directory != places.home and not os.path.lexists(os.path.join(directory, ".git")):
        parent = os.path.dirname(directory)
        if parent == directory:
            return places.cwd
        directory = parent
    return places.cwd if directory == places.home else directory


GIVEN = "--settings"
"""Stands for a path where settings are JSON of the command line."""


def is_json(given: str) -> bool:
    """Whether settings that somebody gave are the text itself, and not the path of a file."""
    return given.lstrip().startswith(("{", "[", '"'))


def read_given(given: str, cwd: str) -> Layer | None:
    """Settings that somebody gave as JSON, or as the path of a file."""
    if is_json(given):
        return _parse(given, GIVEN, "flags", "robota")
    path = os.path.join(cwd, os.path.expanduser(given))
    if not os.path.lexists(path):
        raise ConfigurationError(f"There is no settings file {path}: name another, or give JSON.")
    dialect: Dialect = "claude" if ".claude" in path.split(os.sep) else "robota"
    return read_layer(path, "flags", dialect)


def read_layer(path: str, name: LayerName, dialect: Dialect) -> Layer | None:
    """One file; `None` when it is missing or empty. One that cannot be used raises."""
    return _parse(_read_text(path), path, name, dialect)


def _parse(text: str, path: str, name: LayerName, dialect: Dialect) -> Layer | None:
    if not text or text.isspace():
        return None
    doubled: tuple[str, ...] = ()
    try:
        values = jsonc.read_jsonc(text)
        if len(_KEY.findall(text)) > _count_keys(values):  # not in a comment or a text, perhaps
            values, doubled = jsonc.join_doubled(jsonc.parse_jsonc(text))
    except jsonc.JsoncError as error:
        raise _refuse(path, f"{error} (line {error.line})") from error
    except RecursionError as error:
        raise _refuse(path, "it is nested too deeply") from error
    if not isinstance(values, dict):
        what = "null" if values is None else kind_of_value(values)
        raise _refuse(path, f"it holds {what} and not an object of settings (line 1)")
    return Layer(name=name, path=path, dialect=dialect, values=values, text=text, doubled=doubled)


def _count_keys(value: Json) -> int:
    if isinstance(value, dict):
        return len(value) + sum(map(_count_keys, value.values()))
    return sum(map(_count_keys, value)) if isinstance(value, list) else 0


def _read_text(path: str) -> str:
    try:
        with open(path, "rb", opener=_open_without_waiting) as file:
            about = os.fstat(file.fileno())
            if not stat.S_ISREG(about.st_mode):
                raise _refuse(path, "it is not a regular file")
            if about.st_size > MAX_BYTES:
                raise _refuse(path, f"it is larger than {MAX_BYTES >> 20} MiB")
            return file.read().decode("utf-8-sig")
    except (FileNotFoundError, NotADirectoryError):
        return ""
    except OSError as error:
        raise _refuse(path, error.strerror or str(error)) from error
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise _refuse(path, f"it is not UTF-8 text in line {line}") from error


def _open_without_waiting(path: str, flags: int) -> int:
    """Nobody may ever write into a pipe of that name."""
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


def _refuse(path: str, reason: str) -> ConfigurationError:
    if path == GIVEN:
        return ConfigurationError(
            f'Invalid settings in {path}: {reason}. Settings are an object, such as {{"language": "ko"}}.'
        )
    return ConfigurationError(
        f"Invalid settings in {path}: {reason}. Correct or remove the file; it is not left out, because "
        "rules that forbid something may be in it."
    )


def _check_sources(sources: Collection[str]) -> Collection[str]:
    given = (sources,) if isinstance(sources, str) else sources
    for source in given:
        if source not in SOURCES:
            raise ConfigurationError(f"There are no settings of {source!r}; {suggest(source, SOURCES)}")
    return given


def _read_environment(environment: Mapping[str, str]) -> Layer | None:
    values: JsonObject = {}
    for variable, keys in _VARIABLES.items():
        text = environment.get(variable, "").strip()
        if text:
            place = values
            for key in keys[:-1]:
                place = place.setdefault(key, {})
            place[keys[-1]] = _SWITCHES.get(text.lower(), text) if keys[-1] == "enabled" else text
    return Layer(name="environment", path="the environment", values=values) if values else None
