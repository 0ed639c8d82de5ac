"""Every command that a shell text would start, also inside runners, with the directory it runs in."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Sequence
from typing import TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from robota.core.shell.expansions import find_possible_hazards, names_set_by_commands
from robota.core.shell.grammar import parse_shell
from robota.core.shell.guess import guess_script
from robota.core.shell.hazards import Hazard, find_hazards
from robota.core.shell.programs import load_programs, program_name
from robota.core.shell.runners import Unwrapped, find_way, unwrap
from robota.core.shell.script import Command, Scope, Script, ShellSyntaxError, Word

READ_BY_BASH = frozenset({"BASH_ENV", "BASHOPTS", "ENV", "GLOBIGNORE", "PS0", "PS4", "SHELLOPTS"})
"""Variables that mean something to bash itself even when they are set for one command."""
_PLAIN_VALUE = re.compile(r"(?:[A-Za-z0-9_][\w.,:@%+-]*|(?!file:)[a-z][a-z0-9+.-]*://[\w.,:@%+?&=/-]*)?\Z")
"""What an exported variable may hold without naming a file, an option or a command."""
_STEERING_NAME = re.compile(
    r"(?:\A|_)(?:CMD|COMMAND|EDITOR|PAGER|SHELL|OPTS?|OPTIONS|ARGS|[A-Z]*FLAGS|[A-Z]*PATH|HOME|CONFIG|RC|PLUGINS?"
    r"|PRELOAD|HOOKS?|EXEC|EXE|BIN|PROGRAM|WRAPPER|LAUNCHER|DIFF|BROWSER|ASKPASS|LOADER|LIBRARY|INIT|STARTUP|TOOL"
    r"|RUNNER|LINKER|COMPILER|INTERPRETER|RSH|SSH)\Z"
)
"""How variables are called that name a program, its options or where it looks for more."""
MAXIMUM_RUNNERS = 8
MAXIMUM_DIRECTORIES = 8
MAXIMUM_PATH = 4_096

Directories: TypeAlias = tuple[str | None, ...]
"""The directories a command may run in; None stands for one that is only known at run time."""


class Invocation(Struct, eq=False, gc=False):
    command: Command
    script: Script
    """The text it is part of."""
    directories: Directories
    program: str
    """Its name without directories, as written."""
    unwrapped: Unwrapped | None = None
    inner: tuple[Invocation, ...] = ()
    """What it runs for its caller."""
    scripts: tuple[Script, ...] = ()
    opaque: bool = False
    """Whether it runs something that cannot be known."""
    _hazards: list[Hazard] | None = None

    @property
    def words(self) -> tuple[Word, ...]:
        return self.command.words

    @property
    def computed(self) -> bool:
        """Whether the program itself is only known at run time."""
        first = self.command.words[0]
        return bool(first.pieces) and not first.literal

    @property
    def hazards(self) -> list[Hazard]:
        """Its words by which a known program starts another one or writes a file."""
        if self._hazards is None:
            self._hazards = find_hazards(self.command.words)
        return self._hazards

    @property
    def possible_hazards(self) -> list[Hazard]:
        """The same, also of words that may turn out to be options when it runs."""
        for word in self.command.words:
            if word.pieces:
                return find_possible_hazards(self.command.words, self.script)
        return self.hazards


def find_invocations(script: Script, directories: Directories, home: str, depth: int = 0) -> list[Invocation]:
    """The commands of a script, each with what it runs in turn."""
    for command in script.commands:
        if command.words[0].text[-1:] == "d" and _moves(command):  # only these end so
            tracked = zip(script.commands, _follow(script, directories, home), strict=True)
            return [_open(command, script, here, home, depth) for command, (here, _) in tracked]
    if len(script.commands) == 1:
        return [_open(script.commands[0], script, directories, home, depth)]
    return [_open(command, script, directories, home, depth) for command in script.commands]


def walk(invocations: tuple[Invocation, ...]) -> tuple[Invocation, ...]:
    """The invocations and everything inside them."""
    for invocation in invocations:
        if invocation.inner:
            break
    else:
        return invocations
    found: list[Invocation] = []
    pending = list(reversed(invocations))
    while pending:
        invocation = pending.pop()
        found.append(invocation)
        pending.extend(reversed(invocation.inner))
    return tuple(found)


def find_steering(script: Script, every: Sequence[Invocation]) -> str | None:
    """A variable that decides what other parts run, set for more than one command."""
    programs = load_programs()
    is_steering, setters = programs.is_steering, programs.setters
    names = set(script.lasting)
    for each in every:
        if each.scripts:
            names.update([name for inner in each.scripts for name in inner.lasting])
        if each.command.assignments:
            names.update([given.name for given in each.command.assignments if given.name in READ_BY_BASH])
    for name in sorted(names):
        values = script.assigned.get(name, ())
        if is_steering(name) and not (
            values and all(each.literal and programs.starts_nothing(name, each.text) for each in values)
        ):
            return name
    for each in every:
        if each.command.words[0].text in setters:
            found = _find_steering_word(each.command.words, script, alone=len(every) == 1)
            if found is not None:
                return found
    return None


def _find_steering_word(words: Sequence[Word], script: Script, *, alone: bool) -> str | None:
    """The word by which a builtin sets such a variable; `alone` says that it is the only command."""
    programs = load_programs()
    exported = not alone and _exports(words)
    for word in words[1:]:
        name, _, value = word.text.partition("=")
        name = name.partition("[")[0]
        if word.literal and programs.starts_nothing(name, value):
            continue
        if programs.is_steering(name) or (word.computed and not name.isidentifier()):
            return word.raw or word.text
        if exported and name not in programs.inert_variables and _may_steer(name, word, script):
            return word.raw or word.text
    return None


def _may_steer(name: str, word: Word, script: Script) -> bool:
    """Whether an exported variable that nothing is known about may decide what a program does."""
    _, equals, value = word.text.partition("=")
    if not equals:
        return name in script.lasting
    return not word.literal or not _PLAIN_VALUE.match(value) or bool(_STEERING_NAME.search(name))


def _exports(words: Sequence[Word]) -> bool:
    """Whether what a builtin sets reaches the programs that are started after it."""
    first = words[0].text
    return first == "export" or (first != "unset" and any(_is_export(word.text) for word in words[1:]))


def _is_export(option: str) -> bool:
    return option[:1] == "-" and "x" in option


def _open(command: Command, script: Script, directories: Directories, home: str, depth: int) -> Invocation:
    """A command with what it runs, when it is a runner."""
    first = command.words[0]
    program = first.text.rpartition("/")[2]
    if first.pieces and not first.literal:
        return Invocation(command, script, directories, program)
    way = find_way(program)
    unwrapped = None
    if way is not None:
        unwrapped = unwrap(command, way, fed=bool(script.redirections) and _is_fed(script))
    extended = program[-4:] == "find" and _may_gain_hazards(command.words, script)
    if extended:  # a value may add an -exec
        unwrapped = unwrapped or Unwrapped()
    if unwrapped is None:
        return Invocation(command, script, directories, program)
    if depth >= MAXIMUM_RUNNERS:
        return Invocation(command, script, directories, program, unwrapped, opaque=True)
    inside = (None,) if _changes_directory(command) else directories
    found: list[Invocation] = []
    scripts: list[Script] = []
    opaque = unwrapped.opaque or extended
    for inner in unwrapped.inner:
        if inner.source is None:
            found.append(
                _open(replace(command, words=inner.words, assignments=()), script, inside, home, depth + 1)
            )
            continue
        try:
            parsed = parse_shell(inner.source)
        except ShellSyntaxError:
            parsed, opaque = guess_script(inner.source), True
        scripts.append(parsed)
        found.extend(find_invocations(parsed, inside, home, depth + 1))
    return Invocation(command, script, directories, program, unwrapped, tuple(found), tuple(scripts), opaque)


def _may_gain_hazards(words: tuple[Word, ...], script: Script) -> bool:
    """Whether a word may turn out to be one."""
    computed = any(word.pieces for word in words)
    return computed and len(find_possible_hazards(words, script)) > len(find_hazards(words))


def _is_fed(script: Script) -> bool:
    """Whether a group of commands may read from a file or a text."""
    around = (redirection for each in script.redirections for redirection in each.redirections)
    return any(each.reads or each.operator.startswith("<<") for each in around)


def _changes_directory(command: Command) -> bool:
    moves = ("--chdir", "--wd", "--workdir", "--working-dir", "--cwd")
    return any(word.text in ("-C", "-D") or word.text.startswith(moves) for word in command.words)


def visited_directories(script: Script, directories: Directories, home: str) -> Directories:
    """Every directory the text may be in at some point, also after its last `cd`."""
    return _union(directories, *(each for step in _follow(script, directories, home) for each in step))


def _follow(script: Script, directories: Directories, home: str) -> Iterator[tuple[Directories, Directories]]:
    """For each command where it runs and where it leads."""
    moves = [index for index, command in enumerate(script.commands) if _moves(command)]
    if not moves:
        yield from [(directories, directories)] * len(script.commands)
        return
    searched = "CDPATH" in script.assigned or "CDPATH" in names_set_by_commands(script)
    unsteady = {index for index in moves if _is_unsteady(script, index)}
    lost = {script.commands[index].scope for index in unsteady}
    lasting: dict[Scope, Directories] = {scope: _union(directories, (None,)) for scope in lost}
    chained: dict[tuple[Scope, int], Directories] = {}
    for index, command in enumerate(script.commands):
        scopes = (command.scope[:length] for length in range(len(command.scope), -1, -1))
        current = next((lasting[scope] for scope in scopes if scope in lasting), directories)
        place = command.scope, command.chain
        here = target = chained.get(place, current)
        if _moves(command):
            target = _destinations(command, here, home, unknown=searched)
            if index in unsteady:  # it may also not have happened, or to another process
                target = _union(here, target, (None,))
            chained[place] = target
            lasting[command.scope] = _union(current, target)
        yield here, target


def _is_unsteady(script: Script, index: int) -> bool:
    """Whether a command stands in a branch, a loop or a pipeline of its own shell."""
    scope = script.commands[index].scope
    return any(start <= index < end and scope == inside for start, end, inside in script.unsteady)


def _moves(command: Command) -> bool:
    first = command.words[0].text
    if first == "command":
        return any(word.text in ("cd", "pushd", "popd") for word in command.words[1:4])
    return program_name(first) in ("cd", "pushd", "popd")


def _destinations(command: Command, here: Directories, home: str, *, unknown: bool) -> Directories:
    words = command.words[1:]
    plain = command.words[0].text == "cd" and len(words) <= 1 and not unknown
    if not plain or any(not word.literal or word.text[:1] == "-" for word in words):
        return (None,)
    if not words:
        return (home,)
    target = words[0].text
    if words[0].tilde:
        target = home + target[1:]
    return tuple(_join(base, target) for base in here)


def _join(base: str | None, target: str) -> str | None:
    if base is None and not target.startswith("/"):
        return None
    joined = posixpath.normpath(posixpath.join(base or "/", target))
    return joined if len(joined) <= MAXIMUM_PATH else None


def _union(*groups: Directories) -> Directories:
    merged = tuple(dict.fromkeys(directory for group in groups for directory in group))
    return merged if len(merged) <= MAXIMUM_DIRECTORIES else (None,)
