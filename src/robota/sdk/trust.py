"""Which directories the user trusts, and with which wishes: kept under the user's home by real path.

Nothing inside a directory can say anything about its trust. A directory whose wishes have changed is not
trusted until the user has seen the difference; what robota itself writes on the user's answer is no change.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from typing import Literal, TypeAlias

import msgspec
from msgspec import Struct, field

from robota.core.errors import ConfigurationError
from robota.core.permissions.paths import is_inside
from robota.sdk.places import Places
from robota.sdk.shared_file import change_file
from robota.sdk.wishes import Wish, Wishes, WishKind, describe_wishes, make_allow_wish

TrustState: TypeAlias = Literal["trusted", "untrusted", "changed"]


class Trust(Struct, frozen=True, kw_only=True):
    """What the user thinks of a directory, and what it wants."""

    directory: str
    """The real path."""
    state: TrustState
    """By what the user said before."""
    wishes: Wishes = Wishes()
    added: tuple[Wish, ...] = ()
    """What it did not want when it was trusted."""
    removed: tuple[Wish, ...] = ()
    given: bool | None = None
    """The word of whoever started the session; it counts for that one only."""

    @property
    def trusted(self) -> bool:
        return self.state == "trusted" if self.given is None else self.given

    @property
    def asks(self) -> bool:
        """Whether there is something to ask: a directory that wants nothing needs no trust."""
        return self.given is None and self.state != "trusted" and bool(self.wishes or self.removed)

    def describe(self) -> list[str]:
        """The question to the user, line by line; nothing when there is none."""
        if not self.asks:
            return []
        if self.state == "changed":
            head = f"What {self.directory} wants has changed since you trusted it:"
            return [head, *describe_wishes(self.added, "+"), *_head_removed(self.removed)]
        return [f"Do you trust {self.directory}? Its files want this:", *self.wishes.describe()]

    @property
    def notice(self) -> str:
        """One sentence for a session that goes on without asking; empty when nothing is missing."""
        if not self.asks:
            return ""
        what = "has changed since you trusted it" if self.state == "changed" else "is not trusted"
        return (
            f"This directory {what}: its hooks, servers, allow rules, environment, plugins, agents and the "
            "commands of its skills are off. Look at what it wants and trust it to turn them on."
        )


def _head_removed(removed: tuple[Wish, ...]) -> list[str]:
    return ["No longer:", *describe_wishes(removed, "-")] if removed else []


class _Entry(Struct, rename="camel", omit_defaults=True):
    wishes: tuple[Wish, ...] = ()
    trusted_at: str = ""
    below: bool = False
    """Whether every directory below is trusted as it is when it is first opened."""


class _Ledger(Struct):
    directories: dict[str, _Entry] = field(default_factory=dict)


class TrustStore:
    """`trust.json` under robota's home."""

    def __init__(self, robota_home: str, *, home: str | None = None) -> None:
        """`home` is the user's home directory, by default that of the process."""
        self.path = os.path.join(robota_home, "trust.json")
        self._home = os.path.realpath(os.path.expanduser("~") if home is None else home)

    @property
    def directories(self) -> Mapping[str, bool]:
        """Every directory that is trusted, and whether those below it are."""
        return {path: entry.below for path, entry in self._read().directories.items()}

    def look(self, directory: str, wishes: Wishes) -> Trust:
        """What the user thinks of a directory that wants this."""
        real = os.path.realpath(directory)
        ledger = self._read()
        entry = ledger.directories.get(real)
        if entry is None:
            covered = any(each.below and is_inside(real, path) for path, each in ledger.directories.items())
            if not covered:
                return Trust(directory=real, state="untrusted", wishes=wishes)
            if wishes:  # from now on a change is one
                self.trust(real, wishes)
            return Trust(directory=real, state="trusted", wishes=wishes)
        known, wanted = set(entry.wishes), set(wishes.all)
        added, removed = tuple(sorted(wanted - known)), tuple(sorted(known - wanted))
        state: TrustState = "changed" if added or removed else "trusted"
        return Trust(directory=real, state=state, wishes=wishes, added=added, removed=removed)

    def trust(self, directory: str, wishes: Wishes, *, below: bool = False) -> None:
        """The user has seen these wishes and agrees; with `below`, also to whatever the directories below it
        want when they are first opened."""
        real = os.path.realpath(directory)
        if below and is_inside(self._home, real):
            raise ConfigurationError(
                f"{real} holds your home directory, so everything in it would be trusted: trust a directory "
                "of projects below it, or each project by itself."
            )
        now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())

        def add(ledger: _Ledger) -> None:
            before = ledger.directories.get(real, _Entry())
            ledger.directories[real] = _Entry(wishes.all, now, below or before.below)

        self._change(add)

    def forget(self, directory: str) -> bool:
        """Trust it no more, nor what is below it; whether it was trusted."""
        real, known = os.path.realpath(directory), False

        def drop(ledger: _Ledger) -> None:
            nonlocal known
            known = ledger.directories.pop(real, None) is not None

        self._change(drop)
        return known

    def add_rule(self, trust: Trust, places: Places, path: str, rule: str) -> bool:
        """The user lets a rule be written into a file of the directory: that is no change to ask about.

        Only this rule is added to what is trusted, so whatever else has changed meanwhile is still asked.
        False when the directory wants other things and is not trusted: then the rule waits with them.
        """
        if trust.state == "changed" or (trust.state == "untrusted" and trust.wishes):
            return False
        wish = make_allow_wish(places.shown(path), rule)

        def add(ledger: _Ledger) -> None:
            before = ledger.directories.get(trust.directory, _Entry())
            wishes = tuple(sorted({*before.wishes, wish}))
            ledger.directories[trust.directory] = msgspec.structs.replace(before, wishes=wishes)

        self._change(add)
        return True

    def follow(self, before: Trust, after: Wishes, kind: WishKind) -> bool:
        """The user lets wishes of one kind come and go: that is no change to ask about, whatever else has
        changed is. False when the directory wants other things and is not trusted, or has changed already."""
        if before.state == "changed" or (before.state == "untrusted" and before.wishes):
            return False
        old, new = ({wish for wish in each.all if wish.kind == kind} for each in (before.wishes, after))

        def change(ledger: _Ledger) -> None:
            known = ledger.directories.get(before.directory, _Entry())
            wishes = tuple(sorted((set(known.wishes) - (old - new)) | (new - old)))
            ledger.directories[before.directory] = msgspec.structs.replace(known, wishes=wishes)

        self._change(change)
        return True

    def _read(self) -> _Ledger:
        try:
            with open(self.path, "rb") as file:
                return self._decode(file.read())
        except FileNotFoundError:
            return _Ledger()
        except OSError as error:
            raise ConfigurationError(
                f"{self.path} cannot be read ({error.strerror}): correct its permissions, or remove it to "
                "trust nothing."
            ) from error

    def _decode(self, data: bytes) -> _Ledger:
        try:
            return msgspec.json.decode(data or b"{}", type=_Ledger)
        except ValueError as error:
            raise ConfigurationError(
                f"{self.path} is damaged ({error}): remove it, and trust again what you open."
            ) from error

    def _change(self, change: Callable[[_Ledger], None]) -> None:
        def rewrite(text: str) -> str:
            ledger = self._decode(text.encode())
            change(ledger)
            return msgspec.json.format(msgspec.json.encode(ledger)).decode() + "\n"

        change_file(self.path, rewrite, private=True)
