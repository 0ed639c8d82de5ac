"""Words of a command by which a known program starts another program or writes a file.

A prefix allow rule (`Bash(git *)`) does not reach such words; a rule that spells them out does.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from fnmatch import fnmatchcase

from msgspec import Struct
from msgspec.structs import replace

from robota.core.shell.programs import ProgramOptions, load_programs, program_name
from robota.core.shell.script import Word

_HARMLESS_TARGETS = frozenset({"/dev/null", "/dev/stdout", "/dev/stderr", "-"})
_KEY_PADDING = ' \t\n\r\f"'  # ssh reads a quoted key as well


class Hazard(Struct, frozen=True):
    index: int
    """A rule must spell out the words up to and including this one."""
    word: str
    value: str = ""
    """What the option is given: often the command that it starts."""


class OptionWord(Struct, frozen=True):
    """One option as the program reads it: `-o out`, `-oout`, `--output=out`."""

    index: int
    last: int
    name: str
    value: Word | None = None
    text: str | None = None
    """The value's text, None when there is no value."""


def find_hazards(words: Sequence[Word], possible: frozenset[int] = frozenset()) -> list[Hazard]:
    """The hazards of a command; `possible` are the positions of words that may turn out to be options."""
    program = program_name(words[0].text)
    options = load_programs().options.get(program)
    if options is None:
        return []
    if options.check == "git":
        return list(_git_hazards(words, possible))
    return [*_option_hazards(words, 1, options, possible), *_checked(words, options)]


def read_options(
    words: Sequence[Word], start: int, options: ProgramOptions
) -> tuple[list[OptionWord], list[tuple[int, Word]]]:
    """Split the words from `start` on into options and operands, the way the program would."""
    found: list[OptionWord] = []
    operands: list[tuple[int, Word]] = []
    index = start
    while index < len(words):
        text = words[index].text
        if text == "--" and options.style == "gnu" and (operands or not options.stop_at_operand):
            operands.extend(enumerate(words[index + 1 :], index + 1))
            break
        if len(text) > 1 and (text[0] == "-" or (options.bundle and index == start and text.isalpha())):
            read = list(_read_option(words, index, options))
            found.extend(read)
            index = read[-1].last + 1
        elif len(operands) + 1 == options.stop_at_operand:
            operands.extend(enumerate(words[index:], index))
            break
        else:
            operands.append((index, words[index]))
            index += 1
    return found, operands


def _read_option(words: Sequence[Word], index: int, options: ProgramOptions) -> Iterator[OptionWord]:
    text = words[index].text
    following = words[index + 1] if index + 1 < len(words) else None
    name, equals, value = text.partition("=")
    if text.startswith("--") or options.style == "words":
        name = _complete(name, options)
        if equals:
            yield OptionWord(index, index, name, words[index], value)
        elif _takes_value(name, options) and following is not None:
            yield OptionWord(index, index + 1, name, following, following.text)
        else:
            yield OptionWord(index, index, name)
        return
    letters = text.lstrip("-")
    for offset, letter in enumerate(letters):
        short, rest = "-" + letter, letters[offset + 1 :]
        wants = _takes_value(short, options)
        if rest and (not (options.bundle and text[0] != "-") if wants else short in options.optional):
            yield OptionWord(index, index, short, words[index], rest)
            return
        if wants and following is not None:
            yield OptionWord(index, index + 1, short, following, following.text)
            if not options.bundle:
                return
        else:
            yield OptionWord(index, index, short)


def _complete(name: str, options: ProgramOptions) -> str:
    """The long option that a shortened name stands for; the harmful one when several do."""
    known = options.run | options.write | options.values | options.optional | options.keyed | options.plain
    if options.style != "gnu" or not options.abbreviations or name in known or len(name) < 3:
        return name
    found = sorted(each for each in known if each.startswith(name))
    harmful = [each for each in found if each in options.run or each in options.write]
    return (harmful or found or [name])[0]


def _takes_value(name: str, options: ProgramOptions) -> bool:
    if name in options.optional:
        return False
    return name in options.values or name in options.run or name in options.write or name in options.keyed


