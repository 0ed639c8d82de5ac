"""Shell commands under deny and allow rules, as tables."""

from __future__ import annotations

import pytest
from tests.permissions.tables import assert_answers, table

from robota.core.permissions import evaluate_permission
from robota.core.shell.grammar import parse_shell
from robota.core.shell.script import ShellSyntaxError


def decide(command: str, *, mode: str = "default", **rules: list[str]) -> str:
    return evaluate_permission("Bash", {"command": command}, mode=mode, cwd="/w", home="/home/u", **rules)


# --- a denied program is found wherever it stands; all in bypassPermissions, deny Bash(rm *) ---

DENIED = table(r"""
    rm x ¦ ls; rm x ¦ ls && rm x ¦ ls || rm x ¦ ls | rm x ¦ ls |& rm x ¦ ls & rm x ¦ ls⏎rm x ¦ rm x;
    rm x &
    (rm x) ¦ { rm x; } ¦ { { { rm x; }; }; } ¦ ((1)); rm x ¦ ((((1)))); rm x ¦ ! rm x ¦ time rm x
    time -p rm x
    if rm x; then :; fi ¦ if true; then rm x; fi ¦ if a; then b; elif rm x; then c; fi
    if a; then b; else rm x; fi
    for i in 1; do rm x; done ¦ for i do rm x; done ¦ for ((i=0;i<1;i++)); do rm x; done
    for i in a; { rm x; }
    while rm x; do :; done ¦ until rm x; do :; done ¦ while read f; do rm "$f"; done
    select x in a; do rm x; done
    case x in x) rm x;; esac ¦ case a in (a|b) : ;; c) rm x ;& d) : ;;& esac ¦ case $(rm x) in a) ;; esac
    f() { rm x; } ¦ f () ( rm x ) ¦ function f { rm x; } ¦ f()⏎{ rm x; } ¦ coproc rm x ¦ coproc N { rm x; }
    echo $(rm x) ¦ echo `rm x` ¦ echo "$(rm x)" ¦ echo "`rm x`" ¦ `rm x` ¦ $(rm x) ¦ "$(rm x)"
    echo "a $(echo "b $(rm x)")" ¦ echo `echo \`rm x\`` ¦ echo "`echo \`rm x\``"
    echo $(echo $(echo $(rm x)))
    echo ${a:-$(rm x)} ¦ echo "${a:-$(rm x)}" ¦ echo "${x:-'$(rm x)'}" ¦ echo "${a:-"$(rm x)"}"
    echo ${a:=$(rm x)}
    echo ${x#$(rm x)} ¦ echo ${x#*$(rm x)} ¦ echo ${x/a/$(rm x)} ¦ echo ${x//a/`rm x`} ¦ echo ${x%%`rm x`}
    echo ${x:$(rm x):2} ¦ echo ${x[$(rm x)]} ¦ a[$(rm x)]=1 ¦ echo $(( $(rm x) )) ¦ echo $[ $(rm x) ]
    (( $(rm x) ))
    A=$(rm x) ¦ A=(1 $(rm x)) ¦ A=$(rm x) ls ¦ export A=$(rm x) ¦ declare A=$(rm x) ¦ readonly b=$(rm x)
    cat <(rm x) ¦ cat > >(rm x) ¦ diff <(ls) <(rm x) ¦ cat <<< $(rm x) ¦ ls > $(rm x) ¦ echo $(< $(rm x))
    [[ $(rm x) ]] ¦ [[ a =~ $(rm x) ]] ¦ [ $(rm x) ] ¦ test $(rm x) ¦ [ -f x ] && rm x ¦ [[ -f x ]] && rm x
    cat <<EOF⏎$(rm x)⏎EOF ¦ cat <<EOF⏎`rm x`⏎EOF ¦ cat <<EOF⏎${x:-$(rm x)}⏎EOF ¦ cat <<-EOF⏎⇥$(rm x)⏎⇥EOF
    cat <<A <<B⏎a⏎A⏎$(rm x)⏎B ¦ cat <<EOF; rm x⏎b⏎EOF ¦ cat <<EOF && rm x⏎b⏎EOF ¦ cat <<EOF | rm x⏎b⏎EOF
    cat <<'E F'⏎x⏎E F⏎rm x ¦ cat <<EOF⏎x⏎EOF ⏎EOF⏎rm x ¦ cat <<EOF⏎a \⏎EOF⏎EOF⏎rm x ¦ (cat <<EOF⏎b⏎EOF⏎rm x)
    a[;]=1 rm x ¦ a[ 0 ]=1 rm x ¦ a[[]=1;]=2 rm x ¦ time a[;]=1 rm x ¦ a=(x)echo rm x ¦ source <(echo rm x)
    a=(x)#; rm x ¦ a=([ # ]=1) rm x⏎) ¦ cat > #f⏎rm x
    time a[0]=1 rm x ¦ time -- A=1 rm x ¦ env a-b=1 rm x ¦ env '!A=1' rm x
    sudo a.b=1 rm x ¦ ssh h -p 22 rm x
    time x= rm y ¦ time ! rm x ¦ time time rm x ¦ time coproc rm x ¦ bash ./rm x ¦ source ./rm x
    echo a # c \⏎rm x ¦ # c⏎rm x ¦ echo 'a⏎b'; rm x ¦ echo a \⏎; rm x ¦ echo a;#b⏎rm x ¦ set -e⏎rm x
""")
SPELLED = table(r"""
    'rm' x ¦ "rm" x ¦ r\m x ¦ \rm x ¦ r''m x ¦ 'r''m' x ¦ $'rm' x
    r\⏎m x
    rm⇥x ¦ rm \⏎ x ¦ \⏎rm x ¦ >out rm x ¦ rm x >out ¦ 2>/dev/null rm x ¦ <f >g 2>&1 rm x ¦ {fd}>f rm x
    rm x>f
    FOO=1 rm x ¦ A= rm x ¦ a+=1 rm x ¦ a[0]=1 rm x ¦ /bin/rm x ¦ ./rm x ¦ ../../bin/rm x
""")
RUN_BY_ANOTHER = table(r"""
    sudo rm x ¦ sudo -u root rm x ¦ sudo -Eu root rm x ¦ sudo --user=root rm x ¦ sudo -E FOO=1 rm x
    sudo -- rm x
    sudo /bin/rm x ¦ sudo env nice timeout 5 rm x ¦ sudo --odd-option rm x ¦ doas -u u rm x ¦ pkexec rm x
    env rm x ¦ env -i FOO=1 rm x ¦ env - rm x ¦ env -u A rm x ¦ env -S 'FOO=1 rm x'
    env --split-string='rm x'
    command rm x ¦ command -p rm x ¦ builtin command rm x ¦ exec rm x ¦ exec -a n rm x ¦ nohup rm x
    setsid -w rm x
    nice rm x ¦ nice -n 5 rm x ¦ nice -5 rm x ¦ nice --adjustment=5 rm x ¦ ionice -c2 -n0 rm x
    stdbuf -oL rm x
    timeout 5 rm x ¦ timeout -k 1 -s KILL 5 rm x ¦ timeout --kill-after=5 10 rm x ¦ timeout $T rm x
    time { rm x; }
    xargs rm ¦ ls | xargs -0 rm -f ¦ xargs -I{} rm {} ¦ xargs -I% rm % ¦ xargs -n1 -P4 rm
    xargs sh -c 'rm "$@"' _
    find . -exec rm {} \; ¦ find . -execdir rm {} + ¦ find . -ok rm {} \;
    find . -exec ls {} \; -exec rm {} \;
    find . -exec sh -c 'rm "$1"' _ {} \; ¦ find "$(echo x)" -exec rm {} + ¦ find . -exec env rm {} +
    sh -c 'rm x' ¦ bash -c 'ls; rm x' ¦ bash -lc 'rm x' ¦ bash -euo pipefail -c 'rm x'
    bash --norc -c 'rm x'
    bash -c -- 'rm x' ¦ bash +x -c 'rm x' ¦ zsh -c 'rm x' ¦ bash -c 'bash -c "rm x"' ¦ bash -c $'rm x'
    sudo sh -c 'rm x'
    bash <<EOF⏎rm x⏎EOF ¦ bash <<'EOF'⏎rm x⏎EOF ¦ sh -s <<< 'rm x' ¦ bash /dev/stdin <<< 'rm x'
    at now <<< 'rm x'
    source /dev/stdin <<< 'rm x' ¦ eval rm x ¦ eval 'ls; rm x' ¦ eval 'eval "rm x"' ¦ trap 'rm x' EXIT
    busybox rm x ¦ busybox sh -c 'rm x' ¦ watch -n 1 'rm x' ¦ flock f rm x ¦ flock -n f -c 'rm x'
    su root -c 'rm x'
    chroot /x rm x ¦ unshare -r rm x ¦ script -qc 'rm x' out ¦ strace -f -o out rm x ¦ taskset -c 0 rm x
    parallel rm ::: x ¦ parallel ::: 'rm x' ¦ ssh host rm x ¦ docker exec -it c rm x ¦ npx -c 'rm x'
    uv run rm x
    tar xf a --to-command='rm x' ¦ git -c alias.x='!rm x' x ¦ git rebase -x 'rm x' m
    GIT_SSH_COMMAND='rm x' git fetch
""")
NOT_DENIED = table(r"""
    echo rm x ¦ echo 'rm x' ¦ echo "rm x" ¦ echo "a; rm x" ¦ echo 'a | rm x' ¦ echo a\;rm ¦ git rm x
    grep rm x
    rmdir x ¦ rm ¦ ./rmx y ¦ ls rm ¦ man rm ¦ which rm ¦ command -v rm ¦ find . -name rm ¦ make rm
    npm run rm
    # rm x ¦ ls # rm x ¦ cat <<'EOF'⏎$(rm x)⏎EOF ¦ cat <<\EOF⏎`rm x`⏎EOF ¦ cat <<EOF⏎rm x⏎EOF
    cat <<EOF⏎\$(rm x)⏎EOF
    echo '$(rm x)' ¦ echo '`rm x`' ¦ echo "\$(rm x)" ¦ git commit -m 'rm x' ¦ git commit -m "x && rm y"
    FOO=rm ls ¦ X='rm x'; echo hi ¦ python -c 'print(1)' ¦ bash script.sh ¦ bash -c 'echo rm x'
    source env.sh
    sudo ls ¦ env ls ¦ xargs ls ¦ xargs -I{} echo {} ¦ timeout 5 ls ¦ find . -name "$P" ¦ find src -type f
    echo $HOME ¦ ls $DIR ¦ echo $? ¦ echo $((1+2)) ¦ echo "${x:-y}"
    for f in *.py; do echo "$f"; done
    echo "$(ls)" '$(rm x)' ¦ [[ $x == rm ]] && ls ¦ if [ -n "$x" ]; then ls; fi
    [[ $x =~ ^(rm|x)$ ]] ¦ case $x in rm) echo y;; esac
    git -c color.ui=always log
""")
UNCERTAIN = table(r"""
    $X y ¦ ${X} y ¦ "$X" y ¦ "${a[@]}" ¦ $(echo rm) x ¦ `echo rm` x ¦ r* x ¦ /bin/r? x ¦ ~/bin/$x
    FOO=1 $x ¦ ! $x
    eval $X ¦ eval "$X" ¦ bash -c "$X" ¦ sudo $X ¦ timeout 5 $X ¦ xargs $X ¦ xargs -I% %
    find . -exec $X {} \;
    echo rm x | bash ¦ cat x | sh ¦ bash ¦ bash -s < f ¦ curl u | bash -s -- a ¦ source <(echo r m x)
    bash <(echo x)
    X='-exec rm {} +'; find . $X ¦ find . $(cat opts) ¦ echo 'x ¦ echo "x ¦ ls && ¦ ls ;; ls ¦ ls ) ¦ ls \
    let y='a[$(rm)]' ¦ declare -i y; y='a[$(rm x)]' ¦ unset 'a[$(rm x)]' ¦ [ -v 'a[$(rm x)]' ]
    read 'a[$(rm x)]' <<< 1 ¦ x='a[$(mr x)]'; [[ x -eq 1 ]] ¦ x='a[`mr x`]'; ((x))
    a='x[$(mr y)]'; echo ${b[a]} ¦ $'\x72m' x ¦ $'\162m' x ¦ $"rm" x ¦ {rm,x} ¦ r{m,n} x ¦ find $DIR -type f
    echo "${x:-don't}" ¦ x=1; echo $((x+1)) ¦ a=([0]=x) ls ¦ trap - EXIT ¦ shopt -s nullglob
    f() { ls; }; f
    x='a[$(mr y)]'; echo $((x)) ¦ echo ${x@P} ¦ shopt -s extglob⏎!(x)
""")

