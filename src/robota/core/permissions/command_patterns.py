"""`Bash(pattern)` compared with a command's words.

A part is compared after quote removal, word by word: a blank in the pattern is a word boundary, not a blank
inside quotes, so `Bash(./run tests)` does not cover `"./run tests"`. Deny rules compare more loosely than
allow rules.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from operator import attrgetter
from typing import TypeAlias

from msgspec import Struct

from robota.core.permissions import globs
from robota.core.permissions.globs import ANY_TEXT, Glob, Item, compile_glob, may_match
from robota.core.shell.effects import substitute
from robota.core.shell.grammar import parse_shell
from robota.core.shell.hazards import after_options
from robota.core.shell.programs import program_name
from robota.core.shell.script import (
    COMPUTED,
    LIVE,
    QUOTED_BLANK,
    Command,
    ShellSyntaxError,
    Word,
    has_glob,
    plain_word,
    spans_bracket,
)

MAXIMUM_GLOB_LENGTH = 4_096

_NUMERIC = frozenset("?$!#")  # parameters whose value is a number
_GLOB_TOKENS = re.compile(r"(\*+|\?|\[[!^]?\]?(?:\[[:.=][^\]/]*[:.=]\]|[^\]/])*\])")
_VERSION = ".0123456789"
_SAME = {
    "gmake": "make",
    "gsed": "sed",
    "gtar": "tar",
    "nodejs": "node",
    "fdfind": "fd",
    "batcat": "bat",
    "autossh": "ssh",
    "hub": "git",
    "yadm": "git",
    "tofu": "terraform",
    "terragrunt": "terraform",
    "apt-get": "apt",
    "aptitude": "apt",
    "mamba": "conda",
    "micromamba": "conda",
    "uv": "pip",
}
_SHORT: dict[str, dict[str, str]] = {
    "rm": {"--recursive": "-r", "-R": "-r", "--force": "-f", "--dir": "-d"},
    "cp": {"--recursive": "-r", "-R": "-r", "--force": "-f", "--archive": "-a"},
    "mv": {"--force": "-f"},
    "ln": {"--force": "-f", "--symbolic": "-s"},
    "chmod": {"--recursive": "-R"},
    "chown": {"--recursive": "-R"},
    "chgrp": {"--recursive": "-R"},
    "git": {"--force": "-f", "--delete": "-d"},
    "docker": {"--force": "-f", "--volume": "-v"},
    "podman": {"--force": "-f", "--volume": "-v"},
    "npm": {"--global": "-g", "--force": "-f"},
    "pip": {"--upgrade": "-U", "--requirement": "-r"},
    "sed": {"--in-place": "-i"},
    "curl": {"--request": "-X", "--data": "-d", "--form": "-F", "--upload-file": "-T", "--output": "-o"},
    "wget": {"--output-document": "-O"},
    "xargs": {"--max-procs": "-P"},
    "node": {"--eval": "-e", "--print": "-p"},
}
"""Options that rules name, in the spelling that people use as often."""
_SAME_WORDS: dict[str, dict[str, str]] = {
    "npm": {
        **dict.fromkeys(("i", "in", "ins", "inst", "insta", "instal", "isnt", "isntall", "add"), "install"),
        **dict.fromkeys(("un", "unlink", "remove", "rm", "r"), "uninstall"),
        **dict.fromkeys(("run-script", "rum", "urn"), "run"),
        **dict.fromkeys(("up", "upgrade", "udpate"), "update"),
        **dict.fromkeys(("pu", "pub", "publ", "publi", "publis"), "publish"),
        "x": "exec",
        "t": "test",
        "tst": "test",
    },
    "pnpm": {"i": "install", "rm": "remove", "un": "remove", "uninstall": "remove", "up": "update"},
    "git": {"send-pack": "push", "http-push": "push"},
    "cargo": {"b": "build", "c": "check", "d": "doc", "r": "run", "rm": "remove", "t": "test"},
    "helm": {"un": "uninstall", "del": "uninstall", "delete": "uninstall"},
}
"""Subcommands that have several names."""
_HAND_ON = {"for-each-repo": frozenset[str](), "subtree": frozenset({"push", "pull"})}
"""Subcommands of git that carry out another one: any, or one of these."""
_HANDED_VALUES = frozenset({"--config", "-P", "--prefix", "-m", "--message"})
_LETTERS = re.compile(r"-[A-Za-z]{1,3}\Z")
_TAKES_TARGETS = frozenset({"make", "gmake", "just", "task", "rake", "ninja", "mvn", "gradle", "gradlew"})
"""Programs that carry out each of their operands, in whichever order."""
_TAKES_SCRIPT = frozenset({"bash", "dash", "lua", "node", "perl", "php", "python", "ruby", "sh", "zsh"})
"""Programs whose options stand before the script that they run; what follows is for the script."""
_KEY, _TEXT = attrgetter("key"), attrgetter("text")
_LOOSEN = str.maketrans({QUOTED_BLANK: " ", COMPUTED: None, LIVE: None})


Matching: TypeAlias = tuple[tuple[str, ...], tuple[str, ...], tuple[Glob, ...]]
"""Globs by how they are best compared: beginnings of texts, whole texts, and the others."""


class ShellPattern(Struct, frozen=True):
    strict: tuple[Glob, ...]
    """For allow rules: compared with `command_key`."""
    loose: tuple[Glob, ...]
    """For deny and ask rules: compared with plain text."""
    fixed_words: int
    """How many leading words the pattern spells out."""
    exact: bool
    allowed: Matching
    denied: Matching
    leading: tuple[str, ...]
    """The words that it spells out, as plain text."""
    program: str
    """The first of them."""
    directory: str
    """How the word of the first wildcard begins if it names a directory: `./scripts/` in `./scripts/*`."""

    def allows(self, key: str) -> bool:
        starts, texts, others = self.allowed
        if self.directory and ".." in key and _climbs_out(key, self.directory):
            return False
        return key.startswith(starts) or key in texts or (others != () and _match_any(others, key))

    def denies(self, text: str) -> bool:
        return matches(self.denied, text)

    def may_deny(self, items: list[Item]) -> bool:
        return any(may_match(glob, items) for glob in self.loose)

    def reaches(self, words: Sequence[Word]) -> bool:
        """Whether the words say the same with options between them, in another order, or by another name of
        the program (`kubectl -v 6 delete x`, `make build deploy`, `pip3 install x`)."""
        leading, words = self.leading, _as_usual(words)
        name = program_name(words[0].text)
        if not leading or leading[0] not in other_names(name):
            return False
        short, same = _SHORT.get(leading[0], {}), _SAME_WORDS.get(leading[0], {})
        plain = name == "git" and leading[1:2] and leading[1][:1] != "-"  # a rule about a subcommand
        start = after_options(words) if plain else 1
        if plain and start < len(words) and words[start].text in _HAND_ON:
            start = _find_handed(words, start)
        texts = [_shorten(same.get(word.text, word.text), short) for word in words[start:]]
        if name == "git" and leading[1:2] == ("push",):
            texts = _say_force(texts)
        texts = _before_script(texts, name.rstrip(_VERSION), leading[-1])
        passed: list[str] = []
        letters: set[str] = set()
        for wanted in (_shorten(same.get(text, text), short) for text in leading[1:]):
            if _LETTERS.match(wanted):  # `-r -f` and `-rf` say the same
                letters.update(letter for text in texts if _LETTERS.match(text) for letter in text[1:])
                if letters.issuperset(wanted[1:]):
                    texts = [text for text in texts if not _LETTERS.match(text)]
                    continue
            anything = wanted[:1] == "-" or name in _TAKES_TARGETS
            while texts and texts[0] != wanted and not (name == "git" and _is_cut(texts[0], wanted)):
                # The values of git's options are known.
                before = passed[-1] if passed and name != "git" else ""
                if not (anything or _may_be_passed(texts[0], before)):
                    return False
                passed.append(texts.pop(0))
            if not texts:
                return False
            texts.pop(0)
        rest = [text for text in passed if text[:1] != "-"]
        return self.denies(" ".join([*leading, *rest, *texts])) or self.denies(" ".join([*leading, *texts]))


def _before_script(texts: list[str], name: str, wanted: str) -> list[str]:
    """The options of an interpreter and their values, where a rule ends with an option (`python -c`)."""
    if name not in _TAKES_SCRIPT or wanted[:1] != "-" or wanted == "-m":
        return texts
    values = (index for index, text in enumerate(texts) if text[:1] != "-")
    end = next((index for index in values if not index or texts[index - 1][:1] != "-"), len(texts))
    return texts[: texts.index("-m")] if name == "python" and "-m" in texts[:end] else texts[:end]


def _as_usual(words: Sequence[Word]) -> Sequence[Word]:
    """`git-push` is the program that `git push` starts, and `uv pip` does what pip does."""
    name = program_name(words[0].text)
    if name == "uv" and len(words) > 1 and words[1].text == "pip":
        return words[1:]
    if not name.startswith("git-") or words[0].pieces:
        return words
    return (plain_word("git"), plain_word(name[4:]), *words[1:])


def _find_handed(words: Sequence[Word], at: int) -> int:
    """Where the subcommand begins that the one of git at a position carries out, or that position."""
    found, known = at + 1, _HAND_ON[words[at].text]
    while found < len(words) and words[found].text[:1] == "-":
        found += 2 if words[found].text in _HANDED_VALUES else 1
    return found if not known or (found < len(words) and words[found].text in known) else at


def _say_force(texts: list[str]) -> list[str]:
    """The words of a push in which a plus before a branch forces it."""
    at = next((index for index, text in enumerate(texts) if text[:1] == "+" and len(text) > 1), None)
    return texts if at is None else [*texts[:at], "-f", *texts[at:]]


def _climbs_out(key: str, directory: str) -> bool:
    """Whether a word that begins with a directory leads out of it."""
    return any(word.startswith(directory) and ".." in word.split("/") for word in key.split(" "))


@lru_cache(maxsize=1024)
def other_names(program: str) -> tuple[str, ...]:
    """What a program is called, also without its version; one of git's own is git."""
    same = "git" if program.startswith("git-") else _SAME.get(program, program)
    return program, program.rstrip(_VERSION), same


