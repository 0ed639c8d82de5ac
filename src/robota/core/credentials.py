"""Keys: variables of the environment, `$ENV:` references to them, and which of them are credentials; and the
keys of providers that their user keeps, in the keyring of the system or in `auth.json`.

The one rule for commands, hooks and searches is written down in docs/permissions.md. What it finds is not
passed on unless a setting names it. Kept keys are read here, and written by the SDK. Nothing here puts a key
into a message; which names have one is known without reading any.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Literal, Protocol, Self, TypeAlias, cast

import msgspec
from msgspec import Struct, field

from robota._lazy_pattern import lazy_pattern
from robota.core.errors import ConfigurationError

ENV_REFERENCE_PREFIX = "$ENV:"
_IN_USE: set[str] = set()
"""The variables that references were resolved to: they hold keys, whatever their names."""


def is_env_reference(value: object) -> bool:
    """Whether a text refers to an environment variable."""
    return isinstance(value, str) and value.startswith(ENV_REFERENCE_PREFIX)


def format_env_reference(name: str) -> str:
    """The text that refers to an environment variable: `$ENV:NAME`."""
    return f"{ENV_REFERENCE_PREFIX}{name}"


def resolve_env_reference(value: str, env: Mapping[str, str] | None = None) -> str | None:
    """What the reference stands for, `None` when the variable is missing or empty; other text as it is."""
    if not is_env_reference(value):
        return value
    name = value.removeprefix(ENV_REFERENCE_PREFIX).strip()
    if env is None:
        _IN_USE.add(name)
    return (os.environ if env is None else env).get(name) or None


def has_usable_secret_reference(value: str | None, env: Mapping[str, str] | None = None) -> bool:
    """Whether the value is, or stands for, a text that could be a key."""
    return bool(value and resolve_env_reference(value, env))


_NAME = lazy_pattern(
    r"(?:(?:PASSWORD|PASSWD|PASSPHRASE|SECRET|TOKEN|APIKEY|ACCESSKEY|SECRETKEY|PRIVATEKEY)S?"
    r"|(?:^|_|SSH|DB|PG)PASS|(?:^|_)(?:KEYS?|PWD|PAT|PIN|AUTH|JWT|BEARER|COOKIE|CREDENTIALS?|CREDS?)"
    r"|CONNECTION_?STRING|CONNSTR|SECRET_KEY_BASE|ACCESS_KEY_ID)"
    r"(?:_?(?:\d+|B64|BASE64|PROD|PRODUCTION|STAGING|DEV|TEST|LIVE|OLD|NEW|PRIMARY|SECONDARY|VALUE))*$",
    re.IGNORECASE,
)
_SWITCH = lazy_pattern(r"|[01]|true|false|yes|no|on|off|none", re.IGNORECASE)
_COUNT = lazy_pattern(r".*tokens=\d+", re.IGNORECASE)
_PASSWORD_IN_URL = lazy_pattern(r"[A-Za-z][\w+.-]*://[^\s/@:]*:[^\s/@]+@")
_DIRECTORIES = frozenset(("PWD", "OLDPWD"))


def is_credential(name: str, value: str) -> bool:
    """Whether a variable holds a secret: by its name, by a password in its address, or because it was read
    as a key. The name of a file is none, though its content may be: rules about files protect that."""
    if name in _IN_USE:
        return True
    if name.upper() in _DIRECTORIES:
        return False
    if not _NAME.search(name):
        return not name.lower().endswith("_proxy") and _PASSWORD_IN_URL.match(value) is not None
    if _SWITCH.fullmatch(value) or _COUNT.fullmatch(f"{name}={value}"):
        return False
    return not (value[:1] in ("/", "~") and os.path.exists(os.path.expanduser(value)))


def without_credentials(
    variables: Mapping[str, str], keep: Collection[str] = ()
) -> Iterable[tuple[str, str]]:
    """The variables that may be passed on; `keep` names those that may, whatever they are."""
    return (
        (name, value) for name, value in variables.items() if name in keep or not is_credential(name, value)
    )


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