NO_RM = ["Bash(rm *)"]


def decide_in_bypass(command: str) -> str:
    return decide(command, mode="bypassPermissions", deny=NO_RM)


def test_a_denied_program_is_refused_wherever_it_stands() -> None:
    assert_answers("deny", DENIED, decide_in_bypass)


def test_a_denied_program_is_refused_however_it_is_written() -> None:
    assert_answers("deny", SPELLED, decide_in_bypass)


def test_a_denied_program_is_refused_whatever_runs_it() -> None:
    assert_answers("deny", RUN_BY_ANOTHER, decide_in_bypass)


def test_text_that_only_mentions_a_denied_program_runs() -> None:
    assert_answers("auto", NOT_DENIED, decide_in_bypass)


def test_a_command_that_cannot_be_known_is_asked_about_when_a_rule_denies_something() -> None:
    assert_answers("approve", UNCERTAIN, decide_in_bypass)
    assert_answers(
        "deny", UNCERTAIN, lambda command: decide(command, mode="plan", deny=NO_RM, allow=["Bash"])
    )


def test_a_command_that_cannot_be_known_runs_in_bypass_when_nothing_is_denied() -> None:
    assert_answers("auto", UNCERTAIN, lambda command: decide(command, mode="bypassPermissions"))


@pytest.mark.parametrize(
    "characters", ["\x00", "\x1b[2J", "\x07", "\r", "\x7f", "\x9b", "\u202e", "\u2066", "\ud800"]
)
def test_control_and_direction_characters_are_never_run_unasked(characters: str) -> None:
    assert decide("ls " + characters, allow=["Bash"]) == "approve"
    assert decide("ls " + characters, mode="bypassPermissions", deny=NO_RM) == "approve"
    assert decide("rm x; ls " + characters, mode="bypassPermissions", deny=NO_RM) == "deny"


