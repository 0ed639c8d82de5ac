"""A shell command: deny and ask rules against every part of it, allow rules for all of them."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from functools import cached_property

from msgspec.structs import replace

from robota.core.permissions.command_allow import cover_script
from robota.core.permissions.command_patterns import (
    ShellPattern,
    command_items,
    command_texts,
    compile_shell_pattern,
    path_items,
)
from robota.core.permissions.globs import Item
from robota.core.permissions.matchers import Call, Cover, Gap, Hit, parameter_hit
from robota.core.permissions.paths import DeniedPaths, Resolver, in_workspace, is_protected, shorten
from robota.core.permissions.processes import holds_environment, leave_processes, may_hold_environment
from robota.core.permissions.rules import Rule
from robota.core.permissions.subjects import READING_TOOLS, WRITING_TOOLS
from robota.core.shell.builtins import find_outside
from robota.core.shell.effects import Touch, find_touches, known_path, substitute
from robota.core.shell.expansions import splits
from robota.core.shell.grammar import parse_shell
from robota.core.shell.guess import guess_script
from robota.core.shell.hazards import find_hazards
from robota.core.shell.invocations import Invocation, find_invocations, walk
from robota.core.shell.mentions import find_mentions
from robota.core.shell.programs import load_options, load_programs
from robota.core.shell.script import Script, ShellSyntaxError

_NAMES = re.compile(r"[=@:,;{}\[\]]")
_LONGEST_START = 64  # words of a command that an option starts; keeps many such options in one command cheap
_ENVIRONMENT = re.compile(r"\bproc/\S*(?:environ|/mem\b)")
_GLOBBED_PATH = re.compile(r"/[^\s/]*[*?\[]")


class CommandMatcher:
    def __init__(self, call: Call) -> None:
        self._call = call
        self._home = call.place.home
        self._resolver = Resolver(self._home)
        command = call.arguments.get("command")
        self._command = command if isinstance(command, str) else None
        self._script, unread = _read_script(self._command or "")
        directory, unknown = _find_directory(call)
        self._invocations = find_invocations(self._script, (directory,), self._home)
        self._every = walk(self._invocations)
        self._assigned = frozenset(self._script.assigned)
        touches = find_touches(self._script, self._every, (directory,), self._home)
        # Touches that differ in nothing but the part they belong to are judged alike.
        self._touches = list({replace(touch, part=""): touch for touch in touches}.values())
        self._texts: dict[str, Invocation] = {}
        for each in reversed(self._every):  # of equal texts the first one counts
            self._texts.update((text, each) for text in command_texts(each.command))
        self._problem: str | None
        if self._command is None:
            self._problem = "the command is missing or is not a text"
        else:
            self._problem = unread or unknown or self._find_problem()

    def _find_problem(self) -> str | None:
        for each in self._every:
            if each.computed:
                return f"the program to run is only known when it runs: {each.command.text}"
            if each.program == "ps" and find_hazards(each.words):
                return "it would show the environment of other processes"
            outside = find_outside(each.words, each.script)
            if outside is not None:
                return outside
        return "it would show the environment of a process" if self._shows_environment() else None

    # --- deny and ask ---

    def hit(self, rule: Rule) -> Hit | None:
        if rule.names("Bash"):
            return Hit(None) if rule.pattern is None else self._command_hit(rule.pattern)
        if rule.tool in READING_TOOLS or rule.tool in WRITING_TOOLS:
            return self._file_hit(rule)
        return None

    def _command_hit(self, written: str) -> Hit | None:
        parameter = parameter_hit(self._call, written)
        if parameter is not None:
            return parameter
        pattern, command = compile_shell_pattern(written), self._command
        if command is not None and (pattern.denies(command) or pattern.denies(command.strip())):
            return Hit(command)
        for text, invocation in self._texts.items():
            if pattern.denies(text):
                return Hit(invocation.command.text)
        for text, part in self._started.items():
            if pattern.denies(text):
                return Hit(part)
        if self._problem is not None:
            return Hit(command, certain=False, reason=self._problem)
        return self._possible_hit(pattern)

    @cached_property
    def _started(self) -> dict[str, str]:
        return dict(_find_started(self._every))

    def _possible_hit(self, pattern: ShellPattern) -> Hit | None:
        for invocation in self._every:
            reason = ""
            if invocation.opaque:
                reason = "what it runs is only known when it runs"
            elif any(pattern.may_deny(items) for items in self._possible_texts(invocation)):
                reason = "an argument that decides it is only known when it runs"
            if reason:
                return Hit(invocation.command.text, certain=False, reason=reason)
        return None

    def _possible_texts(self, invocation: Invocation) -> list[list[Item]]:
        """The part with every value that is known filled in."""
        if all(word.literal for word in invocation.words):
            return []
        where = invocation.directories[0]
        words = (substitute(word, where, self._home, self._assigned) for word in invocation.words)
        return command_items(tuple(words))

    def _file_hit(self, rule: Rule) -> Hit | None:
        reading = rule.tool in READING_TOOLS
        doubt: Hit | None = None
        if rule.pattern is None:
            kind = "read" if reading else "write"
            return next((Hit(touch.part) for touch in self._touches if touch.kind == kind), None)
        denied = DeniedPaths(rule.pattern, self._call.place)
        for touch in (*self._touches, *self._mentions) if reading else self._touches:
            if not reading and touch.kind == "read":
                continue
            found = self._touch_hit(touch, denied)
            if found is not None and found.certain:
                return found
            doubt = doubt or found
        return doubt or self._unreadable_hit(denied)

    @cached_property
    def _mentions(self) -> list[Touch]:
        return list({replace(touch, part=""): touch for touch in find_mentions(self._every)}.values())

    def _touch_hit(self, touch: Touch, denied: DeniedPaths) -> Hit | None:
        doubt: Hit | None = None
        for directory in touch.directories:
            found = self._touch_hit_in(directory, touch, denied)
            if found is not None and found.certain:
                return found
            doubt = doubt or found
        return doubt

    def _touch_hit_in(self, directory: str | None, touch: Touch, denied: DeniedPaths) -> Hit | None:
        path, sure = known_path(touch.word, directory, self._home, self._assigned), touch.sure
        if path is not None and path.startswith("/proc/"):
            path, sure = leave_processes(posixpath.normpath(path), directory)
        if path is None:
            items = path_items(touch.word, directory, self._home, self._assigned)
            if "/proc/" in touch.word.text or splits(touch.word, self._script) or denied.may_hit(items):
                return Hit(touch.part, certain=False, reason="the file is only known when it runs")
            return None
        try:
            forms = self._resolver.resolve(path, directory or "/")
        except (OSError, ValueError):
            return (
                Hit(touch.part, certain=False, reason="the path cannot be resolved") if touch.sure else None
            )
        if denied.hits(forms, directory=touch.recursive):
            return Hit(
                touch.part, certain=sure, reason="" if sure else "it may read a file that a rule denies"
            )
        walked = touch.recursive and not touch.mentioned and (touch.hidden or not denied.hidden)
        if walked and denied.reaches_below(forms):
            return Hit(touch.part, certain=False, reason="it would also reach files that a rule denies")
        return None

    def _shows_environment(self) -> bool:
        """Whether a part reads what another process holds: our own environment is not for commands."""
        command = self._command or ""
        if _ENVIRONMENT.search(command):
            return True
        wide = (
            any(word in command for word in ("proc", "environ", "find"))
            or _GLOBBED_PATH.search(command) is not None
        )
        touches = (*self._touches, *self._mentions) if wide else self._touches
        return any(
            self._holds_environment(touch, directory)
            for touch in touches
            if wide or touch.recursive
            for directory in touch.directories
        )

    def _holds_environment(self, touch: Touch, directory: str | None) -> bool:
        path = known_path(touch.word, directory, self._home, self._assigned)
        if path is not None:
            led = leave_processes(posixpath.normpath(path), directory)[0]
            return led is not None and holds_environment(posixpath.normpath(led), recursive=touch.recursive)
        text = touch.word.text
        if not ("proc" in text or "environ" in text or touch.word.globbed):
            return False
        return may_hold_environment(path_items(touch.word, directory, self._home, self._assigned))

    def _unreadable_hit(self, denied: DeniedPaths) -> Hit | None:
        """A file rule and a command that was not understood: any word may name a file."""
        if self._problem is None:
            return None
        texts = {
            part for each in self._every for word in each.words for part in _NAMES.split(word.text) if part
        }
        if any(self._names_denied(text, denied) for text in texts):
            return Hit(self._command)
        return Hit(self._command, certain=False, reason=self._problem)

    def _names_denied(self, text: str, denied: DeniedPaths) -> bool:
        path = self._home + text[1:] if text == "~" or text.startswith("~/") else text
        try:
            return denied.hits(self._resolver.resolve(path, self._call.place.cwd), directory=False)
        except (OSError, ValueError):
            return False

    # --- allow ---

    def cover(self) -> Cover | Gap:
        if self._problem is not None:
            return Gap(self._command, self._problem)
        return cover_script(self._call, self._script, self._invocations, self._touches)

    def narrowest(self) -> list[str]:
        """One rule for each part that no rule covers yet, and for each file a redirection would write."""
        if self._problem is not None or any(_is_too_wide(each) for each in self._invocations):
            return []
        rules: dict[str, None] = {}
        for each in self._invocations:
            if isinstance(cover_script(self._call, self._script, [each], ()), Gap):
                assigned = [assignment.raw for assignment in each.command.assignments]
                rules[f"Bash({' '.join([*assigned, each.command.raw])})"] = None
        for touch in self._touches:
            for directory in touch.directories if touch.redirected and touch.kind == "write" else ():
                path = known_path(touch.word, directory, self._home, self._assigned)
                if path is None:
                    continue
                forms = self._resolver.resolve(path, "/")
                if is_protected(forms) or not in_workspace(forms, self._call.place) or "*" in path:
                    return []
                rules[f"Write({shorten(forms.lexical[0], self._call.place)})"] = None
        return list(rules)


def _find_directory(call: Call) -> tuple[str | None, str | None]:
    """Where the command starts, or what is wrong with that."""
    for name in ("workingDirectory", "working_directory", "cwd"):
        value = call.arguments.get(name)
        if value is not None:
            if not isinstance(value, str) or "\0" in value:
                return None, "the working directory is not a text"
            return posixpath.normpath(posixpath.join(call.place.cwd, value)), None
    return call.place.cwd, None


def _is_too_wide(invocation: Invocation) -> bool:
    """Whether a wildcard in the source would make the rule cover a program that runs anything it is given."""
    programs, name = load_programs(), invocation.program
    runs_anything = name in programs.runners or name in programs.shells or name in programs.interpreters
    return runs_anything and "*" in invocation.command.raw


def _find_started(invocations: list[Invocation]) -> Iterator[tuple[str, str]]:
    """Commands that options and variables start (`tar --to-command`, `GIT_PAGER=`), each with its part."""
    seen: set[str] = set()
    for invocation in invocations:
        sources = [source for source in _find_sources(invocation) if source not in seen]
        part = invocation.command.text if sources else ""
        for source in dict.fromkeys(sources):
            seen.add(source)
            for text in {source, source.partition("=")[2].removeprefix("!")}:
                for command in guess_script(text).commands:
                    yield from ((spelling, part) for spelling in command_texts(command))


def _find_sources(invocation: Invocation) -> list[str]:
    programs = load_programs()
    values = [each.value for each in invocation.command.assignments if programs.is_steering(each.name)]
    sources = [value.text for value in values if value is not None and value.literal]
    if not invocation.computed and load_options().find(invocation.program) is not None:
        words = [word.text for word in invocation.words]
        for hazard in find_hazards(invocation.words):
            sources += [hazard.value, " ".join(words[hazard.index : hazard.index + _LONGEST_START])]
    return sources


def _read_script(command: str) -> tuple[Script, str | None]:
    """The command as a script; outside the grammar, a guess at it and what was not understood."""
    try:
        return parse_shell(command), None
    except ShellSyntaxError as error:
        return guess_script(command), f"not understood: {error}"
