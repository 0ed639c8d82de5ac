"""The grammar on docs/permissions.md and the reader agree, in both directions."""

from __future__ import annotations

import importlib
import random
import re
from pathlib import Path
from types import ModuleType

import pytest
from tests.permissions.tables import assert_answers, table

from robota.core.permissions import evaluate_permission, explain_permission
from robota.core.shell import builtins
from robota.core.shell.grammar import parse_shell
from robota.core.shell.script import ShellSyntaxError

FUZZ = Path(__file__).parents[2] / "fuzz"
TEXTS = 1_500

# One line for each kind of thing that the page says asks.
ASKS = table(r"""
    echo $((x)) ¦ echo $((x+1)) ¦ echo $((1+x)) ¦ ((x=1)) ¦ echo $[1+2] ¦ echo "$[x]" ¦ ((1))
    for ((i=0;i<3;i++)); do ls; done
    echo ${!x} ¦ echo "${!x}" ¦ echo ${x@P} ¦ echo ${x@Q} ¦ echo ${x:=y} ¦ echo ${x=y} ¦ echo ${x[0]}
    echo "${x[@]}" ¦ x[0]=1
    x=(a b) ¦ x+=a ¦ x=a y+=b ls ¦ x[ 0 ]=1 ls ¦ declare -a x ¦ declare x=(a) ¦ echo ${!x*} ¦ echo ${#x[@]}
    echo {a,b} ¦ echo {1..3} ¦ ls a{b,c}d ¦ {ls,-l} ¦ echo {a,'b'} ¦ echo x{,y}
    f() { ls; } ¦ f () ( ls ) ¦ function f { ls; } ¦ function f() { ls; } ¦ f() ls
    select x in a; do ls; done ¦ coproc ls ¦ coproc N { ls; } ¦ for x; do ls; done ¦ for x do ls; done
    for x in a; { ls; }
    cat <(ls) ¦ ls > >(cat) ¦ cat < <(ls) ¦ echo @(a|b) ¦ ls !(a) ¦ ls +(a) ¦ case x in @(x)) ls;; esac
    [[ -v x ]] ¦ [[ -v x[0] ]] ¦ [[ -R x ]] ¦ [[ $x -eq 1 ]] ¦ [[ 1 -lt x ]] ¦ [[ "$x" -gt 0 ]]
    ls 3>&1 ¦ ls 2>&- ¦ ls >&- ¦ exec 3<f ¦ ls <&0 ¦ ls 1>&3 ¦ ls {fd}>f ¦ ls <> f ¦ ls >& f ¦ ls 5> f
    ls 2>&1- ¦ ls >&$x
    ls ~root ¦ ls ~+ ¦ ls ~- ¦ X=~/a ls ¦ make X=~/a ¦ X=a:~/b ls ¦ ls ~"/x"
    echo $"a" ¦ echo $'\x41' ¦ echo $'\101' ¦ echo $'\u0041' ¦ echo $'\c' ¦ echo $'\e[0m'
    l\⏎s ¦ ls &\⏎& ls ¦ echo "$\⏎(ls)" ¦ ls |\⏎| ls ¦ echo "$x\⏎y" ¦ if true; then\⏎ ls; fi ¦ ls 2\⏎>&1
    $x ¦ "$x" a ¦ $(echo ls) ¦ l? ¦ l* a ¦ ${x} ¦ a$x ¦ [l]s
    case x in x) ls;& y) ls;; esac ¦ case x in x) ls;;& y) ls;; esac ¦ time X=1 ls ¦ time ! ls
    time x[0]=1 ls ¦ time cd x ¦ time -p -- pushd x ¦ time read x ¦ time command cd x
    < x ! ls ¦ 2>&1 time ls
    cat <<$x⏎a⏎$x ¦ cat <<E"O"F⏎a⏎EOF ¦ cat <<EOF⏎a\⏎EOF⏎EOF ¦ cat <<EOF⏎EO\⏎F⏎EOF ¦ cat <<EOF "⏎"⏎a⏎EOF
    echo `echo \`ls\`` ¦ echo "`echo "a"`" ¦ echo ${x:-$(ls)} ¦ echo ${x:-"a"} ¦ echo ${x:-$y}
    echo ${x:y} ¦ echo ${x:$y:1}
    echo 'a ¦ echo "a ¦ ls && ¦ ls | ¦ (ls ¦ { ls; ¦ ls; } ¦ ls ) ¦ if ls; then ls ¦ for x in a; do ls
    ls;; ¦ ; ls ¦ & ls ¦ ls; ; ls
""")
BLANKS = "\x0b\x0c\r\u00a0\u1680\u2003\u2028\u202f\u3000\u200b\u2060\ufeff\x85\x1f"
BUILTINS = table(r"""
    set -a ¦ set -k ¦ set -- a b ¦ set a ¦ set -o posix ¦ set -o ¦ set ¦ set -ek ¦ set "$x" ¦ set +o posix
    set -eo
    read 'a[0]' ¦ read -a x ¦ read "$x" ¦ read $x ¦ read -r 'a[$(ls)]' ¦ read -e x ¦ read -p $x y
    read -i a -e x
    printf -v x a ¦ printf -vx a ¦ printf "$x" a ¦ printf $x a ¦ printf -v 'a[$(ls)]' x
    time -p{ m a ¦ time -p%x ls
    declare -i x=1 ¦ declare -n x=y ¦ declare "$x" ¦ declare -A x ¦ declare -f ¦ export -f x ¦ export "$x"
    export 'a[0]=1'
    export -n x ¦ local -i x ¦ readonly -a x ¦ typeset -n x=y ¦ unset 'a[$(ls)]' ¦ unset -v x ¦ unset -f x
    unset "$x" ¦ unset -n x
    hash -p ./x ls ¦ hash -d ls ¦ hash ls ¦ wait -p x ¦ wait "$x" ¦ wait -n ¦ command "$x" ¦ command $x ls
    test -v x ¦ [ -v x ] ¦ [ -R x ] ¦ [ "$x" "$y" ] ¦ [ $x ] ¦ [ $x = a ] ¦ test $x ¦ [ "$x" "$y" "$z" ]
    [ -n "$x" -a -n "$y" ]
    [ a "$x" b ] ¦ [ ! "$x" y ] ¦ test "$x" 'a[$(ls)]' ¦ [ -v 'a[$(ls)]' ] ¦ [ ! -v x ]
""")  # fmt: skip
STEERING = table(r"""
    IFS=: ¦ PATH=/x ¦ BASH_ENV=x ¦ LD_PRELOAD=x ¦ PAGER=x ¦ for PATH in a; do ls; done ¦ export PATH=/x
    read PATH ¦ read IFS
""")
PLAIN = table(r"""
    set -e ¦ set -euo pipefail ¦ set -x ¦ set +e ¦ set -o pipefail ¦ read -r x ¦ read x y
    read -r -p 'a b' x ¦ read -n 1 x
    printf '%s\n' "$x" ¦ printf "a $x" ¦ printf "%s" $x ¦ export X=1 ¦ export X ¦ export X="$Y"
    local x=1 ¦ declare -r X=1
    declare x ¦ unset x ¦ unset X Y ¦ hash -r ¦ wait ¦ wait $! ¦ command -v ls ¦ command ls
    command -v "$x"
    [ -f x ] ¦ [ -n "$x" ] ¦ [ "$x" = a ] ¦ [ "$x" != "$y" ] ¦ [ ! -f x ] ¦ [ $? -eq 0 ] ¦ [ "$x" -gt 1 ]
    test -d x ¦ test "$x"
    [ -f a -a -f b ] ¦ [[ -f x ]] ¦ [[ $x == a* ]] ¦ [[ ! -d x && -n $y ]] ¦ [[ $x =~ ^v[0-9]+$ ]]
    [[ $? -eq 0 ]] ¦ [[ $x = -* ]]
    X=1 ¦ X=1; ls ¦ X=$(ls); ls "$X" ¦ time ls ¦ time (ls) ¦ ls ~ ¦ ls ~/x ¦ ls "~x" ¦ echo $'a\nb\t\\\''
    echo `ls` ¦ ls a{b}c ¦ ls {}
    cat <<EOF⏎$x $(ls)⏎EOF ¦ cat <<'EOF'⏎$(ls⏎EOF ¦ cat <<-"EOF"⏎⇥x⏎⇥EOF ¦ cat <<\EOF | ls⏎x⏎EOF
    (cat <<EOF⏎a⏎EOF⏎)
    ls >| f ¦ ls &>> f ¦ ls >f 2>&1 ¦ ls 2>&1 | cat ¦ ls 1>&2 ¦ ls 0<f ¦ ls <<< "a $x" ¦ ls # a ¦ ls \⏎ a
    ls a\⏎ b ¦ ls &&⏎ls
    echo "a $(echo "b $(ls)") c"
    echo ${x%.*} ${x##*/} ${x//a/b} ${#x} ${x:0:7} ${x^^} "${x:-a b}" ${1:-x} ¦ echo $(( 1 + 2 ))
    if ls; then ls; elif ls; then ls; else ls; fi ¦ while read -r l; do ls; done < f
    case $x in a|b) ls ;; (*) ls ;; esac
    for x in a "b c" *.py; do ls "$x"; done > f ¦ for x in $(ls)⏎do⏎ls⏎done ¦ { ls; ls; } 2>&1 | cat
    ! ls ¦ ls & ls ¦ ls |& cat
""")  # fmt: skip


