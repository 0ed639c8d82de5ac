"""`MarketplaceClient`: the marketplaces somebody knows, and what they offer."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TypeAlias

from msgspec import Struct, field

from robota.core.given import nearest
from robota.core.messages import Json
from robota.core.private_directory import make_private_directories
from robota.sdk.bundle.download import Tell, say_nothing
from robota.sdk.bundle.fetching import fetch
from robota.sdk.bundle.ledger import Ledger
from robota.sdk.bundle.marketplace import MarketplaceManifest, MarketplacePlugin, read_marketplace
from robota.sdk.bundle.names import BundleError, require_safe
from robota.sdk.bundle.source import Source, parse_source, read_source
from robota.sdk.problems import Problem

FILE = "known_marketplaces.json"
BUILT_IN = "robota"
"""The marketplace that comes with the package."""


class KnownMarketplace(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """One that somebody added."""

    source: Mapping[str, Json] = field(default_factory=dict)
    install_location: str = ""
    """The directory it is read from; empty while it was not fetched."""
    last_updated: str = ""
    commit: str = ""


class Marketplace(Struct, frozen=True, kw_only=True):
    """One that is known, for people."""

    name: str
    source: str
    location: str = ""
    """Empty while it was not fetched."""
    last_updated: str = ""
    commit: str = ""


Marketplaces: TypeAlias = list[Marketplace]
Offers: TypeAlias = list[MarketplacePlugin]
Names: TypeAlias = list[str]


class MarketplaceClient:
    """Blocks while it fetches. Everything it knows is in `known_marketplaces.json` of `plugins_dir`."""

    def __init__(
        self,
        plugins_dir: str | os.PathLike[str],
        *,
        extra: Mapping[str, Json] | None = None,
        tell: Tell = say_nothing,
        cwd: str = "",
    ) -> None:
        """`extra` is the setting `extraKnownMarketplaces`: they are known, and fetched when they are first
        needed. `tell` hears what goes on. Paths that are typed count from `cwd`."""
        self.plugins_dir = os.path.abspath(plugins_dir)
        self.path = os.path.join(self.plugins_dir, FILE)
        self._ledger = Ledger(self.path, KnownMarketplace, "add the marketplaces again")
        self._extra = extra or {}
        self._tell = tell
        self._cwd = cwd
        self.problems: tuple[Problem, ...] = ()
        """What was wrong with marketplaces when they were searched or listed last."""

    # --- what is known ----------------------------------------------------------------------------------

    def list(self) -> Marketplaces:
        """All marketplaces, the built-in one first."""
        return [
            Marketplace(
                name=name,
                source=self.describe_source(name),
                location=known.install_location,
                last_updated=known.last_updated,
                commit=known.commit,
            )
            for name, known in self.known().items()
        ]

    def known(self) -> dict[str, KnownMarketplace]:
        """All of them; those of settings that were not fetched yet have no place."""
        built_in = os.path.join(os.path.dirname(__file__), "shipped")
        found = {BUILT_IN: KnownMarketplace(source={"source": "built-in"}, install_location=built_in)}
        found |= self._ledger.read()
        for name, given in self._extra.items():
            if name not in found and isinstance(given, dict):
                found[name] = KnownMarketplace(source=given.get("source") or {})
        return found

    def describe_source(self, name: str) -> str:
        """Where a marketplace comes from, in a few words."""
        try:
            source = self.source(name)
        except BundleError as error:
            return str(error)
        return "comes with robota" if source is None else source.describe()

    def source(self, name: str) -> Source | None:
        """Where it comes from; `None` for the one that is built in."""
        known = self._require(name)
        if known.source.get("source") == "built-in":
            return None
        return read_source(dict(known.source), what=f"The marketplace {name!r}")

    def commit(self, name: str) -> str:
        return self._require(name).commit

    def manifest(self, name: str) -> MarketplaceManifest:
        """What a marketplace offers; one that settings name is fetched first."""
        known = self._require(name)
        if not known.install_location:
            self.update(name)
            known = self._require(name)
        if not os.path.isdir(known.install_location):
            raise BundleError(
                f"The marketplace {name!r} has vanished: {known.install_location} is not there any more. "
                f"Update it (robota plugin marketplace update {name}) or remove it."
            )
        return read_marketplace(known.install_location)

    def plugins(self, name: str) -> Offers:
        """What one marketplace offers."""
        return list(self.manifest(name).plugins)

    def search(self, text: str = "", category: str | None = None) -> Offers:
        """What all of them offer that has these words in its name, keywords, category or description. One
        that cannot be read is a problem, and the others are searched."""
        found: Offers = []
        problems: list[Problem] = []
        for name, known in self.known().items():
            if not known.install_location:
                what = f"It was not fetched yet: robota plugin marketplace update {name}"
                problems.append(Problem("extraKnownMarketplaces", what, subject=name))
                continue
            try:
                manifest = self.manifest(name)
            except BundleError as error:
                problems.append(Problem(self.path, str(error), subject=name))
                continue
            problems += manifest.problems
            found += [plugin for plugin in manifest.plugins if plugin.matches(text, category)]
        self.problems = tuple(problems)
        return found

    # --- changes ----------------------------------------------------------------------------------------

    def add(self, source: str | Mapping[str, Json]) -> str:
        """Get to know a marketplace; its name, which it says itself. Nothing of it is run."""
        wanted = (
            parse_source(source, self._cwd)
            if isinstance(source, str)
            else read_source(dict(source), what="The marketplace")
        )
        with self._fetched(wanted) as (manifest, commit, staged):
            if manifest.name in self.known():
                raise BundleError(
                    f"There is a marketplace {manifest.name!r} already "
                    f"({self.describe_source(manifest.name)}): remove it first, or update it."
                )
            self._put(manifest.name, wanted, manifest.root, commit, staged)
            return manifest.name

    def update(self, name: str | None = None) -> Names:
        """Fetch one marketplace again, or all; their names. What is installed stays as it is. One that fails
        stays as it was: with a name that raises, without it is a problem."""
        if name is not None:
            self._update(name)
            return [name]
        done, problems = [], []
        for each in self.known():
            try:
                self._update(each)
                done.append(each)
            except BundleError as error:
                problems.append(Problem(self.path, str(error), subject=each))
        self.problems = tuple(problems)
        return done

    def remove(self, name: str) -> Names:
        """Forget a marketplace and uninstall what came from it; the ids of that."""
        from robota.sdk.bundle.installer import BundlePluginInstaller  # noqa: PLC0415 - it knows this one

        if name == BUILT_IN:
            raise BundleError(f"The marketplace {BUILT_IN!r} comes with the package and cannot be removed.")
        known = self._require(name)
        if name not in self._ledger.read():
            raise BundleError(
                f"The marketplace {name!r} is in settings (extraKnownMarketplaces): remove it there."
            )
        installer = BundlePluginInstaller(self.plugins_dir, marketplaces=self)
        gone = [each.id for each in installer.installed.values() if each.marketplace == name]
        for id in gone:
            installer.uninstall(id)
        self._ledger.drop(name)
        if known.install_location.startswith(os.path.join(self.plugins_dir, "marketplaces") + os.sep):
            shutil.rmtree(known.install_location, ignore_errors=True)
        return gone

    def _update(self, name: str) -> None:
        source = self.source(name)
        if source is None:
            return
        with self._fetched(source) as (manifest, commit, staged):
            if manifest.name != name:
                raise BundleError(
                    f"The marketplace {name!r} now calls itself {manifest.name!r}: nothing was changed. "
                    "Remove it and add the other if you want it."
                )
            self._put(name, source, manifest.root, commit, staged)

    @contextmanager
    def _fetched(self, source: Source) -> Iterator[tuple[MarketplaceManifest, str, str]]:
        """A marketplace in a place of its own, which is removed if nobody takes it."""
        make_private_directories(self.plugins_dir)
        with tempfile.TemporaryDirectory(
            prefix=".staging-", dir=self.plugins_dir, ignore_cleanup_errors=True
        ) as staging:
            into = os.path.join(staging, "fetched")
            found = fetch(source, into, tell=self._tell, near=source.host)
            yield read_marketplace(found.root), found.commit, into

    def _put(self, name: str, source: Source, root: str, commit: str, staged: str) -> None:
        require_safe(name, "marketplace")
        place = root
        if source.kind != "directory":
            place = os.path.join(self.plugins_dir, "marketplaces", name)
            make_private_directories(os.path.dirname(place))
            if os.path.isdir(place):
                os.rename(place, os.path.join(os.path.dirname(staged), "replaced"))
            os.rename(root, place)
        now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        known = KnownMarketplace(
            source=source.to_json(), install_location=place, last_updated=now, commit=commit
        )
        self._ledger.put(name, known)

    def _require(self, name: str) -> KnownMarketplace:
        known = self.known()
        if name not in known:
            near = nearest(name, known)
            hint = f"did you mean {near!r}?" if near else f"there are {', '.join(known)}."
            raise BundleError(f"There is no marketplace {name!r}; {hint}")
        return known[name]
