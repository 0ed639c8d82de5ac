"""What `robota plugin` and `/plugin` do, in words: the same functions for both, asking where that is due.

Everything blocks; a session calls it in a thread.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from functools import partial

from msgspec import Struct

from robota.core.messages import Json
from robota.sdk.bundle.bundle import BundleSite, Scope
from robota.sdk.bundle.bundles import find_plugin_directories
from robota.sdk.bundle.client import MarketplaceClient
from robota.sdk.bundle.dependencies import StagedTogether, commit_together, stage_together
from robota.sdk.bundle.download import Tell, say_nothing
from robota.sdk.bundle.installer import BundlePluginInstaller, StagedPlugin
from robota.sdk.bundle.loader import BundlePluginLoader
from robota.sdk.bundle.loading import find_objection
from robota.sdk.bundle.manifest import FILE as MANIFEST
from robota.sdk.bundle.manifest import read_manifest
from robota.sdk.bundle.marketplace import FILE as MARKETPLACE
from robota.sdk.bundle.marketplace import MarketplacePlugin, read_marketplace
from robota.sdk.bundle.names import BundleError, split_id
from robota.sdk.bundle.reading import read_bundle
from robota.sdk.bundle.report import report_on
from robota.sdk.bundle.trusting import keep_trust
from robota.sdk.places import Places
from robota.sdk.problems import Problem

WIDTH = 100
"""Characters of a description in a list."""


class Pending(Struct, kw_only=True):
    """Something that may need a yes."""

    lines: list[str]
    """What there is to know before."""
    question: str = ""
    """Empty when there is nothing to ask."""
    agree: Callable[[], list[str]] = lambda: []
    """Does it, and says what was done."""
    drop: Callable[[], None] = lambda: None
    """Leaves everything as it was."""


class BundleDesk:
    """Works for somebody in a directory."""

    def __init__(
        self, places: Places, *, extra: Mapping[str, Json] | None = None, tell: Tell = say_nothing
    ) -> None:
        """`extra` is the setting `extraKnownMarketplaces`; `tell` hears how far something has come."""
        self._places = places
        self._directories = {scope: path for path, scope in find_plugin_directories(places)}
        self.marketplaces = MarketplaceClient(
            self._directories["user"], extra=extra, tell=tell, cwd=places.cwd
        )
        self._tell = tell

    def installer(self, scope: Scope) -> BundlePluginInstaller:
        project = self._places.cwd if scope == "project" else None
        return BundlePluginInstaller(
            self._directories[scope], marketplaces=self.marketplaces, project=project, tell=self._tell
        )

    # --- looking --------------------------------------------------------------------------------------

    def list_rows(self) -> list[tuple[str, str, str, str, str]]:
        """Id, version, scope, state and description of everything that is installed."""
        return [
            (site.id, site.version, scope, self._state(scope, site), self._describe(site))
            for scope, path in self._directories.items()
            for site in BundlePluginLoader(path).find()
        ]

    def _state(self, scope: Scope, site: BundleSite) -> str:
        installer = self.installer(scope)
        if not installer.is_enabled(site.id):
            return "disabled"
        objection = find_objection(
            site, installer.lock.read(), needed=scope == "user", home=installer.plugins_dir
        )
        return "enabled" if not objection else "changed" if "has changed" in objection else "not agreed to"

    def _describe(self, site: BundleSite) -> str:
        manifest = read_manifest(site.root, site.name, [])
        return (
            "broken"
            if manifest is None
            else _cut(manifest.description or str(site.entry.get("description") or ""))
        )

    def search_rows(self, text: str = "", category: str | None = None) -> list[tuple[str, str, str, str]]:
        """Id, version, category and description of what marketplaces offer."""
        return [
            (offer.id, offer.version, offer.category, _cut(offer.description))
            for offer in self.marketplaces.search(text, category)
        ]

    def show(self, text: str) -> list[str]:
        """All that can be said about a plugin, installed or offered."""
        held = self._find_held(text)
        if held is not None:
            scope, id = held
            installer = self.installer(scope)
            report, problems = installer.look(id)
            record = installer.installed.get(id)
            site = next(each for each in BundlePluginLoader(installer.plugins_dir).find() if each.id == id)
            head = [
                f"{id} {site.version}".rstrip() + f" ({scope}, {self._state(scope, site)})",
                f"  in {site.root}",
            ]
            if record is not None:
                commit = f", commit {record.commit[:12]}" if record.commit else ""
                head.append(f"  from {record.source}{commit}, installed {record.installed_at}")
            return [*head, *report.describe(), *_list_problems(problems)]
        offer = self._find_offer(text)
        lines = [f"{offer.id} {offer.version}".rstrip() + " (not installed)", f"  {offer.description}"]
        about = {
            "Category": offer.category,
            "Keywords": ", ".join(offer.keywords),
            "Author": offer.author,
            "Homepage": offer.homepage,
            "Source": offer.describe_source(),
        }
        lines += [f"  {title}: {value}" for title, value in about.items() if value]
        return [*lines, f"robota plugin install {offer.id} shows what it runs, and asks."]

    def validate(self, path: str) -> tuple[bool, list[str]]:
        return check_directory(self._places.locate(path))

    # --- with a question ------------------------------------------------------------------------------

    def prepare_install(self, text: str, scope: Scope = "user") -> Pending:
        """Fetch a plugin (`name@marketplace`, or a name that one marketplace has) and show what it runs."""
        offer = self._find_offer(text)
        installer = self.installer(scope)
        together = stage_together(installer, offer.name, offer.marketplace)
        where = "this project" if scope == "project" else "you"
        done = [
            f"{each.record.id} {each.record.version} is installed for {where}." for each in together.plugins
        ]
        others = ", ".join(each.record.id for each in together.plugins[:-1])
        question = f"Install {offer.id}{f' with {others}, which it needs' if others else ''}?"
        return self._ask(scope, together, question, done)

    def prepare_update(self, text: str) -> Pending:
        """Fetch a newer version of an installed plugin and show what it runs."""
        scope, id = self._require_held(text)
        installer = self.installer(scope)
        before = installer.installed.get(id)
        if before is None:
            raise BundleError(f"{id} came from no marketplace: change its directory yourself.")
        self.marketplaces.update(before.marketplace)
        staged = installer.stage(before.plugin_name, before.marketplace, update=True)
        approval = installer.lock.read().get(id)
        if approval is not None and approval.hash == staged.hash:
            staged.discard()
            return Pending(lines=[f"{id} {before.version} is up to date."])

        done = f"{id} is updated from {before.version} to {staged.record.version}."
        return self._ask(scope, StagedTogether((staged,)), f"Update {id}?", [done])

    def _ask(self, scope: Scope, together: StagedTogether, question: str, done: list[str]) -> Pending:
        """What was fetched is installed on a yes, and removed on a no."""

        def agree() -> list[str]:
            self._follow(scope, partial(commit_together, self.installer(scope), together))
            together.discard()
            return done

        lines = [line for staged in reversed(together.plugins) for line in _describe_staged(staged)]
        return Pending(
            lines=[*lines, *together.missing], question=question, agree=agree, drop=together.discard
        )

    def prepare_enable(self, text: str) -> Pending:
        """Show what a plugin runs before it is used."""
        scope, id = self._require_held(text)
        installer = self.installer(scope)
        report, problems = installer.look(id)

        def agree() -> list[str]:
            self._follow(scope, partial(installer.enable, id))
            return [f"{id} is enabled."]

        lines = [f"{id} {report.version}".rstrip(), *report.describe(), *_list_problems(problems)]
        return Pending(lines=lines, question=f"Enable {id}?", agree=agree)

    def list_updatable(self) -> list[str]:
        """The ids of everything that came from a marketplace."""
        return [id for scope in self._directories for id in self.installer(scope).installed]

    # --- at once --------------------------------------------------------------------------------------

    def disable(self, text: str) -> list[str]:
        scope, id = self._require_held(text)
        self._follow(scope, partial(self.installer(scope).disable, id))
        return [f"{id} is disabled."]

    def uninstall(self, text: str) -> list[str]:
        scope, id = self._require_held(text)
        self._follow(scope, partial(self.installer(scope).uninstall, id))
        data = self._places.user("plugins", "data", id.replace("@", "-"))
        return [f"{id} is uninstalled." + (f" What it kept is in {data}." if os.path.isdir(data) else "")]

    def add_marketplace(self, source: str) -> list[str]:
        name = self.marketplaces.add(source)
        manifest = self.marketplaces.manifest(name)
        offers = f"The marketplace {name} offers {len(manifest.plugins)} plugins: robota plugin search"
        return [offers, *_list_problems(manifest.problems)]

    def remove_marketplace(self, name: str) -> list[str]:
        theirs = [id for id in self.installer("project").installed if split_id(id)[1] == name]
        gone = self.marketplaces.remove(name)
        for id in theirs:
            self._follow("project", partial(self.installer("project").uninstall, id))
        return [f"The marketplace {name} is removed.", *(f"{id} is uninstalled." for id in (*gone, *theirs))]

    def update_marketplaces(self, name: str | None = None) -> list[str]:
        done = self.marketplaces.update(name)
        wrong = () if name is not None else self.marketplaces.problems
        return [*(f"The marketplace {each} is up to date." for each in done), *_list_problems(wrong)]

    def marketplace_rows(self) -> list[tuple[str, str, str]]:
        """Name, source and how many plugins it offers."""
        return [
            (each.name, each.source, self._count(each.name, each.location))
            for each in self.marketplaces.list()
        ]

    def _count(self, name: str, location: str) -> str:
        if not location:
            return "not fetched yet"
        try:
            return f"{len(self.marketplaces.plugins(name))} plugins"
        except BundleError as error:
            return str(error)

    # --- parts ----------------------------------------------------------------------------------------

    def _follow(self, scope: Scope, work: Callable[[], object]) -> None:
        """What is changed in a project on the user's word is no change that they have to be asked about."""
        if scope == "project":
            keep_trust(self._places, work)
        else:
            work()

    def _find_held(self, text: str) -> tuple[Scope, str] | None:
        found: list[tuple[Scope, str]] = []
        for scope, path in self._directories.items():
            ids = [site.id for site in BundlePluginLoader(path).find()] + list(
                self.installer(scope).installed
            )
            found += [(scope, id) for id in dict.fromkeys(ids) if text in (id, split_id(id)[0])]
        exact = [each for each in found if each[1] == text] or found
        if len({id for _, id in exact}) > 1:
            listed = ", ".join(id for _, id in exact)
            raise BundleError(f"{text!r} could be any of {listed}: write the whole id.")
        return exact[0] if exact else None

    def _require_held(self, text: str) -> tuple[Scope, str]:
        held = self._find_held(text)
        if held is None:
            raise BundleError(
                f"There is no plugin {text!r} installed; robota plugin list shows those there are."
            )
        return held

    def _find_offer(self, text: str) -> MarketplacePlugin:
        name, marketplace = split_id(text)
        if marketplace:
            offer = self.marketplaces.manifest(marketplace).find(name)
            if offer is None:
                raise BundleError(f"The marketplace {marketplace!r} has no plugin {name!r}.")
            return offer
        offers = [offer for offer in self.marketplaces.search() if offer.name == name]
        if len(offers) == 1:
            return offers[0]
        if offers:
            listed = ", ".join(offer.id for offer in offers)
            raise BundleError(f"{name!r} could be any of {listed}: write the whole id.")
        raise BundleError(f"No marketplace has a plugin {name!r}: robota plugin search lists what there is.")


