"""Words whose meaning depends on how they are written: program texts, SQL, variables given to `make`.

Each check answers one question: can this start a process or write a file? In doubt the answer is yes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from robota.core.shell import sed_awk
from robota.core.shell.programs import load_programs
from robota.core.shell.script import Word

_MAKE_ASSIGNMENT = re.compile(r"([^\s=:+?!#$]+)\s*[:+?]{0,3}=(.*)", re.DOTALL)
_MAKE_PROGRAM = re.compile(
    r"(?:.*_)?(?:CC|CXX|CPP|LD|AR|AS|FC|NM|RANLIB|STRIP|OBJCOPY|OBJDUMP|RM|CP|MV|LN|MKDIR|INSTALL|SHELL|BASH|SH"
    r"|PYTHON\d*|PY|PERL|RUBY|NODE|NPM|NPX|YARN|PNPM|GO|CARGO|RUSTC|JAVAC?|MVN|GRADLE|DOCKER|PODMAN|KUBECTL|HELM"
    r"|GIT|SED|AWK|GREP|FIND|SORT|TAR|CURL|WGET|SUDO|EDITOR|PAGER|C?MAKE|NINJA|LEX|YACC|FLEX|BISON|(?:PDF)?LATEX"
    r"|PIP|UV|POETRY|PYTEST|ECHO|CAT|.*RUN(?:NER)?|LAUNCHER|WRAPPER|.*CMD|.*COMMAND|EXEC|.*PROG(?:RAM)?|BIN|.*TOOL"
    r"|INTERPRETER|COMPILER|LINKER|HOOK|[A-Z]*FLAGS|[A-Z]*OPTS|[A-Z]*ARGS|LIBS|LDLIBS|VPATH|MAKE[A-Z]*|GNUMAKE.*"
    r"|PATH|HOME|IFS)"
)
_MAKE_TOOL = re.compile(
    r"(?:gcc|g\+\+|clang|clang\+\+|cc|c\+\+|tcc|python[\d.]*|ld|lld|gold|mold|ar|llvm-ar|gcc-ar|go)(?:-\d+)?"
)
_MAKE_FLAGS = re.compile(r"(?:-(?:O[0-3sg]?|g\d?|W[a-z-]*|D\w+(?:=\w+)?|std=[\w+]+|march=\w+)(?: +|\Z))+")
_MAKE_VALUE = re.compile(r"(?:[A-Za-z0-9_@+,:][A-Za-z0-9_.@+,:-]*)?")
_MAKE_PATH = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.@+,:/-]*")
_MAKE_FILES = re.compile(
    r"(?:.*_)?(?:TESTS?|FILES?|SRC|DIR|TARGET|PKGS?|PACKAGE|MODULE|APP|IMAGE|TAG|URL|VERSION)"
)

_SOCAT_ADDRESS = re.compile(
    r"-|(?:stdio|stdin|stdout|(?:tcp|udp|openssl|ssl|sctp|socks|proxy)[\w-]*|unix(?:-connect|-client)?)"
    r"(?:[:,](?:[^!]|!(?!!))*)?",
    re.IGNORECASE,
)
_LINKED = re.compile(
    r"-Wl(?:,(?:-B(?:static|dynamic|symbolic|symbolic-functions)|-(?:O\d|s|S|x|X|E|N|q|pie|dead_strip"
    r"|headerpad_max_install_names)"
    r"|--?(?:no-)?(?:as-needed|undefined|whole-archive|gc-sections|print-gc-sections|allow-shlib-undefined"
    r"|fatal-warnings|relax|dynamicbase|nxcompat|demangle|eh-frame-hdr|copy-dt-needed-entries|add-needed"
    r"|allow-multiple-definition)"
    r"|--?(?:start-group|end-group|strip-all|strip-debug|discard-all|export-dynamic|(?:en|dis)able-new-dtags"
    r"|sort-common|warn-common|large-address-aware)"
    r"|--?(?:rpath|rpath-link|soname|install_name|build-id|hash-style|icf|defsym|wrap|exclude-libs|undefined"
    r"|unresolved-symbols|version-script|compress-debug-sections|entry|stack|subsystem)(?:[=,](?!-)[\w.=$@{}/:+-]+)?"
    r"|-[zu],[\w=-]+|-[lL][\w./+-]+))+"
)
"""What a compiler hands on to the linker that neither runs nor writes anything."""
_SQL_HARMFUL = {
    "psql": re.compile(
        r"\\(?!(?:d[A-Za-z]*\+?|l\+?|x|z|timing|conninfo|echo|pset|encoding)(?:[\s;]|\Z))"
        r"|\bprogram\b(?=\s*(?:'|\$|e'))|\blo_(?:export|import)\b|\bpg_(?:read|write|ls)_\w+|\bto\s*'"
        r"|\bload\s*'|\balter\s+system\b|\blanguage\s+'?(?:c|pl\w+u)\b|\bplp\w+u\b",
        re.IGNORECASE,
    ),
    "mysql": re.compile(
        r"\\(?-i:(?![ntr0'\"\\%_GgSsh](?:\W|\Z)))"
        r"|(?:\A|[;\n])\s*(?:system|source|pager|tee|edit|!)\b|\binto\s+(?:outfile|dumpfile)\b"
        r"|\bload_file\b|\bload\s+data\b|\bsys_(?:exec|eval)\b|\bsoname\b|_log_file\b",
        re.IGNORECASE,
    ),
    "sqlite3": re.compile(
        r"\b(?:load_extension|writefile|readfile|edit|fts3_tokenizer|fsdir|zipfile)\s*\(|\battach\b"
        r"|\bvacuum\s+(?:\w+\s+)?into\b|temp_store_directory|\bexport\s+database\b|\binstall\b|\bload\s+'"
        r"|\bcopy\b.*\bto\b",
        re.IGNORECASE,
    ),
}
_SQL_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
_SQLITE_COMMAND = re.compile(r"^[ \t]*\.(?![/.])([^\s]*)", re.MULTILINE)
_SQLITE_HARMLESS = re.compile(
    r"tables|schema|index(?:es)?|indices|dump|databases|headers?|mode|help|width|show|fullschema|dbinfo|stats|eqp"
    r"|timer|nullvalue|separator|bail|changes|print|quit|exit"
)


def escapes(text: str, check: str) -> bool:
    """Whether a program text given on the command line can start a process or write a file."""
    if check == "curl":
        return "%output{" in text or text.startswith("@")
    return sed_awk.sed_escapes(text) if check == "sed" else sed_awk.awk_escapes(text)


def find_harmful_words(
    check: str, words: Sequence[Word], operands: Sequence[tuple[int, Word]]
) -> Iterator[int]:
    """The positions of words that can do more than the program's name says."""
    if check in _SQL_HARMFUL:
        for index, word in enumerate(words[1:], 1):
            if sql_escapes(word.text, check) or (word.computed and " " in word.text):
                yield index
        return
    if check == "gcc":
        linked = ((index, word.text) for index, word in enumerate(words) if word.text.startswith("-Wl,"))
        yield from (index for index, text in linked if _LINKED.fullmatch(text) is None)
        return
    judge = _OPERAND_CHECKS[check]
    previous = ""
    for index, word in operands:
        if judge(word.text, previous):
            yield index
        previous = word.text


