"""Builtins of bash that run a word, read text as code or change what later parts mean.

They are read like any command, so deny rules see what they are given, but nothing that uses them runs
unasked: `find_outside` says which one was met.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from robota.core.shell.expansions import may_be_option, splits
from robota.core.shell.script import Script, Word

OUTSIDE = frozenset({
    "alias", "bind", "builtin", "caller", "compgen", "complete", "compopt", "coproc", "enable", "eval",
    "exec", "fc", "getopts", "history", "jobs", "let", "logout", "mapfile", "readarray", "shopt", "suspend",
    "trap", "unalias",
})  # fmt: skip
_NAMES = frozenset({"declare", "export", "local", "readonly", "typeset", "unset"})
_NAMED = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(?:=.*)?\Z", re.DOTALL)
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_SET = re.compile(r"[-+](?:[euxvfE]+|[euxvfE]*o)\Z")
_SET_NAMES = frozenset({"pipefail", "errexit", "nounset", "xtrace", "verbose", "noglob", "errtrace"})
_READ_FLAGS = re.compile(r"-[rs]*(?:[dnNptu].*)?\Z", re.DOTALL)
_READ_VALUES = re.compile(r"-[rs]*[dnNptu]\Z")
_UNARY = re.compile(r"-[abcdefghknoprstuwxzGLNOS]\Z")
_BINARY = frozenset(
    ["=", "==", "!=", "<", ">", "-eq", "-ne", "-lt", "-le", "-gt", "-ge", "-nt", "-ot", "-ef"]
)


def find_outside(words: Sequence[Word], script: Script) -> str | None:
    """Why a command is outside the grammar, or None."""
    name, rest = words[0].text, words[1:]
    if name in OUTSIDE:
        return f"`{name}` runs words or changes what later parts mean"
    check = CHECKS.get(name)
    if check is None or check(rest, script):
        return None
    return f"this use of `{name}` may run words or change what later parts mean"


def _declares_plainly(words: Sequence[Word], script: Script) -> bool:
    """Plain names with or without a value; an attribute can turn a value into arithmetic or a reference."""
    operands = [word for word in words if word.text not in ("-x", "-r", "-g", "-p")]
    return all(_NAMED.match(word.raw) for word in operands)


def _sets_plainly(words: Sequence[Word], script: Script) -> bool:
    follows = False
    for word in words:
        if follows and word.raw in _SET_NAMES:
            follows = False
        elif not follows and _SET.match(word.raw):
            follows = word.raw.endswith("o")
        else:
            return False
    return bool(words) and not follows


def _reads_plainly(words: Sequence[Word], script: Script) -> bool:
    value = False
    for word in words:
        if splits(word, script):
            return False
        if value:
            value = False
        elif word.literal and _READ_FLAGS.match(word.text) and word.text[:1] == "-":
            value = _READ_VALUES.match(word.text) is not None
        elif not _NAME.match(word.raw):
            return False
    return True


def _prints_plainly(words: Sequence[Word], script: Script) -> bool:
    """`printf -v` sets a variable, and a subscript in its name is evaluated."""
    return not words or not (
        words[0].text.startswith("-v") or (len(words) > 1 and may_be_option(words[0], script))
    )


def _tests_plainly(words: Sequence[Word], script: Script) -> bool:
    """Whether every operator of `[ … ]` is spelled out; `-v` evaluates a subscript."""
    texts = [word.text if word.literal else None for word in words if word.raw != "]"]
    if any(text in ("-v", "-R") for text in texts) or any(splits(word, script) for word in words):
        return False
    while texts[:1] == ["!"]:
        texts = texts[1:]
    if len(texts) <= 1 or all(text is not None for text in texts):
        return True
    first, second = texts[:2]
    if len(texts) == 2:
        return first is not None and _UNARY.match(first) is not None
    return len(texts) == 3 and second in _BINARY


CHECKS: dict[str, Callable[[Sequence[Word], Script], bool]] = {
    **dict.fromkeys(_NAMES, _declares_plainly),
    "set": _sets_plainly,
    "read": _reads_plainly,
    "printf": _prints_plainly,
    "[": _tests_plainly,
    "test": _tests_plainly,
    "hash": lambda words, script: [word.raw for word in words] == ["-r"],
    "wait": lambda words, script: (
        not any(word.text[:1] == "-" or may_be_option(word, script) for word in words)
    ),
    "command": lambda words, script: bool(words) and words[0].literal,
}
