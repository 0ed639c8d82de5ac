"""Shell strings composed from simple commands, spelled in random ways that bash reads the same.

The leaves (simple commands) of a composed text are known, and the helpers added around them (`ls -la`,
`echo`, `cat`) are allowed by `ALLOW`; so the leaves alone decide what the permission evaluator must answer.
"""

from __future__ import annotations

import random
import shlex
from collections.abc import Callable, Sequence


class Raw(str):
    """A word that is rendered exactly as written."""

    __slots__ = ()


Leaf = tuple[str, ...]


def read_leaves(table: str) -> tuple[Leaf, ...]:
    """One simple command per line; a word that begins with `@` is rendered raw."""
    lines = [shlex.split(line) for line in table.strip().splitlines()]
    return tuple(tuple(Raw(word[1:]) if word.startswith("@") else word for word in line) for line in lines)


ALLOWED_PATTERNS = (
    *("git status", "git log *", "npm run *", "ls *", "echo *", "grep *"),
    *("cat", "cat *", "find *", "sed *", "sort *"),
)
ALLOW = [f"Bash({pattern})" for pattern in ALLOWED_PATTERNS]
DENY = ["Bash(rm *)", "Bash(curl *)", "Bash(git push *)"]

ALLOWED = read_leaves("""
git status
git log --oneline
npm run build
ls -la src
cat
cat a b
grep -n x f
find . -name '*.py'
sed -n 1,20p f
sort -u f
""")
NOT_ALLOWED = read_leaves("""
make all
true
lsof -i
gitx status
git statusx
git status x
sudo ls -la
env ls -la
bash -c 'ls -la'
./ls -la
@LESSOPEN=x ls -la
find . -delete
find . -exec make {} +
sed -i s/a/b/ f
sort -o f f
""")
WRITING = read_leaves("""
ls -la @>out
ls -la '@2>> out'
'@&> out' ls -la
'@>|out' git status
""")
DENIED = read_leaves("""
rm -rf x
/bin/rm x
./rm x
curl http://x.example
git push origin
@A=1 rm x
sudo rm x
sudo -u root git push origin
env A=1 rm x
sh -c 'rm x'
bash -c 'echo a; rm x'
xargs rm -f
timeout 5 rm x
find . -exec rm {} +
eval 'rm x'
nohup rm x
nice -n 5 rm x
exec rm x
command rm x
busybox rm x
""")
COMPUTED = read_leaves("""
@$X a
@${X} a
'@"$X"' a
'@$(echo a)' b
'@"$(echo ls)"' -la
@r$X a
@/bin/l? a
eval 'ls -la'
exec ls -la
""")
TRICKY_WORDS = (
    *("hello", "a b", "it's", 'say "hi"', "x;y", "a && rm -rf x", "$(rm -rf x)", "`rm x`", "# no", "", "*"),
    *(
        "a\nb",
        "rm",
        "{a,b}",
        "-n",
        "a\\b",
        "$HOME",
        "!",
        "<in",
        ">out",
        "ü",
        "日本",
        "%s",
        "(",
        ")",
        "}",
        "&",
    ),
)
HARMLESS = ("2>&1", ">/dev/null", "2>/dev/null", "</dev/null", ">> /dev/null", "&>/dev/null", ">&2")
BARE = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./,:@%+-")


def quote_double(text: str) -> str:
    return '"' + "".join("\\" + char if char in '"$`\\' else char for char in text) + '"'