def decide_with_everything_allowed(command: str) -> str:
    return evaluate_permission("Bash", {"command": command}, allow=["Bash"], cwd="/w", home="/home/u")


def decide_with_patterns_allowed(command: str) -> str:
    rules = [f"Bash({name}:*)" for name in ("ls", "export", "read", "declare", "echo")]
    return evaluate_permission("Bash", {"command": command}, allow=rules, cwd="/w")


def has_closed_quotes(text: str) -> bool:
    return all(text.count(quote) % 2 == 0 for quote in "'\"")


@pytest.fixture
def written_grammar(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(FUZZ))
    return importlib.import_module("written_grammar")


@pytest.mark.slow
def test_texts_made_from_the_page_are_read(written_grammar: ModuleType) -> None:
    rng, grammar = random.Random(7), written_grammar.Grammar()
    wrong, used = [], set()
    for _ in range(TEXTS):
        text = grammar.make(rng)
        used |= {
            keyword
            for keyword in ("if ", "for ", "case ", "[[ ", "$((", "<<<", "( ", "{ ")
            if keyword in text
        }
        try:
            parse_shell(text)
        except ShellSyntaxError as error:
            wrong.append(f"{error}: {text!r}")
    assert not wrong, f"{len(wrong)} of {TEXTS}:\n" + "\n".join(sorted(wrong, key=len)[:5])
    assert len(used) == 8


