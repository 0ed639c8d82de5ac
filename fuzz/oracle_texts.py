"""Shell texts for the oracle: made from the written grammar, from its borders, and from known tricks.

They are harmless by construction: programs are stubs, paths stay below the throw-away directory, nothing
loops for ever, and no name of a real program with a directory is ever made.
"""

from __future__ import annotations

import random
import re
from functools import cache

from written_grammar import Grammar

STUBS = (
    "ls",
    "cat",
    "echo",
    "grep",
    "sort",
    "find",
    "git",
    "sed",
    "true",
    "rm",
    "make",
    "env",
    "nice",
    "xargs",
)
BUILTINS = (
    "cd",
    "export",
    "read",
    "set",
    "unset",
    "declare",
    "eval",
    "command",
    "test",
    "[",
    "printf",
    "trap",
    ":",
)
WORDS = (
    *(
        "a",
        "b.py",
        "-o",
        "-exec",
        "-e",
        "--output=x",
        "out",
        "src",
        "sub",
        "sub/in",
        "..",
        ".",
        "-n",
        "1",
        "-delete",
    ),
    *(
        "src/c.py",
        "main",
        "log",
        "push",
        "status",
        "-c",
        "rm",
        "X=1",
        "-f",
        "-i",
        "p",
        "s/a/b/",
        "link",
        "./a",
        "-",
    ),
)
NAMES = ("X", "Y", "A", "IFS", "PATH", "HOME", "PWD", "CDPATH")
EDITS = (
    *(
        "'",
        '"',
        "\\",
        "\\\n",
        "\n",
        " ",
        "\t",
        ";",
        "&&",
        "|",
        "&",
        "$",
        "$(",
        ")",
        "`",
        "(",
        "{ ",
        "; }",
        "}",
        "#",
    ),
    *(
        "$'",
        "<<E\n",
        "\nE\n",
        "<<<",
        "<(",
        "${X:-",
        "!",
        "=",
        "[",
        "]",
        "{",
        ",",
        "*",
        "?",
        "X=",
        "rm ",
        "-- ",
        "~",
    ),
    *(
        "((",
        "))",
        "$((",
        "[[ ",
        " ]]",
        "2>&1",
        ">",
        ">>",
        "<",
        "&>",
        ">&",
        "<>",
        "3>",
        "X+=",
        "X[0]=",
        "time ",
        "in ",
    ),
    *(
        "if ",
        "then ",
        "fi",
        "for ",
        "do ",
        "done",
        "case ",
        "esac",
        "while ",
        "function f ",
        "f() ",
        "coproc ",
        "\r",
    ),
    *(
        "eval ",
        "exec ",
        "cd ",
        "$X",
        '"$X"',
        "${X}",
        "${!X}",
        "${X@P}",
        "$@",
        "{a,b}",
        "$'\\x72m'",
        "\v",
        "\u00a0",
    ),
)
TRICKS = tuple(
    line.replace("⏎", "\n")
    for line in r"""
X=(rm a); "${X[@]}"
X='a[$(rm a)]'; echo $((X))
X='a[$(rm a)]'; [[ X -eq 1 ]]
X='a[$(rm a)]'; [[ -v $X ]]
X='a[$(rm a)]'; [ -v "$X" ]
X=-v; [ "$X" 'a[$(rm a)]' ]
X=-v; test $X 'a[$(rm a)]'
X='-v A'; printf $X x; echo "$A"
printf -v X '%s' rm; $X a
read -r X <<< 'rm'; $X a
X='$(rm a)'; echo "${X@P}"
X=Y Y=rm; ${!X} a
f() { rm a; }; f
echo() { rm a; }; echo x
alias ls=rm; ls a
trap 'rm a' EXIT
coproc rm a
eval rm a
eval "$(echo rm a)"
builtin eval rm a
command eval rm a
hash -p ./ls echo; echo a
set -- rm a; "$@"
set -- -o out; sort "$@" a
shopt -s expand_aliases⏎alias ls=rm⏎ls a
mapfile -C 'rm a' -c 1 X <<< a
readarray -t X <<< rm; $X a
compgen -C 'rm a'
exec 3> out; echo a >&3
exec > out; echo a
{ echo a; } 3> out
echo a 2>&1 3>&1 > out
echo a {X}> out
echo a >& out
echo a <> out
cat <(rm a)
echo a > >(cat > out)
diff <(ls) <(rm a)
PATH=.; ls a
PATH=. ls a
IFS=o; X=cat; ${X}
CDPATH=sub; cd in && echo a > out
cd sub; cd ..; echo a > out
cd link; echo a > ../out
cd -P link && echo a > ../out
for X in sub src; do cd $X; done; echo a > out
while cd sub; do echo a > out; done
cd sub | echo a > out
cd sub & echo a > out
if cd sub; then echo a; fi; echo b > out
(cd sub); echo a > out
(cd sub; echo a > out)
(cd sub && echo a > out) | cat
cd sub && { cd in; echo a > out; }
cd nowhere; echo a > out
cd nowhere && echo a > out
cd nowhere || echo a > out
cd sub 2>&1 > out
cd; echo a > out
cd ~; echo a > out
cd ~/sub && echo a > out
cd - ; echo a > out
cd ''; echo a > out
pushd sub; echo a > out
X=sub; cd $X; echo a > out
X=sub; cd "$X" && echo a > out
{rm,a}
echo {a,b} > out
r\⏎m a
echo a;rm${IFS}a
echo $'\x72m'
$'rm' a
$"rm" a
r''m a
"r"m a
\rm a
echo "$(rm a)" `rm a`
echo "`echo $(rm a)`"
echo "$(echo "$(rm a)")"
cat <<E⏎$(rm a)⏎E
cat <<'E'⏎$(rm a)⏎E
cat <<\E⏎$(rm a)⏎E⏎rm b.py
cat <<E⏎a\⏎E⏎rm a⏎E
cat <<E⏎\⏎E⏎rm a⏎E
cat <<EO⏎E\⏎O⏎rm a⏎EO
cat <<-E⏎⏎	E⏎rm a
cat <<E "⏎E⏎"⏎rm a⏎E
cat <<E $(echo⏎E⏎)⏎rm a⏎E
cat <<A; cat <<B⏎a⏎A⏎$(rm a)⏎B
X=$(cat <<E⏎$(rm a)⏎E⏎); echo "$X"
echo a # \⏎rm a
# a⏎rm a
echo a;#⏎rm a
echo a#b; rm a
if rm a; then echo x; fi
case a in a) rm a;; esac
case a in b) rm a;& c) echo b;; esac
case $(rm a) in a) echo x;; esac
[[ $(rm a) == a ]]
[[ a =~ $(rm a) ]]
[[ a < b ]] && rm a
[[ -n a || $(rm a) ]]
for X in $(rm a); do echo $X; done
for X in rm ls; do $X a; done
for ((i=0;i<2;i++)); do rm a; done
select X in a; do rm a; done < a
until rm a; do echo x; done
! rm a
time rm a
time -p rm a
time X=1 rm a
time ! rm a
time (rm a)
env X=1 rm a
nice rm a
command rm a
command -p ls a
xargs rm < a
find . -exec rm a \;
X='-o out'; sort $X a
X=-o; sort "$X" out a
sort *
sort ./*
sort ?o a
sort -k $X a
find * -name a
X=; sort ${X:--o} a
X=out; sort -"${X:0:1}" a
for X in *; do sort "$X"; done
for X in src/*; do sort "$X"; done
for X in src/*; do sort $X; done
cd src; for X in *; do sort "$X"; done
X=$(echo -o); sort $X out
git $(echo push) a
X=push; git $X a
"$(echo rm)" a
$(echo rm) a
r? a
[r]m a
~/sub
X=1 Y=2 rm a
X=1; rm a
X=$(rm a) echo b
> out
>> out
< a
> out rm a
rm > out a
&> out ls
ls &>> out
ls >| out
ls 2> out 1>&2
ls > "$X"out
ls > out*
ls > $(echo out)
{ ls; echo a; } > out
(ls) > out 2>&1
if ls; then echo; fi > out
for X in a; do ls; done >> out
while ls a b; do echo; done > out
[[ -f a ]] > out
[ -f a ] > out
X=1 > out
echo a | cat > out
echo a |& cat &> out
ls ~ > ~/out
ls > sub/../out
ls > link/out
ls > ./-x
ls > '-x'
ls > "x y"
ls > x\ y
ls > src/*
echo a > a b c
cat < a > out
cat <<< "$(rm a)" > out
cat <<< a >> out
rm a & rm b.py
rm a &
rm a;⏎⏎ls
rm a &&⏎ls
ls |⏎rm a
(ls;⏎rm a⏎)
{ ls⏎rm a⏎}
{ ls;rm a;}
((ls)); rm a
((1)) && rm a
$((1)) a
$[1] a
echo $((1+1)) > out
echo $(( $(rm a) ))
echo ${X:-$(rm a)}
echo "${X:-$(rm a)}"
echo ${X:=rm}; $X a
echo ${X//a/$(rm a)}
echo ${#X} ${X%a} > out
export X=rm; $X a
export PATH=.; ls a
declare X=rm; $X a
declare -i X='a[$(rm a)]'
declare -n X=PATH; X=.; ls a
local X=1
readonly PATH=.; ls a
unset 'a[$(rm a)]'
read 'a[$(rm a)]' <<< 1
let 'X=a[$(rm a)]'
wait -p X; echo
getopts a 'a[$(rm a)]'
set -k; ls PATH=. a
set -e; false; rm a
set -euo pipefail; rm a
set -o posix; rm a
set -x; PS4='$(rm a)'; ls
PS4='$(rm a)'; set -x; ls
BASH_ENV=a; ls
PROMPT_COMMAND='rm a'; ls
""".strip().splitlines()
)
_ESCAPES = re.compile(
    r"(?<![\w.*?\]}\"'$/)-])/|(?:\.\./*){4}|/dev/(?!null)|\b(?:while|until)\s*(?:[:!]|\w+=)"
    r"|(?:\A|[;&|\s({`])(?:\.|source)\s"  # what a file holds is the file's
)


