"""What a skill is: the head of its file, read when it was found; the body is read when somebody wants it."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import Literal, TypeAlias

from msgspec import Struct, field

from robota.core.errors import RobotaError
from robota.core.given import nearest
from robota.core.messages import Json
from robota.core.regular_file import open_regular
from robota.sdk.frontmatter import MAX_BYTES, Document, parse_bytes
from robota.sdk.problems import Problem

Dialect: TypeAlias = Literal["robota", "claude"]
Offer: TypeAlias = Literal["on", "name-only", "user-invocable-only", "off"]
"""How a model hears of a skill, in the words of the setting `skillOverrides`."""


Stamp: TypeAlias = tuple[int, ...]
"""How a file looks, by which a changed one is known: no program can set all of it."""


def stamp_of(path: str | int) -> Stamp:
    """Empty when it is gone."""
    try:
        facts = os.stat(path)
    except OSError:
        return ()
    return facts.st_dev, facts.st_ino, facts.st_size, facts.st_mtime_ns, facts.st_ctime_ns


class SkillError(RobotaError, code="SKILL_ERROR", category="user"):
    """A skill could not be used; nothing was sent to a model."""


class Skill(Struct, frozen=True, kw_only=True):
    """Instructions that a person calls as `/name`, and a model through the Skill tool."""

    name: str
    """The directory's, or the file's; `group:name` for what lies in a group and has no name to itself."""
    path: str
    description: str
    head: Document
    """What its file begins with. Fields that nobody here knows are kept."""
    dialect: Dialect = "claude"
    """A file under `.robota` follows the rules of robota's own format where they differ."""
    is_command: bool = False
    """A single file, of a directory `commands`."""
    in_project: bool = False
    trusted: bool = True
    """A skill of a project that nobody trusts is text: it runs nothing, allows nothing, and no model
    hears of it."""
    offer: Offer = "on"
    plugin: str = ""
    """The bundle plugin that brings it, if one does."""
    variables: Mapping[str, str] = field(default_factory=dict)
    """What it may mention besides those that every skill has."""
    granted: tuple[str, ...] | None = None
    """The only rules it may lend, where whoever brings it has declared which; `None` for all it asks for."""
    stamp: Stamp = ()
    """How the file looked when it was read; empty if nobody has looked."""

    @property
    def directory(self) -> str:
        return os.path.dirname(self.path)

    @property
    def when_to_use(self) -> str:
        return self.head.text("when_to_use") or self.head.text("when-to-use")

    @property
    def argument_hint(self) -> str:
        hint = self.head.fields.get("argument-hint")
        return f"[{', '.join(map(str, hint))}]" if isinstance(hint, list) else self.head.text("argument-hint")

    @property
    def arguments(self) -> tuple[str, ...]:
        """Names for what is given, in order."""
        return self.head.words("arguments") or ()

    @property
    def for_user(self) -> bool:
        """Whether menus show it."""
        return self.head.flag("user-invocable", True)

    @property
    def for_model(self) -> bool:
        hidden = self.head.flag("disable-model-invocation") or self.offer == "user-invocable-only"
        return self.trusted and not hidden

    @property
    def allowed_tools(self) -> tuple[str, ...]:
        """Permission rules for the turn that uses it."""
        asked = (self.head.words("allowed-tools") or ()) if self.trusted else ()
        return asked if self.granted is None else tuple(rule for rule in asked if rule in self.granted)

    @property
    def disallowed_tools(self) -> tuple[str, ...]:
        return self.head.words("disallowed-tools") or ()

    @property
    def model(self) -> str:
        model = self.head.text("model") if self.trusted else ""
        return "" if model == "inherit" else model

    @property
    def effort(self) -> str:
        return self.head.text("effort") if self.trusted else ""

    @property
    def forks(self) -> bool:
        """Whether a subagent carries it out."""
        return self.trusted and self.head.text("context") == "fork"

    @property
    def agent(self) -> str:
        return self.head.text("agent") or "general-purpose"

    @property
    def shell(self) -> str:
        """What its commands are written for."""
        return self.head.text("shell") or "bash"

    @property
    def max_turns(self) -> int:
        turns = self.head.text("max-turns") or self.head.text("maxTurns")
        return int(turns) if turns.isdecimal() else 0

    @property
    def paths(self) -> tuple[str, ...]:
        """Globs of the files that it is about; a model hears of it when one of them is touched."""
        return self.head.words("paths") or ()

    @property
    def hooks(self) -> Mapping[str, Json]:
        hooks = self.head.fields.get("hooks")
        return hooks if isinstance(hooks, dict) and self.trusted else {}

    def read_body(self, *, as_found: bool = False) -> str:
        """The instructions, as the file has them now. With `as_found` they must be those of the file whose
        head was read, and about which somebody may have been asked."""
        try:
            with open_regular(self.path) as file:
                if as_found and self.stamp and stamp_of(file.fileno()) != self.stamp:
                    raise SkillError(
                        f"The skill {self.name!r} has changed and could not be read anew: nothing was run or "
                        "sent. Look at what is wrong with the files of the project, then call it again."
                    )
                document = parse_bytes(file.read(MAX_BYTES + 1), self.path)
        except OSError as error:
            raise SkillError(
                f"The skill {self.name!r} cannot be read ({error.strerror}): {self.path}."
            ) from error
        if document.problem is not None and not document.body:
            raise SkillError(f"The skill {self.name!r} cannot be used. {document.problem}")
        return document.body


class Skills(Struct, frozen=True, kw_only=True):
    """All skills of a session, each under one name, and other names that are free for them."""

    found: Mapping[str, Skill] = field(default_factory=dict)
    aliases: Mapping[str, str] = field(default_factory=dict)
    problems: tuple[Problem, ...] = ()

    def __iter__(self) -> Iterator[Skill]:
        return iter(self.found.values())

    def __len__(self) -> int:
        return len(self.found)

    def find(self, name: str, plugin: str = "") -> Skill | None:
        """The skill of this name or alias, with or without a slash before it; rather that of the plugin."""
        name = name.removeprefix("/")
        own = self.found.get(f"{plugin}:{name}") if plugin else None
        return own or self.found.get(name) or self.found.get(self.aliases.get(name, ""))

    def require(self, name: str, plugin: str = "") -> Skill:
        skill = self.find(name, plugin)
        if skill is None:
            near = nearest(name, (*self.found, *self.aliases))
            raise SkillError(
                f"There is no skill {name!r}; "
                + (f"did you mean {near!r}?" if near else "/skills lists them.")
            )
        return skill
