"""Programs that run other programs: where in their words the inner command is.

Deny and ask rules look through all of them; allow rules only through the few that add nothing of their own.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from shlex import quote
from typing import TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from robota.core.shell.programs import ProgramOptions, Runner, find_options, load_programs
from robota.core.shell.script import FOUND_WORD, UNKNOWN_WORD, Command, Redirection, Word, plain_word

_NUMBER_OPTION = re.compile(r"-{1,2}\+?\d+\Z")
_LOADER = re.compile(r"ld(?:-[\w.-]+)?\.so(?:\.\d+)*\Z|ld-musl-")
_INPUT_OPERATORS = frozenset({"<", "<<", "<<-", "<<<", "<>", "<&"})
_SQL = frozenset({"psql", "mysql", "sqlite3"})
_INPUT_FILE = re.compile(r"-\Z|/dev/(?:stdin|fd/.*|tty.*|pts/.*|tcp/.*|udp/.*)\Z|/proc/.*/fd/.*\Z")
_MAXIMUM_GUESSES = 24
_MAXIMUM_MARKS = 4  # xargs uses the last one that it is given
_LANGUAGES = frozenset({"python", "node", "perl", "ruby", "php", "lua", "deno", "bun", "tclsh", "Rscript"})
_FD_ACTION = re.compile(r"-[A-Za-z]*[xX]\Z|--exec(?:-batch)?(?:=|\Z)")
_LIST = str.maketrans('[",]', "    ")
_GROUPS = frozenset({"container", "compose", "foreach", "workspace", "workspaces"})
"""What may stand before the subcommand of a runner (`docker container exec`)."""
_FIND_ACTIONS = frozenset({"-exec", "-execdir", "-ok", "-okdir"})


class Inner(Struct, frozen=True, gc=False):
    """A command inside a command: its words, or a shell text still to be parsed."""

    start: int
    """Where it begins among the words of the outer command."""
    words: tuple[Word, ...] = ()
    source: str | None = None
    steered: bool = False
    """Whether the runner sets variables for it."""


class Unwrapped(Struct, frozen=True, gc=False):
    inner: tuple[Inner, ...] = ()
    inert: bool = False
    """Whether the runner adds nothing: an allow rule for the inner command is enough."""
    restricts: bool = True
    """Whether an allow rule for the runner leaves the inner command uncovered."""
    opaque: bool = False
    """Whether what it runs is only known at run time."""
    reads_input: bool = False
    """Whether it runs what it reads, so that its own words do not say what that is."""


Way: TypeAlias = Callable[[Command], Unwrapped | None] | Runner | ProgramOptions
"""How to look for what a program runs."""


def unwrap(command: Command, way: Way, *, fed: bool = False) -> Unwrapped | None:
    """What a command runs on behalf of its caller; None when it is no runner.

    `fed` says that its input may come from a redirection around it.
    """
    if not isinstance(way, (Runner, ProgramOptions)):
        return way(command)
    if isinstance(way, Runner):
        found = _unwrap_runner(command.words, way)
        return _unwrap_login(command, way, fed=fed) if found is None and way.input_shell else found
    taken = (
        not (way.verbs and len(command.words) > 1)  # then its input is data
        and _takes_commands(command, way.check, fed=fed)
    )
    return Unwrapped(opaque=True, reads_input=True) if taken else None


@lru_cache(maxsize=1024)
def find_way(name: str) -> Way | None:
    """How to look for what a program runs; None for one that runs nothing."""
    programs = load_programs()
    if name in programs.shells:
        return _unwrap_shell
    if name in programs.other_shells:
        return _unwrap_other_shell
    if name in _WAYS:
        return _WAYS[name]
    if name.rstrip("0123456789.") in _LANGUAGES:
        return _unwrap_language
    runner = programs.runners.get("ld.so" if _LOADER.match(name) else name)
    if runner is not None:
        return runner
    options = find_options(name)
    return options if options is not None and options.input else None


def _unwrap_other_shell(command: Command) -> Unwrapped | None:
    words = command.words
    shown = len(words) == 2 and words[1].text in ("--version", "--help")
    return None if shown else Unwrapped(opaque=True, reads_input=len(words) == 1)


def _unwrap_runner(words: tuple[Word, ...], runner: Runner) -> Unwrapped | None:
    if len(words) == 2 and words[1].text in ("--version", "--help"):
        return None
    for at, word in enumerate(words):
        if word.text in runner.shell_after:
            return Unwrapped((Inner(at, (plain_word("bash"), *words[at + 1 :]), steered=True),))
    if runner.loose:
        starts = [index for index, word in enumerate(words) if index and not word.text.startswith("-")]
        guesses = tuple(Inner(at, words[at:], steered=True) for at in starts[:_MAXIMUM_GUESSES])
        return Unwrapped(guesses, opaque=len(starts) > _MAXIMUM_GUESSES) if guesses else None
    start, certain = _find_start(words, runner)
    if start is None:
        return None
    if not certain:
        guesses = tuple(Inner(at, words[at:], steered=True) for at in (start, start + 1) if at < len(words))
        return Unwrapped(guesses, restricts=not runner.deny_only, opaque=not guesses)
    return _describe(words, start, runner)


def _option_names(text: str) -> Sequence[str]:
    """The options that a word may hold: `-su` is `-s -u`."""
    return [text] if text[:1] != "-" or text[:2] == "--" else [f"-{letter}" for letter in text[1:]]


def _unwrap_login(command: Command, runner: Runner, *, fed: bool) -> Unwrapped | None:
    """`ssh host` and `sudo -s` run what they read; without input they only wait for somebody to type."""
    given = [each for each in command.redirections if each.operator in _INPUT_OPERATORS]
    silent = any(each.target is not None and each.target.text == "/dev/null" for each in given)
    named = {name for word in command.words[1:] for name in _option_names(word.text)}
    wanted = runner.input_shell
    asked = wanted if isinstance(wanted, bool) else not named.isdisjoint(wanted)
    if not asked or silent or not (given or fed or command.piped):
        return None
    found = _unwrap_input(command)
    return None if found is None else replace(found, restricts=not runner.deny_only)


def _describe(words: tuple[Word, ...], start: int, runner: Runner) -> Unwrapped | None:
    rest = words[start:]
    script_at = _script_option(words, start, runner)
    options = words[1 : start if script_at is None else max(start, script_at[0])]
    steered = (
        runner.elsewhere
        or (runner.assignments and any(_assigns(word) and not _sets_inert(word) for word in options))
        or any(runner.harmful and _split_option(word.text, runner)[0] in runner.harmful for word in options)
    )
    if script_at is not None:
        at, text = script_at
        program = words[at] if text is None else text
        if runner.entry and program.literal:
            words = (*map(plain_word, program.text.translate(_LIST).split()), *rest)
            return Unwrapped((Inner(start, words),), restricts=not runner.deny_only) if words else None
        source = [text] if text is not None else words[at : at + 1]
        if runner.argv_string:  # what follows are further arguments
            source = [
                *source,
                *(plain_word(quote(word.text)) if word.literal else word for word in words[at + 1 :]),
            ]
        return _as_source(source, at, runner, steered=steered)
    if runner.whole_is_file:
        rest = rest[1:] if runner.shell else ()
    if not rest:  # `parallel` runs the lines that it reads
        reads = runner.shell or (runner.script and runner.appends)
        return Unwrapped(opaque=True, reads_input=True) if reads else None
    if runner.script:
        if rest[0].text in ("-", ""):
            return None
        return _as_source(rest[: runner.words or None], start, runner, steered=steered)
    if runner.appends:
        rest = (*_fill_in(options, rest), UNKNOWN_WORD)
    inner = Inner(start + runner.whole_is_file, rest, steered=steered)
    return Unwrapped((inner,), inert=runner.inert and not steered, restricts=not runner.deny_only)


def _fill_in(options: Sequence[Word], rest: tuple[Word, ...]) -> tuple[Word, ...]:
    """The inner words with those that `xargs -I` replaces marked as unknown."""
    marks = {"{}"}
    for index, word in enumerate(options):
        if word.text.startswith("-I"):
            marks.add(word.text[2:] or (options[index + 1].text if index + 1 < len(options) else "{}"))
    if len(marks) > _MAXIMUM_MARKS:
        return (UNKNOWN_WORD,) * len(rest)
    return tuple(UNKNOWN_WORD if any(mark in word.text for mark in marks) else word for word in rest)


def _as_source(words: Sequence[Word], start: int, runner: Runner, *, steered: bool) -> Unwrapped:
    """A shell text made of words; `parallel` fills in its arguments, or runs them when it has no command."""
    restricts = not runner.deny_only
    texts = [word.text for word in words]
    given = texts.index(":::") if runner.appends and ":::" in texts else len(texts)
    between = "\n" if runner.separate else " "
    source = between.join(texts[:given]) if given else "\n".join(texts[1:])
    if not all(word.literal for word in words[:given] or words):
        return Unwrapped(restricts=restricts, opaque=True)
    if runner.argv_string:
        source = "env " + source
    elif runner.appends and given:
        source = source.replace("{}", " $0 ") + " $0"
    return Unwrapped((Inner(start, source=source, steered=steered),), restricts=restricts)


def _split_option(text: str, runner: Runner) -> tuple[str, str | None]:
    """The name of an option, written out when it was shortened, and the value attached to it."""
    if not text.startswith("--"):
        for at, letter in enumerate(text[1:], 1):  # `-qc` is `-q -c`
            name = f"-{letter}"
            if name in runner.script_option or name in runner.harmful:
                return name, text[at + 1 :] or None
            if letter not in runner.flags:
                break
        return text[:2], text[2:] or None
    name, equals, value = text.partition("=")
    named = runner.script_option | runner.harmful
    longer = min([each for each in named if each.startswith(name)], default=name) if len(name) > 2 else name
    return longer, value if equals else None


def _find_start(words: tuple[Word, ...], runner: Runner) -> tuple[int | None, bool]:
    """Where the inner command begins, and whether that is certain; no start means it runs nothing."""
    index, certain = _skip_options(words, _after_subcommand(words, runner), runner)
    if index is None or not certain:
        return index, certain
    while runner.assignments and index < len(words) and _assigns(words[index]):
        index += 1
    if index > len(words):
        return None, True
    start = index + runner.positional
    if any(word.computed for word in words[index:start]):
        return start, False
    if runner.positional and start < len(words) and words[start].text == "--":
        start += 1
    return _skip_options(words, start, runner) if runner.options_follow else (start, True)


def _skip_options(words: tuple[Word, ...], index: int, runner: Runner) -> tuple[int | None, bool]:
    while index < len(words) and not words[index].computed:
        text = words[index].text
        if text == "--":
            return index + 1, True
        if text == "-" and runner.assignments:
            index += 1
            continue
        if len(text) < 2 or text[0] != "-":
            break
        if text in runner.harmless:
            return None, True
        step = _option_length(text, runner)
        if step is None:
            return index + 1, False
        index += step
        if runner.argv_string and _split_option(text, runner)[0] in runner.script_option:
            break
    return index, True


def _assigns(word: Word) -> bool:
    """`env` and `sudo` take every word with an equals sign, whatever stands before it."""
    return "=" in word.text and not word.text.startswith("-")


def _sets_inert(word: Word) -> bool:
    name, _, value = word.text.partition("=")
    return word.literal and load_programs().is_inert(name, value)


def _after_subcommand(words: tuple[Word, ...], runner: Runner) -> int:
    """The position after `exec` in `docker exec`; past the end when something else was asked for."""
    if not runner.subcommands:
        return 1
    before = ""
    for index, word in enumerate(words[1:], 1):
        if word.text in runner.subcommands:
            return index + 1
        if " ".join(each.text for each in words[index : index + 2]) in runner.subcommands:
            return index + 2
        valued = before == "workspace" or (before.startswith("-") and "=" not in before)
        if not (valued or word.text.startswith("-") or word.text in _GROUPS):
            break
        before = word.text
    return len(words) + 1


def _option_length(text: str, runner: Runner) -> int | None:
    """How many words an option takes; None when it is not known."""
    name, attached = _split_option(text, runner)
    if name in runner.script_option:
        return 1 if attached is not None else 2
    if text in runner.values or (name in runner.harmful and attached is None):
        return 2
    if text.startswith("--"):
        known = runner.open or text in load_programs().long_flags
        return 1 if known or (attached is not None and name in runner.values | runner.harmful) else None
    if runner.numbers and _NUMBER_OPTION.match(text):
        return 1
    if name in runner.values or name in runner.harmful or name in runner.optional:
        return 1
    for offset, letter in enumerate(text[1:], 1):
        if "-" + letter in runner.values:
            return 1 if text[offset + 1 :] else 2
        if letter not in runner.flags:
            return None
    return 1


def _script_option(words: tuple[Word, ...], start: int, runner: Runner) -> tuple[int, Word | None] | None:
    """The word that holds the shell text of an option such as `flock -c`, wherever it stands."""
    if not runner.script_option:
        return None
    for index, word in enumerate(words[1:], 1):
        name, attached = _split_option(word.text, runner)
        if name in runner.script_option:
            if attached is not None:
                return index, plain_word(attached) if word.literal else UNKNOWN_WORD
            return min(index + 1, len(words) - 1), None
        if index >= start and not (runner.positional or runner.whole_is_file):
            return None
    return None


def _unwrap_find(command: Command) -> Unwrapped | None:
    words, found = command.words, list[Inner]()
    listed = any(word.text.startswith("-files0-from") for word in words)  # then it starts anywhere
    found_word = UNKNOWN_WORD if listed else FOUND_WORD
    index = 1
    while index < len(words):
        if words[index].text in _FIND_ACTIONS:
            start = index + 1
            while index < len(words) and words[index].text not in (";", "+"):
                index += 1
            inner = tuple(_fill_found(word, found_word) for word in words[start:index])
            if inner:
                found.append(Inner(start, inner))
        index += 1
    return Unwrapped(tuple(found)) if found else None


def _fill_found(word: Word, found_word: Word) -> Word:
    return found_word if word.text == "{}" else UNKNOWN_WORD if "{}" in word.text else word


def _unwrap_fd(command: Command) -> Unwrapped | None:
    """`fd -x` runs the words behind it for each file; without `{}` the file is the last word."""
    words = command.words
    at = next((index for index, word in enumerate(words) if index and _FD_ACTION.match(word.text)), None)
    if at is None:
        return None
    attached = words[at].text.partition("=")[2]
    rest = (*([plain_word(attached)] if attached else ()), *words[at + 1 :])
    inner = tuple(UNKNOWN_WORD if "{" in word.text else word for word in rest)
    return Unwrapped((Inner(at + 1, (*inner, UNKNOWN_WORD)),)) if inner else None


def _unwrap_language(command: Command) -> Unwrapped | None:
    """An interpreter that is given nothing but its input runs that; a rule for it covers any program text."""
    words = command.words
    plain = all(word.text[:1] == "-" and word.text not in ("--version", "--help") for word in words[1:])
    return Unwrapped(restricts=False, opaque=True) if command.piped and plain else None


def _unwrap_shell(command: Command) -> Unwrapped | None:
    """`bash -c text`, a shell that reads its commands from a here-document, or one whose input is unknown."""
    words = command.words
    index, takes_text = 1, False
    while index < len(words) and words[index].text[:1] in ("-", "+") and len(words[index].text) > 1:
        text = words[index].text
        if words[index].computed:
            return Unwrapped(opaque=True)
        index += 1
        if text == "--":
            break
        if text in ("-o", "+o", "-O", "+O", "--rcfile", "--init-file"):
            index += 1
        elif not text.startswith("--"):
            takes_text = takes_text or "c" in text
            index += text.endswith(("o", "O")) and len(text) > 2
    if takes_text:
        if index >= len(words) or not words[index].literal:
            return Unwrapped(opaque=True)
        return Unwrapped((Inner(index, source=words[index].text),))
    named = index < len(words) and not _INPUT_FILE.match(_normal(words[index].text))
    if named and not any("s" in word.text for word in words[1:index] if word.text[:2] not in ("", "--")):
        return _as_program(words, index)
    return _unwrap_input(command)


def _normal(path: str) -> str:
    """The path without `//`, `.` and `..`, which lead to a descriptor as well."""
    return posixpath.normpath("/" + path.lstrip("/")) if path.startswith("/") else path


def _as_program(words: tuple[Word, ...], index: int) -> Unwrapped:
    """A script file that a shell runs: deny rules see it as a program of its own."""
    if words[index].computed:
        return Unwrapped(opaque=True)
    return Unwrapped((Inner(index, words[index:]),), restricts=False)


def _unwrap_source(command: Command) -> Unwrapped | None:
    """`source` runs a file; a substitution or its input in place of the file is only known at run time."""
    words = command.words
    index = 2 if len(words) > 1 and words[1].text == "--" else 1
    if index >= len(words):
        return None
    if _INPUT_FILE.match(_normal(words[index].text)):
        return _unwrap_input(command)
    return _as_program(words, index)


def _takes_commands(command: Command, check: str, *, fed: bool) -> bool:
    """Whether an editor, a database or a calculator is given commands on its standard input."""
    given = [each for each in command.redirections if each.operator in _INPUT_OPERATORS]
    if not given or check not in _SQL:
        return bool(given) or fed or command.piped
    from robota.core.shell.texts import sql_escapes  # noqa: PLC0415 - most commands do not need it

    literal = [each.body if each.body is not None else _text_of(each) for each in given]
    return any(text is None or sql_escapes(text, check) for text in literal)


def _text_of(redirection: Redirection) -> str | None:
    target = redirection.target
    known = redirection.operator == "<<<" and target is not None and target.literal
    return target.text if known and target is not None else None


def _unwrap_input(command: Command) -> Unwrapped | None:
    """A shell without a script file runs what it reads."""
    if any(word.text in ("--version", "--help") for word in command.words):
        return None
    for redirection in reversed(command.redirections):
        source, target = redirection.body, redirection.target
        if source is None and redirection.operator == "<<<" and target is not None and target.literal:
            source = target.text
        if source is not None:
            return Unwrapped((Inner(len(command.words), source=source),), reads_input=True)
    return Unwrapped(opaque=True, reads_input=True)


_WAYS: dict[str, Callable[[Command], Unwrapped | None]] = {
    "find": _unwrap_find,
    "fd": _unwrap_fd,
    "fdfind": _unwrap_fd,
    "source": _unwrap_source,
    ".": _unwrap_source,
    "at": _unwrap_input,
    "batch": _unwrap_input,
}