def check_directory(root: str) -> tuple[bool, list[str]]:
    """Whether a plugin or a marketplace in a directory is in order, and what is wrong with it."""
    problems: list[Problem] = []
    if os.path.exists(os.path.join(root, MARKETPLACE)):
        manifest = read_marketplace(root)
        lines = [f"The marketplace {manifest.name} offers {len(manifest.plugins)} plugins."]
        problems += manifest.problems
        for offer in manifest.plugins:
            problems += _check_offer(offer, root, manifest.locate)
        return not problems, [*lines, *_list_problems(problems)]
    if not os.path.isdir(root):
        raise BundleError(f"{root} is no directory.")
    plugin = read_bundle(BundleSite(root=root, id=os.path.basename(root)), problems)
    if plugin is None:
        return False, _list_problems(problems)
    if not os.path.exists(os.path.join(root, MANIFEST)):
        problems.append(Problem(root, f"There is no {MANIFEST}, so it is called {plugin.name}."))
    return not problems, [
        f"The plugin {plugin.name}:",
        *report_on(plugin).describe(),
        *_list_problems(problems),
    ]


def _check_offer(offer: MarketplacePlugin, root: str, locate: Callable[[str], str]) -> Iterator[Problem]:
    try:
        if isinstance(offer.source, str):
            problems: list[Problem] = []
            site = BundleSite(root=locate(offer.source), id=offer.id, entry=offer.entry)
            read_bundle(site, problems)
            yield from problems
        else:
            offer.read_source()
    except BundleError as error:
        yield Problem(os.path.join(root, MARKETPLACE), str(error), subject=offer.name)


def _describe_staged(staged: StagedPlugin) -> list[str]:
    record = staged.record
    commit = f" (commit {record.commit[:12]})" if record.commit else ""
    head = [f"{record.id} {record.version}", f"  from {record.source}{commit}", f"  {staged.hash}"]
    nothing = [] if staged.report.runs_something else ["It runs nothing by itself."]
    wrong = [line.replace(staged.plugin.root, record.id) for line in _list_problems(staged.problems)]
    return [*head, *staged.report.describe(), *nothing, *wrong]


def _list_problems(problems: tuple[Problem, ...] | list[Problem]) -> list[str]:
    return ["Left out or wrong:", *(f"  - {problem}" for problem in problems)] if problems else []


def _cut(text: str) -> str:
    words = " ".join(text.split())
    return words if len(words) <= WIDTH else f"{words[: WIDTH - 1]}…"
