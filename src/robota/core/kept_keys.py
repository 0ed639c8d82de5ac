"""Keys of providers that their user keeps: in the keyring of the system, or in `auth.json`; read here, and
written by the SDK.

Nothing here puts a key into a message; which names have one is known without reading any.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Literal, Protocol, Self, TypeAlias, cast

import msgspec
from msgspec import Struct, field

from robota.core.credentials import is_env_reference
from robota.core.errors import ConfigurationError

KeyPlace: TypeAlias = Literal["keyring", "file", "environment"]
SERVICE = "robota"
"""Under which the keyring has our keys."""


class Keyring(Protocol):
    """What we need of the `keyring` package."""

    def get_password(self, service: str, name: str, /) -> str | None: ...
    def set_password(self, service: str, name: str, key: str, /) -> None: ...
    def delete_password(self, service: str, name: str, /) -> None: ...


class KeyEntry(Struct, omit_defaults=True):
    key: str = ""
    """The key or a reference; empty when the keyring has it."""

    @property
    def place(self) -> KeyPlace:
        if not self.key:
            return "keyring"
        return "environment" if is_env_reference(self.key) else "file"


class KeyFile(Struct):
    keys: dict[str, KeyEntry] = field(default_factory=dict)


class KeptKeys:
    """Keys by the name of a profile or the type of a provider."""

    def __init__(self, robota_home: str, *, keyring: Keyring | None = None) -> None:
        """`keyring` takes the place of the system's."""
        self.path = os.path.join(robota_home, "auth.json")
        self._keyring = keyring

    @classmethod
    def of_user(cls, environment: Mapping[str, str]) -> Self:
        home = environment.get("ROBOTA_HOME")
        return cls(home or os.path.join(environment.get("HOME") or os.path.expanduser("~"), ".robota"))

    @property
    def names(self) -> Mapping[str, KeyPlace]:
        """Who has a key, and where it is kept."""
        return {name: entry.place for name, entry in self.read().keys.items()}

    def get(self, name: str) -> str | None:
        """The key or the reference of that name."""
        entry = self.read().keys.get(name)
        if entry is None or entry.key:
            return None if entry is None else entry.key
        keyring = self.open_keyring()
        found = None if keyring is None else try_keyring(lambda: keyring.get_password(SERVICE, name))
        if not isinstance(found, str):
            raise ConfigurationError(
                f"The key of {name} is in the keyring of the system, which does not give it: unlock it, "
                "install robota[keyring], or set the key again."
            )
        return found

    def open_keyring(self) -> Keyring | None:
        if self._keyring is None:
            try:
                import keyring  # noqa: PLC0415 - an extra, and slow
            except ImportError:
                return None
            self._keyring = cast(Keyring, keyring)
        return self._keyring

    def read(self) -> KeyFile:
        try:
            with open(self.path, "rb") as file:
                return self.decode(file.read())
        except FileNotFoundError:
            return KeyFile()
        except OSError as error:
            raise ConfigurationError(
                f"{self.path} cannot be read ({error.strerror}): check its permissions."
            ) from error

    def decode(self, data: bytes) -> KeyFile:
        try:
            return msgspec.json.decode(data or b"{}", type=KeyFile)
        except ValueError:  # what is wrong with it may quote a key
            raise ConfigurationError(
                f"{self.path} is damaged: correct it, or remove it and set the keys again."
            ) from None


FAILED = object()


def try_keyring(action: Callable[[], object]) -> object:
    """What a keyring answers; there are many kinds, most of them somebody else's code, and a system may have
    none, so whatever fails means that it does not have the key."""
    try:
        return action()
    except Exception:  # noqa: BLE001 - as said
        return FAILED
