"""Which plugins a session has: those of its start, of the project and of the user, if somebody agreed."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import partial

from robota.core.messages import Json
from robota.core.private_directory import make_private_directories
from robota.sdk.bundle.bundle import BundlePlugin, BundleSite
from robota.sdk.bundle.bundles import Bundles, find_plugin_directories
from robota.sdk.bundle.dependencies import read_dependencies
from robota.sdk.bundle.loader import BundlePluginLoader, is_bundle
from robota.sdk.bundle.lock import Approval, BundleLock, hash_bundle
from robota.sdk.bundle.names import BundleError, split_id
from robota.sdk.bundle.reading import read_bundle
from robota.sdk.places import Places
from robota.sdk.problems import Problem


def load_bundles(
    places: Places,
    *,
    trusted: bool,
    sources: Collection[str] | None = None,
    enabled: Mapping[str, bool] | None = None,
    configs: Mapping[str, Json] | None = None,
    given: Sequence[str] = (),
) -> Bundles:
    """The plugins of somebody who works there: those `given` for this session, those of the project, if it is
    `trusted`, and of the user. `sources` are the layers that may be read. `configs` is `pluginConfigs`."""
    problems: list[Problem] = []
    found: list[BundlePlugin] = []
    options = {
        id: config["options"]
        for id, config in (configs or {}).items()
        if isinstance(config, dict) and isinstance(config.get("options"), dict)
    }
    data = places.user("plugins", "data")
    found += _load_given([places.locate(path) for path in given], data, options, problems)
    seen: set[str] = set()
    for path, scope in find_plugin_directories(places):
        real = os.path.realpath(path)
        if (
            real in seen
            or (scope == "project" and not trusted)
            or (sources is not None and scope not in sources)
        ):
            continue
        seen.add(real)
        if not os.path.isdir(path):
            continue
        approvals = _read_approvals(path, problems)
        loader = BundlePluginLoader(
            path,
            enabled,
            scope=scope,
            data_dir=data,
            options=options,
            check=partial(find_objection, approvals=approvals, needed=scope == "user", home=path),
        )
        found += loader.load_all()
        problems += loader.problems
    used = tuple(_each_once(found, problems))
    for plugin in used:
        _make_data_directory(plugin, problems)
        _check_dependencies(plugin, {each.name for each in used}, problems)
    return Bundles(plugins=used, problems=tuple(problems))


def _load_given(
    paths: Sequence[str], data: str, options: Mapping[str, Mapping[str, Json]], problems: list[Problem]
) -> Iterator[BundlePlugin]:
    """The plugins that whoever started the session named, which is agreement enough."""
    for path in paths:
        if not os.path.isdir(path) or not is_bundle(path):
            what = "There is no plugin here: a directory with skills, hooks or the like."
            problems.append(Problem(path, what))
            continue
        name = os.path.basename(path)
        place = os.path.join(data, name)
        site = BundleSite(root=path, id=name, scope="session", data=place, options=options.get(name, {}))
        plugin = read_bundle(site, problems)
        if plugin is not None:
            yield plugin


def _check_dependencies(plugin: BundlePlugin, names: Collection[str], problems: list[Problem]) -> None:
    """Name the plugins that it needs and that are not used: nobody agreed to them by installing this one."""
    for each in read_dependencies(plugin.manifest.fields):
        name, marketplace = split_id(each)
        if name not in names:
            known = marketplace or split_id(plugin.id)[1]
            id = f"{name}@{known}" if known else name
            what = f"It needs the plugin {name!r}, which is not used here: robota plugin install {id}"
            problems.append(Problem(plugin.manifest.source, what, subject=plugin.id))


def _make_data_directory(plugin: BundlePlugin, problems: list[Problem]) -> None:
    """Where its commands may keep something; those of most plugins keep nothing, but may rely on it."""
    if not (plugin.hooks or plugin.tools or plugin.servers) or os.path.isdir(plugin.data):
        return
    try:
        make_private_directories(plugin.data)
    except OSError as error:
        what = f"Its directory for data cannot be made ({error.strerror})."
        problems.append(Problem(plugin.data, what, subject=plugin.id))


def find_objection(
    site: BundleSite, approvals: Mapping[str, Approval] | None, needed: bool, home: str = ""
) -> str:
    """Why a plugin is not loaded: nobody agreed to it, it is not what they agreed to, or its installation was
    cut. A project's needs no agreement of its own (not `needed`): its hash is part of what the directory is
    trusted with."""
    if home and not site.is_registered and site.root.startswith(os.path.join(home, "cache") + os.sep):
        return "It was not loaded: it lies here and is not installed. Install it again."
    again = f"`robota plugin enable {site.id}` shows what it runs, and asks."
    if approvals is None:
        return "It was not loaded: the lock file cannot be read."
    approval = approvals.get(site.id)
    if approval is None:
        return f"It was not loaded: nobody has agreed to it yet. {again}" if needed else ""
    try:
        unchanged = hash_bundle(site.root, site.entry) == approval.hash
    except (BundleError, OSError) as error:
        return f"It was not loaded: {error}"
    return "" if unchanged else f"It has changed since you agreed to it, so it was not loaded. {again}"


def _read_approvals(path: str, problems: list[Problem]) -> Mapping[str, Approval] | None:
    lock = BundleLock(path)
    try:
        return lock.read()
    except BundleError as error:
        problems.append(Problem(lock.path, str(error)))
        return None


def _each_once(plugins: Sequence[BundlePlugin], problems: list[Problem]) -> Iterator[BundlePlugin]:
    """What they bring along is called by their names, so there is one of each."""
    taken: dict[str, BundlePlugin] = {}
    for plugin in plugins:
        first = taken.setdefault(plugin.name, plugin)
        if first is plugin:
            yield plugin
        else:
            what = f"It was left out: {first.id} in {first.root} has the same name and comes first."
            problems.append(Problem(plugin.root, what, subject=plugin.id))