def test_an_argument_that_may_complete_a_denied_command_is_asked_about() -> None:
    rules = {"deny": ["Bash(git push *)"], "allow": ["Bash(git *)"]}
    for command in table(
        "X=push; git $X origin ¦ git $SUB origin ¦ git pus? origin ¦ git p* origin ¦ git $(echo push) x"
    ):
        assert decide(command, **rules) == "approve", command
    for command in table("git 'push' origin ¦ git  push origin ¦ git \\⏎ push origin"):
        assert decide(command, **rules) == "deny", command
    for command in table(
        'git status ¦ git commit -m "$MSG" ¦ git commit -m push ¦ git add *.py ¦ git log main'
    ):
        assert decide(command, **rules) == "auto", command


# --- allow rules: every part needs one ---

RULES = table("""
    Bash(ls *) ¦ Bash(ls) ¦ Bash(echo *) ¦ Bash(git status) ¦ Bash(git log *) ¦ Bash(npm test)
    Bash(npm run *) ¦ Bash(read *)
""")

COVERED = table(r"""
    ls ¦ ls -l ¦ 'ls' -l ¦ "ls" '-l' ¦ ls  -l ¦ ls⇥-l ¦ l\s -l ¦ ls \⏎ -l ¦ git 'status'
    gi"t" st\atus
    ls; echo a ¦ ls && echo b ¦ ls || echo b ¦ ls | echo c ¦ ls⏎echo d ¦ echo a & ls ¦ ls; ¦ ls & ¦ ! ls
    (ls) ¦ { ls; } ¦ if ls; then echo a; else ls; fi ¦ for i in a b; do echo $i; done
    while ls; do echo x; done ¦ while IFS= read -r l; do echo "$l"; done ¦ IFS=$'\n' read -r l
    case $X in a) ls;; *) echo x;; esac ¦ [[ -f x ]] && ls ¦ [ -f x ] && ls
    test -d a && ls
    echo $(ls) ¦ echo "$(ls -l)" ¦ echo `ls` ¦ X=$(ls); echo "$X" ¦ X=1; echo $X ¦ echo "$(git status)"
    ls # rm x
    ls 2>&1 ¦ ls 2>/dev/null ¦ ls >/dev/null 2>&1 ¦ ls &>/dev/null ¦ ls >&2 ¦ ls <in ¦ >/dev/null ls
    echo 'a; rm x' ¦ echo "a && rm x" ¦ echo 'a > b' ¦ echo a <<EOF⏎hi⏎EOF ¦ echo a <<'EOF'⏎$(rm x)⏎EOF
    echo $'a\nb'
    echo *.py ¦ ls ~ ¦ ls "$HOME" ¦ echo $((1+2)) ¦ git log --oneline -5
    time ls ¦ timeout 5 ls ¦ nice -n 5 ls ¦ nohup ls ¦ command ls ¦ stdbuf -oL ls ¦ NODE_ENV=test ls
    CI=1 LANG=C ls
    npm run build ¦ npm test && npm run lint ¦ git status && git log -1
""")
UNCOVERED = table(r"""
    rm x ¦ lsof ¦ npm run ¦ npm test x ¦ git status -s ¦ ls; rm x ¦ ls && rm x ¦ ls || rm x ¦ ls | rm
    ls & rm x ¦ ls⏎rm x
    (rm x) ¦ if ls; then rm x; fi ¦ f() { rm x; } ¦ echo $(rm x) ¦ echo "$(rm x)" ¦ ls `rm x` ¦ ls <(rm x)
    ls;rm${IFS}x
    cat <<EOF⏎x⏎EOF ¦ echo a <<EOF⏎$(rm x)⏎EOF ¦ [ $(rm x) ] && ls ¦ X=$(rm x); ls ¦ echo ${x:-$(rm x)}
    ls > out ¦ ls >> out ¦ ls >| out ¦ ls &> out ¦ ls &>> out ¦ ls >& out ¦ ls <> out ¦ >out ls ¦ ls 2>err
    { ls; } > out
    echo a > /etc/x ¦ echo a > ~/x ¦ echo a > $X ¦ echo a > *.c ¦ echo a > /dev/../dev/null
    ls < /dev/tcp/h/1
    sudo ls ¦ env ls ¦ exec ls ¦ xargs ls ¦ eval ls ¦ bash -c ls ¦ trap 'ls' EXIT ¦ time sudo ls
    timeout 5 rm x
    ./ls ¦ /bin/ls ¦ "ls -l" ¦ ls\ -l ¦ git\ status ¦ 'npm test' ¦ l? x ¦ {ls,-l} ¦ $X ¦ echo 'x ¦ ls &&
    ls ) ls
    IFS=x ls ¦ IFS=$X read -r l ¦ PATH=/x read -r l
    FOO=1 ls ¦ PATH=/x ls ¦ LD_PRELOAD=x ls ¦ NODE_OPTIONS=x ls ¦ LANG=$(rm) ls ¦ LANG=../x ls ¦ LANG=$X ls
    PATH=/x; ls ¦ IFS=x; ls ¦ BASH_ENV=x; ls ¦ PS4='$(rm x)'; ls ¦ for PATH in /x; do ls; done
    : ${PATH:=x}; ls
    f() { ls; } ¦ ((i++)); ls ¦ ls 2>&- ¦ echo {a,b} ¦ git log $BRANCH ¦ l\⏎s -l
    X=1 ¦ # only ¦ y='a[$(rm)]'; echo $((y)) ¦ echo ${x@P}
""")


