"""A shell command: deny and ask rules against every part of it, allow rules for all of them."""

from __future__ import annotations

import posixpath
from collections.abc import Sequence
from functools import lru_cache
from itertools import chain
from operator import attrgetter

from msgspec import Struct
from msgspec.structs import replace

from robota.core.permissions.command_allow import cover_parts, find_redirection_gap, takes_input
from robota.core.permissions.command_environment import may_leave, shows_environment
from robota.core.permissions.command_files import CommandFiles
from robota.core.permissions.command_patterns import (
    Matching,
    ShellPattern,
    command_items,
    compile_shell_pattern,
    matches,
)
from robota.core.permissions.command_reading import Reading, read_command
from robota.core.permissions.globs import Item
from robota.core.permissions.matchers import Call, Cover, Gap, Hit, parameter_hit
from robota.core.permissions.repositories import find_doubtful_git
from robota.core.permissions.rules import Rule, RuleSet, split_parameter
from robota.core.permissions.started import LANGUAGES
from robota.core.permissions.subjects import READING_TOOLS, WRITING_TOOLS
from robota.core.shell.effects import substitute
from robota.core.shell.expansions import find_possible_options
from robota.core.shell.invocations import Invocation
from robota.core.shell.script import UNKNOWN_WORD

_PROGRAM = attrgetter("program")
_MARKS = ("'", '"', "\\", "$", "`", "~")
_READING_PROGRAMS = frozenset({"make", "awk", "gawk", "mawk", "ipython"})
_INPUT = frozenset({"-", "-f-", "/dev/stdin"})
_DIRECTORIES = frozenset({"workingDirectory", "working_directory", "cwd"})


def _cover(reading: Reading, allow: RuleSet) -> Cover | Gap:
    known = reading.covered
    if known is not None and known[0] is allow:
        return known[1]
    found = cover_parts(allow, reading.invocations)
    if isinstance(found, Cover) and not found.whole and reading.steering is not None:
        found = Gap(reading.steering, "setting this variable can change what other parts run")
    reading.covered = allow, found
    return found


class _Together(Struct, frozen=True):
    """All patterns of deny or ask rules about commands: most commands are touched by none of them."""

    denied: Matching
    parameters: frozenset[str]
    """Arguments that a pattern may be about instead (`workdir:*`)."""
    each: tuple[tuple[Rule, ShellPattern | None], ...]
    """The rules, each with its pattern; None for one that is about something else."""
    others: tuple[Rule, ...]
    """Those that are about something else."""
    programs: frozenset[str]
    words: tuple[str, ...]
    """What the texts begin with that a pattern is about."""

    def may_concern(self, command: str, names: frozenset[str]) -> bool:
        """False when no pattern can be about a command with programs of these names: if nothing in it is
        quoted or computed, all that is compared with a pattern is made of its own letters."""
        for mark in _MARKS:
            if mark in command:
                return True
        for word in self.words:
            if word in command:
                return True
        return not self.programs.isdisjoint(names)


@lru_cache(maxsize=64)
def _together(rules: RuleSet) -> _Together | None:
    said = {rule: rule.pattern for rule in rules.rules if rule.names("Bash") and rule.pattern is not None}
    if not said:
        return None
    patterns = {rule: compile_shell_pattern(pattern) for rule, pattern in said.items()}
    starts, texts, globs = zip(*(pattern.denied for pattern in patterns.values()), strict=True)
    begins = [glob.literals[0].partition(" ")[0] for each in patterns.values() for glob in each.loose]
    return _Together(
        (tuple(chain(*starts)), tuple(chain(*texts)), tuple(chain(*globs))),
        frozenset([split[0] for split in map(split_parameter, said.values()) if split is not None]),
        tuple((rule, patterns.get(rule)) for rule in rules.rules),
        tuple(rule for rule in rules.rules if rule not in patterns),
        frozenset([pattern.program for pattern in patterns.values()]),
        tuple(dict.fromkeys("" if word.startswith("~") else word for word in begins)),
    )