@pytest.mark.slow
def test_texts_made_from_the_page_with_something_foreign_in_them_ask(written_grammar: ModuleType) -> None:
    rng, grammar = random.Random(8), written_grammar.Grammar()
    foreign = [each for each in ASKS if "\n" not in each and has_closed_quotes(each)]
    texts = [f"{grammar.make(rng, 'list')}; {each}\n" for each in foreign]
    texts += [f"if {grammar.make(rng, 'simple')}; then {each}; fi" for each in foreign]
    assert_answers("approve", texts, decide_with_everything_allowed)


def test_what_the_page_says_asks_does_ask() -> None:
    commands = [*ASKS, *BUILTINS, *(f"ls{blank}a" for blank in BLANKS)]
    assert_answers("approve", commands, decide_with_everything_allowed)
    assert_answers("approve", [*commands, *STEERING], decide_with_patterns_allowed)


def test_a_question_names_what_was_not_understood() -> None:
    kinds = ("Not understood: ", "Which program ", "`", "This use of `")
    for command in [*ASKS, *BUILTINS]:
        reason = explain_permission("Bash", {"command": command}, allow=["Bash"], cwd="/w").reason
        assert reason.startswith(kinds), command


def test_what_the_page_says_is_read_runs() -> None:
    assert_answers("auto", PLAIN, decide_with_everything_allowed)


def test_the_page_names_every_builtin_that_asks(written_grammar: ModuleType) -> None:
    page = written_grammar.PAGE.read_text(encoding="utf-8").partition("### What asks")[2]
    named = set(re.findall(r"`([a-z\[]+)`", page.partition("\n## ")[0]))
    assert builtins.OUTSIDE | set(builtins.CHECKS) <= named
    for name in builtins.OUTSIDE:
        assert decide_with_everything_allowed(f"{name} ls") == "approve", name