def test_a_command_whose_every_part_is_allowed_runs() -> None:
    assert_answers("auto", COVERED, lambda command: decide(command, allow=RULES))


def test_a_command_with_a_part_that_no_rule_allows_is_asked_about() -> None:
    commands = [*UNCOVERED, "", "   "]
    assert_answers("approve", commands, lambda command: decide(command, allow=RULES))
    assert_answers("deny", commands, lambda command: decide(command, allow=RULES, mode="plan"))


@pytest.mark.parametrize("rule", ["Bash", "Bash(*)", "Bash(**)"])
def test_the_rule_for_every_command_covers_all_that_can_be_parsed(rule: str) -> None:
    for command in table(
        "rm -rf x ¦ ls > out ¦ sudo ls ¦ find . -delete ¦ PATH=x ls ¦ X=1 ¦ echo a > $X ¦ bash -c 'x'"
    ):
        assert decide(command, allow=[rule]) == "auto", command
    for command in table("$X ¦ ls && ¦ l? x ¦ echo 'x"):
        assert decide(command, allow=[rule]) == "approve", command


# --- runners ---

RUNNERS = table(
    "Bash(env *) ¦ Bash(sudo *) ¦ Bash(xargs *) ¦ Bash(bash *) ¦ Bash(bash) ¦ Bash(eval *) ¦ Bash(watch *)"
)
INNER = table("Bash(ls *) ¦ Bash(grep *) ¦ Bash(sort *) ¦ Bash(echo *)")


