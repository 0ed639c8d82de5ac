"""What commands do to files, as data, and how rules for files bind shell commands."""

from __future__ import annotations

import pytest
from tests.permissions.tables import assert_answers, table

from robota.core.permissions import evaluate_permission
from robota.core.shell.effects import find_touches, is_read_only, known_path
from robota.core.shell.grammar import parse_shell
from robota.core.shell.invocations import Invocation, find_invocations, walk

CWD, HOME = "/w", "/home/u"


def started(command: str) -> list[Invocation]:
    return walk(find_invocations(parse_shell(command), (CWD,), HOME))


def touched(command: str, kind: str) -> list[str | None]:
    """The files that a command reads, writes or deletes; None for one that is only known when it runs."""
    script = parse_shell(command)
    touches = find_touches(script, started(command), (CWD,), HOME)
    return [
        known_path(touch.word, directory, HOME, frozenset(script.assigned))
        for touch in touches
        if touch.kind == kind
        for directory in touch.directories
    ]


def decide(command: str, *deny: str) -> str:
    return evaluate_permission(
        "Bash", {"command": command}, mode="bypassPermissions", deny=list(deny), cwd="/w", home="/home/u"
    )


# --- effects ---


def test_reads_writes_and_deletes_come_with_absolute_paths() -> None:
    command = "cat a ~/b > out; rm -r build; cp src/x dst; mv p q; sed -i s/a/b/ f; tee t < in"
    assert touched(command, "read") == ["/w/a", "/home/u/b", "/w/src/x", "/w/p", "/w/f", "/w/in"]
    assert {*touched(command, "write")} >= {"/w/out", "/w/dst", "/w/q", "/w/f", "/w/t"}
    assert touched(command, "delete") == ["/w/build", "/w/p"]


def test_options_are_not_taken_for_files() -> None:
    for command in ("grep -e x -A 3 f", "head -n 5 f", "awk -F, '{print $1}' f"):
        assert touched(command, "read") == ["/w/f"]
    assert touched("dd if=a of=b bs=1", "write") == ["/w/b"]
    assert touched("tar czf a.tgz src", "write") == ["/w/a.tgz"]
    assert touched("tar czf a.tgz src", "read") == ["/w/src"]


def test_a_change_of_directory_is_followed() -> None:
    assert touched("cd sub && cat x", "read") == ["/w/sub/x"]
    assert {*touched("cd sub; cat x", "read")} == {"/w/x", "/w/sub/x"}
    assert touched("(cd sub && cat x); cat y", "read") == ["/w/sub/x", "/w/y"]
    assert touched("cd $D && cat x", "read") == [None]
    assert touched("cat $X", "read") == [None]


def test_inner_commands_count() -> None:
    command = "sudo cat a; bash -c 'rm b'; find . -exec touch {} +"
    assert (touched(command, "read"), touched(command, "delete")) == (["/w/a"], ["/w/b"])
    runs = ["sudo cat a", "cat a", "bash -c rm b", "rm b", "find . -exec touch {} +", "touch …"]
    assert [each.command.text for each in started(command)] == runs


def test_commands_that_only_look_are_known() -> None:
    command = "git log --oneline | head -5; grep -r foo src && ls -la"
    assert all(is_read_only(each) for each in started(command))
    for other in ("rm x", "git push", "./tool", "curl u"):
        assert not any(is_read_only(each) for each in started(other)), other


# --- a Read rule binds readers in the shell ---

READERS = """
    cat .env ¦ cat ./.env ¦ cat a/../.env ¦ cat /w/.env ¦ cat -n -- .env ¦ 'cat' ".env" ¦ cat .e"nv"
    cat $'.env' ¦ /bin/cat .env
    cat < .env ¦ cat <.env>out ¦ exec 3< .env ¦ { cat; } < .env ¦ while read l; do :; done < .env
    echo $(<.env) ¦ tee x < .env
    head -n 1 .env ¦ tail -f .env ¦ tac .env ¦ nl .env ¦ less .env ¦ more .env ¦ bat .env ¦ vim .env
    strings .env ¦ xxd .env
    grep KEY .env ¦ grep -e KEY .env ¦ grep -f .env x ¦ rg KEY .env ¦ sed -n p .env ¦ awk 1 .env
    awk -F= '{print $2}' .env
    cut -d= -f2 .env ¦ sort .env ¦ wc .env ¦ diff .env x ¦ base64 .env ¦ sha256sum .env ¦ jq . .env
    column -t .env ¦ od -c .env
    cp .env x ¦ cp .env{,.bak} ¦ mv .env x ¦ ln -s .env x ¦ tar czf x.tgz .env ¦ zip x .env ¦ dd if=.env
    rsync .env h: ¦ scp .env h:
    source .env ¦ . ./.env ¦ curl -d @.env u ¦ curl -F 'f=@.env;type=x' u ¦ curl -T .env u
    curl file:///w/.env ¦ openssl enc -in .env
    sudo cat .env ¦ bash -c 'cat .env' ¦ echo "$(cat .env)" ¦ find . -exec cat .env \\;
    timeout 5 cat .env ¦ cat {a,.env}
    git show HEAD:.env ¦ git diff --no-index /dev/null .env ¦ git grep KEY .env ¦ git blame .env
    cat $PWD/.env ¦ F=.env; cat $F ¦ F=.en; cat "${F}v" ¦ echo x > .env
"""


