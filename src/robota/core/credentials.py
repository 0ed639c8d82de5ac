"""Variables of the environment: `$ENV:` references to them, and which are credentials.

The one rule for commands, hooks and searches is written down in docs/permissions.md. What it finds is not
passed on unless a setting names it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Mapping

from robota._lazy_pattern import lazy_pattern

ENV_REFERENCE_PREFIX = "$ENV:"
_IN_USE: set[str] = set()


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


def names_in_use() -> Collection[str]:
    """The variables that references were resolved to: they hold keys, whatever their names."""
    return _IN_USE


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
    if name in names_in_use():
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
