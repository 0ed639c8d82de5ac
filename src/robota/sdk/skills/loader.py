"""Finds skills: which directories are looked into, in which order, and what is wrong with what lies there.

The first skill of a name counts. Whatever can be used is used: a head that cannot be read leaves the body, a
rule of the format that is broken is told as a problem. Only the heads of files are read.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Mapping
from errno import EISDIR
from typing import TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from robota._lazy_pattern import lazy_pattern
from robota.core.given import nearest
from robota.sdk.frontmatter import Document, find_key, read_head
from robota.sdk.places import Places
from robota.sdk.problems import Problem
from robota.sdk.skills.skill import Dialect, Offer, Skill, Skills, stamp_of

FILE = "SKILL.md"
MAX_DEPTH = 5
"""Of groups in groups; more is an accident, such as a link to a directory above."""
_NAME = lazy_pattern(r"[a-z0-9]+(?:-[a-z0-9]+)*")
_CALLABLE = lazy_pattern(r"[^\s/\\\x00-\x1f\x7f][^\s\\\x00-\x1f\x7f]*")
"""What can be typed behind a slash as one word."""
_KEYS = (
    "name", "description", "when_to_use", "argument-hint", "arguments", "disable-model-invocation",
    "user-invocable", "allowed-tools", "disallowed-tools", "model", "effort", "context", "agent",
    "background", "hooks", "paths", "shell", "max-turns", "compatibility", "license", "metadata",
)  # fmt: skip
_FLAGS = ("disable-model-invocation", "user-invocable", "background")
_OFFERS: tuple[Offer, ...] = ("on", "name-only", "user-invocable-only", "off")


class Home(Struct, frozen=True):
    """A directory of skills, or of commands."""

    path: str
    dialect: Dialect = "claude"
    is_commands: bool = False
    in_project: bool = False
    plugin: str = ""
    """Whose skills are called `plugin:name`."""
    variables: Mapping[str, str] = {}


Found: TypeAlias = tuple[str, str, str]
"""Name, group and file of a skill."""


def find_homes(places: Places) -> tuple[Home, ...]:
    """Where skills are looked for, in the order in which they count."""
    return (
        Home(places.project(".robota", "skills"), "robota", in_project=True),
        Home(places.project(".claude", "skills"), in_project=True),
        Home(places.project(".claude", "commands"), is_commands=True, in_project=True),
        Home(places.user("skills"), "robota"),
        Home(places.project(".agents", "skills"), in_project=True),
        Home(places.claude("skills")),
        Home(places.claude("commands"), is_commands=True),
        Home(os.path.join(places.home, ".agents", "skills")),
    )


def load_skills(
    places: Places,
    *,
    trusted: bool = True,
    sources: Collection[str] | None = None,
    overrides: Mapping[str, str] | None = None,
    more: Iterable[Skill] = (),
) -> Skills:
    """The skills of somebody who works there. `trusted`: whether the project is. `sources` are the layers
    that may be read, as for settings. `overrides` is the setting `skillOverrides`: how, if at all, a skill
    is offered. `more` are those of plugins, which come last."""
    taken = _Taken(trusted=trusted, overrides=overrides or {})
    seen: set[str] = set()
    for home in find_homes(places):
        if sources is not None and ("project" if home.in_project else "user") not in sources:
            continue
        real = os.path.realpath(home.path)
        if real in seen:  # the home directory itself is the project, or one is a link to the other
            continue
        seen.add(real)
        if os.path.isdir(real) and not os.access(real, os.R_OK | os.X_OK):
            taken.tell(home.path, "", "The directory cannot be read, so its skills were left out.")
        for name, group, path in list_files(home):
            taken.take(home, name, group, path)
    for skill in more:
        offer = taken.read_offer(skill.name)
        if offer != "off":
            taken.add(replace(skill, offer=offer))
    return taken.settle()


def read_skills(files: Iterable[tuple[Home, Found]]) -> Skills:
    """The skills of these files, all of which are used as they are."""
    taken = _Taken(trusted=True, overrides={})
    for home, (name, group, path) in files:
        taken.take(home, name, group, path)
    return taken.settle()


def list_files(home: Home) -> Iterator[Found]:
    """Name, group and file of everything that lies there."""
    return _list_commands(home.path) if home.is_commands else _list_skills(home.path)


def _list_skills(directory: str, group: str = "", depth: int = 0) -> Iterator[Found]:
    """Name, group and file of each skill; a directory without one may be a group of some."""
    for entry in _entries(directory):
        path = f"{entry.path}{os.sep}{FILE}"
        if os.path.lexists(path):
            yield entry.name, group, path
        elif depth < MAX_DEPTH and entry.is_dir():
            yield from _list_skills(entry.path, f"{group}{entry.name}:", depth + 1)


def _list_commands(directory: str, group: str = "", depth: int = 0) -> Iterator[Found]:
    for entry in _entries(directory):
        if entry.name.endswith(".md"):
            yield entry.name.removesuffix(".md"), group, entry.path
        elif depth < MAX_DEPTH and entry.is_dir():
            yield from _list_commands(entry.path, f"{group}{entry.name}:", depth + 1)


def _entries(directory: str) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(directory) as entries:
            found = [entry for entry in entries if not entry.name.startswith(".")]
    except OSError:
        return []
    return sorted(found, key=lambda entry: entry.name)


class _Taken(Struct):
    """What was found so far."""

    trusted: bool
    overrides: Mapping[str, str]
    skills: dict[str, Skill] = {}
    problems: list[Problem] = []
    wishes: list[tuple[str, Skill]] = []
    """Other names that skills would like to have."""

    def take(self, home: Home, name: str, group: str, path: str) -> None:
        stamp = stamp_of(path)  # before reading: what changes meanwhile is seen the next time
        try:
            head = read_head(path)
        except OSError as error:
            why = "it is a directory" if error.errno == EISDIR else error.strerror
            self.tell(path, name, f"It was left out: the file cannot be read ({why}).")
            return
        if head.problem is not None:
            self.problems.append(replace(head.problem, subject=name))
            if not head.body:
                return
        owner = f"{home.plugin}:" if home.plugin else ""
        full = f"{owner}{group}{name}" if home.is_commands else f"{owner}{name}"
        if full in self.skills and group:
            full = f"{owner}{group}{name}"
        offer = self.read_offer(full)
        if offer == "off":
            return
        skill = Skill(
            name=full,
            path=path,
            description=_describe(head, full, home),
            head=head if not head.body else replace(head, body=""),
            dialect=home.dialect,
            is_command=home.is_commands,
            in_project=home.in_project,
            trusted=self.trusted or not home.in_project,
            offer=offer,
            plugin=home.plugin,
            variables=home.variables,
            stamp=stamp,
        )
        if self.add(skill):
            self.check(skill, name)
            others = dict.fromkeys((name, head.text("name"))) if not home.plugin else (head.text("name"),)
            self.wishes += [(f"{owner}{wish}", skill) for wish in others if wish and owner + wish != full]

    def add(self, skill: Skill) -> bool:
        """Whether its name was free."""
        first = self.skills.setdefault(skill.name, skill)
        if first is not skill:
            what = f"It was left out: {first.path} has the same name and comes first."
            self.tell(skill.path, skill.name, what)
        return first is skill

    def read_offer(self, name: str) -> Offer:
        given = self.overrides.get(name, "on")
        for offer in _OFFERS:
            if given == offer:
                return offer
        self.tell("skillOverrides", name, f"{given!r} has no meaning; there are {', '.join(_OFFERS)}.")
        return "on"

    def check(self, skill: Skill, directory: str) -> None:
        """Tell what a skill does against the rules of its format, as far as people and models will notice."""
        head = skill.head
        if not _CALLABLE.fullmatch(skill.name):
            what = "Its name has characters that cannot be typed as a command: rename it."
            self.tell(skill.path, skill.name, what)
        if head.fields.get("hooks") is not None:
            self._check_hooks(skill)
        for key, what in _find_wrong_keys(head):
            self.tell(skill.path, skill.name, what, key)
        if skill.is_command or head.problem is not None:
            return
        if len(directory) > 64 or not _NAME.fullmatch(directory):
            what = "It is called by its directory's name, which others may refuse: at most 64 characters,"
            what += " small letters, digits, and hyphens between them."
            self.tell(skill.path, skill.name, what)
        for key, what in _find_slips(skill):
            self.tell(skill.path, skill.name, what, key)

    def _check_hooks(self, skill: Skill) -> None:
        from robota.core.hooks.definition import read_hooks  # noqa: PLC0415 - few skills have hooks
        from robota.sdk.settings.hooks import HANDLERS, take_apart  # noqa: PLC0415 - likewise

        _, problems = read_hooks(skill.head.fields["hooks"], types=HANDLERS)
        for place, reason in map(take_apart, problems):
            self.tell(skill.path, skill.name, f"{place}: {reason}", "hooks")

    def tell(self, source: str, subject: str, message: str, key: str = "") -> None:
        """`key` of the head of the file is to blame."""
        self.problems.append(Problem(source, message, find_key(source, key) if key else 0, subject))

    def settle(self) -> Skills:
        aliases: dict[str, str] = {}
        for wish, skill in self.wishes:
            other = self.skills.get(aliases.get(wish, wish))
            if other is None and _CALLABLE.fullmatch(wish):
                aliases[wish] = skill.name
            elif wish == skill.head.text("name") and other is not skill and not skill.plugin:
                why = f"that of {other.path}" if other else "no word that can be typed as a command"
                what = f"Its `name` {wish!r} is {why}; it is called by its directory's."
                self.tell(skill.path, skill.name, what, "name")
        return Skills(found=self.skills, aliases=aliases, problems=tuple(self.problems))


def _find_wrong_keys(head: Document) -> Iterator[tuple[str, str]]:
    """Keys that are almost known, and switches that are neither on nor off: one of them may hide a skill."""
    for key in head.fields:
        if key not in (*_KEYS, "when-to-use", "maxTurns") and (near := nearest(key, _KEYS, 0.85)):
            yield key, f"`{key}` is not known; did you mean `{near}`?"
    for key in _FLAGS:
        if head.text(key) and head.flag(key) != head.flag(key, True):
            yield key, f"`{key}` is {head.text(key)!r}, neither true nor false; it was left out."


def _find_slips(skill: Skill) -> Iterator[tuple[str, str]]:
    """Keys of the head, and what is wrong with them."""
    head = skill.head
    if not head.text("description"):
        yield "", "It has no `description`, by which models choose it: add one."
    for key, limit in (("description", 1024), ("compatibility", 500)):
        if len(head.text(key)) > limit:
            yield key, f"Its `{key}` is longer than {limit:,} characters: shorten it."
    if head.text("context") not in ("", "fork", "inline"):
        yield "context", f"Its `context` {head.text('context')!r} has no meaning; there is 'fork'."
    if skill.shell != "bash":
        yield "shell", f"Its commands are for {skill.shell!r} and are not run; there is 'bash'."
    if head.flag("background"):
        yield "background", "`background` has no effect: the turn waits for what its subagent says."


def _describe(head: Document, name: str, home: Home) -> str:
    described = head.text("description")
    if described:
        return described
    if not head.fields and head.problem is None and home.dialect == "robota":
        return f"Skill: {name}"
    for line in head.body.splitlines():
        words = line.strip().lstrip("#").strip()
        if words and not words.startswith(("---", "```", "<!--")):
            return words[:200]
    return f"Skill: {name}"