class CommandMatcher:
    __slots__ = ("_call", "_command", "_every", "_opened", "_problem", "_reading")

    def __init__(self, call: Call) -> None:
        self._call = call
        place, command = call.place, call.arguments.get("command")
        self._command = command if isinstance(command, str) else None
        given = not _DIRECTORIES.isdisjoint(call.arguments)
        directory, unknown = _find_directory(call) if given else (place.cwd, None)
        self._reading = reading = read_command(self._command or "", directory, place.home, place.cwd)
        self._every = reading.every
        self._opened: CommandFiles | None = None
        if self._command is None:
            unknown = "the command is missing or is not a text"
        self._problem = reading.unread or unknown or reading.problem
        if (
            self._problem is None
            and self._command is not None
            and may_leave(self._command, place.cwd)
            and shows_environment(self._command, place.cwd, reading)
        ):
            self._problem = "it reaches /proc, which shows the environment of processes"

    @property
    def _files(self) -> CommandFiles:
        if self._opened is None:
            self._opened = CommandFiles(self._call, self._reading)
        return self._opened

    # --- deny and ask ----------------------------------------------------------------------------------

    def relevant(self, rules: RuleSet) -> Sequence[Rule]:
        together, reading = _together(rules), self._reading
        if together is None or not together.parameters.isdisjoint(self._call.arguments):
            return rules.rules
        names = reading.look_closer() if reading.names is None else reading.names
        if reading.unsettled or self._why_unknown() is not None:
            return rules.rules
        command, denied = self._command or "", together.denied
        stays = reading.directory in (None, self._call.place.cwd)  # else it begins with a `cd` of ours
        if stays and not together.may_concern(command, names):
            return together.others
        for texts in ((command, command.strip()), reading.texts, reading.started, reading.perhaps):
            for text in texts:
                if matches(denied, text):
                    return rules.rules
        return [
            rule
            for rule, pattern in together.each
            if pattern is None
            or (pattern.program in names and any(pattern.reaches(each.words) for each in self._every))
        ]

    def hit(self, rule: Rule) -> Hit | None:
        if rule.names("Bash"):
            return Hit(None) if rule.pattern is None else self._command_hit(rule.pattern)
        if rule.tool in READING_TOOLS or rule.tool in WRITING_TOOLS:
            found = self._files.hit(rule, self._why_unknown())
            return found if found is None or found.part is not None else replace(found, part=self._command)
        return self._host_hit(rule.pattern) if rule.names("WebFetch") and rule.pattern is not None else None

    def _host_hit(self, pattern: str) -> Hit | None:
        """Rules about addresses bind programs too; one without a pattern turns off the tool alone."""
        from robota.core.permissions.command_hosts import Hosts  # noqa: PLC0415 - loads urllib

        found = Hosts(pattern).hit(self._reading)
        unknown = self._why_unknown()
        return (
            found
            if found is not None or unknown is None
            else Hit(self._command, certain=False, reason=unknown)
        )

    def _command_hit(self, written: str) -> Hit | None:
        parameter = parameter_hit(self._call, written)
        if parameter is not None:
            return parameter
        pattern, command = compile_shell_pattern(written), self._command
        if command is not None:
            stripped = command.strip()
            if pattern.denies(stripped) or (stripped != command and pattern.denies(command)):
                return Hit(command)
        for texts in (self._reading.texts, self._reading.started):
            for text, part in texts.items():
                if pattern.denies(text):
                    return Hit(part)
        unknown = self._why_unknown()
        if unknown is not None:
            return Hit(command, certain=False, reason=unknown)
        return self._possible_hit(pattern)

    def _why_unknown(self) -> str | None:
        """Why no deny rule can be evaluated."""
        steering = self._reading.steering
        if self._problem is not None or steering is None:
            return self._problem
        return f"setting {steering} can change what other parts run"

    def _possible_hit(self, pattern: ShellPattern) -> Hit | None:
        reading = self._reading
        close = pattern.program in (reading.look_closer() if reading.names is None else reading.names)
        for invocation in self._every:
            reason = ""
            if invocation.opaque:
                reason = "what it runs is only known when it runs"
            elif (texts := self._possible_texts(invocation)) and any(map(pattern.may_deny, texts)):
                reason = "it depends on an argument that is only known when it runs"
            elif close and pattern.reaches(invocation.words):
                reason = "it may say the same in other words"
            if reason:
                return Hit(invocation.command.text, certain=False, reason=reason)
        if reading.runs_unknown is not None:
            reason = "which program runs depends on what the command itself writes or sets"
            return Hit(reading.runs_unknown, certain=False, reason=reason)
        for text, part in self._reading.perhaps.items():
            if pattern.denies(text):
                return Hit(part, certain=False, reason="it may run something that the rule is about")
        return None

    def _possible_texts(self, invocation: Invocation) -> list[list[Item]]:
        """The part with every value that is known filled in."""
        for word in invocation.command.words:
            if word.pieces and not word.literal:
                break
        else:
            return []
        where = invocation.directories[0]
        home, assigned = self._reading.home, frozenset(self._reading.script.assigned)
        words = (substitute(word, where, home, assigned) for word in invocation.words)
        return command_items(tuple(words))

    # --- allow -----------------------------------------------------------------------------------------

    def cover(self) -> Cover | Gap:
        if self._problem is not None:
            return Gap(self._command, self._problem)
        if not self._call.allow.rules:
            return Gap(None, "no rule allows it")
        covered = _cover(self._reading, self._call.allow)
        if isinstance(covered, Gap) or covered.whole:
            return covered
        if self._reading.redirects and (gap := find_redirection_gap(self._call, self._files.touches)):
            return gap
        doubt = self._doubt()
        return covered if doubt is None else Gap(self._command, doubt)

    def _doubt(self) -> str | None:
        """Why a command that rules cover is asked about all the same."""
        if (
            self._reading.redirects
            and self._files.linking is not None
            and any(each.redirected and each.kind == "write" for each in self._files.touches)
        ):
            return "a link that the command makes may lead what it writes elsewhere"
        programs = set(map(_PROGRAM, self._every))
        if "git" not in programs:
            return None
        if len(programs) == 1 and not self._reading.redirects:  # and no table says that git writes
            return find_doubtful_git(self._every, ())
        return find_doubtful_git(self._every, self._files.touches, self._files.filled_trees())

    def narrowest(self) -> list[str]:
        """One rule for each part that no rule covers yet, and for each file a redirection would write.

        A rule has no way to write a star that stands for itself, and an unknown word, what `xargs` adds or a
        program that is read may be another one the next time, so a command that holds any gets no rule.
        """
        reading = self._reading
        unknown = any(find_possible_options(each.words, each.script) for each in reading.invocations)
        fed = any(takes_input(each.command) for each in reading.every)
        if self._problem is not None or unknown or any(_varies(each, fed=fed) for each in reading.every):
            return []
        rules: dict[str, None] = {}
        for each in self._reading.invocations:
            if isinstance(cover_parts(self._call.allow, [each]), Gap):
                assigned = [assignment.raw for assignment in each.command.assignments]
                rules[f"Bash({' '.join([*assigned, each.command.raw])})"] = None
        written = self._files.rules_for_writing()
        offered = [*rules, *(written or ())]
        return [] if written is None or any("*" in rule for rule in offered) else list(dict.fromkeys(offered))


def _varies(invocation: Invocation, *, fed: bool) -> bool:
    """Whether a command runs words or a program text that only its input tells."""
    if any(word is UNKNOWN_WORD for word in invocation.words):
        return True
    name, texts = invocation.program, [word.text for word in invocation.words[1:]]
    reads = name.rstrip("0123456789.") in LANGUAGES or name in _READING_PROGRAMS
    return fed and reads and (all(text[:1] == "-" for text in texts) or not _INPUT.isdisjoint(texts))


def _find_directory(call: Call) -> tuple[str | None, str | None]:
    """Where a command starts that says so itself, or what is wrong with that."""
    for name in ("workingDirectory", "working_directory", "cwd"):
        value = call.arguments.get(name)
        if value is not None:
            if not isinstance(value, str) or "\0" in value:
                return None, "the working directory is not a text"
            return posixpath.normpath(posixpath.join(call.place.cwd, value)), None
    return call.place.cwd, None