@cache
def _grammar() -> Grammar:
    """The grammar of the page with words that mean something here."""
    grammar = Grammar()
    plain = grammar.makers["PLAIN"]
    grammar.makers["program"] = lambda rng, depth: rng.choice(STUBS if rng.random() < 0.8 else BUILTINS)
    grammar.makers["PLAIN"] = lambda rng, depth: (
        rng.choice(WORDS) if rng.random() < 0.9 else plain(rng, depth)
    )
    grammar.makers["NAME"] = lambda rng, depth: rng.choice(NAMES[:3] if rng.random() < 0.9 else NAMES)
    return grammar


def make_text(rng: random.Random) -> tuple[str, str]:
    """A kind and a harmless text of it."""
    while True:
        label, text = rng.choice((_from_grammar, _from_grammar, _from_border, _from_trick, _from_two))(rng)
        if "\0" not in text and not _ESCAPES.search(text.replace("\\\n", "")):
            return label, text


def _from_grammar(rng: random.Random) -> tuple[str, str]:
    return "grammar", _grammar().make(rng)


def _from_border(rng: random.Random) -> tuple[str, str]:
    return "border", _mutate(rng, _grammar().make(rng))


def _from_trick(rng: random.Random) -> tuple[str, str]:
    trick = rng.choice(TRICKS)
    return "trick", trick if rng.random() < 0.3 else _mutate(rng, trick)


def _from_two(rng: random.Random) -> tuple[str, str]:
    join = rng.choice(("; ", " && ", " || ", " | ", " & ", "\n"))
    parts = [rng.choice(TRICKS) if rng.random() < 0.5 else _grammar().make(rng, "and_or") for _ in range(2)]
    return "two", join.join(parts)


def _mutate(rng: random.Random, text: str) -> str:
    for _ in range(rng.randint(1, 3)):
        start = rng.randrange(len(text) + 1)
        text = text[:start] + rng.choice(EDITS) + text[start + rng.choice((0, 0, 1, 2)) :]
    return text