def _shorten(text: str, short: dict[str, str]) -> str:
    """The usual spelling of an option; long ones may be cut, and those of one letter be written together."""
    if not short or text[:1] != "-":
        return text
    if text.startswith("--"):
        return next(
            (letter for long, letter in short.items() if len(text) > 3 and long.startswith(text)), text
        )
    return text.replace("R", "r") if "-R" in short and _LETTERS.match(text) else text


def _is_cut(text: str, wanted: str) -> bool:
    """Whether an option is a shorter spelling of the one that a rule names."""
    return len(text) > 3 and text[:2] == "--" and wanted.startswith(text)


def _may_be_passed(text: str, previous: str) -> bool:
    """Whether a word may be an option, the value of the one before it, a variable or a toolchain."""
    return (
        text[:1] in ("-", "+")
        or "=" in text
        or text in ("container", "image")
        or (previous[:1] == "-" and "=" not in previous)
    )


def matches(matching: Matching, text: str) -> bool:
    starts, texts, others = matching
    return text.startswith(starts) or text in texts or (others != () and _match_any(others, text))


def _match_any(globs: tuple[Glob, ...], text: str) -> bool:
    for glob in globs:  # noqa: SIM110 - asked for every part and rule; a generator would double the cost
        if glob.matches(text):
            return True
    return False


