"""Which plugins are used: `enabledPlugins` of one settings file."""

from __future__ import annotations

from collections.abc import Mapping

from robota.sdk.bundle.manifest import read_json
from robota.sdk.bundle.names import BundleError, split_id
from robota.sdk.settings.write import change_setting, remove_setting

KEY = "enabledPlugins"


class EnabledPlugins:
    """One that is not in it is used."""

    def __init__(self, path: str, project: str | None = None) -> None:
        """`project` is the directory that the file belongs to, if it is a project's."""
        self.path = path
        self._project = project

    def read(self) -> Mapping[str, bool]:
        try:
            found = read_json(self.path)
        except FileNotFoundError:
            return {}
        except (OSError, ValueError) as error:
            raise BundleError(f"{self.path} cannot be read ({error}): correct it first.") from error
        listed = found.get(KEY) if isinstance(found, dict) else None
        return listed if isinstance(listed, dict) else {}

    def allow(self, id: str) -> bool:
        """Whether neither its id nor its name is off."""
        listed = self.read()
        return False not in (listed.get(id), listed.get(split_id(id)[0]))

    def put(self, id: str, used: bool) -> None:
        name = split_id(id)[0]
        if used and name != id and self.read().get(name) is False:
            remove_setting(self.path, (KEY, name), project=self._project)
        change_setting(self.path, (KEY, id), used, project=self._project)

    def forget(self, id: str) -> None:
        if id in self.read():
            remove_setting(self.path, (KEY, id), project=self._project)
