"""The quick way to read a flat command finds what the grammar finds."""

from __future__ import annotations

import json
import random
from pathlib import Path

from robota.core.shell.flat import read_flat
from robota.core.shell.grammar import Reader, _read_commands
from robota.core.shell.script import Command, Script, ShellSyntaxError

CORPUS = Path(__file__).parent / "corpus"
TEXTS = 20_000
_WRITTEN = r"""
    ls git a=b if time 'a_b' "x_y" " ' a'b'c --f="x" ~ ~/x ~root x~1 A=~/b *.py a? [ ] { } ! # a#b $ x$y ` \
    ( ) & | || && ; ;; |& &> > >> < << 2>&1 >&2 2> 1>f 2>/dev/null 5> 12> 10 2 >| <> <<< = - -- é then done
    in '' "" ]] [[ coproc !a {a,b} 'if' -m"x" <( >( >&- 2>&1- 2>&3 0>f 1>&2 CI=1 X='_y' =a A+=b A[1]=b B=
    #c #> ;# & &
"""
TOKENS = [*_WRITTEN.split(), "\n", "\n", "\t", "'a\nb'", '"a\n"', "\\\n", "\r"]


def read_by_grammar(text: str) -> Script | None:
    script = Script()
    try:
        _read_commands(Reader(text, script, _read_commands), "")
    except ShellSyntaxError:
        return None
    return script


def read_quickly(text: str) -> tuple[bool, Script | None]:
    try:
        script = read_flat(text)
    except ShellSyntaxError:
        return True, None
    return script is not None, script


def describe(script: Script | None) -> object:
    """All that the rest of the program looks at; numbers of chains only tell which commands share one."""
    if script is None:
        return None
    chains: dict[int, int] = {}

    def chain_of(command: Command) -> int:
        return chains.setdefault(command.chain, len(chains))

    commands = [
        (*(each.words, each.assignments, each.redirections, each.scope, each.piped), chain_of(each))
        for each in script.commands
    ]
    return commands, script.redirections, script.lasting, script.assigned, sorted(script.unsteady)


def compare(text: str) -> bool:
    read, script = read_quickly(text)
    if read:
        assert describe(script) == describe(read_by_grammar(text)), text
    return read


def test_the_commands_of_the_corpus_are_read_alike() -> None:
    rows = [json.loads(line) for file in CORPUS.glob("*.jsonl") for line in file.read_text().splitlines()]
    texts = {str(row["input"].get("command")) for row in rows if isinstance(row.get("input"), dict)}
    assert sum(map(compare, texts)) > 1_000


def test_texts_of_random_tokens_are_read_alike() -> None:
    chance = random.Random(7)
    blanks = ["", "", " ", " ", " ", "  "]
    texts = (
        "".join(chance.choice(TOKENS).replace("_", " ") + chance.choice(blanks) for _ in range(count))
        for count in (chance.randint(1, 8) for _ in range(TEXTS))
    )
    assert sum(map(compare, texts)) > TEXTS / 20
