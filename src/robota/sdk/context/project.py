"""What kind of project a directory holds, as far as its files say."""

from __future__ import annotations

import os
import re

import msgspec
from msgspec import Struct

from robota._lazy_pattern import lazy_pattern
from robota.sdk.context.text_file import Unreadable, read_bytes
from robota.sdk.problems import Problem

MAX_BYTES = 1 << 20
_LOCKS = (
    ("pnpm-lock.yaml", "pnpm"),
    ("yarn.lock", "yarn"),
    ("bun.lockb", "bun"),
    ("bun.lock", "bun"),
    ("package-lock.json", "npm"),
)
_PYTHON_LOCKS = (
    ("uv.lock", "uv"),
    ("poetry.lock", "poetry"),
    ("pdm.lock", "pdm"),
    ("Pipfile.lock", "pipenv"),
)
_GO_MODULE = lazy_pattern(rb"^module[ \t]+\"?([^\s\"]+)", re.MULTILINE)


class ProjectFacts(Struct, frozen=True, kw_only=True):
    """A project in a few words."""

    type: str = "unknown"
    """node | python | rust | go | unknown"""
    language: str = "unknown"
    """typescript | javascript | python | rust | go | unknown"""
    name: str = ""
    package_manager: str = ""
    problems: tuple[Problem, ...] = ()


def detect_project(directory: str) -> ProjectFacts:
    """Looks at one directory; what cannot be read is named, and the kind is known all the same."""

    def has(*names: str) -> bool:
        return any(os.path.exists(os.path.join(directory, name)) for name in names)

    def find_manager(locks: tuple[tuple[str, str], ...]) -> str:
        return next((manager for lock, manager in locks if has(lock)), "")

    if has("package.json"):
        name, problem = _read_name(directory, "package.json")
        language = "typescript" if has("tsconfig.json") else "javascript"
        manager = find_manager(_LOCKS) or "npm"
        return _make("node", language, name, manager, problem, directory)
    if has("pyproject.toml", "setup.py"):
        name, problem = _read_name(directory, "pyproject.toml")
        return _make("python", "python", name, find_manager(_PYTHON_LOCKS) or "pip", problem, directory)
    if has("Cargo.toml"):
        name, problem = _read_name(directory, "Cargo.toml")
        return _make("rust", "rust", name, "cargo", problem, directory)
    if has("go.mod"):
        name, problem = _read_name(directory, "go.mod")
        return _make("go", "go", name, "go", problem, directory)
    return ProjectFacts(name=os.path.basename(directory))


def _make(
    kind: str, language: str, name: str, manager: str, problem: Problem | None, directory: str
) -> ProjectFacts:
    return ProjectFacts(
        type=kind,
        language=language,
        name=name or os.path.basename(directory),
        package_manager=manager,
        problems=() if problem is None else (problem,),
    )


def _read_name(directory: str, manifest: str) -> tuple[str, Problem | None]:
    """What a project calls itself; empty when it does not say."""
    path = os.path.join(directory, manifest)
    try:
        data, _ = read_bytes(path, MAX_BYTES)
        return " ".join(_find_name(manifest, data).split())[:200], None
    except FileNotFoundError:
        return "", None
    except Unreadable as error:
        return "", Problem(path, f"It {error}, so the project's name is not known.")
    except (ValueError, RecursionError) as error:
        return "", Problem(path, f"It cannot be parsed ({error}), so the project's name is not known.")


def _find_name(manifest: str, data: bytes) -> str:
    if manifest == "go.mod":
        found = _GO_MODULE.search(data)
        return found[1].decode("utf-8", "replace") if found else ""
    if manifest == "package.json":
        return _text_at(msgspec.json.decode(data.removeprefix(b"\xef\xbb\xbf")), "name")
    import tomllib  # noqa: PLC0415 - not every project has such a file

    document = tomllib.loads(data.decode("utf-8-sig"))
    if manifest == "Cargo.toml":
        return _text_at(document, "package", "name")
    return _text_at(document, "project", "name") or _text_at(document, "tool", "poetry", "name")


def _text_at(value: object, *keys: str) -> str:
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value if isinstance(value, str) else ""