def sql_escapes(text: str, dialect: str) -> bool:
    """Whether a database client told to run the text could leave the database."""
    plain = _SQL_COMMENT.sub(" ", text)
    if _SQL_HARMFUL[dialect].search(plain) or _SQL_HARMFUL[dialect].search(text):
        return True
    return dialect == "sqlite3" and any(
        not _SQLITE_HARMLESS.fullmatch(found.group(1).rstrip(";")) or "|" in text
        for found in _SQLITE_COMMAND.finditer(text)
    )


def _sets_program(text: str, previous: str) -> bool:
    """`make NAME=value`: a value that is used as a program, as its options or as a text with `$(…)`."""
    found = _MAKE_ASSIGNMENT.fullmatch(text)
    if found is None:
        return "=" in text
    name, value = found.groups()
    if _MAKE_PROGRAM.fullmatch(name.upper()) or (name != "ENV" and load_programs().is_steering(name)):
        return not (_MAKE_TOOL.fullmatch(value) or _MAKE_FLAGS.fullmatch(value))
    if _MAKE_FILES.fullmatch(name.upper()) and _MAKE_PATH.fullmatch(value):
        return ".." in value
    return not _MAKE_VALUE.fullmatch(value)


def _sets_clock(text: str, previous: str) -> bool:
    return not text.startswith("+")


def _shows_environment(text: str, previous: str) -> bool:
    """`ps e`: the environment of every process, ours among them."""
    return text.isalpha() and "e" in text and not previous.endswith("o")


def _opens_more(text: str, previous: str) -> bool:
    """An address of `socat` beyond standard input and output and the network."""
    return _SOCAT_ADDRESS.fullmatch(text) is None


_OPERAND_CHECKS = {"socat": _opens_more, "make": _sets_program, "date": _sets_clock, "ps": _shows_environment}
