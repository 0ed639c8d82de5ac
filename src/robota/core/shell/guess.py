"""Commands picked out of a text outside the grammar, so that deny rules still see what is plainly there."""

from __future__ import annotations

import re

from robota.core.shell.script import Command, Script, plain_word

_FRAGMENTS = re.compile(r"[;&|\n()`<>]+|\$\(|(?<![^\s)])[{}](?=\s)")
_QUOTES = str.maketrans("", "", "'\"\\")
_LONGEST = 64  # words of a command; keeps a long line cheap


def guess_script(text: str) -> Script:
    """Every word of the text as the program of a command that the words after it go on."""
    script = Script()
    joined = "\n" + text.replace("\\\n", "") if "\\\n" in text else ""
    for fragment in _FRAGMENTS.split(text + joined):
        words = tuple([plain_word(word) for word in fragment.translate(_QUOTES).split()])
        for start in range(len(words)):
            script.commands.append(Command(words[start : start + _LONGEST]))
    return script
