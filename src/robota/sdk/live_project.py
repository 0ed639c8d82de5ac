"""The project of a session at work: read when it is made, and again when its files have changed.

What is new counts from the next call on. A file that is broken meanwhile changes nothing and is told once.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING

from anyio import to_thread
from msgspec.structs import replace

from robota.core.errors import RobotaError
from robota.core.messages import JsonObject
from robota.core.permissions.paths import is_inside
from robota.sdk.bundle.bundles import list_registries
from robota.sdk.context.loading import list_watched
from robota.sdk.kit import renew_rules
from robota.sdk.project import Project, ProjectOptions, fit_project, list_definitions, load_project
from robota.sdk.settings.layers import Layer, find_files
from robota.sdk.settings.watch import FileWatch
from robota.sdk.skills.loader import find_homes
from robota.sdk.trust import Trust, TrustStore
from robota.sessions.hooks import LiveHooks

if TYPE_CHECKING:
    from robota.sdk.problems import Problem
    from robota.sessions.changes import Changes
    from robota.sessions.session import Session


REST_SECONDS = 1.0
"""How often many files with instructions, skills and agents are looked at; a few are each time."""


class LiveProject:
    """One session's view of its directory."""

    def __init__(self, options: ProjectOptions) -> None:
        self._options = options
        self._project: Project | None = None
        self._session: Session | None = None
        self._tools: Collection[str] = ()
        self._watch = FileWatch(())
        self._wishes = FileWatch(())
        """Where skills and servers appear: what is looked at before a prompt has them too."""
        self._instructions = FileWatch(())
        self._roots: dict[str, str] = {}
        """Where the directories besides the project's led: one that leads elsewhere is another wish."""
        self._stale = False
        self._changed: set[str] = set()
        """What hooks have yet to hear of."""
        self._refused: set[str] = set()
        """Settings files that hooks have said no to as they are now: what they held before counts."""
        self._seen: Trust | None = None
        self._told: set[Problem] = set()
        self._looked_through: tuple[Problem, ...] = ()
        self._turn = asyncio.Lock()
        """Calls that run at the same time wait for the one that reads."""
        self.listeners: list[Callable[[Project], None]] = []
        """Told of every project that takes the place of another."""

    @property
    def project(self) -> Project | None:
        return self._project

    @property
    def store(self) -> TrustStore:
        places = self._options.places
        return TrustStore(places.robota_home, home=places.home)

    def read(self) -> Project:
        """Read all files; blocks."""
        options = self._options
        places = options.places
        files = [path for name, path, _ in find_files(places) if _counts(name, options.sources)]
        # Before reading: what changes meanwhile is seen the next time.
        homes = [home.path for home in find_homes(places)]
        wishes = [*homes, places.project(".mcp.json"), *list_registries(places)]
        self._watch = FileWatch((*files, self.store.path))
        self._wishes = FileWatch(wishes)
        project = load_project(replace(options, kept=self._find_kept()))
        self._instructions = FileWatch((*list_watched(project.context), *list_definitions(project), *wishes))
        self._roots = {path: os.path.realpath(path) for path in project.settings.additional_dirs}
        return project

    def _find_kept(self) -> dict[str, Layer | None]:
        """What counts in the place of files that hooks have refused."""
        before = () if self._project is None else self._project.settings.layers
        return {path: next((each for each in before if each.path == path), None) for path in self._refused}

    def fit(self, project: Project, tools: Collection[str]) -> Project:
        """Take a project for a session with these tools."""
        self._tools = tools
        self._project = fitted = fit_project(project, tools)
        return fitted

    def bind(self, session: Session) -> None:
        """From now on this session is told of changes."""
        self._session = session

    async def refresh(self, *, instructions: bool = False) -> None:
        """Look whether files have changed, if wanted also those with `instructions`, skills and agents; if
        so, read them and let the session obey."""
        if not self.has_news(instructions):
            return
        async with self._turn:
            if self._has_changed(instructions):
                changed, refused = frozenset(self._changed), self._refused - self._changed
                asked = await self._ask_hooks(changed)
                self._changed -= changed
                await self.reload()
                if asked and refused and await self._ask_hooks(refused):  # hooks may be others now
                    await self.reload()

    def has_news(self, instructions: bool) -> bool:
        """Whether there may be something to read, or somebody reads it now; costs a look at the files."""
        return self._turn.locked() or self._has_changed(instructions)

    def _has_changed(self, instructions: bool) -> bool:
        also = self._instructions.find_changes(REST_SECONDS) if instructions else self._wishes.find_changes()
        changed = self._watch.find_changes() + also
        if self._roots:
            changed += [path for path, real in self._roots.items() if os.path.realpath(path) != real]
        if changed:
            self._changed.update(changed)
            self._stale = True
        return self._stale

    async def _ask_hooks(self, changed: Collection[str]) -> bool:
        """`ConfigChange` hooks hear of each settings file that has changed, and may refuse it. Those of the
        project hear of the user's own files, too, and have no say about them. False when no settings file
        is among them."""
        session = self._session
        names = {path: name for name, path, _ in find_files(self._options.places)}
        asked = [path for path in names if path in changed]
        if session is None or not asked:
            return False
        self._refused.difference_update(asked)
        hooks = session.hooks
        event = "ConfigChange"
        if not hooks.has(event):
            return True
        assert isinstance(hooks, LiveHooks), "a session with a project runs its own hooks"
        for path in asked:
            told: JsonObject = {"source": f"{names[path]}_settings", "file_path": path}
            deciding = hooks
            if names[path] == "user":
                deciding = hooks.written_in(self._is_of_user, event)
                await hooks.written_in(lambda source: not self._is_of_user(source), event).fire(event, told)
            outcome = await deciding.fire(event, told)
            if outcome.blocked:
                self._refused.add(path)
                self._notice(f"A hook refuses what has changed in {path}: {outcome.reason}")
        return True

    def _is_of_user(self, source: str) -> bool:
        """Whether a hook was not brought by the directory that was opened."""
        places = self._options.places
        names = {path: name for name, path, _ in find_files(places)}
        return names.get(source) == "user" or (source not in names and not is_inside(source, places.cwd))

    async def reread(self) -> None:
        """Somebody has seen a file that is not as it was when it was read."""
        self._stale = True
        await self.refresh()

    async def reload(self) -> None:
        """Read everything again. What cannot be used is told, and then all stays as it was."""
        self._stale = True  # if this is cancelled, the next call reads
        try:
            project = await to_thread.run_sync(self.read)
            self._take(project)
        except RobotaError as error:
            self._notice(f"The settings have changed and cannot be used, so the old ones stay: {error}")
        self._stale = False

    def _take(self, project: Project) -> None:
        before, session = self._project, self._session
        after = fit_project(project, self._tools)
        if before is not None and session is not None:
            old, new = before.settings, after.settings
            changes: Changes = {}
            rules = renew_rules(session.rules.rules, old, new)
            if rules != session.rules.rules:
                changes["rules"] = rules
            if new.hooks != old.hooks:
                changes["hooks"] = new.hooks
            if new.additional_dirs != old.additional_dirs:
                changes["additional_dirs"] = new.additional_dirs
            if changes:
                session.reload(**changes)
        self._project = after
        for listener in self.listeners:
            listener(after)

    def tell(self) -> None:
        """Whatever is wrong, once. With a prompt, so that a user who is asked first whether they trust the
        directory is not told that it is not trusted."""
        problems = () if self._project is None else self._project.problems
        if problems is not self._looked_through:
            self._looked_through = problems
            for problem in problems:
                if problem not in self._told and not problem.harmless:
                    self._told.add(problem)
                    self._notice(str(problem))

    def _notice(self, sentence: str) -> None:
        if self._session is not None:
            self._session.log.notice(sentence)

    # --- on the user's word -----------------------------------------------------------------------------

    def describe_trust(self) -> list[str]:
        """The question to the user, or nothing; what it showed is what a yes is about."""
        self._seen = None if self._project is None else self._project.trust
        return [] if self._seen is None else self._seen.describe()

    async def trust(self, seen: Trust | None = None, *, below: bool = False) -> None:
        """The user trusts the directory with what it was seen to want, no more."""
        seen = seen or self._seen or (None if self._project is None else self._project.trust)
        assert seen is not None, "the session is not made yet"
        await self._decide(lambda: self.store.trust(seen.directory, seen.wishes, below=below))

    async def forget(self) -> None:
        """The user trusts the directory no longer."""
        await self._decide(lambda: self.store.forget(self._options.places.cwd))

    async def _decide(self, write: Callable[[], object]) -> None:
        """Go by what the user says now, whatever the session was started with. A prompt that comes meanwhile
        waits for it."""
        async with self._turn:
            await to_thread.run_sync(write)
            self._options = replace(self._options, trust=None)
            self._refused.clear()
            await self.reload()

    async def allow_imports(self) -> None:
        """The user lets the instructions of this directory import files from outside it, from now on."""
        async with self._turn:
            await to_thread.run_sync(self._write_consent)
            await self.reload()

    async def save_rule(self, rule: str) -> None:
        """Keep an allow rule for the project, and know it for the user's own word."""
        if self._project is not None and not await to_thread.run_sync(self._write_rule, self._project, rule):
            self._notice(
                f"The rule {rule} is saved in .robota/settings.local.json; in other sessions it counts once "
                "this directory is trusted."
            )

    def _write_consent(self) -> None:
        from robota.sdk.settings.write import add_to_setting  # noqa: PLC0415 - on the user's word

        places = self._options.places
        add_to_setting(places.user("settings.json"), "allowOutsideImports", os.path.realpath(places.cwd))

    def _write_rule(self, project: Project, rule: str) -> bool:
        from robota.sdk.settings.write import add_to_setting  # noqa: PLC0415 - on the user's word

        places = self._options.places
        path = places.project(".robota", "settings.local.json")
        add_to_setting(path, "permissions.allow", rule, project=places.cwd)
        return self.store.add_rule(project.trust, places, path, rule)


def _counts(name: str, sources: Collection[str] | None) -> bool:
    return sources is None or name in sources
