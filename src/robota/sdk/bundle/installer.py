"""`BundlePluginInstaller`: puts plugins into a directory of plugins and takes them out, whole or not at all.

A plugin is fetched, checked and read in a place of its own, and moved when everything is right. From then on
the registry decides: what does not stand there is not installed. Nothing of a plugin runs on the way.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Mapping
from types import TracebackType
from typing import Self

from msgspec import Struct

from robota.core.given import nearest
from robota.core.private_directory import make_private_directories
from robota.sdk.bundle.bundle import BundlePlugin, BundleSite
from robota.sdk.bundle.client import MarketplaceClient
from robota.sdk.bundle.copying import copy_bundle
from robota.sdk.bundle.dependencies import commit_together, stage_together
from robota.sdk.bundle.download import Tell, say_nothing
from robota.sdk.bundle.enabled import EnabledPlugins
from robota.sdk.bundle.fetching import Fetched, fetch
from robota.sdk.bundle.installed import InstalledPlugin, InstalledPlugins
from robota.sdk.bundle.loader import BundlePluginLoader
from robota.sdk.bundle.lock import Approval, BundleLock, hash_bundle
from robota.sdk.bundle.marketplace import MarketplaceManifest, MarketplacePlugin
from robota.sdk.bundle.names import BundleError, is_safe, require_safe, split_id
from robota.sdk.bundle.reading import read_bundle
from robota.sdk.bundle.report import BundleReport, report_on
from robota.sdk.problems import Problem

STAGING = ".staging-"
_LEFT_OVER_SECONDS = 3_600.0
"""After which what lies in a place of its own belongs to nobody any more."""


class StagedPlugin(Struct, kw_only=True):
    """A plugin that is ready to be installed; leaving it without `commit` removes it."""

    record: InstalledPlugin
    plugin: BundlePlugin
    hash: str
    report: BundleReport
    problems: tuple[Problem, ...]
    staging: str

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.discard()

    def discard(self) -> None:
        """Remove what was fetched, but for what was installed of it."""
        shutil.rmtree(self.staging, ignore_errors=True)


class BundlePluginInstaller:
    """Installs into `plugins_dir`: `~/.robota/plugins` for a user, `.robota/plugins` for a project."""

    def __init__(
        self,
        plugins_dir: str | os.PathLike[str],
        *,
        settings: str | os.PathLike[str] | None = None,
        marketplaces: MarketplaceClient | None = None,
        project: str | None = None,
        tell: Tell = say_nothing,
    ) -> None:
        """`settings` is the file whose `enabledPlugins` says what is used, by default the one beside
        `plugins_dir`; of a `project`'s directory, if it belongs to one. `marketplaces` offer what can be
        installed, by default those known in `plugins_dir`."""
        self.plugins_dir = os.path.abspath(plugins_dir)
        beside = os.path.join(os.path.dirname(self.plugins_dir), "settings.json")
        self.enabled = EnabledPlugins(beside if settings is None else os.fspath(settings), project)
        self.marketplaces = marketplaces or MarketplaceClient(self.plugins_dir, tell=tell)
        self._tell = tell
        self._registry = InstalledPlugins(self.plugins_dir)
        self.lock = BundleLock(self.plugins_dir)

    @property
    def installed(self) -> Mapping[str, InstalledPlugin]:
        """What is installed here, by id."""
        return self._registry.read()

    def is_enabled(self, id: str) -> bool:
        """Whether the settings beside it let a plugin be used."""
        return self.enabled.allow(id)

    def find_id(self, text: str) -> str:
        """The id of a plugin that lies here, by that or by its name, if only one has it."""
        ids = {site.id: site for site in BundlePluginLoader(self.plugins_dir).find()} | dict.fromkeys(
            self.installed
        )
        if text in ids:
            return text
        matching = [id for id in ids if split_id(id)[0] == text]
        if len(matching) == 1:
            return matching[0]
        if matching:
            raise BundleError(f"{text!r} could be any of {', '.join(matching)}: write the whole id.")
        near = nearest(text, ids)
        raise BundleError(
            f"There is no plugin {text!r} in {self.plugins_dir}"
            + (f"; did you mean {near!r}?" if near else ".")
        )

    # --- in -------------------------------------------------------------------------------------------

    def install(self, name: str, marketplace: str) -> InstalledPlugin:
        """Fetch a plugin with those that it needs, and use them from now on. Whoever calls this agrees to
        what they run; those who want to be asked first use `stage_together` and look at the reports."""
        together = stage_together(self, name, marketplace)
        try:
            return commit_together(self, together)
        finally:
            together.discard()

    def stage(self, name: str, marketplace: str, *, update: bool = False) -> StagedPlugin:
        """Fetch a plugin and read it, without using it; with `update` it may be installed already."""
        require_safe(name, "plugin")
        manifest = self.marketplaces.manifest(marketplace)
        offer = manifest.find(name)
        if offer is None:
            near = nearest(name, [plugin.name for plugin in manifest.plugins])
            hint = f"did you mean {near!r}?" if near else "robota plugin search lists what there is."
            raise BundleError(f"The marketplace {marketplace!r} has no plugin {name!r}; {hint}")
        if not update and offer.id in self.installed:
            raise BundleError(f"{offer.id} is installed already: update or uninstall it.")
        self._sweep()
        make_private_directories(self.plugins_dir)
        staging = tempfile.mkdtemp(prefix=STAGING, dir=self.plugins_dir)
        staged: StagedPlugin | None = None
        try:
            staged = self._stage(offer, manifest, staging)
            return staged
        finally:
            if staged is None:
                shutil.rmtree(staging, ignore_errors=True)

    def _stage(self, offer: MarketplacePlugin, manifest: MarketplaceManifest, staging: str) -> StagedPlugin:
        fetched, shown = self._fetch(offer, manifest, os.path.join(staging, "fetched"))
        content = os.path.join(staging, "content")
        try:
            copy_bundle(fetched.root, content, fetched.within)
        except OSError as error:
            raise BundleError(f"{offer.id} cannot be copied ({error.strerror}: {error.filename}).") from error
        hash, problems = hash_bundle(content, offer.entry), list[Problem]()
        site = BundleSite(root=content, id=offer.id, version=offer.version, entry=offer.entry)
        plugin = read_bundle(site, problems)
        if plugin is None:
            reasons = " ".join(problem.message for problem in problems)
            raise BundleError(f"{offer.id} cannot be installed: {reasons}")
        version = offer.version or plugin.manifest.version or fetched.commit[:12] or hash[7:19]
        if not is_safe(version):
            raise BundleError(
                f"{offer.id} has the version {version!r}, which cannot be the name of a directory."
            )
        record = InstalledPlugin(
            plugin_name=offer.name,
            marketplace=offer.marketplace,
            version=version,
            install_path=os.path.join(self.plugins_dir, "cache", offer.marketplace, offer.name, version),
            source=shown,
            commit=fetched.commit,
            entry=offer.entry,
        )
        return StagedPlugin(
            record=record,
            plugin=plugin,
            hash=hash,
            report=report_on(plugin),
            problems=tuple(problems),
            staging=staging,
        )

    def _fetch(
        self, offer: MarketplacePlugin, manifest: MarketplaceManifest, into: str
    ) -> tuple[Fetched, str]:
        """A plugin's files, and where they came from, for people."""
        if isinstance(offer.source, str):
            commit = self.marketplaces.commit(offer.marketplace)
            root = manifest.locate(offer.source)
            return Fetched(
                root, manifest.root, commit
            ), f"{self.marketplaces.describe_source(offer.marketplace)} {offer.source}"
        source = offer.read_source()
        market = self.marketplaces.source(offer.marketplace)
        near = market.host if market is not None and market.host == source.host else ""
        if source.is_local and not (market is not None and market.is_local):
            raise BundleError(
                f"{offer.id} is to come from a directory of this machine, which its marketplace cannot know: "
                "refused."
            )
        return fetch(source, into, tell=self._tell, near=near), source.describe()

    def commit(self, staged: StagedPlugin) -> InstalledPlugin:
        """Install what was staged, in the place of an earlier version; whoever calls this agrees to it."""
        record, before = staged.record, self.installed.get(staged.record.id)
        place = record.install_path
        if before is not None and os.path.exists(place):
            place = f"{place}+{staged.hash[7:15]}"
        make_private_directories(os.path.dirname(place))
        if os.path.exists(place):  # left over, or that of an update to the same
            os.rename(place, os.path.join(staged.staging, "replaced"))
        os.rename(os.path.join(staged.staging, "content"), place)
        now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        installed = InstalledPlugin(
            plugin_name=record.plugin_name,
            marketplace=record.marketplace,
            version=record.version,
            install_path=place,
            installed_at=now,
            source=record.source,
            commit=record.commit,
            entry=record.entry,
        )
        self.lock.approve(installed.id, _approve(installed, staged.hash))
        self._registry.put(installed)
        if before is not None and os.path.realpath(before.install_path) != os.path.realpath(place):
            self._remove(before.install_path)
        elif before is None and not self._is_on_by_default(staged, installed):
            self.enabled.put(installed.id, True)
        return installed

    def _is_on_by_default(self, staged: StagedPlugin, installed: InstalledPlugin) -> bool:
        """Whether neither the settings nor the plugin itself would leave it off."""
        waits = not staged.plugin.manifest.default_enabled or installed.entry.get("defaultEnabled") is False
        return self.enabled.allow(installed.id) and not waits

    # --- out, on and off ------------------------------------------------------------------------------

    def uninstall(self, id: str) -> None:
        """Take a plugin out. What it kept in its directory for data stays."""
        id = self.find_id(id)
        record = self.installed.get(id)
        root = self._site(id).root if record is None else record.install_path
        self._registry.drop(id)
        self.lock.forget(id)
        self.enabled.forget(id)
        self._remove(root)

    def enable(self, id: str) -> None:
        """Use a plugin from now on, as it is now: whoever calls this agrees to what it runs."""
        id = self.find_id(id)
        site = self._site(id)
        record, hash = self.installed.get(id), hash_bundle(site.root, site.entry)
        self.lock.approve(id, Approval(hash=hash) if record is None else _approve(record, hash))
        self.enabled.put(id, True)

    def disable(self, id: str) -> None:
        """Use a plugin no more; it stays installed."""
        self.enabled.put(self.find_id(id), False)

    def look(self, id: str) -> tuple[BundleReport, tuple[Problem, ...]]:
        """What an installed plugin would run, and what is wrong with it, as it is now."""
        loader = BundlePluginLoader(self.plugins_dir)
        plugin = loader.load(self._site(self.find_id(id)))
        if plugin is None:
            raise BundleError(" ".join(str(problem) for problem in loader.problems))
        return report_on(plugin), loader.problems

    def _site(self, id: str) -> BundleSite:
        found = next((site for site in BundlePluginLoader(self.plugins_dir).find() if site.id == id), None)
        if found is None:
            raise BundleError(f"The directory of {id} is gone: uninstall it, or install it again.")
        return found

    def _remove(self, root: str) -> None:
        """A directory at once, and then its files, so that nobody ever sees half of it."""
        if not os.path.realpath(root).startswith(os.path.realpath(self.plugins_dir) + os.sep):
            return
        staging = tempfile.mkdtemp(prefix=STAGING, dir=self.plugins_dir)
        try:
            if os.path.isdir(root):
                os.rename(root, os.path.join(staging, "removed"))
        finally:
            shutil.rmtree(staging, ignore_errors=True)
        above = os.path.dirname(root)
        while above != self.plugins_dir and os.path.isdir(above) and not os.listdir(above):
            os.rmdir(above)
            above = os.path.dirname(above)

    def _sweep(self) -> None:
        """Remove what installations that were cut left behind: places of their own, and directories of the
        cache that the registry does not know."""
        known = {os.path.realpath(each.install_path) for each in self.installed.values()}
        if not os.path.isdir(self.plugins_dir):
            return
        for name in os.listdir(self.plugins_dir):
            path = os.path.join(self.plugins_dir, name)
            if name.startswith(STAGING) and time.time() - os.stat(path).st_mtime > _LEFT_OVER_SECONDS:
                shutil.rmtree(path, ignore_errors=True)
        for site in BundlePluginLoader(self.plugins_dir).find():
            is_cached = site.root.startswith(os.path.join(self.plugins_dir, "cache") + os.sep)
            if is_cached and os.path.realpath(site.root) not in known:
                self._remove(site.root)


def _approve(record: InstalledPlugin, hash: str) -> Approval:
    return Approval(hash=hash, version=record.version, source=record.source, commit=record.commit)
