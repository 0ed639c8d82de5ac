"""A small table in a JSON file that several processes change: name to a value of one type."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Generic, TypeVar

import msgspec

from robota.core.regular_file import open_regular
from robota.sdk.bundle.names import BundleError
from robota.sdk.shared_file import change_file

T = TypeVar("T")


class Ledger(Generic[T]):
    """Read as it is now, changed as a whole."""

    def __init__(self, path: str, type: type[T], advice: str) -> None:
        """`advice` is what helps when the file is damaged."""
        self.path = path
        self._decoder = msgspec.json.Decoder(dict[str, type])  # type: ignore[valid-type]
        self._advice = advice

    def read(self) -> dict[str, T]:
        """Empty if there is no file."""
        try:
            with open_regular(self.path) as file:
                return self._decode(file.read())
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise BundleError(f"{self.path} cannot be read ({error.strerror}).") from error

    def put(self, name: str, value: T) -> None:
        self._change(lambda table: table.__setitem__(name, value))

    def drop(self, name: str) -> None:
        if os.path.exists(self.path):
            self._change(lambda table: table.pop(name, None))

    def _decode(self, data: bytes) -> dict[str, T]:
        try:
            return self._decoder.decode(data or b"{}")
        except ValueError as error:
            raise BundleError(f"{self.path} is damaged ({error}): remove it, and {self._advice}.") from error

    def _change(self, change: Callable[[dict[str, T]], object]) -> None:
        def rewrite(text: str) -> str:
            table = self._decode(text.encode())
            change(table)
            return msgspec.json.format(msgspec.json.encode(table, order="sorted")).decode() + "\n"

        change_file(self.path, rewrite)
