"""Words of a command by which a known program starts another program or writes a file.

A prefix allow rule (`Bash(git *)`) does not reach such words; a rule that spells them out does.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Iterator, Sequence
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from robota.core.shell.programs import ProgramOptions, find_options, load_options, program_name
from robota.core.shell.script import Word, plain_word

_HARMLESS_TARGETS = frozenset({"/dev/null", "/dev/stdout", "/dev/stderr", "-"})
_GIT_VALUES = frozenset({"-c", "--config-env", "--git-dir", "--work-tree"})
_KEY_PADDING = ' \t\n\r\f"'  # ssh reads a quoted key as well


class Hazard(Struct, frozen=True, gc=False):
    index: int
    """A rule must spell out the words up to and including this one."""
    word: str
    value: str = ""
    """What the option is given: often the command that it starts."""


class OptionWord(Struct, frozen=True, gc=False):
    """One option as the program reads it: `-o out`, `-oout`, `--output=out`."""

    index: int
    last: int
    name: str
    value: Word | None = None
    text: str | None = None
    """The value's text, None when there is no value."""


Read: TypeAlias = tuple[list[OptionWord], list[tuple[int, Word]]]
"""The options of a command, and its operands with their positions."""


def find_hazards(words: Sequence[Word], possible: frozenset[int] = frozenset()) -> list[Hazard]:
    """The hazards of a command; `possible` are the positions of words that may turn out to be options."""
    program = program_name(words[0].text)
    if program.startswith("python") and len(words) > 2 and words[1].text == "-m":
        inner = find_hazards(words[2:], frozenset(index - 2 for index in possible))
        return [replace(hazard, index=hazard.index + 2) for hazard in inner]
    options = find_options(program)
    if options is None:
        return []
    if options.check == "git":
        return _git_hazards(words, possible)
    read = read_options(words, 1, options)
    if options.subcommands:
        operands = [word.text for _, word in read[1][:2]]
        within = _within(program, " ".join(operands[:1]), " ".join(operands))
        if within is not options:
            options, read = within, read_options(words, 1, within)
    found = _option_hazards(words, 1, options, read, possible)
    return [*found, *_checked(words, options, read)] if options.check else found


def after_options(words: Sequence[Word]) -> int:
    """Where the words begin that follow the options of the program itself: `push` in `git -C x push`."""
    options = find_options(program_name(words[0].text))
    valued = frozenset[str]() if options is None else options.valued
    if options is not None and options.check == "git":
        valued = load_options().git.values | _GIT_VALUES
    index = 1
    while index < len(words) and words[index].text[:1] == "-":
        index += 2 if words[index].text in valued else 1
    return index


def read_options(words: Sequence[Word], start: int, options: ProgramOptions) -> Read:
    """Split the words from `start` on into options and operands, the way the program would."""
    found: list[OptionWord] = []
    operands: list[tuple[int, Word]] = []
    index, count, last_operand = start, len(words), options.stop_at_operand
    while index < count:
        word = words[index]
        text = word.text
        if text[:1] == "-" and text != "-":
            if text == "--" and options.style == "gnu" and (operands or not last_operand):
                operands.extend(enumerate(words[index + 1 :], index + 1))
                break
            index = _read_option(words, index, options, found)
        elif options.bundle and index == start and text.isalpha():
            index = _read_option(words, index, options, found)
        elif len(operands) + 1 == last_operand:
            operands.extend(enumerate(words[index:], index))
            break
        else:
            operands.append((index, word))
            index += 1
    return found, operands


def _read_option(words: Sequence[Word], index: int, options: ProgramOptions, found: list[OptionWord]) -> int:
    """Find the options of one word; where the next word is that does not belong to them."""
    word = words[index]
    text = word.text
    following = words[index + 1] if index + 1 < len(words) else None
    if text[:2] == "--" or options.style == "words":
        name, equals, value = text.partition("=")
        full = _complete(name, options)
        if equals:
            found.append(OptionWord(index, index, full, word, value))
        elif (
            following is not None
            and full in options.valued
            # A shortened name may as well be an option of its own that takes no value.
            and not (full != name and following.text[:1] == "-")
        ):
            found.append(OptionWord(index, index + 1, full, following, following.text))
        else:
            found.append(OptionWord(index, index, full))
        return found[-1].last + 1
    letters, valued = text.lstrip("-"), options.valued
    for offset, letter in enumerate(letters):
        short, rest = "-" + letter, letters[offset + 1 :]
        wants = short in valued
        if rest and (not (options.bundle and text[0] != "-") if wants else short in options.optional):
            found.append(OptionWord(index, index, short, word, rest))
            break
        if wants and following is not None:
            found.append(OptionWord(index, index + 1, short, following, following.text))
            if not options.bundle:
                break
        else:
            found.append(OptionWord(index, index, short))
    return found[-1].last + 1