def test_a_rule_for_a_runner_does_not_cover_what_it_runs() -> None:
    for command in table("""
        env rm x ¦ sudo rm x ¦ xargs rm ¦ bash -c 'rm x' ¦ eval 'rm x' ¦ watch rm x ¦ sudo env rm x
        env -S 'rm x'
        bash -c 'ls -l; rm x' ¦ bash -c "$X" ¦ eval $X ¦ xargs -I{} sh -c '{}' ¦ env PATH=/x ls -l
        bash -c 'ls -l > o'
        bash <<'EOF'⏎rm x⏎EOF ¦ echo x | bash ¦ bash -c 'PATH=/x; ls -l' ¦ xargs sort
        bash -c 'X=-o; sort $X f'
    """):
        assert decide(command, allow=RUNNERS + INNER) == "approve", command


def test_a_runner_and_what_it_runs_may_be_covered_by_two_rules() -> None:
    for command in table("""
        env ls -l ¦ sudo -u www ls -l ¦ xargs grep x ¦ bash -c 'ls -l; grep x y'
        watch ls -l
        bash script.sh ¦ grep -r foo . | xargs ls -l ¦ bash <<'EOF'⏎ls -l⏎EOF
    """):
        assert decide(command, allow=RUNNERS + INNER) == "auto", command


