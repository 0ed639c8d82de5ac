"""What has to be saved before a call, so that whatever it does can be taken back.

A shell command is saved exactly where every program in it is one whose effects its words tell completely;
otherwise the whole workspace is, and what the words do tell about places elsewhere. A directory elsewhere is
not saved because an unknown program runs in it: it may be the whole system.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from glob import escape, glob
from itertools import groupby
from typing import TypeAlias

import msgspec
from msgspec import Struct

from robota.core.permissions.paths import is_inside
from robota.core.shell.builtins import find_outside
from robota.core.shell.effects import Touch, find_touches, is_read_only, known_path, substitute
from robota.core.shell.expansions import names_set_by_commands
from robota.core.shell.grammar import parse_shell
from robota.core.shell.invocations import Invocation, find_invocations, walk
from robota.core.shell.programs import load_programs
from robota.core.shell.script import Script, ShellSyntaxError, Word
from robota.tools.undo.git import find_repository, read_git_call
from robota.tools.undo.snapshot import Scope, cover, is_system_path

_HARMLESS = frozenset({
    ":", "awk", "base64", "break", "continue", "declare", "exit", "expand", "export", "fmt", "gawk", "join",
    "less", "let", "local", "mawk", "more", "paste", "read", "readonly", "return", "sed", "sha512sum",
    "shift", "shuf", "umask", "unset", "wait", "zcat",
})  # fmt: skip
"""Builtins and readers that change no file unless an option or a program text of theirs says so."""
_FLAGS = {
    "chgrp": "Rcfhv", "chmod": "Rcfv", "chown": "Rcfhv", "cp": "HLPRadfilnprsuvx", "dd": "", "ln": "LPfinrsv",
    "mkdir": "mpv", "mv": "finuv", "rm": "IRdfirv", "rmdir": "v", "tee": "aip", "touch": "acdhmrt",
    "truncate": "corsKMG0123456789", "unlink": "",
}  # fmt: skip
"""Programs whose words name everything they change, and the options for which that is so."""
_INTO_DIRECTORIES = frozenset({"cp", "ln", "mkdir", "mv", "touch"})
"""Of a directory they name they change the entry they make in it, not what else it holds."""


_RENAMING = frozenset({"ln", "mv"})
"""They take the place of a name, whatever it leads to."""
_LINKING = _RENAMING | {"cp"}
"""What they make may be a link."""
_RUNNERS = frozenset({
    "bash", "builtin", "command", "env", "eval", "nice", "nohup", "sh", "sudo", "time", "timeout",
})  # fmt: skip
"""Programs that do nothing but start what is given to them."""
_Letter: TypeAlias = tuple[str, bool]
"""A character, and whether it may be part of a pattern."""


class Plan(Struct, frozen=True):
    targets: Scope
    """What the call names."""
    whole: Scope | None = None
    """What is saved because the call may change anything in it."""
    excluded: tuple[str, ...] = ()
    """Trees inside of these that are not: objects of git, when the call takes none of them away."""
    workspace: str = ""
    outside: tuple[str, ...] = ()
    """Directories elsewhere in which the call may change more than it names."""

    @property
    def scope(self) -> Scope:
        return self.targets if self.whole is None else self.targets.join(self.whole)

    def join(self, other: Plan | None) -> Plan:
        """One plan for both; None changes nothing."""
        if other is None:
            return self
        whole = self.whole if other.whole is None else other.whole
        return Plan(
            self.targets.join(other.targets),
            whole,
            self.excluded + other.excluded,
            self.workspace,
            self.outside + other.outside,
        )

    @property
    def attempts(self) -> tuple[Plan, ...]:
        """The whole plan, and what to do when that is too much."""
        if self.whole is not None and self.targets.trees:
            return self, msgspec.structs.replace(self, whole=None)
        return (self,)


def plan_files(paths: Iterable[str], workspace: Sequence[str]) -> Plan:
    """Before files are written through the file layer, which follows links."""
    return Plan(cover(map(os.path.realpath, paths)), workspace=_first(workspace))


def plan_anything(cwd: str, workspace: Sequence[str]) -> Plan:
    """Before something that cannot be read."""
    return _plan_workspace(Scope(), workspace, (), (cwd,))


def plan_command(command: str, cwd: str, workspace: Sequence[str], home: str | None = None) -> Plan | None:
    """Before a shell command; None when it changes nothing."""
    home = os.path.expanduser("~") if home is None else home
    # Behind a link `cd ..` leads elsewhere than the real path says, depending on what bash was told about it.
    here = tuple(dict.fromkeys((os.path.abspath(cwd), os.path.realpath(cwd))))
    try:
        script = parse_shell(command)
    except ShellSyntaxError:
        return plan_anything(cwd, workspace)
    invocations = walk(tuple(find_invocations(script, here, home)))
    reach = _Reach(script, home)
    for invocation in invocations:
        reach.add(invocation)
    for touch in find_touches(script, invocations, here, home):
        if touch.kind != "read":
            reach.add_touch(touch)
    reach.follow_new_names()
    if reach.is_unbounded:
        plan = _plan_workspace(reach.targets, workspace, reach.repositories, reach.directories)
        return msgspec.structs.replace(plan, excluded=reach.excluded)
    if reach.targets.trees or reach.targets.paths:
        return Plan(reach.targets, workspace=_first(workspace))
    return None


class _Reach:
    """How far the commands of a script can reach, put together one by one."""

    def __init__(self, script: Script, home: str) -> None:
        steering, names = load_programs().is_steering, {*script.assigned, *names_set_by_commands(script)}
        self._home = home
        self._assigned = frozenset(script.assigned)
        self.targets = Scope()
        self.directories: list[str] = []
        """Where unknown programs run."""
        self.repositories: list[str] = []
        self.is_unbounded = self._takes_all = _is_doubtful(script) or any(map(steering, names))
        self._objects: list[str] = []
        self._changed: list[tuple[str, Touch]] = []

    @property
    def excluded(self) -> tuple[str, ...]:
        return () if self._takes_all else tuple(self._objects)

    def add(self, invocation: Invocation) -> None:
        if invocation.words[0].text == "git":
            self._add_git(invocation)
        elif not (_is_harmless(invocation) or self._is_exact(invocation) or _is_runner(invocation)):
            self.is_unbounded = self._takes_all = True
            self.directories += [each for each in invocation.directories if each is not None]

    def add_touch(self, touch: Touch) -> None:
        for directory in touch.directories:
            paths = expand_word(touch.word, directory, self._home, self._assigned)
            if paths is None or _is_named_by_source(touch):
                self.is_unbounded = self._takes_all = True
            else:
                self.targets = self.targets.join(_cover_touch(touch, paths))
                self._changed += [(os.path.normpath(path), touch) for path in paths]

    def follow_new_names(self) -> None:
        """A name that the script makes may be a link, by which the rest of it changes what nobody named."""
        made = {
            path: touch.part
            for path, touch in self._changed
            if touch.kind == "write" and _program(touch) in _LINKING
            if not os.path.isdir(path) or os.path.islink(path)
        }
        for path, touch in self._changed if made else ():
            through = touch.kind == "write" and (touch.redirected or _program(touch) not in _RENAMING)
            place = path if through else os.path.dirname(path)
            while place != os.path.dirname(place):
                if made.get(place, touch.part) != touch.part:
                    self.is_unbounded = self._takes_all = True
                    return
                place = os.path.dirname(place)

    def _is_exact(self, invocation: Invocation) -> bool:
        flags = _FLAGS.get(invocation.words[0].text)
        words = [
            substitute(word, directory, self._home, self._assigned)
            for word in invocation.words
            for directory in invocation.directories
        ]
        if flags is None or any(word.computed for word in words):
            return False
        return all(_is_plain_option(word.text, flags) for word in words if word.text[:1] == "-")

    def _add_git(self, invocation: Invocation) -> None:
        for directory in invocation.directories:
            call = read_git_call(invocation.words, directory)
            hazards = invocation.possible_hazards
            shows = is_read_only(invocation) and call.subcommand != "reflog"
            if not hazards and (shows or call.is_harmless):
                continue
            self.is_unbounded = True
            self._takes_all = self._takes_all or not call.keeps_objects or bool(hazards)
            repository = None if call.directory is None else find_repository(call.directory)
            if repository is None:
                self.directories += [] if call.directory is None else [call.directory]
            else:
                self.targets = self.targets.join(cover(repository.folders))
                self.repositories.append(repository.top)
                self._objects += [os.path.join(folder, "objects") for folder in repository.folders]


def _is_doubtful(script: Script) -> bool:
    """Whether there is more in a text than its commands show."""
    programs = {command.words[0].text for command in script.commands}
    outside = any(find_outside(command.words, script) for command in script.commands)
    moved = bool(script.redirections) and not programs.isdisjoint(
        ("cd", "pushd", "popd", "builtin", "command")
    )
    return outside or moved


def _is_harmless(invocation: Invocation) -> bool:
    words = invocation.words
    known = words[0].literal and words[0].text in _HARMLESS
    if not known and not is_read_only(invocation):
        return False
    return not invocation.possible_hazards


def _is_plain_option(text: str, flags: str) -> bool:
    long = text in ("--", "--recursive", "--force", "--verbose", "--archive", "--append")
    return long or (not text.startswith("--") and set(text[1:]) <= set(flags))


def _is_runner(invocation: Invocation) -> bool:
    """Whether what it does is what the commands inside it do."""
    unwrapped = invocation.unwrapped
    if unwrapped is None or invocation.opaque or invocation.words[0].text not in _RUNNERS:
        return False
    return not any(word.text.startswith(("-o", "--output")) for word in invocation.words)


def _program(touch: Touch) -> str:
    return touch.part.partition(" ")[0]


def _is_named_by_source(touch: Touch) -> bool:
    """Whether a wildcard stands for copies: they have the names of their sources, not of what is there."""
    use = load_programs().files.get(_program(touch))
    return (
        touch.kind == "write" and touch.word.globbed and use is not None and use.operands in ("copy", "move")
    )


def _cover_touch(touch: Touch, paths: Sequence[str]) -> Scope:
    program = _program(touch)
    whole: list[str] = []
    shallow: list[str] = []
    files = [path for path in paths if not is_system_path(path)]
    for path in [target for each in files for target in _with_target(touch, each)]:
        entered = program not in _INTO_DIRECTORIES or touch.kind == "delete" or path.endswith(("/.", "/.."))
        folder = os.path.isdir(path) and not os.path.islink(path)
        (shallow if folder and not entered else whole).append(path)
    return cover(whole, shallow=shallow)


def _with_target(touch: Touch, path: str) -> Iterator[str]:
    """The path, and where a link leads that is written through."""
    yield path
    if os.path.islink(path.rstrip("/")) and (touch.kind == "write" or path.endswith("/")):
        yield os.path.realpath(path)


def _plan_workspace(
    targets: Scope, workspace: Sequence[str], repositories: Sequence[str], places: Sequence[str]
) -> Plan:
    """Everything in the workspace and in repositories elsewhere; other places are only named."""
    roots = [os.path.realpath(root) for root in (*workspace, *repositories)]
    outside = dict.fromkeys(os.path.realpath(place) for place in places)
    unsaved = tuple(place for place in outside if not any(is_inside(place, root) for root in roots))
    return Plan(targets, cover(roots), workspace=_first(workspace), outside=unsaved)


def _first(workspace: Sequence[str]) -> str:
    return os.path.realpath(workspace[0]) if workspace else ""


def expand_word(word: Word, directory: str | None, home: str, assigned: frozenset[str]) -> list[str] | None:
    """Absolute paths that a word names, wildcards matched against the disk; None when only bash will know.

    In doubt more is found than bash would find: a bracket stands for any text.
    """
    word = substitute(word, directory, home, assigned)
    if not word.globbed or word.computed:
        path = known_path(word, directory, home, assigned)
        return None if path is None else [path]
    letters = _letters(word, home)
    if letters is None or (directory is None and letters[0][0] != "/"):
        return None
    if letters[0][0] != "/":
        letters = [*((letter, False) for letter in f"{directory}/"), *letters]
    literal = "".join(letter for letter, _ in letters)
    return [*glob(_to_pattern(letters)), literal]  # a pattern that matches nothing stands for itself


def _letters(word: Word, home: str) -> list[_Letter] | None:
    letters = [(letter, not quoted) for _, text, quoted in word.pieces for letter in text]
    if not word.tilde:
        return letters
    if "".join(letter for letter, _ in letters[:2]) != "~/":
        return None
    return [*((letter, False) for letter in home), *letters[1:]]


def _to_pattern(letters: list[_Letter]) -> str:
    """What `glob` understands: a bracket has become a star, everything quoted stands for itself."""
    parts = (list(part) for slash, part in groupby(letters, lambda letter: letter[0] == "/") if not slash)
    return "".join("/" + _translate(part) for part in parts)


def _translate(part: list[_Letter]) -> str:
    first = next((at for at, letter in enumerate(part) if letter == ("[", True)), len(part))
    last = max((at for at, letter in enumerate(part) if letter[0] == "]"), default=-1)
    if first < last:
        part = [*part[:first], ("*", True), *part[last + 1 :]]
    return "".join(letter if active and letter in "*?" else escape(letter) for letter, active in part)
