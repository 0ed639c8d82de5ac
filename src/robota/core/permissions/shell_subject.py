"""A Bash call: deny and ask rules against every part of the command, allow rules for all of them."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator

from robota.core.permissions.calls import (
    READING_TOOLS,
    WRITING_TOOLS,
    Call,
    Cover,
    Gap,
    Hit,
    has_controls,
    parameter_hit,
)
from robota.core.permissions.globs import Item
from robota.core.permissions.paths import (
    DeniedPaths,
    PathForms,
    Place,
    Resolver,
    anchor_pattern,
)
from robota.core.permissions.rules import Rule
from robota.core.permissions.shell_allow import cover_script
from robota.core.permissions.shell_patterns import (
    ShellPattern,
    command_items,
    command_texts,
    compile_shell_pattern,
    path_items,
)
from robota.core.shell.effects import Touch, find_touches, known_path, substitute
from robota.core.shell.expansions import may_split
from robota.core.shell.grammar import parse_shell
from robota.core.shell.hazards import find_hazards
from robota.core.shell.invocations import Invocation, find_invocations, walk
from robota.core.shell.programs import load_programs, program_name
from robota.core.shell.reader import JOINT
from robota.core.shell.script import Command, Script, ShellSyntaxError, plain_word

_FRAGMENTS = re.compile(r"[;&|\n()`{}<>]+|\$\(")
_DIALECTS = frozenset({"extglob", "expand_aliases"})
_LONGEST_START = 64  # words of a command that an option starts; keeps many such options in one command cheap
_QUOTES = str.maketrans("", "", "'\"\\")


class ShellSubject:
    def __init__(self, call: Call) -> None:
        self._call = call
        command = call.arguments.get("command")
        self.command = command if isinstance(command, str) else None
        self.problem: str | None = None
        self.script = Script()
        self.place: Place = call.place
        self._resolver = Resolver(call.place.home)
        self._invocations: list[Invocation] = []
        self._every: list[Invocation] = []
        self._assigned: frozenset[str] = frozenset()
        self._touches: list[Touch] = []
        self._texts: dict[str, Invocation] = {}
        self._started: dict[str, str] | None = None
        self._parse()

    def _parse(self) -> None:
        if self.command is None:
            self.problem = "the command is missing or is not a text"
            return
        directory = self._directory()
        if has_controls(self.command):
            self.problem = "the command holds control or direction-changing characters"
        try:
            self.script = parse_shell(self.command)
        except ShellSyntaxError as error:
            self.problem = f"the command cannot be parsed: {error}"
            self.script = _guess_script(self.command)
        self._invocations = find_invocations(self.script, (directory,), self.place.home)
        self._every = walk(self._invocations)
        self._assigned = frozenset(self.script.assigned)
        touches = find_touches(self.script, self._every, (directory,), self.place.home)
        self._touches = list({touch.key: touch for touch in touches}.values())
        for each in reversed(self._every):  # of equal texts the first one counts
            self._texts.update((text, each) for text in command_texts(each.command))
        if self.problem is None:
            self.problem = self._find_problem()

    def _directory(self) -> str | None:
        for name in ("workingDirectory", "working_directory", "cwd"):
            if name in self._call.arguments:
                value = self._call.arguments[name]
                if value is None:
                    continue
                if not isinstance(value, str) or "\0" in value:
                    self.problem = "the working directory is not a text"
                    return None
                return posixpath.normpath(posixpath.join(self.place.cwd, value))
        return self.place.cwd

    def _find_problem(self) -> str | None:
        for each in self._every:
            if each.words[0].text == "shopt" and any(word.text in _DIALECTS for word in each.words):
                return "the command changes how bash reads what follows"
            if each.computed:
                return f"the program to run is only known when it runs: {each.command.text}"
        scripts = [self.script, *(script for each in self._every for script in each.scripts)]
        if any(script.holds_code and _evaluates_text(script) for script in scripts):
            return "bash would evaluate a text that holds a command as arithmetic"
        return None

    # --- deny and ask ---

    def hit(self, rule: Rule) -> Hit | None:
        if rule.names("Bash"):
            return self._command_hit(rule)
        if rule.tool in READING_TOOLS or rule.tool in WRITING_TOOLS:
            return self._file_hit(rule)
        return None

    def _command_hit(self, rule: Rule) -> Hit | None:
        pattern_text = rule.pattern
        if pattern_text is None:
            return Hit(None)
        parameter = parameter_hit(self._call, pattern_text)
        if parameter is not None:
            return parameter
        pattern = compile_shell_pattern(pattern_text)
        if self.command is not None and (
            pattern.denies(self.command) or pattern.denies(self.command.strip())
        ):
            return Hit(self.command)
        for text, invocation in self._texts.items():
            if pattern.denies(text):
                return Hit(invocation.command.text)
        if self._started is None:
            self._started = dict(_find_started(self._every))
        for text, part in self._started.items():
            if pattern.denies(text):
                return Hit(part)
        if self.problem is not None:
            return Hit(self.command, certain=False, reason=self.problem)
        return self._possible_hit(pattern)

    def _possible_hit(self, pattern: ShellPattern) -> Hit | None:
        for invocation in self._every:
            if invocation.opaque:
                reason = "what it runs is only known when it runs"
                return Hit(invocation.command.text, certain=False, reason=reason)
            if any(pattern.may_deny(items) for items in self._possible_texts(invocation)):
                reason = "an argument that decides it is only known when it runs"
                return Hit(invocation.command.text, certain=False, reason=reason)
        return None

    def _possible_texts(self, invocation: Invocation) -> list[list[Item]]:
        """The part with every value that is known filled in."""
        command = invocation.command
        if all(word.literal for word in command.words):
            return []
        where = invocation.directories[0]
        words = (substitute(word, where, self.place.home, self._assigned) for word in command.words)
        return command_items(tuple(words))

    def _file_hit(self, rule: Rule) -> Hit | None:
        reading = rule.tool in READING_TOOLS
        doubt: Hit | None = None
        if rule.pattern is None:
            kind = "read" if reading else "write"
            return next((Hit(touch.part) for touch in self._touches if touch.kind == kind), None)
        denied = DeniedPaths(anchor_pattern(rule.pattern, self.place), self.place)
        for touch in self._touches:
            if not reading and touch.kind == "read":
                continue
            found = self._touch_hit(touch, denied)
            if found is not None and found.certain:
                return found
            doubt = doubt or found
        return doubt or self._unreadable_hit(denied)

    def _touch_hit(self, touch: Touch, denied: DeniedPaths) -> Hit | None:
        home, assigned = self.place.home, self._assigned
        doubt: Hit | None = None
        for directory in touch.directories:
            path = known_path(touch.word, directory, home, assigned)
            if path is None:
                items = path_items(touch.word, directory, home, assigned)
                if may_split(touch.word, self.script) or denied.may_hit(items):
                    doubt = Hit(touch.part, certain=False, reason="the file is only known when it runs")
                continue
            try:
                forms = self._resolver.resolve(path, directory or "/")
            except (OSError, ValueError):
                return Hit(touch.part, certain=False, reason="the path cannot be resolved")
            if denied.hits(forms, directory=touch.recursive):
                return Hit(touch.part)
            if touch.recursive and denied.reaches_below(forms) and (touch.hidden or not denied.hidden):
                doubt = Hit(touch.part, certain=False, reason="it would also reach files that a rule denies")
        return doubt

    def _unreadable_hit(self, denied: DeniedPaths) -> Hit | None:
        """A file rule and a command that cannot be analysed: any word of it may be read or written."""
        if self.problem is None or self.command is None:
            return None
        words = [word for each in self._every for word in each.words[1:]]
        touches = [Touch("read", word, (self.place.cwd,), self.command) for word in words]
        if any(self._touch_hit(touch, denied) for touch in touches):
            return Hit(self.command, certain=False, reason=self.problem)
        return None

    # --- allow ---

    def cover(self) -> Cover | Gap:
        if self.problem is not None:
            return Gap(self.command, self.problem)
        return cover_script(self._call, self.script, self._invocations, self._touches)

    def mode_gap(self) -> Gap | None:
        return None

    @property
    def invocations(self) -> list[Invocation]:
        """The simple commands as written, in their order."""
        return self._invocations

    def cover_part(self, invocation: Invocation) -> Cover | Gap:
        """Whether the allow rules cover one part, redirections apart."""
        return cover_script(self._call, self.script, [invocation], ())

    @property
    def written(self) -> list[Touch]:
        """The files that redirections would write."""
        return [touch for touch in self._touches if touch.redirected and touch.kind == "write"]

    def resolve_touch(self, touch: Touch) -> list[tuple[str, PathForms]]:
        """The paths that a touch may name, in both forms."""
        places = touch.directories
        paths = (known_path(touch.word, directory, self.place.home, self._assigned) for directory in places)
        return [(path, self._resolver.resolve(path, "/")) for path in paths if path is not None]


def _evaluates_text(script: Script) -> bool:
    """Whether bash reads some text as arithmetic or as a subscript, and so runs commands in it."""
    return script.evaluates_text or any(_evaluates(command) for command in script.commands)


def _evaluates(command: Command) -> bool:
    builtin, words = command.words[0].text, command.words[1:]
    if builtin == "let":
        return True
    if builtin in ("declare", "typeset", "local", "export", "readonly") and any(
        word.text.startswith("-") and "i" in word.text for word in words
    ):
        return True
    if builtin in load_programs().conditions:
        return any(word.text in ("-v", "-R") for word in words)
    subscripts = (word.text for word in words if "[" in word.text)
    return builtin in load_programs().setters and any("$(" in text or "`" in text for text in subscripts)


def _find_started(invocations: list[Invocation]) -> Iterator[tuple[str, str]]:
    """Commands that options and variables start (`tar --to-command`, `GIT_PAGER=`), each with its part."""
    seen: set[str] = set()
    for invocation in invocations:
        sources = [source for source in _find_sources(invocation) if source not in seen]
        part = invocation.command.text if sources else ""
        for source in dict.fromkeys(sources):
            seen.add(source)
            for text in {source, source.partition("=")[2].removeprefix("!")}:
                for command in _guess_script(text).commands:
                    yield from ((spelling, part) for spelling in command_texts(command))


def _find_sources(invocation: Invocation) -> list[str]:
    programs = load_programs()
    values = [each.value for each in invocation.command.assignments if programs.is_steering(each.name)]
    sources = [value.text for value in values if value is not None and value.literal]
    if not invocation.computed and program_name(invocation.words[0].text) in programs.options:
        words = [word.text for word in invocation.words]
        for hazard in find_hazards(invocation.words):
            sources += [hazard.value, " ".join(words[hazard.index : hazard.index + _LONGEST_START])]
    return sources


def _guess_script(command: str) -> Script:
    """Commands picked out of a text that does not parse: deny rules still see what is plainly there."""
    script = Script()
    joined = "\n" + command.replace(JOINT, "") if JOINT in command else ""
    for fragment in _FRAGMENTS.split(command + joined):
        words = [plain_word(word) for word in fragment.translate(_QUOTES).split()]
        while words and (
            words[0].text in ("if", "then", "else", "elif", "do", "while", "until", "!", "time", "{")
        ):
            words = words[1:]
        if words:
            script.commands.append(Command(tuple(words)))
    return script