def _complete(name: str, options: ProgramOptions) -> str:
    """The long option that a shortened name stands for; the harmful one when several do."""
    if options.style != "gnu" or len(name) < 3 or name in options.values or name in options.known:
        return name
    if name in options.named:
        return name
    found, at = list[str](), bisect_left(options.long, name)
    while at < len(options.long) and options.long[at].startswith(name):
        found.append(options.long[at])
        at += 1
    if len(found) > 1:
        found = [each for each in found if each in options.run or each in options.write] or found
    return found[0] if found else name


def _option_hazards(
    words: Sequence[Word], start: int, options: ProgramOptions, read: Read, possible: Collection[int]
) -> list[Hazard]:
    found, operands = read
    harmless = options.harmless
    hazards = [
        Hazard(option.last, option.name, option.text or "")
        for option in found
        if option.name not in harmless and _is_harmful(option, options)
    ]
    if operands and (possible or options.first or options.verbs or options.operands is not None):
        hazards += _operand_hazards(words, found, operands, options, possible)
    if options.passes and (at := next((i for i, word in enumerate(words) if word.text == "--"), 0)):
        passed = (*map(plain_word, options.passes), *words[at + 1 :])
        moved = at + 1 - len(options.passes)
        inner = find_hazards(passed, frozenset(index - moved for index in possible if index > at))
        hazards += [replace(hazard, index=hazard.index + moved) for hazard in inner]
    if options.starts or options.contains:
        marked = options.marks.search
        for index, word in enumerate(words[start:], start):
            if marked(word.text) and word.text not in options.known:
                hazards.append(Hazard(index, word.text))
    return hazards


def _operand_hazards(
    words: Sequence[Word],
    found: Sequence[OptionWord],
    operands: Sequence[tuple[int, Word]],
    options: ProgramOptions,
    possible: Collection[int],
) -> Iterator[Hazard]:
    taken = {option.last for option in found if option.value is not None}
    if possible:
        positions = {position for position, _ in operands}
        for index in possible:
            if index not in taken and index in positions:
                yield Hazard(index, words[index].raw)
    if options.first or options.verbs or options.operands is not None:
        own = [operand for operand in operands if operand[0] not in taken]
        # An option that is not known may have a value, which then is not the first operand.
        before = sum(1 for option in found if option.value is None and own and option.index < own[0][0])
        yield from _named_hazards(own, options, before)


def _named_hazards(
    operands: Sequence[tuple[int, Word]], options: ProgramOptions, before: int
) -> Iterator[Hazard]:
    if not operands:
        return
    texts = [word.text for _, word in operands]
    index, first = operands[0]
    if options.verbs and texts[0].startswith("+") and first.literal:  # `cargo +nightly build`
        texts = texts[1:] or [""]
    if options.first or options.verbs:
        named = {texts[0], " ".join(texts[:2])}
        unknown = bool(options.verbs) and named.isdisjoint(options.verbs)
        for start in range(1, min(before + 1, len(texts))):
            named |= {texts[start], " ".join(texts[start : start + 2])}
        harmful = not options.first.isdisjoint({*named, *(each.lower() for each in named)})
        if unknown or harmful or not first.literal:
            yield Hazard(index, texts[0], " ".join(texts[1:]))
    if options.operands is not None and len(operands) > options.operands:
        yield Hazard(operands[-1][0], texts[-1])


def _is_harmful(option: OptionWord, options: ProgramOptions) -> bool:
    """Whether an option is that the table does not call harmless."""
    name, text, value = option.name, option.text, option.value
    if name in options.keyed:
        known = value is None or value.literal
        return text is not None and (not known or _is_harmful_key(text.strip(_KEY_PADDING).lower(), options))
    if name in options.run:
        return True
    if name in options.write:
        return not (text in _HARMLESS_TARGETS and (value is None or value.literal))
    return options.closed and not f"{name}=".startswith(options.prefixes or "\0")


def _is_harmful_key(text: str, options: ProgramOptions) -> bool:
    if options.safe_keys:
        return not text.startswith(options.safe_keys)
    return text.startswith(options.keys or "\0") or any(part in text for part in options.key_contains)


