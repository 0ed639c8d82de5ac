"""Keys of providers: in the keyring of the system where there is one, else in `auth.json`, the user's alone.

A project's files never hold one. A `$ENV:` reference is kept as what it is.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec
from msgspec.structs import replace

from robota.core.credentials import (
    FAILED,
    SERVICE,
    KeptKeys,
    KeyEntry,
    KeyPlace,
    is_env_reference,
    try_keyring,
)
from robota.core.errors import ConfigurationError
from robota.sdk.provider_profiles import ProviderProfiles
from robota.sdk.shared_file import change_file


class KeyStore(KeptKeys):
    """The same, for those who may change them."""

    def set(self, name: str, key: str) -> KeyPlace:
        """Keep a key or a `$ENV:` reference; where it went."""
        key = key.strip()
        if not name or not key or not key.isprintable():
            raise ConfigurationError("A key needs a name, and one line of text as its value.")
        keyring = None if is_env_reference(key) else self.open_keyring()
        entry = KeyEntry(key)
        if keyring is not None:
            answer = try_keyring(lambda: keyring.set_password(SERVICE, name, key))
            entry = KeyEntry(key if answer is FAILED else "")
        self._change(lambda keys: keys.update({name: entry}))
        return entry.place

    def delete(self, name: str) -> bool:
        """Forget a key; whether there was one."""
        entry = self.read().keys.get(name)
        if entry is None:
            return False
        keyring = self.open_keyring() if entry.place == "keyring" else None
        if keyring is not None and try_keyring(lambda: keyring.delete_password(SERVICE, name)) is FAILED:
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

    def _change(self, change: Callable[[dict[str, KeyEntry]], object]) -> None:
        def rewrite(text: str) -> str:
            keys = self.decode(text.encode())
            change(keys.keys)
            return msgspec.json.format(msgspec.json.encode(keys)).decode() + "\n"

        change_file(self.path, rewrite, private=True)