@lru_cache(maxsize=1024)
def compile_shell_pattern(pattern: str) -> ShellPattern:
    """`name:*` is a prefix with a word boundary; elsewhere `*` is any text and all else is literal."""
    prefix = pattern.endswith(":*") and len(pattern) > 2
    body = pattern[:-2] if prefix else pattern
    written = " ".join(filter(None, body.split(" ")))
    words = _pattern_words(body)
    texts = [written] if words is None else [" ".join(words), written]
    if prefix:
        texts += [text + " *" for text in texts]
    strict = tuple(compile_glob(text) for text in dict.fromkeys(texts))
    loose = tuple(
        compile_glob(text) for text in dict.fromkeys([*texts, *(text.translate(_LOOSEN) for text in texts)])
    )
    leading = written.split(" ") if words is None else words
    fixed = next((index for index, word in enumerate(leading) if "*" in word), len(leading))
    exact = not prefix and "*" not in pattern
    spelled = tuple(word.translate(_LOOSEN) for word in leading[:fixed])
    directory = leading[fixed].partition("*")[0].rpartition("/") if fixed < len(leading) else ("", "", "")
    return ShellPattern(
        strict,
        loose,
        fixed,
        exact,
        _sort(strict),
        _sort(loose),
        spelled,
        spelled[0] if spelled else "",
        "".join(directory[:2]),
    )


def _sort(globs: tuple[Glob, ...]) -> Matching:
    starts = tuple(glob.literals[0] for glob in globs if glob.literals[1:] == ("",))
    texts = tuple(glob.literals[0] for glob in globs if glob.literals[1:] == ())
    return starts, texts, tuple(glob for glob in globs if glob.literals[1:] not in ((), ("",)))


