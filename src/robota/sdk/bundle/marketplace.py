"""What a marketplace offers: `.claude-plugin/marketplace.json`, read leniently."""

from __future__ import annotations

import os
from collections.abc import Mapping

from msgspec import Struct, field

from robota.core.messages import Json, JsonObject
from robota.sdk.bundle.manifest import COMPONENTS, NOT_HERE, list_texts, read_object
from robota.sdk.bundle.names import BundleError, is_safe
from robota.sdk.bundle.source import MANIFEST, Source, read_source
from robota.sdk.problems import Problem

FILE = MANIFEST
_KEPT = (*COMPONENTS, *NOT_HERE, "strict", "defaultEnabled", "description")
"""What of an entry counts when the plugin is loaded."""


class MarketplacePlugin(Struct, frozen=True, kw_only=True):
    """A plugin as a marketplace offers it."""

    name: str
    marketplace: str
    source: Json
    """A path inside of the marketplace, or where else it comes from, as it is written."""
    description: str = ""
    version: str = ""
    category: str = ""
    keywords: tuple[str, ...] = ()
    """Its keywords and its tags."""
    author: str = ""
    homepage: str = ""
    fields: Mapping[str, Json] = field(default_factory=dict)

    @property
    def id(self) -> str:
        return f"{self.name}@{self.marketplace}"

    @property
    def entry(self) -> dict[str, Json]:
        """What counts when it is loaded; nothing for one that its own files describe."""
        kept = {key: self.fields[key] for key in _KEPT if key in self.fields}
        return kept if kept.keys() - {"description"} else {}

    def describe_source(self) -> str:
        if isinstance(self.source, str):
            return self.source
        try:
            return self.read_source().describe()
        except BundleError:
            kind = self.source.get("source") if isinstance(self.source, dict) else None
            return str(kind or "unknown")

    def read_source(self) -> Source:
        source = read_source(self.source, what=self.id)
        if source.kind == "manifest":
            raise BundleError(f"{self.id} cannot come from {source.location}, which is a file of JSON.")
        return source

    def matches(self, text: str, category: str | None) -> bool:
        """By name, keyword, category or what its description says."""
        if category is not None and self.category.casefold() != category.casefold():
            return False
        words = [
            self.name,
            self.category,
            self.description,
            str(self.fields.get("displayName") or ""),
            *self.keywords,
        ]
        spoken = " ".join(words).casefold()
        return all(word in spoken for word in text.casefold().split())


class MarketplaceManifest(Struct, frozen=True, kw_only=True):
    """All that one marketplace offers."""

    name: str
    root: str
    description: str = ""
    version: str = ""
    owner: str = ""
    plugin_root: str = ""
    renames: Mapping[str, str] = field(default_factory=dict)
    dependencies_from: tuple[str, ...] = ()
    """Other marketplaces that its plugins may have plugins from that they need."""
    plugins: tuple[MarketplacePlugin, ...] = ()
    problems: tuple[Problem, ...] = ()

    def find(self, name: str) -> MarketplacePlugin | None:
        name = self.renames.get(name, name)
        return next((plugin for plugin in self.plugins if plugin.name == name), None)

    def locate(self, path: str) -> str:
        """The directory of a plugin whose source is a path."""
        root = os.path.realpath(self.root)
        for base in (os.path.join(root, self.plugin_root), root):
            found = os.path.realpath(os.path.join(base, path))
            if found != root and not found.startswith(root + os.sep):
                raise BundleError(f"The source {path!r} leads out of the marketplace {self.name!r}: refused.")
            if os.path.isdir(found):
                return found
        raise BundleError(f"The marketplace {self.name!r} has no directory {path!r}.")


def read_marketplace(root: str) -> MarketplaceManifest:
    """What the marketplace in a directory offers. One without a usable manifest raises; an entry that cannot
    be used is a problem, and the others count."""
    path = os.path.join(root, FILE)
    problems: list[Problem] = []
    if not os.path.exists(path):
        raise BundleError(f"{root} is no marketplace: it has no {FILE}.")
    fields = read_object(path, problems)
    if fields is None:
        raise BundleError(str(problems[0]))
    name, entries = fields.get("name"), fields.get("plugins")
    if not isinstance(name, str) or not is_safe(name):
        raise BundleError(f"{path} needs a `name` of letters, digits and hyphens, not {name!r}.")
    if not isinstance(entries, list):
        raise BundleError(f"{path} needs a list of `plugins`.")
    owner, metadata = _object(fields.get("owner")), _object(fields.get("metadata"))
    if not owner.get("name"):
        problems.append(
            Problem(path, "It does not say whose it is: `owner` needs a `name`.", subject="owner")
        )
    plugins: dict[str, MarketplacePlugin] = {}
    for place, entry in enumerate(entries):
        plugin = _read_entry(entry, name, path, f"plugins[{place}]", problems)
        if plugin is not None and plugins.setdefault(plugin.name, plugin) is not plugin:
            what = f"There are two plugins {plugin.name!r}; the first counts."
            problems.append(Problem(path, what, subject=f"plugins[{place}]"))
    return MarketplaceManifest(
        name=name,
        root=root,
        description=str(fields.get("description") or metadata.get("description") or ""),
        version=str(fields.get("version") or metadata.get("version") or ""),
        owner=str(owner.get("name") or ""),
        plugin_root=str(metadata.get("pluginRoot") or ""),
        renames={str(old): str(new) for old, new in _object(fields.get("renames")).items()},
        dependencies_from=list_texts(fields.get("allowCrossMarketplaceDependenciesOn")),
        plugins=tuple(plugins.values()),
        problems=tuple(problems),
    )


def _read_entry(
    entry: Json, marketplace: str, path: str, place: str, problems: list[Problem]
) -> MarketplacePlugin | None:
    fields = _object(entry)
    name, source = fields.get("name"), fields.get("source")
    if not isinstance(name, str) or not is_safe(name):
        what = f"It needs a `name` of letters, digits and hyphens, not {name!r}; it was left out."
        problems.append(Problem(path, what, subject=place))
        return None
    if not isinstance(source, str | dict) or not source:
        problems.append(Problem(path, "It needs a `source`; it was left out.", subject=f"{place} {name}"))
        return None
    author = fields.get("author")
    return MarketplacePlugin(
        name=name,
        marketplace=marketplace,
        source=source,
        description=_text(fields.get("description") or fields.get("title")),
        version=_text(fields.get("version")),
        category=_text(fields.get("category")),
        keywords=(*list_texts(fields.get("keywords")), *list_texts(fields.get("tags"))),
        author=_text(author.get("name") if isinstance(author, dict) else author),
        homepage=_text(fields.get("homepage")),
        fields=fields,
    )


def _object(value: Json) -> JsonObject:
    return value if isinstance(value, dict) else {}


def _text(value: Json) -> str:
    return value if isinstance(value, str) else ""