def _checked(words: Sequence[Word], options: ProgramOptions, read: Read) -> Iterator[Hazard]:
    """Program texts given on the command line, and words whose meaning depends on how they are written."""
    from robota.core.shell import texts as checks  # noqa: PLC0415 - half a millisecond that most commands save

    found, operands = read
    if options.check not in _TEXT_OPTIONS:
        yield from (
            Hazard(index, words[index].text)
            for index in checks.find_harmful_words(options.check, words, operands)
        )
        return
    texts = [
        (each.last, each.value, each.text) for each in found if each.name in _TEXT_OPTIONS[options.check]
    ]
    if options.check != "curl" and not texts and operands:
        index, word = operands[0]
        texts = [(index, word, word.text)]
    for index, value, text in texts:
        if value is None or text is None or value.computed or checks.escapes(text, options.check):
            yield Hazard(index, text or "")


_TEXT_OPTIONS = {
    "sed": frozenset({"-e", "--expression"}),
    "awk": frozenset({"-e", "--source"}),
    "curl": frozenset({"-w", "--write-out"}),
}


def _git_hazards(words: Sequence[Word], possible: frozenset[int]) -> list[Hazard]:
    git, hazards, index = load_options().git, list[Hazard](), 1
    while index < len(words) and words[index].text.startswith("-"):
        name, equals, _ = words[index].text.partition("=")
        takes = name in git.values or name in _GIT_VALUES
        last = min(index + (takes and not equals), len(words) - 1)
        setting = words[last] if name == "-c" else None
        known = name in git.values or (name in git.flags and not equals)
        if not known and not (setting is not None and setting.literal and _is_plain_setting(setting.text)):
            hazards.append(Hazard(last, name, words[last].text))
        index = last + 1
    if index >= len(words):
        return hazards
    subcommand = words[index].text
    if subcommand == "config":
        hazards += _git_config_hazards(words, index)
    options = _git_options(subcommand)
    if options is None or index in possible or not words[index].literal:
        rest = " ".join([word.text for word in words[index + 1 :]])
        return [*hazards, Hazard(len(words) - 1, subcommand, rest)]
    read = read_options(words, index + 1, options)
    return hazards + _option_hazards(words, index + 1, options, read, possible)


@lru_cache(maxsize=256)
def _git_options(subcommand: str) -> ProgramOptions | None:
    git = load_options().git
    own = ProgramOptions() if subcommand in git.plain else git.subcommands.get(subcommand)
    own = git.config if subcommand == "config" else own
    return None if own is None else _join(own, git.every)


@lru_cache(maxsize=256)
def _within(program: str, *subcommands: str) -> ProgramOptions:
    """The options of a program that has more to say of some subcommands."""
    options = find_options(program)
    assert options is not None  # the caller has asked
    for own in filter(None, map(options.subcommands.get, subcommands)):
        return _join(own, options)
    return options


def _join(own: ProgramOptions, every: ProgramOptions) -> ProgramOptions:
    return replace(
        own,
        run=own.run | every.run,
        write=own.write | every.write,
        plain=own.plain | every.plain,
        values=own.values | every.values,
        optional=own.optional | every.optional,
        keyed=own.keyed | every.keyed,
        keys=own.keys + every.keys,
        key_contains=own.key_contains + every.key_contains,
        first=own.first | every.first,
        starts=own.starts + every.starts,
        contains=own.contains + every.contains,
        verbs=own.verbs or every.verbs,
        style=every.style,
    )


def _is_plain_setting(text: str) -> bool:
    """Whether `key=value` names neither a program nor a file."""
    key, _, value = text.partition("=")
    return _is_plain_key(key) and not value.startswith(("!", "ext::"))


def _is_plain_key(key: str) -> bool:
    return any(fnmatchcase(key.lower(), pattern) for pattern in load_options().git.settings)


def _git_config_hazards(words: Sequence[Word], index: int) -> Iterator[Hazard]:
    """Settings that may name programs; reading one is harmless."""
    git = load_options().git
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
    computed = any(word.computed for _, word in operands[:2])
    values = settings[1:]
    if (
        computed
        or not _is_plain_key(settings[0] if settings else "")
        or any(value.startswith(("!", "ext::")) for value in values)
    ):
        yield Hazard(len(words) - 1, settings[0] if settings else "", " ".join(values))
