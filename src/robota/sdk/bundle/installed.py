"""`installed_plugins.json`: which plugins are installed in a directory of plugins, and where.

An installation counts from the moment it stands here: what lies in the directory without that is left over.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

from msgspec import Struct, field
from msgspec.structs import replace

from robota.core.messages import Json
from robota.sdk.bundle.bundles import INSTALLED
from robota.sdk.bundle.ledger import Ledger
from robota.sdk.bundle.names import make_id


class InstalledPlugin(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """One installation."""

    plugin_name: str
    marketplace: str = ""
    version: str = ""
    install_path: str
    installed_at: str = ""
    source: str = ""
    """Where it came from, as it is shown."""
    commit: str = ""
    """Of the repository it came from, if it was one."""
    entry: Mapping[str, Json] = field(default_factory=dict)
    """What its marketplace says about its components."""

    @property
    def id(self) -> str:
        return make_id(self.plugin_name, self.marketplace)


class InstalledPlugins:
    """The registry of one directory of plugins. In the file paths are relative, so that it can be moved."""

    def __init__(self, plugins_dir: str | os.PathLike[str]) -> None:
        self._home = os.path.abspath(plugins_dir)
        self.path = os.path.join(self._home, INSTALLED)
        self._ledger = Ledger(self.path, InstalledPlugin, "install the plugins again")
        self.drop = self._ledger.drop

    def read(self) -> dict[str, InstalledPlugin]:
        """By id, with absolute paths."""
        return {
            id: replace(each, install_path=os.path.join(self._home, each.install_path))
            for id, each in self._ledger.read().items()
        }

    def put(self, plugin: InstalledPlugin) -> None:
        kept = replace(plugin, install_path=os.path.relpath(plugin.install_path, self._home))
        self._ledger.put(plugin.id, kept)