@pytest.mark.parametrize(
    ("rule", "covered", "uncovered"),
    [
        ("Bash(sudo apt *)", "sudo apt update", "sudo rm x ¦ sudo -u x apt y ¦ apt update"),
        ("Bash(sudo apt update)", "sudo apt update", "sudo apt upgrade"),
        ("Bash(timeout 60 npm *)", "timeout 60 npm test", "timeout 61 npm test ¦ timeout 60 rm x"),
        ("Bash(FOO=1 npm *)", "FOO=1 npm test", "FOO=2 npm test ¦ A=1 FOO=1 npm test"),
        ("Bash(npx *)", "npx eslint .", "npx"),
        ("Bash(uv run *)", "uv run pytest -q", "uv pip install x"),
        ("Bash(docker exec web *)", "docker exec web ls", "docker exec db ls"),
        ("Bash(FOO=1 *)", "", "FOO=1 npm test"),
        ("Bash(find . -exec *)", "", "find . -exec rm {} +"),
        ("Bash(coproc *)", "", "rm x ¦ ls"),
        ("Bash(! *)", "", "rm x"),
    ],
)
def test_a_rule_covers_the_inner_command_that_it_spells_out(rule: str, covered: str, uncovered: str) -> None:
    assert [decide(command, allow=[rule]) for command in table(covered)] == ["auto"] * len(table(covered))
    assert {decide(command, allow=[rule]) for command in table(uncovered)} == {"approve"}


