"""Keys of providers: in the keyring of the system where there is one, else in `auth.json`, the user's alone.

A project's files never hold one. A `$ENV:` reference is kept as what it is. Nothing here puts a key into a
message; which names have one is known without reading any.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Literal, Protocol, TypeAlias, cast

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from robota.core.env_ref import is_env_reference
from robota.core.errors import ConfigurationError
from robota.sdk.provider_profiles import ProviderProfiles
from robota.sdk.shared_file import change_file

KeyPlace: TypeAlias = Literal["keyring", "file", "environment"]
SERVICE = "robota"
"""Under which the keyring has our keys."""


class Keyring(Protocol):
    """What we need of the `keyring` package."""

    def get_password(self, service: str, name: str, /) -> str | None: ...
    def set_password(self, service: str, name: str, key: str, /) -> None: ...
    def delete_password(self, service: str, name: str, /) -> None: ...


class _Entry(Struct, omit_defaults=True):
    key: str = ""
    """The key or a reference; empty when the keyring has it."""

    @property
    def place(self) -> KeyPlace:
        if not self.key:
            return "keyring"
        return "environment" if is_env_reference(self.key) else "file"


class _Keys(Struct):
    keys: dict[str, _Entry] = field(default_factory=dict)


class KeyStore:
    """Keys by the name of a profile or the type of a provider."""

    def __init__(self, robota_home: str, *, keyring: Keyring | None = None) -> None:
        """`keyring` takes the place of the system's."""
        self.path = os.path.join(robota_home, "auth.json")
        self._keyring = keyring

    @property
    def names(self) -> Mapping[str, KeyPlace]:
        """Who has a key, and where it is kept."""
        return {name: entry.place for name, entry in self._read().keys.items()}

    def get(self, name: str) -> str | None:
        """The key or the reference of that name."""
        entry = self._read().keys.get(name)
        if entry is None or entry.key:
            return None if entry is None else entry.key
        keyring = self._open_keyring()
        found = None if keyring is None else _try(lambda: keyring.get_password(SERVICE, name))
        if not isinstance(found, str):
            raise ConfigurationError(
                f"The key of {name} is in the keyring of the system, which does not give it: unlock it, "
                "install robota[keyring], or set the key again."
            )
        return found

    def set(self, name: str, key: str) -> KeyPlace:
        """Keep a key or a `$ENV:` reference; where it went."""
        key = key.strip()
        if not name or not key or not key.isprintable():
            raise ConfigurationError("A key needs a name, and one line of text as its value.")
        keyring = None if is_env_reference(key) else self._open_keyring()
        kept = keyring is not None and _try(lambda: keyring.set_password(SERVICE, name, key)) is not _FAILED
        entry = _Entry() if kept else _Entry(key)
        self._change(lambda keys: keys.update({name: entry}))
        return entry.place

    def delete(self, name: str) -> bool:
        """Forget a key; whether there was one."""
        entry = self._read().keys.get(name)
        if entry is None:
            return False
        keyring = self._open_keyring() if entry.place == "keyring" else None
        if keyring is not None and _try(lambda: keyring.delete_password(SERVICE, name)) is _FAILED:
            raise ConfigurationError(
                f"The keyring of the system did not delete the key of {name}: unlock it, or delete it there."
            )
        self._change(lambda keys: keys.pop(name, None))
        return True

    def fill_in(
        self, profiles: ProviderProfiles, on_problem: Callable[[str], object] = str
    ) -> ProviderProfiles:
        """The profiles with the keys that are kept for them: under their name, or under their type if they
        name no host of their own. A key that the settings give counts. `on_problem` is told what is there
        and cannot be had."""
        lacking = {name: each for name, each in profiles.profiles.items() if each.api_key is None}
        known = self.names if lacking else {}
        filled = dict(profiles.profiles)
        for name, profile in lacking.items():
            under = name if name in known or profile.base_url is not None else profile.type
            if under in known:
                try:
                    key, layers = self.get(under), {**profile.layers, "api_key": "user"}
                    filled[name] = replace(profile, api_key=key, layers=layers)
                except ConfigurationError as error:
                    on_problem(str(error))
        return replace(profiles, profiles=filled)

    def _open_keyring(self) -> Keyring | None:
        if self._keyring is None:
            try:
                import keyring  # noqa: PLC0415 - an extra, and slow
            except ImportError:
                return None
            self._keyring = cast(Keyring, keyring)
        return self._keyring

    def _read(self) -> _Keys:
        try:
            with open(self.path, "rb") as file:
                return self._decode(file.read())
        except FileNotFoundError:
            return _Keys()
        except OSError as error:
            raise ConfigurationError(
                f"{self.path} cannot be read ({error.strerror}): check its permissions."
            ) from error

    def _decode(self, data: bytes) -> _Keys:
        try:
            return msgspec.json.decode(data or b"{}", type=_Keys)
        except ValueError:  # what is wrong with it may quote a key
            raise ConfigurationError(
                f"{self.path} is damaged: correct it, or remove it and set the keys again."
            ) from None

    def _change(self, change: Callable[[dict[str, _Entry]], object]) -> None:
        def rewrite(text: str) -> str:
            keys = self._decode(text.encode())
            change(keys.keys)
            return msgspec.json.format(msgspec.json.encode(keys)).decode() + "\n"

        change_file(self.path, rewrite, private=True)


_FAILED = object()


def _try(action: Callable[[], object]) -> object:
    """What a keyring answers; there are many kinds, most of them somebody else's code, and a system may have
    none, so whatever fails means that it does not have the key."""
    try:
        return action()
    except Exception:  # noqa: BLE001 - as said
        return _FAILED