def _pattern_words(body: str) -> list[str] | None:
    """The pattern read as one simple command; None when it is anything else."""
    try:
        script = parse_shell(body)
    except ShellSyntaxError:
        return None
    commands = [command for command in script.commands if command.scope == ()]
    if len(commands) != 1 or script.redirections or commands[0].redirections:
        return None
    command = commands[0]
    source = "".join(assignment.raw for assignment in command.assignments) + command.raw
    if "".join(source.split()) != "".join(body.split()):  # a keyword or a comment is not part of the command
        return None
    return command_words(command)


def command_words(command: Command) -> list[str]:
    return [*(assignment.raw for assignment in command.assignments), *(word.key for word in command.words)]


def command_key(words: tuple[Word, ...]) -> str:
    return " ".join(map(_KEY, words))


def command_texts(command: Command) -> list[str]:
    """The spellings of a part that a deny rule is compared with, its plain text first."""
    words = command.words
    plain = list(map(_TEXT, words))
    texts, first = [" ".join(plain)], plain[0]
    if (raw := command.raw) != texts[0]:
        texts.append(raw)
    if "/" in first:
        texts.append(" ".join([program_name(first), *plain[1:]]))
    if "git-" in first and (name := program_name(first)).startswith("git-"):
        texts.append(" ".join(["git", name[4:], *plain[1:]]))
    if command.assignments:
        texts.append(" ".join([*(each.raw for each in command.assignments), *plain]))
    if len(words) > 2 and plain[1][:1] == "-":
        texts.append(" ".join([program_name(first), *plain[after_options(words) :]]))
    return texts


def command_items(words: tuple[Word, ...]) -> list[list[Item]]:
    """A part as partly known text, also with the program's base name."""
    items: list[Item] = []
    for word in words:
        items.extend([" ", *word_items(word)] if items else word_items(word))
    found = [items]
    if isinstance(items[0], str) and "/" in items[0]:
        found.append([items[0].rpartition("/")[2], *items[1:]])
    return found


def word_items(word: Word, *, loose: bool = False) -> list[Item]:
    """A word as partly known text; `loose` lets a quoted expansion contain blanks too."""
    if not word.pieces:
        return [word.text]
    found: list[Item] = []
    live = [text for kind, text, quoted in word.pieces if kind == "text" and not quoted]
    spans = len(live) > 1 and spans_bracket(live)
    for kind, text, quoted in word.pieces:
        if spans and kind == "text" and not quoted and text.rfind("[") > text.rfind("]"):
            return [*found, *_glob_items(text[: text.rfind("[")], at_start=not found), ANY_TEXT]
        if kind == "text":
            found.extend([text] if quoted else _glob_items(text, at_start=not any(found)))
        elif kind == "variable" and text in _NUMERIC:
            found.append("0")
        else:
            found.append(globs.ANY_WORD if quoted and not loose else ANY_TEXT)
    return [item for item in found if item != ""] or [""]


def _glob_items(text: str, *, at_start: bool) -> list[Item]:
    if not has_glob(text):
        return [text]
    if len(text) > MAXIMUM_GLOB_LENGTH:
        return [ANY_TEXT]
    found: list[Item] = []
    previous = "/" if at_start else "x"
    for token in filter(None, _GLOB_TOKENS.split(text)):
        if token[0] == "*":
            found.append(globs.VISIBLE_NAME if previous.endswith("/") else globs.ANY_NAME)
        elif token == "?" or (token[0] == "[" and len(token) > 1):
            found.append(globs.ONE_CHARACTER)
        else:
            found.append(token)
        previous = token
    return found


def path_items(word: Word, directory: str | None, home: str, assigned: frozenset[str]) -> list[Item]:
    """A word as a partly known absolute path."""
    word = substitute(word, directory, home, assigned)
    items = word_items(word, loose=True)
    head = items[0]
    if word.tilde:
        return [ANY_TEXT, "/" + word.text.partition("/")[2], ANY_TEXT]
    if head == ANY_TEXT or (isinstance(head, str) and head.startswith("/")):
        return items
    if isinstance(head, str):
        items = [head.removeprefix("./"), *items[1:]]
    base: list[Item] = [ANY_TEXT, "/"] if directory is None else [directory.rstrip("/") + "/"]
    return [*base, *items]
