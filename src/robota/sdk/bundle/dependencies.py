"""The plugins that a plugin needs: fetched with it, shown with it, installed before it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from msgspec import Struct

from robota.core.messages import Json
from robota.sdk.bundle.names import BundleError, split_id

if TYPE_CHECKING:
    from robota.sdk.bundle.installed import InstalledPlugin
    from robota.sdk.bundle.installer import BundlePluginInstaller, StagedPlugin

MAX_NEEDED = 20
"""Plugins that come along with one, those that they need in turn among them."""


def read_dependencies(fields: Mapping[str, Json]) -> list[str]:
    """What a manifest names: a plugin of the same marketplace, or `name@marketplace`. Versions are not
    compared: a marketplace offers one of each."""
    wanted = fields.get("dependencies")
    names = [each.get("name") if isinstance(each, dict) else each for each in _list(wanted)]
    return [name for name in names if isinstance(name, str) and name]


class StagedTogether(Struct, frozen=True):
    """A plugin and what it needs, ready to be installed in this order."""

    plugins: tuple[StagedPlugin, ...]
    """The one that was wanted is the last."""
    missing: tuple[str, ...] = ()
    """What it needs and does not get, a sentence each."""

    @property
    def wanted(self) -> StagedPlugin:
        return self.plugins[-1]

    def discard(self) -> None:
        for staged in self.plugins:
            staged.discard()


def stage_together(installer: BundlePluginInstaller, name: str, marketplace: str) -> StagedTogether:
    """Fetch a plugin and, from its marketplace or one that that allows, what it needs and is not installed.
    What of that cannot be had is named: the plugin may do something useful without it."""
    staging = _Staging(installer, marketplace)
    try:
        staging.add(name, marketplace)
    except BundleError:
        staging.together().discard()
        raise
    return staging.together()


def commit_together(installer: BundlePluginInstaller, together: StagedTogether) -> InstalledPlugin:
    """Install all of them or none; what is known of the one that was wanted."""
    done: list[InstalledPlugin] = []
    try:
        for staged in together.plugins:
            done.insert(0, installer.commit(staged))
    except (BundleError, OSError):
        for each in done:
            installer.uninstall(each.id)
        raise
    return done[0]


class _Staging:
    def __init__(self, installer: BundlePluginInstaller, marketplace: str) -> None:
        self._installer = installer
        self._known = {split_id(id)[0] for id in installer.installed}
        self._home = marketplace
        allowed = installer.marketplaces.manifest(marketplace).dependencies_from
        self._allowed = {marketplace, *allowed}
        self._order: list[StagedPlugin] = []
        self._begun = 0
        self._missing: list[str] = []

    def together(self) -> StagedTogether:
        return StagedTogether(tuple(self._order), tuple(self._missing))

    def add(self, name: str, marketplace: str) -> None:
        staged = self._installer.stage(name, marketplace)
        self._known.add(name)
        self._begun += 1
        try:
            for each in read_dependencies(staged.plugin.manifest.fields):
                self._need(*split_id(each), needed_by=staged.record.id)
        finally:
            self._order.append(staged)

    def _need(self, name: str, marketplace: str, *, needed_by: str) -> None:
        if name in self._known:
            return
        marketplace = marketplace or split_id(needed_by)[1]
        why = ""
        if marketplace not in self._allowed:
            why = f"the marketplace {self._home!r} does not allow what comes from {marketplace!r}"
        elif self._begun > MAX_NEEDED:
            why = f"more than {MAX_NEEDED} plugins would come along"
        else:
            try:
                self.add(name, marketplace)
            except BundleError as error:
                why = str(error).rstrip(".")
        if why:
            self._missing.append(
                f"{needed_by} needs {name}, which does not come along: {why}. "
                f"robota plugin install {name}@{marketplace}"
            )


def _list(value: Json) -> list[Json]:
    return value if isinstance(value, list) else []