# --- redirections are writes ---


def test_a_redirection_needs_a_rule_for_its_target() -> None:
    rules = {"allow": ["Bash(echo *)", "Bash(cd *)", "Write(out.txt)", "Edit(src/**)"]}
    for command in table(
        'echo a > out.txt ¦ echo a >> ./out.txt ¦ echo a > src/a/b ¦ echo a >"/w/out.txt" ¦ echo a>out.txt'
    ):
        assert decide(command, **rules) == "auto", command
    for command in table(
        "echo a > other ¦ echo a > src/../other ¦ echo a > out.txt2 ¦ cd d && echo a > out.txt"
    ):
        assert decide(command, **rules) == "approve", command


def test_accept_edits_covers_redirections_into_the_workspace() -> None:
    rules = {"allow": ["Bash(echo *)", "Bash(cd *)"]}
    for command in table(
        "echo a > x ¦ echo a > d/x ¦ cd d && echo a > x ¦ echo a > /w/x ¦ (cd / ; echo a); echo b > x"
    ):
        assert decide(command, mode="acceptEdits", **rules) == "auto", command
    for command in table("""
        echo a > /etc/x ¦ echo a > ../x ¦ echo a > .git/config ¦ echo a > .bashrc ¦ cd / && echo a > x
        cd ..; echo a > x
        cd $X && echo a > x ¦ echo a > $X ¦ cd && echo a > x ¦ cd - && echo a > x
    """):
        assert decide(command, mode="acceptEdits", **rules) == "approve", command


# --- the grammar itself ---


@pytest.mark.parametrize(
    "text", ["echo 'a", 'echo "a', "echo `a", "echo $(a", "echo ${a", "ls &&", "| ls", "ls ; ; ls", "ls;;"]
)
def test_text_that_is_no_shell_program_is_refused_by_the_grammar(text: str) -> None:
    with pytest.raises(ShellSyntaxError):
        parse_shell(text)


@pytest.mark.parametrize(
    "opening", ["(", "$(", "{ ", "if ls; then ", 'echo "$(', "`", "${x:-", "$((", "bash -c '", "sudo ", "{"]
)
def test_deep_nesting_is_asked_about_and_never_crashes(opening: str) -> None:
    assert decide(opening * 10_000 + "rm x", deny=NO_RM) in ("approve", "deny")
    assert decide(opening * 10_000 + "ls", allow=["Bash(ls)"]) == "approve"


def test_a_thousand_parts_are_all_looked_at() -> None:
    harmless = "; ".join(f"echo {number}" for number in range(1_000))
    assert decide(harmless, allow=["Bash(echo *)"]) == "auto"
    assert decide(harmless + "; rm x", allow=["Bash(echo *)"]) == "approve"
    assert decide(harmless + "; rm x", mode="bypassPermissions", deny=NO_RM) == "deny"
