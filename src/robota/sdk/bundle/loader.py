"""`BundlePluginLoader`: the plugins that lie in a directory of plugins. One that is broken costs no other."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping

from msgspec.structs import replace

from robota.core.messages import Json
from robota.sdk.bundle.bundle import BundlePlugin, BundleSite, Scope
from robota.sdk.bundle.installed import InstalledPlugins
from robota.sdk.bundle.manifest import FILE as MANIFEST
from robota.sdk.bundle.names import BundleError, is_safe, make_id, version_key
from robota.sdk.bundle.reading import read_bundle
from robota.sdk.problems import Problem

OWN = frozenset(("cache", "marketplaces", "data"))
"""Directories beside the plugins that somebody put there."""
Check = Callable[[BundleSite], str]
"""Why a plugin must not be loaded; empty when it may."""


class BundlePluginLoader:
    """Reads what lies in `plugins_dir`: installed plugins, directories of the cache, plugins put there as
    they are, or itself, if it is one."""

    def __init__(
        self,
        plugins_dir: str | os.PathLike[str],
        enabled: Mapping[str, bool] | None = None,
        *,
        scope: Scope = "user",
        data_dir: str | None = None,
        options: Mapping[str, Mapping[str, Json]] | None = None,
        check: Check | None = None,
    ) -> None:
        """`enabled` is the setting `enabledPlugins`: one that is not in it counts. `options` are those of
        `pluginConfigs`, by id. `check` has the last word on what is loaded."""
        self.plugins_dir = os.path.abspath(plugins_dir)
        self._enabled = enabled or {}
        self._scope: Scope = scope
        self._data = data_dir or os.path.join(self.plugins_dir, "data")
        self._options = options or {}
        self._check = check
        self.problems: tuple[Problem, ...] = ()
        """What was wrong when they were loaded last."""

    def load_all(self) -> list[BundlePlugin]:
        """Every plugin that is enabled and can be used."""
        problems: list[Problem] = []
        loaded: list[BundlePlugin] = []
        for site in self.find(problems):
            reason = self._check(site) if self._check is not None and not self._is_off(site) else ""
            if reason:
                problems.append(Problem(site.root, reason, subject=site.id))
            elif not self._is_off(site):
                plugin = read_bundle(site, problems)
                if plugin is not None and self._counts(site, plugin):
                    loaded.append(plugin)
        self.problems = tuple(problems)
        return loaded

    def load(self, site: BundleSite) -> BundlePlugin | None:
        """One of them, whether it is enabled or not."""
        problems: list[Problem] = []
        plugin = read_bundle(site, problems)
        self.problems = tuple(problems)
        return plugin

    def find(self, problems: list[Problem] | None = None) -> list[BundleSite]:
        """Where plugins lie, nothing of them read yet."""
        told = [] if problems is None else problems
        sites = list(self._find_installed(told))
        known = {os.path.realpath(site.root) for site in sites}
        ids = {site.id for site in sites}
        for site in (*self._find_cached(), *self._find_direct()):
            if os.path.realpath(site.root) not in known and site.id not in ids:
                ids.add(site.id)
                sites.append(site)
        return [
            replace(
                site,
                scope=self._scope,
                data=os.path.join(self._data, site.id.replace("@", "-")),
                options=self._options.get(site.id) or self._options.get(site.name) or {},
            )
            for site in sites
        ]

    def is_enabled(self, site: BundleSite, default: bool = True) -> bool:
        return not self._is_off(site) and (self._is_listed(site) or default)

    def _is_off(self, site: BundleSite) -> bool:
        return False in (self._enabled.get(site.id), self._enabled.get(site.name))

    def _is_listed(self, site: BundleSite) -> bool:
        return True in (self._enabled.get(site.id), self._enabled.get(site.name))

    def _counts(self, site: BundleSite, plugin: BundlePlugin) -> bool:
        default = plugin.manifest.default_enabled and site.entry.get("defaultEnabled") is not False
        return self.is_enabled(site, default) and self._enabled.get(plugin.name) is not False

    def _find_installed(self, problems: list[Problem]) -> Iterator[BundleSite]:
        registry = InstalledPlugins(self.plugins_dir)
        try:
            found = registry.read()
        except BundleError as error:
            problems.append(Problem(registry.path, str(error)))
            return
        for id, record in found.items():
            path = os.path.normpath(record.install_path)
            if not os.path.isdir(path):
                what = "It is installed, and its directory is gone: install it again, or uninstall it."
                problems.append(Problem(path, what, subject=id))
            else:
                yield BundleSite(
                    root=path, id=id, version=record.version, entry=record.entry, is_registered=True
                )

    def _find_cached(self) -> Iterator[BundleSite]:
        cache = os.path.join(self.plugins_dir, "cache")
        for marketplace in _directories(cache):
            for name in _directories(os.path.join(cache, marketplace)):
                home = os.path.join(cache, marketplace, name)
                versions = sorted(_directories(home), key=version_key)
                if versions:
                    root = os.path.join(home, versions[-1])
                    yield BundleSite(root=root, id=make_id(name, marketplace), version=versions[-1])

    def _find_direct(self) -> Iterator[BundleSite]:
        if os.path.exists(os.path.join(self.plugins_dir, MANIFEST)):
            yield BundleSite(root=self.plugins_dir, id=os.path.basename(self.plugins_dir))
            return
        for name in _directories(self.plugins_dir):
            root = os.path.join(self.plugins_dir, name)
            if name not in OWN and is_safe(name) and is_bundle(root):
                yield BundleSite(root=root, id=name)


def is_bundle(root: str) -> bool:
    """Whether a directory looks like a plugin."""
    usual = (
        MANIFEST,
        "SKILL.md",
        "skills",
        "commands",
        "agents",
        os.path.join("hooks", "hooks.json"),
        ".mcp.json",
    )
    return any(os.path.exists(os.path.join(root, name)) for name in usual)


def _directories(path: str) -> list[str]:
    try:
        with os.scandir(path) as entries:
            return sorted(each.name for each in entries if each.is_dir() and not each.name.startswith("."))
    except OSError:
        return []
