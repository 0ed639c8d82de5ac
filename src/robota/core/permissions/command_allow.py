"""When allow rules cover a whole shell command.

Every part needs a rule of its own. A rule with a wildcard does not reach an option that starts a program or
writes a file, nor the command inside a runner (`Bash(env *)` is not a licence for `env rm x`), unless it
spells that out or another rule covers the inner command. A redirection is a write of its target. `Bash` and
`Bash(*)` cover everything that can be parsed.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from robota.core.permissions.command_patterns import (
    ShellPattern,
    command_key,
    command_words,
    compile_shell_pattern,
)
from robota.core.permissions.globs import Glob
from robota.core.permissions.matchers import Call, Cover, Gap
from robota.core.permissions.paths import covers, in_workspace, is_protected, resolve
from robota.core.permissions.rules import Rule, RuleSet
from robota.core.shell.effects import Touch
from robota.core.shell.expansions import find_possible_hazards
from robota.core.shell.invocations import Invocation
from robota.core.shell.programs import load_programs
from robota.core.shell.script import Assignment, Command, Word

_LEAVING = frozenset({"break", "continue", "exit"})
_NETWORK_FILES = ("/dev/tcp/", "/dev/udp/")
_NETWORK = re.compile(r"\b(?:tcp|udp)\b")


def cover_parts(allow: RuleSet, invocations: Sequence[Invocation]) -> Cover | Gap:
    """The rule that covers all parts (the first, when there are several), or the part that none covers."""
    coverage = _compile(allow)
    if not isinstance(coverage, _Coverage):
        return coverage
    first: str | None = None
    conditions = _conditions()
    for invocation in invocations:
        command = invocation.command
        if command.words[0].text in conditions and not command.assignments:
            continue
        found = coverage.rule_for(invocation)
        if found is None:
            return Gap(command.text, coverage.why_not(invocation))
        first = found if first is None else first
    if first is None:  # conditions alone
        first = next((rule for each in invocations if (rule := coverage.rule_for(each))), None)
    return Gap(None, "no rule allows it") if first is None else Cover(first)


@lru_cache(maxsize=64)
def _compile(allow: RuleSet) -> _Coverage | Cover | Gap:
    """What the rules about commands cover, or the answer that they give to every command."""
    patterns: list[tuple[str, ShellPattern]] = []
    for rule in allow.rules:
        if rule.names("Bash"):
            if rule.pattern is None:
                return Cover(rule.text, whole=True)
            patterns.append((rule.text, compile_shell_pattern(rule.pattern)))
    return _Coverage(patterns) if patterns else Gap(None, "no rule allows it")


def _is_condition(command: Command) -> bool:
    """`[ … ]`, `test` and `break` run nothing; what their words expand to are parts of their own."""
    return command.words[0].text in _conditions() and not command.assignments


@lru_cache(maxsize=1)
def _conditions() -> frozenset[str]:
    return load_programs().conditions | _LEAVING


class _Coverage:
    def __init__(self, patterns: Sequence[tuple[str, ShellPattern]]) -> None:
        self._patterns = patterns
        self._by_word: dict[str, list[tuple[str, ShellPattern]]] = {}
        """The patterns that a text may match which begins with a word of them."""
        for _, pattern in patterns:
            for glob in pattern.strict:
                if (word := _first_word(glob)) is not None:
                    self._by_word[word] = [each for each in patterns if _may_begin(each[1], word)]
        self._open = [each for each in patterns if _may_begin(each[1], None)]

    def _near(self, key: str) -> list[tuple[str, ShellPattern]]:
        """The patterns that may match a text."""
        return self._by_word.get(key.partition(" ")[0], self._open)

    def rule_for(self, invocation: Invocation) -> str | None:
        """The text of a rule that covers the invocation and all that it runs."""
        command = invocation.command
        key = command_key(command.words)
        inert = not command.assignments or all(is_inert(each, command) for each in command.assignments)
        if not command.assignments:
            for text, pattern in self._near(key):
                if pattern.allows(key) and self._grants(pattern, invocation, pattern.fixed_words):
                    return text
        else:
            full, before = " ".join(command_words(command)), len(command.assignments)
            for text, pattern in self._patterns:
                behind = inert and pattern.allows(key)
                if not behind and (not pattern.allows(full) or pattern.fixed_words <= before):
                    continue
                if self._grants(pattern, invocation, pattern.fixed_words - (0 if behind else before)):
                    return text
        unwrapped = invocation.unwrapped
        if inert and unwrapped is not None and unwrapped.inert and self._covers_inner(invocation):
            return self.rule_for(invocation.inner[0])
        return None

    def why_not(self, invocation: Invocation) -> str:
        """Why no rule covers the invocation, when one seems to."""
        key = command_key(invocation.command.words)
        near = next((text for text, pattern in self._near(key) if pattern.allows(key)), None)
        if near is None:
            return "no rule allows this part"
        for assignment in invocation.command.assignments:
            if not is_inert(assignment, invocation.command):
                return f"{near} does not cover a command that sets {assignment.name}"
        for hazard in invocation.possible_hazards:
            can = "can" if invocation.words[hazard.index].literal else "may turn out to be an option that can"
            return f"{hazard.word} {can} start a program or write a file, which {near} does not cover"
        if invocation.inner or invocation.opaque:
            return f"{near} does not cover what this part runs"
        return "no rule allows this part"

    def _grants(self, pattern: ShellPattern, invocation: Invocation, spelled: int) -> bool:
        """A rule without wildcards grants what it spells out, but not what a shell reads from its input."""
        if not pattern.exact:
            return self._stays_within(invocation, spelled)
        unwrapped = invocation.unwrapped
        reads = unwrapped is not None and (unwrapped.reads_input or _feeds_shell(invocation))
        return not reads or self._covers_inner(invocation)

    def _stays_within(self, invocation: Invocation, spelled: int) -> bool:
        """Whether all that could do more than the rule says is among the words that the rule spells out."""
        words = invocation.command.words
        hazards = invocation.possible_hazards
        unwrapped = invocation.unwrapped
        if hazards and any(hazard.index >= spelled for hazard in hazards):
            rest = _without_actions(words) if invocation.program == "find" and unwrapped is not None else None
            return (
                rest is not None
                and not find_possible_hazards(rest, invocation.script)
                and self._covers_inner(invocation)
            )
        if unwrapped is None:
            return True
        starts = [inner.start for inner in unwrapped.inner]
        if not unwrapped.restricts:
            # `uv run *` covers every program, `uv run pytest *` only what `pytest *` would.
            named = zip(invocation.inner, starts, strict=False) if not invocation.scripts else ()
            return all(self._stays_within(inner, spelled - at) for inner, at in named if at < spelled)
        if invocation.opaque:
            return False
        if all(start < spelled for start in starts):
            argv = [inner for inner in unwrapped.inner if inner.source is None]
            if len(argv) != len(invocation.inner):
                return True  # a shell text that the rule contains word for word
            return all(
                self._stays_within(inner, spelled - start)
                for inner, start in zip(invocation.inner, starts, strict=True)
            )
        return self._covers_inner(invocation)

    def _covers_inner(self, invocation: Invocation) -> bool:
        unwrapped = invocation.unwrapped
        if unwrapped is None or invocation.opaque or any(inner.steered for inner in unwrapped.inner):
            return False
        return bool(invocation.inner) and all(
            _is_condition(inner.command) or self.rule_for(inner) is not None for inner in invocation.inner
        )


def takes_input(command: Command) -> bool:
    return command.piped or any(each.operator[0] == "<" for each in command.redirections)


def _feeds_shell(invocation: Invocation, *, fed: bool = False) -> bool:
    """Whether a command inside runs what the outer one is given to read: `sudo bash <<EOF`."""
    fed = fed or takes_input(invocation.command)
    return any(
        (fed and inner.unwrapped is not None and inner.unwrapped.reads_input) or _feeds_shell(inner, fed=fed)
        for inner in invocation.inner
    )


def _first_word(glob: Glob) -> str | None:
    """The first word of every text that a pattern matches; None when these differ."""
    word, blank, _ = glob.literals[0].partition(" ")
    return word if blank or len(glob.literals) == 1 else None


def _may_begin(pattern: ShellPattern, word: str | None) -> bool:
    """Whether the pattern may match a text that begins with a word."""
    return any(_first_word(glob) in (None, word) for glob in pattern.strict)


def _without_actions(words: tuple[Word, ...]) -> tuple[Word, ...] | None:
    """The words of `find` without what its `-exec` runs; None when that cannot be told."""
    kept: list[Word] = []
    inside = False
    for index, word in enumerate(words):
        if not inside:
            inside = word.text == "-exec"
            kept += [] if inside else [word]
        elif word.text == ";" or (word.text == "+" and words[index - 1].text == "{}"):
            inside = False
        elif word.text == "+" or not word.literal:
            return None
    return None if inside else tuple(kept)


def is_inert(assignment: Assignment, command: Command) -> bool:
    """Whether a variable set for one command cannot change what it runs."""
    value = assignment.value
    if value.computed:
        return False
    if assignment.name == "IFS" and command.words[0].text == "read":
        return True
    return load_programs().is_inert(assignment.name, value.text)


def find_redirection_gap(call: Call, touches: Sequence[Touch]) -> Gap | None:
    for touch in touches:
        if not touch.redirected:
            continue
        if touch.kind == "read":
            computed = touch.word.computed and _NETWORK.search(str(call.arguments.get("command")))
            if computed or touch.word.text.startswith(_NETWORK_FILES):
                return Gap(touch.part, "the redirection opens a network connection")
        elif not covers_write(call, touch):
            return Gap(touch.part, "no rule allows writing the target of this redirection")
    return None


def covers_write(call: Call, touch: Touch) -> bool:
    """Whether a Write or Edit rule, or `acceptEdits` in the workspace, covers the target of a redirection."""
    word = touch.word
    if not word.literal or word.tilde or word.text.startswith("/dev/"):
        return False
    rules = [rule for rule in call.allow.rules if rule.tool in ("Write", "Edit")]
    return all(_covers_path(call, rules, word.text, directory) for directory in touch.directories)


def _covers_path(call: Call, rules: Sequence[Rule], path: str, directory: str | None) -> bool:
    if directory is None and not path.startswith("/"):
        return False
    try:
        forms = resolve(path, directory or "/", call.place.home)
    except (OSError, ValueError):
        return False
    if forms.real is None:
        return False
    if call.mode == "acceptEdits" and in_workspace(forms, call.place) and not is_protected(forms):
        return True
    return any(covers(rule.pattern, forms, call.place) for rule in rules)