def decide_under_read_deny(command: str) -> str:
    return decide(command, "Read(.env)")


def test_a_read_deny_binds_programs_that_read_files() -> None:
    assert_answers("deny", table(READERS), decide_under_read_deny)


def test_a_read_that_may_reach_a_denied_file_is_asked_about() -> None:
    commands = table("""
        cat $X ¦ cat .e* ¦ cat .en? ¦ cat .[e]nv ¦ cat `x` ¦ xargs cat ¦ find . -exec cat {} +
        cat a$IFS.env ¦ cat a${IFS}.env ¦ cat a${x:- .env} ¦ F='b .env'; cat a$F
        grep -r KEY . ¦ grep -r KEY ¦ rg --hidden KEY ¦ tar cf x . ¦ cp -r . /tmp/x
    """)
    assert_answers("approve", commands, decide_under_read_deny)


def test_a_read_deny_leaves_other_commands_alone() -> None:
    commands = table("""
        cat x ¦ cat .env.example ¦ cat * ¦ cat *.py ¦ cat src/*.py ¦ ls .env ¦ stat .env ¦ test -f .env
        [ -f .env ] ¦ git add .env
        grep .env x ¦ grep '.env' README ¦ grep -r foo src ¦ rg foo ¦ sed -n '/.env/p' x ¦ awk '/.env/' x
        jq .env x ¦ echo .env
        echo '.env' >> .gitignore ¦ find . -name .env ¦ cat "$DIR/file.txt" ¦ cat $HOME/x ¦ git grep .env
        curl https://x/.env
    """)
    assert_answers("auto", commands, decide_under_read_deny)


def test_home_is_the_same_however_it_is_written() -> None:
    for command in table(
        'cat ~/.ssh/id ¦ cat $HOME/.ssh/id ¦ cat "${HOME}"/.ssh/id ¦ cd ~/.ssh && cat id ¦ cd; cat .ssh/id'
    ):
        assert decide(command, "Read(~/.ssh/**)") == "deny", command


# --- Write and Edit rules bind writers ---


def test_a_write_deny_binds_programs_that_write_files() -> None:
    commands = table("""
        echo a > /etc/x ¦ echo a >> /etc/../etc/x ¦ { echo a; } > /etc/x ¦ tee /etc/x ¦ sudo tee /etc/x
        touch /etc/x ¦ rm /etc/x
        cp a /etc/x ¦ cp a /etc/ ¦ cp -t /etc a ¦ mv a /etc/ ¦ ln -s a /etc/x ¦ install a /etc/x
        sed -i p /etc/x ¦ dd of=/etc/x
        cd /etc && touch x ¦ bash -c 'echo > /etc/x' ¦ truncate -s 0 /etc/x ¦ find /etc -delete
        tar cf /etc/x a ¦ sort -o /etc/x y
        chmod 777 /etc/x ¦ mkdir /etc/x
    """)
    assert_answers("deny", commands, lambda command: decide(command, "Write(/etc/**)"))
    assert_answers("deny", commands, lambda command: decide(command, "Edit(/etc/**)"))


def test_a_write_deny_leaves_other_commands_alone() -> None:
    commands = table("cat /etc/x ¦ echo a > /tmp/x ¦ ls /etc ¦ cp /etc/x . ¦ echo a > /etcx/y ¦ echo /etc/x")
    assert_answers("auto", commands, lambda command: decide(command, "Write(/etc/**)"))


@pytest.mark.parametrize(
    "text",
    ["cd /etc && > passwd", "cd /etc; > passwd", "cd /etc; ls; 2> passwd", "cd /etc && { ls; } > passwd"],
)
def test_a_redirection_without_a_command_is_judged_where_cd_has_led(text: str) -> None:
    rules = {"allow": ["Bash"], "deny": ["Write(/etc/**)"]}
    assert evaluate_permission("Bash", {"command": text}, cwd="/w", **rules) == "deny"
    assert (
        evaluate_permission(
            "Bash", {"command": text}, cwd="/w", mode="acceptEdits", allow=["Bash(cd *)", "Bash(ls)"]
        )
        == "approve"
    )
    inside = text.replace("/etc", "sub")
    assert (
        evaluate_permission(
            "Bash", {"command": inside}, cwd="/w", mode="acceptEdits", allow=["Bash(cd *)", "Bash(ls)"]
        )
        == "auto"
    )
