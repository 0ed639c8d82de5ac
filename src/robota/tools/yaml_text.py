"""YAML with the meaning of JSON: only what JSON writes as a number, a boolean or `null` is one."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from itertools import count
from typing import Any

from robota.core.messages import Json

MAX_NODES = 2_000_000
"""With all aliases written out; a few lines of them can stand for billions."""
MAX_DEPTH = 1_000
"""Of what the loader in C is given: it has no limit of its own, and would exhaust the stack."""
_UNPRINTABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x84\x86-\x9f\ud800-\udfff\ufffe\uffff]")
"""What YAML refuses, and documents hold by accident."""
_TAG = "tag:yaml.org,2002:"
_WORDS = (
    ("bool", r"true|True|TRUE|false|False|FALSE", "tTfF"),
    ("null", r"~|null|Null|NULL|", ["~", "n", "N", ""]),
    ("int", r"-?(?:0|[1-9][0-9]*)", "-0123456789"),
    ("float", r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?", "-0123456789"),
    ("merge", r"<<", "<"),
)
"""What a plain word may be instead of a text. `no`, `012`, `12:30`, `=` and `2024-01-01` are texts."""


def read_yaml(text: str) -> Json:
    """The document; a `ValueError` says why it cannot be read."""
    import yaml  # noqa: PLC0415 - a JSON document does without

    text = _UNPRINTABLE.sub("\ufffd", text)
    quick = getattr(yaml, "CSafeLoader", None)
    try:
        if quick is not None:
            try:
                if _may_be_deep(text):
                    _check_depth(text)
                return _copy(yaml.load(text, _make_loader(quick)), count(1))
            except yaml.YAMLError:  # it is stricter with tabs, and a document is worth a second look
                pass
        return _copy(yaml.load(text, _make_loader(yaml.SafeLoader)), count(1))
    except yaml.YAMLError as error:
        raise ValueError(" ".join(str(error).split())) from error
    except RecursionError as error:
        raise ValueError("it is nested too deeply, or contains itself") from error


def _may_be_deep(text: str) -> bool:
    brackets = text.count("[") + text.count("{")
    return (
        brackets > MAX_DEPTH or re.search(rf"(?m)^(?: {{{MAX_DEPTH}}}| *(?:[-?] +){{100}})", text) is not None
    )


def _check_depth(text: str) -> None:
    import yaml  # noqa: PLC0415 - see above

    depth = 0
    for event in yaml.parse(text, yaml.CSafeLoader):
        depth += isinstance(event, yaml.CollectionStartEvent)
        depth -= isinstance(event, yaml.CollectionEndEvent)
        if depth > MAX_DEPTH:
            raise ValueError("it is nested too deeply")


@cache
def _make_loader(kind: Any) -> Any:
    class Loader(kind):  # type: ignore[misc] # known when it is used
        yaml_implicit_resolvers: dict[str, list[tuple[str, re.Pattern[str]]]] = {}  # noqa: RUF012 - the library's

    for name, pattern, first in _WORDS:
        for character in first:
            found = Loader.yaml_implicit_resolvers.setdefault(character, [])
            found.append((f"{_TAG}{name}", re.compile(rf"(?:{pattern})\Z")))
    return Loader


def _copy(node: Json, number: Iterator[int]) -> Json:
    """What YAML gives as plain JSON: text keys, no shared parts."""
    if next(number) > MAX_NODES:
        raise ValueError("it is too large with its aliases written out")
    if isinstance(node, dict):
        return {_name(key): _copy(value, number) for key, value in node.items()}
    if isinstance(node, list):
        return [_copy(value, number) for value in node]
    if node is None or isinstance(node, str | int | float):
        return node
    raise ValueError(f"it holds a {type(node).__name__}, which JSON does not have")


def _name(key: Json) -> str:
    """A key as it was written: `true:` and `200:` name fields too."""
    if key is None:
        return "null"
    return str(key).lower() if isinstance(key, bool) else str(key)
