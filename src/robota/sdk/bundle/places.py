"""Which files of a plugin its components are in: the usual places, and those that its manifest names."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping

from msgspec import Struct

from robota.core.given import kind_of_value
from robota.core.messages import Json, JsonObject
from robota.sdk.bundle.bundle import BundleSite
from robota.sdk.bundle.manifest import COMPONENTS, NOT_HERE, Manifest, read_object
from robota.sdk.problems import Problem
from robota.sdk.settings.jsonc import find_line_in

_USUAL = {"skills": "skills", "commands": "commands", "agents": "agents"}
_OTHER_FILES: Mapping[str, str] = {
    ".lsp.json": "lspServers",
    "output-styles": "outputStyles",
    "themes": "themes",
    "monitors": "monitors",
    "workflows": "workflows",
}


class Declared(Struct):
    """What a plugin's manifest and its marketplace say about components, and whether the usual places count.

    With `strict` (the default) the manifest is the authority and the marketplace may add to it; without it
    the marketplace says everything.
    """

    site: BundleSite
    manifest: Manifest
    problems: list[Problem]

    @property
    def strict(self) -> bool:
        return self.site.entry.get("strict") is not False

    def find_conflict(self) -> str:
        """Why the two cannot both be right; empty when they can."""
        own = [key for key in COMPONENTS if key in self.manifest.fields]
        if self.strict or not own or not any(key in self.site.entry for key in COMPONENTS):
            return ""
        return (
            f"Its marketplace says that it alone describes the plugin (strict: false), and the plugin's own "
            f"manifest has {', '.join(own)}: one of them has to go."
        )

    def values(self, component: str) -> list[tuple[Json, str]]:
        """What is written under a key, and where."""
        found = [(self.manifest.fields.get(component), self.manifest.source)]
        found.append((self.site.entry.get(component), f"the marketplace entry of {self.site.id}"))
        return [(value, source) for value, source in found if value is not None]

    def uses_usual(self, component: str) -> bool:
        """Whether what lies in the usual place counts too."""
        if not self.strict:
            return not any(key in self.site.entry for key in (*COMPONENTS, *NOT_HERE))
        replaced = component in ("commands", "agents") and self.manifest.fields.get(component) is not None
        return not replaced

    def paths(self, component: str) -> Iterator[str]:
        """Directories and files of a component, each once, none outside of the plugin."""
        wanted: list[tuple[str, str]] = []
        usual = os.path.join(self.site.root, _USUAL[component])
        if self.uses_usual(component) and os.path.lexists(usual):
            wanted.append((f"./{_USUAL[component]}", ""))
        for value, source in self.values(component):
            wanted += [(text, source) for text in self._list(value, component, source)]
        seen: set[str] = set()
        for text, source in wanted:
            path = self.locate(text, component, source)
            if path is not None and os.path.realpath(path) not in seen:
                seen.add(os.path.realpath(path))
                yield path

    def _list(self, value: Json, component: str, source: str) -> Iterator[str]:
        if isinstance(value, dict):  # name to an object with the file
            for name, each in value.items():
                file = each.get("source") if isinstance(each, dict) else each
                if isinstance(file, str):
                    yield file
                else:
                    self.tell(source, f"{component}.{name}", "It names no file, so it was left out.")
            return
        for each in value if isinstance(value, list) else [value]:
            if isinstance(each, str):
                yield each
            else:
                what = f"A path was expected, not {kind_of_value(each)}; it was left out."
                self.tell(source, component, what)

    def locate(self, text: str, component: str, source: str = "") -> str | None:
        """A path of the plugin; `None` with a problem if it leads out of it or nothing is there."""
        path = os.path.normpath(os.path.join(self.site.root, text))
        real, root = os.path.realpath(path), os.path.realpath(self.site.root)
        if real != root and not real.startswith(root + os.sep):
            self.tell(source or path, component, f"{text!r} leads out of the plugin; it was left out.")
            return None
        if not os.path.exists(path):
            self.tell(source or path, component, f"There is no {text!r} in the plugin; it was left out.")
            return None
        return path

    def objects(self, component: str, usual: str) -> Iterator[tuple[JsonObject, str]]:
        """The JSON of a component (hooks, servers) and where it stands: inline, or in files."""
        seen: set[str] = set()
        wanted: list[tuple[Json, str]] = []
        if self.uses_usual(component) and os.path.lexists(os.path.join(self.site.root, usual)):
            wanted.append((f"./{usual}", ""))
        for value, source in self.values(component):
            several = value if isinstance(value, list) else [value]
            wanted += [(each, source) for each in several]
        for value, source in wanted:
            if isinstance(value, dict):
                yield value, source
                continue
            if not isinstance(value, str):
                what = f"A path or an object was expected, not {kind_of_value(value)}; it was left out."
                self.tell(source, component, what)
                continue
            path = self.locate(value, component, source)
            if path is None or os.path.realpath(path) in seen:
                continue
            seen.add(os.path.realpath(path))
            found = read_object(path, self.problems)
            if found is not None:
                yield found, path

    def tell_of_others(self) -> None:
        """Name what the plugin brings along and nothing here uses."""
        found: dict[str, str] = {}
        for name, component in _OTHER_FILES.items():
            path = os.path.join(self.site.root, name)
            if os.path.exists(path):
                found[component] = path
        for component in NOT_HERE:
            for _, source in self.values(component):
                found[component] = source
        for component, source in found.items():
            self.tell(source, component, f"It takes no effect: {NOT_HERE[component]}.")
        for name, why in (
            ("bin", "programs of plugins are not put on the path"),
            ("settings.json", "a plugin changes no settings"),
        ):
            path = os.path.join(self.site.root, name)
            if os.path.exists(path) and os.path.exists(os.path.join(self.site.root, ".claude-plugin")):
                self.tell(path, name, f"It takes no effect: {why}.")

    def tell(self, source: str, subject: str, message: str) -> None:
        """Name what is wrong with what stands in a file of the plugin under these keys."""
        name = f"{self.site.name}: {subject}" if subject else self.site.name
        line = find_line_in(source, subject) if subject else 0
        self.problems.append(Problem(source, message, line, name))
