"""A shell command: deny and ask rules against every part of it, allow rules for all of them."""

from __future__ import annotations

import posixpath
from functools import cached_property

from msgspec.structs import replace

from robota.core.permissions.command_allow import cover_script
from robota.core.permissions.command_files import CommandFiles
from robota.core.permissions.command_patterns import (
    ShellPattern,
    command_items,
    command_texts,
    compile_shell_pattern,
)
from robota.core.permissions.globs import Item
from robota.core.permissions.matchers import Call, Cover, Gap, Hit, parameter_hit
from robota.core.permissions.repositories import find_doubtful_git
from robota.core.permissions.rules import Rule
from robota.core.permissions.started import find_perhaps_started, find_started
from robota.core.permissions.subjects import READING_TOOLS, WRITING_TOOLS
from robota.core.shell.builtins import find_outside
from robota.core.shell.effects import substitute
from robota.core.shell.expansions import find_possible_options
from robota.core.shell.grammar import parse_shell
from robota.core.shell.guess import guess_script
from robota.core.shell.hazards import find_hazards
from robota.core.shell.invocations import Invocation, find_invocations, find_steering, walk
from robota.core.shell.script import Command, Script, ShellSyntaxError, plain_word


class CommandMatcher:
    def __init__(self, call: Call) -> None:
        self._call = call
        self._home = call.place.home
        command = call.arguments.get("command")
        self._command = command if isinstance(command, str) else None
        self._script, unread = _read_script(self._command or "")
        self._directory, self._problem = _find_directory(call)
        self._invocations = find_invocations(self._script, (self._directory,), self._home)
        if self._directory != call.place.cwd and self._problem is None:
            self._invocations.insert(0, _as_move(call, self._directory, self._script))
        self._every = walk(self._invocations)
        self._files = CommandFiles(call, self._script, self._every, self._directory)
        if self._command is None:
            self._problem = "the command is missing or is not a text"
        self._problem = unread or self._problem or self._find_problem()

    @cached_property
    def _texts(self) -> dict[str, Invocation]:
        texts: dict[str, Invocation] = {}
        for each in reversed(self._every):  # of equal texts the first one counts
            texts.update((text, each) for text in command_texts(each.command))
        return texts

    def _find_problem(self) -> str | None:
        for each in self._every:
            if each.computed:
                return f"the program to run is only known when it runs: {each.command.text}"
            if each.program == "ps" and find_hazards(each.words):
                return "it would show the environment of other processes"
            outside = find_outside(each.words, each.script)
            if outside is not None:
                return outside
        return (
            "it would show the environment of a process"
            if self._files.shows_environment(self._command or "")
            else None
        )

    # --- deny and ask ---

    def hit(self, rule: Rule) -> Hit | None:
        if rule.names("Bash"):
            return Hit(None) if rule.pattern is None else self._command_hit(rule.pattern)
        if rule.tool in READING_TOOLS or rule.tool in WRITING_TOOLS:
            found = self._files.hit(rule, self._foreign)
            return found if found is None or found.part is not None else replace(found, part=self._command)
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
        if self._foreign is not None:
            return Hit(command, certain=False, reason=self._foreign)
        return self._possible_hit(pattern)

    @cached_property
    def _foreign(self) -> str | None:
        """Why no deny rule can be evaluated."""
        steering = find_steering(self._script, self._every) if self._problem is None else None
        return self._problem if steering is None else f"setting {steering} can change what other parts run"

    @cached_property
    def _started(self) -> dict[str, str]:
        return dict(find_started(self._every))

    @cached_property
    def _perhaps_started(self) -> dict[str, str]:
        return dict(find_perhaps_started(self._every))

    def _possible_hit(self, pattern: ShellPattern) -> Hit | None:
        for invocation in self._every:
            reason = ""
            if invocation.opaque:
                reason = "what it runs is only known when it runs"
            elif any(pattern.may_deny(items) for items in self._possible_texts(invocation)):
                reason = "an argument that decides it is only known when it runs"
            if reason:
                return Hit(invocation.command.text, certain=False, reason=reason)
        for text, part in self._perhaps_started.items():
            if pattern.denies(text):
                return Hit(part, certain=False, reason="a text that it may run names what the rule is about")
        return None

    def _possible_texts(self, invocation: Invocation) -> list[list[Item]]:
        """The part with every value that is known filled in."""
        if all(word.literal for word in invocation.words):
            return []
        where = invocation.directories[0]
        words = (
            substitute(word, where, self._home, frozenset(self._script.assigned)) for word in invocation.words
        )
        return command_items(tuple(words))

    # --- allow ---

    def cover(self) -> Cover | Gap:
        if self._problem is not None:
            return Gap(self._command, self._problem)
        if not self._call.allow.rules:
            return Gap(None, "no rule allows it")
        touches = self._files.touches if self._files.redirects else ()
        covered = cover_script(self._call, self._script, self._invocations, touches)
        if isinstance(covered, Cover):
            doubt = self._doubt()
            return covered if doubt is None else Gap(self._command, doubt)
        return covered

    def _doubt(self) -> str | None:
        """Why a command that rules cover is asked about all the same."""
        files = self._files
        if files.linking is not None and any(
            each.redirected and each.kind == "write" for each in files.touches
        ):
            return "a link that the command makes may lead what it writes elsewhere"
        if any(each.program == "git" for each in self._every):
            return find_doubtful_git(self._every, files.touches)
        return None

    def narrowest(self) -> list[str]:
        """One rule for each part that no rule covers yet, and for each file a redirection would write.

        A rule has no way to write a star that stands for itself, and an unknown word may be another one or
        several the next time, so a command that holds either gets no rule.
        """
        unknown = any(find_possible_options(each.words, each.script) for each in self._invocations)
        if self._problem is not None or unknown:
            return []
        rules: dict[str, None] = {}
        for each in self._invocations:
            if isinstance(cover_script(self._call, self._script, [each], ()), Gap):
                assigned = [assignment.raw for assignment in each.command.assignments]
                rules[f"Bash({' '.join([*assigned, each.command.raw])})"] = None
        written = self._files.rules_for_writing()
        offered = [*rules, *(written or ())]
        return [] if written is None or any("*" in rule for rule in offered) else list(dict.fromkeys(offered))


def _find_directory(call: Call) -> tuple[str | None, str | None]:
    """Where the command starts, or what is wrong with that."""
    for name in ("workingDirectory", "working_directory", "cwd"):
        value = call.arguments.get(name)
        if value is not None:
            if not isinstance(value, str) or "\0" in value:
                return None, "the working directory is not a text"
            return posixpath.normpath(posixpath.join(call.place.cwd, value)), None
    return call.place.cwd, None


def _as_move(call: Call, directory: str | None, script: Script) -> Invocation:
    """The working directory of a call is judged like `cd`."""
    target = posixpath.relpath(directory or "/", call.place.cwd)
    written = target if not target.startswith("..") else directory or "/"
    return Invocation(Command((plain_word("cd"), plain_word(written))), script, (call.place.cwd,))


def _read_script(command: str) -> tuple[Script, str | None]:
    """The command as a script; outside the grammar, a guess at it and what was not understood."""
    try:
        return parse_shell(command), None
    except ShellSyntaxError as error:
        return guess_script(command), f"not understood: {error}"
