"""What a GGUF file says about itself before anything is loaded: its kind, its context, the memory it needs.

Only the head of the file is read. What is wrong with it is one sentence; llama.cpp itself gives no reason.
"""

from __future__ import annotations

import os
import struct
from math import prod
from mmap import ACCESS_READ, mmap
from typing import TypeAlias

from msgspec import Struct

from robota.core.errors import ConfigurationError

_MAGIC = b"GGUF"
_VERSIONS = (2, 3)
_NUMBERS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
_TEXT, _LIST = 8, 9
_CACHE_BYTES = 2
"""Bytes of one cached number: llama.cpp keeps keys and values in half precision."""

Fact: TypeAlias = str | int | float | bool


class GgufFacts(Struct, frozen=True, kw_only=True):
    architecture: str
    trained_context: int
    """Tokens the model was made for; 0 if the file does not say."""
    cache_bytes: int
    """Memory for each token of context."""
    file_bytes: int
    parameters: int
    """Weights that it was trained with, however few bytes each of them has here."""


def read_gguf_facts(path: str) -> GgufFacts:
    try:
        with open(path, "rb") as file:
            size = os.fstat(file.fileno()).st_size
            if size < len(_MAGIC) or file.read(len(_MAGIC)) != _MAGIC:
                raise _damaged(path, "it is not a GGUF file")
            with mmap(file.fileno(), 0, access=ACCESS_READ) as data:
                return _read(_Head(data), size)
    except FileNotFoundError:
        raise ConfigurationError(
            f"There is no model file {path}: check the path, or see `robota model list`."
        ) from None
    except IsADirectoryError:
        raise ConfigurationError(f"{path} is a directory: name the GGUF file in it.") from None
    except OSError as error:
        raise ConfigurationError(f"The model file {path} cannot be read ({error.strerror}).") from error
    except (struct.error, UnicodeDecodeError, KeyError, ValueError):
        raise _damaged(path, "its head cannot be read") from None


def _damaged(path: str, why: str) -> ConfigurationError:
    return ConfigurationError(f"The model file {path} cannot be used: {why}; fetch it again or name another.")


class _Head:
    """A place in the file's head that moves on with everything read."""

    __slots__ = ("_data", "at")

    def __init__(self, data: mmap) -> None:
        self._data = data
        self.at = len(_MAGIC)

    def number(self, kind: str) -> int:
        (value,) = struct.unpack_from(f"<{kind}", self._data, self.at)
        self.at += struct.calcsize(f"<{kind}")
        return value  # type: ignore[no-any-return]  # struct cannot say what it unpacks

    def text(self) -> str:
        length = self.number("Q")
        start = self.at
        self._skip(length)
        return self._data[start : self.at].decode()

    def fact(self, kind: int) -> Fact | None:
        """A value; lists are passed over."""
        if kind == _TEXT:
            return self.text()
        if kind != _LIST:
            return self.number(_NUMBERS[kind])
        inner, count = self.number("I"), self.number("Q")
        if inner in (_TEXT, _LIST):
            for _ in range(count):
                if inner == _TEXT:
                    self._skip(self.number("Q"))
                else:
                    self.fact(_LIST)
        else:
            self._skip(struct.calcsize(f"<{_NUMBERS[inner]}") * count)
        return None

    def tensor(self) -> tuple[int, int]:
        """Where the next tensor begins behind the head, and how many weights it has."""
        self.text()
        weights = prod(self.number("Q") for _ in range(self.number("I")))
        self._skip(4)
        return self.number("Q"), weights

    def _skip(self, length: int) -> None:
        if length > len(self._data) - self.at:
            raise ValueError("beyond the end of the file")
        self.at += length


def _read(head: _Head, size: int) -> GgufFacts:
    if head.number("I") not in _VERSIONS:
        raise ValueError("another version")
    tensors, count = head.number("Q"), head.number("Q")
    facts: dict[str, Fact | None] = {}
    for _ in range(count):
        name = head.text()
        facts[name] = head.fact(head.number("I"))
    found = [head.tensor() for _ in range(tensors)]
    if head.at + max((begin for begin, _ in found), default=0) >= size:
        raise ValueError("weights are missing")
    kind = facts["general.architecture"]
    return GgufFacts(
        architecture=str(kind),
        trained_context=_count(facts, f"{kind}.context_length"),
        cache_bytes=_cache_bytes(facts, str(kind)),
        file_bytes=size,
        parameters=sum(weights for _, weights in found),
    )


def _cache_bytes(facts: dict[str, Fact | None], kind: str) -> int:
    heads = _count(facts, f"{kind}.attention.head_count") or 1
    size = _count(facts, f"{kind}.embedding_length") // heads
    keys = _count(facts, f"{kind}.attention.key_length") or size
    values = _count(facts, f"{kind}.attention.value_length") or size
    shared = _count(facts, f"{kind}.attention.head_count_kv") or heads
    return _count(facts, f"{kind}.block_count") * shared * (keys + values) * _CACHE_BYTES


def _count(facts: dict[str, Fact | None], name: str) -> int:
    value = facts.get(name)
    return value if isinstance(value, int) else 0