def _option_hazards(
    words: Sequence[Word], start: int, options: ProgramOptions, possible: Iterable[int]
) -> Iterator[Hazard]:
    found, operands = read_options(words, start, options)
    for option in found:
        if _is_harmful(option, options):
            yield Hazard(option.last, option.name, option.text or "")
    taken = {option.last for option in found if option.value is not None}
    positions = {position for position, _ in operands}
    for index in possible:
        if index not in taken and index in positions:
            yield Hazard(index, words[index].raw)
    if options.first and operands and (operands[0][1].text in options.first or not operands[0][1].literal):
        yield Hazard(operands[0][0], operands[0][1].text, " ".join(word.text for _, word in operands[1:]))
    if options.operands is not None and len(operands) > options.operands:
        yield Hazard(operands[-1][0], operands[-1][1].text)
    for index, word in enumerate(words[start:], start):
        text = word.text.lower()
        if text.startswith(options.starts or "\0") or any(part in text for part in options.contains):
            yield Hazard(index, word.text)


def _is_harmful(option: OptionWord, options: ProgramOptions) -> bool:
    name, text = option.name, option.text
    known = option.value is None or option.value.literal
    if name in options.plain:
        return False
    if name in options.keyed:
        return text is None or text.strip(_KEY_PADDING).lower().startswith(options.keys) or not known
    return name in options.run or (name in options.write and not (text in _HARMLESS_TARGETS and known))


def _checked(words: Sequence[Word], options: ProgramOptions) -> Iterator[Hazard]:
    """Program texts given on the command line, and what `curl --write-out` can do."""
    if not options.check:
        return
    found, operands = read_options(words, 1, options)
    texts = [
        (each.last, each.value, each.text) for each in found if each.name in _TEXT_OPTIONS[options.check]
    ]
    if options.check != "curl" and not texts and operands:
        index, word = operands[0]
        texts = [(index, word, word.text)]
    for index, value, text in texts:
        if value is None or text is None or value.computed or _escapes(text, options.check):
            yield Hazard(index, text or "")


def _escapes(text: str, check: str) -> bool:
    if check == "curl":
        return "%output{" in text
    from robota.core.shell import sed_awk  # noqa: PLC0415 - half a millisecond that most commands save

    return sed_awk.sed_escapes(text) if check == "sed" else sed_awk.awk_escapes(text)


_TEXT_OPTIONS = {
    "sed": frozenset({"-e", "--expression"}),
    "awk": frozenset({"-e", "--source"}),
    "curl": frozenset({"-w", "--write-out"}),
}


def _git_hazards(words: Sequence[Word], possible: frozenset[int]) -> Iterator[Hazard]:
    git = load_programs().git
    index = 1
    while index < len(words) and words[index].text.startswith("-"):
        name, equals, _ = words[index].text.partition("=")
        taken = name in git.values and not equals
        if name in git.run or (equals and name + "=" in git.run) or name.startswith("-c"):
            last = min(index + (not equals), len(words) - 1)
            yield Hazard(last, name, words[last].text)
        index += 2 if taken or name in ("-c", "--config-env") else 1
    if index >= len(words):
        return
    subcommand = words[index].text
    if subcommand in git.whole or index in possible or not words[index].literal:
        yield Hazard(len(words) - 1, subcommand)
        return
    if subcommand == "config":
        yield from _git_config_hazards(words, index)
    own, every = git.subcommands.get(subcommand, ProgramOptions()), git.every
    merged = replace(
        own,
        run=own.run | every.run,
        write=own.write | every.write,
        plain=own.plain | every.plain,
        starts=own.starts + every.starts,
    )
    yield from _option_hazards(words, index + 1, merged, possible)


def _git_config_hazards(words: Sequence[Word], index: int) -> Iterator[Hazard]:
    """Settings that name programs; reading one is harmless."""
    git = load_programs().git
    found, operands = read_options(words, index + 1, git.config)
    names = {option.name for option in found}
    texts = [word.text for _, word in operands]
    if names & {"-e", "--edit"} or texts[:1] == ["edit"]:
        yield Hazard(len(words) - 1, "config --edit")
        return
    if names & git.config_reads or texts[:1] in (["get"], ["list"]):
        return
    named = texts[:1] in (["set"], ["unset"], ["rename-section"], ["remove-section"])
    settings = texts[1:] if named else texts
    if len(settings) < 2 and not named:
        return
    if names & {"-f", "--file"}:
        yield Hazard(len(words) - 1, "config --file")
    key = settings[0].lower() if settings else ""
    computed = any(word.computed for _, word in operands[:2])
    harmful = any(fnmatchcase(key, pattern) for pattern in git.config_keys)
    if computed or harmful or any(text.startswith(("!", "ext::")) for text in settings[1:]):
        yield Hazard(len(words) - 1, key, " ".join(settings[1:]))
