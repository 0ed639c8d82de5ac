"""Which variables of the environment are credentials: the one rule for commands, hooks and searches.

It is written down in docs/permissions.md. What it finds is not passed on unless a setting names it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Mapping

from robota._lazy_pattern import lazy_pattern
from robota.core.env_ref import names_in_use

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