def quote_single(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


def quote_backslash(text: str) -> str:
    return "".join(char if char.isalnum() else "\\" + char for char in text)


def render_word(rng: random.Random, word: str) -> str:
    """Spell one literal word in a random way that the shell reads as exactly that word."""
    if isinstance(word, Raw):
        return str(word)
    style = rng.random()
    if style < 0.5 and word and set(word) <= BARE:
        return word
    if style < 0.65 or not word:
        return quote_single(word)
    if style < 0.8:
        return quote_double(word)
    if style < 0.9 and "\n" not in word:
        return quote_backslash(word)
    cut = rng.randrange(len(word) + 1)
    return quote_single(word[:cut]) + quote_double(word[cut:])


def render_blank(rng: random.Random) -> str:
    return rng.choices((" ", "  ", "\t", " \t ", " \\\n ", "\\\n "), (12, 2, 2, 1, 1, 1))[0]


def render_leaf(rng: random.Random, leaf: Leaf) -> str:
    words = [render_word(rng, word) for word in leaf]
    if rng.random() < 0.25:
        words.insert(rng.choice((0, len(words))), rng.choice(HARMLESS))
    text = words[0]
    for word in words[1:]:
        text += render_blank(rng) + word
    return text


def render_comment(rng: random.Random) -> str:
    notes = ("note", "rm -rf x", "it's \" open", "a \\", "$(curl x)", "; make", "ü <<EOF")
    return "# " + rng.choice(notes) + "\n"


def compose(rng: random.Random, leaves: Sequence[Leaf], depth: int = 0) -> str:
    """One shell text in which exactly these leaves (and allowed helpers) are the simple commands."""
    if len(leaves) == 1 and (depth > 4 or rng.random() < 0.55):
        return render_leaf(rng, leaves[0])
    if len(leaves) > 1 and (depth > 5 or rng.random() < 0.7):
        cut = rng.randrange(1, len(leaves))
        return join(rng, compose(rng, leaves[:cut], depth + 1), compose(rng, leaves[cut:], depth + 1))
    return rng.choice(WRAPPERS)(rng, compose(rng, leaves, depth + 1))


def join(rng: random.Random, left: str, right: str) -> str:
    operator = rng.choice(("&&", "||", ";", "|", "|&", "&", "\n"))
    before, after = rng.choice(("", " ", "  ", "\t")), rng.choice(("", " ", "\t"))
    if operator in {"&&", "||", "|", "|&"} and rng.random() < 0.2:
        after = rng.choice(("\n", " \n\n", " " + render_comment(rng)))
    if operator == "\n" and rng.random() < 0.4:
        before = " " + render_comment(rng)
    if right.startswith(("&", ">", "<")):
        after = after or " "  # `&` and `>` would fuse into another operator
    return left + before + operator + after + right


def in_group(rng: random.Random, body: str) -> str:
    return rng.choice(("( {} )", "( {}\n)", "{{ {}; }}", "{{ {}\n}}", "( ! {{ {}; }} )")).format(body)


CONTROL_FLOW = (
    *("if {}; then ls -la; fi", "if ls -la; then {}; fi", "if ls -la; then ls -la; else {}; fi"),
    *("for i in a b; do {}; done", "for i in a 'b;c'\ndo\n{}\ndone", "while {}; do ls -la; done"),
    *("while ls -la; do {}; done", "until ls -la; do {}; done", "case a in (a) {};; esac"),
    *("case a in\n  a | b) ls -la;;\n  *) {}\n  ;;\nesac",),
)
FOREIGN = (
    *("f() {{ {}; }}", "function f {{ {}\n}}", "cat <( {})", "echo >( {})", "echo ${{x:-$( {})}}"),
    *('echo "${{x:-$( {})}}"', "coproc {{ {}; }}", "for ((i=0;i<1;i++)); do {}; done", "x=(a $( {}))"),
    *(
        "select i in a; do {}; done",
        "case a in a) {};& esac",
        "((1)); {}",
        "{{ {}; }} 3>&1",
        "ls {{a,b}}; {}",
    ),
)
"""Shapes outside the written grammar: never run unasked, and a denied leaf is still seen."""


def in_control_flow(rng: random.Random, body: str) -> str:
    return rng.choice(CONTROL_FLOW).format(body)


def in_substitution(rng: random.Random, body: str) -> str:
    shapes = ["echo $( {})", 'echo "$( {})"', 'echo "a $( {}\n) b"', 'cat <<< "$( {})"']
    shapes += ["for i in $( {}); do ls -la; done"]
    if not set(body) & set("`\\$\"'#\n"):
        shapes += ["echo `{}`", 'echo "a `{}`"']
    return rng.choice(shapes).format(body)


def in_heredoc(rng: random.Random, body: str) -> str:
    tag = f"EOF{rng.randrange(1000)}"
    if "<<" in body or rng.random() < 0.4:
        return f"{{ cat <<'{tag}'\n$(rm -rf x); `curl y`\n{tag}\n{body}\n}}"
    return f"{{ cat <<{tag}\ntext; rm -rf x\n$( {body})\n{tag}\n}}"


WRAPPERS: tuple[Callable[[random.Random, str], str], ...] = (
    *(in_group, in_group, in_control_flow, in_control_flow, in_substitution, in_substitution, in_heredoc),
)


def in_foreign(rng: random.Random, body: str) -> str:
    return rng.choice(FOREIGN).format(body)


def pick_leaves(rng: random.Random, special: Sequence[Leaf] = ()) -> list[Leaf]:
    """One to five allowed leaves and, when given, one of the special ones at a random place."""
    leaves = []
    for _ in range(rng.randint(1, 5)):
        echo = ("echo", *rng.choices(TRICKY_WORDS, k=rng.randint(1, 3)))
        leaves.append(rng.choice(ALLOWED) if rng.random() < 0.6 else echo)
    if special:
        leaves.insert(rng.randrange(len(leaves) + 1), rng.choice(special))
    return leaves


def splice(rng: random.Random, text: str) -> str:
    """The text with a line continuation somewhere, even inside a token; the shell reads it the same.

    Only places before the first single quote, comment sign or backslash are used: there it is always removed.
    """
    plain = min((text.find(sign) % (len(text) + 1) for sign in "'#\\"), default=0)
    if plain < 2:
        return text
    place = rng.randrange(1, plain)
    return text[:place] + "\\\n" + text[place:]
