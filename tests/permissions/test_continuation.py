"""Lines joined by a backslash: bash joins them before it sees any token."""

from __future__ import annotations

from tests.permissions.tables import assert_answers, table

from robota.core.permissions import evaluate_permission
from robota.core.shell.grammar import parse_shell


def decide(command: str) -> str:
    return evaluate_permission(
        "Bash", {"command": command}, allow=["Bash(ls *)", "Bash(cat:*)"], deny=["Bash(rm *)"], cwd="/w"
    )


TORN = table(r"""
    r\⏎m x ¦ r\⏎\⏎m x ¦ rm\⏎ x ¦ ls &\⏎& rm x ¦ ls |\⏎| rm x ¦ ls;\⏎rm x ¦ echo $\⏎(rm x) ¦ echo "$\⏎(rm x)"
    echo "${x:-$\⏎(rm x)}" ¦ echo $((1 + $\⏎(rm x))) ¦ cat <\⏎(rm x)
    if a; then b; el\⏎se rm x; fi ¦ !\⏎ rm x
    A\⏎=1 rm x ¦ 2\⏎>&1 rm x ¦ $\⏎"rm" x ¦ time\⏎ rm x ¦ echo \\\⏎; rm x ¦ echo \\⏎rm x ¦ echo "`r\⏎m x`"
    echo `echo 'a\⏎b' ; rm x` ¦ cat <<EO\⏎F⏎$(rm x)⏎EOF ¦ cat <<EOF\⏎⏎$(rm x)⏎EOF ¦ cat <<EOF⏎$\⏎(rm x)⏎EOF
    cat <<EOF⏎a⏎EO\⏎F⏎rm x⏎EOF ¦ cat <<-EOF⏎\⏎⇥EOF⏎rm x⏎EOF ¦ cat <<'EOF'⏎a\⏎EOF⏎rm x⏎EOF ¦ # a\⏎rm x
    cat <<'EOF' # \⏎a⏎EOF⏎rm x ¦ ls # a \⏎rm x ¦ ls 'x # y' \⏎ | rm x ¦ { ls; } # \⏎rm x
""")
KEPT = table(r"""
    ls \⏎ -l ¦ ls -l \⏎&& ls b ¦ ls 'a\⏎b' ¦ ls '\⏎rm x' ¦ ls "a\⏎b"
    ls a # b \⏎ls c
    cat <<EOF⏎rm\⏎ x⏎EOF ¦ cat <<'EOF'⏎$\⏎(rm x)⏎EOF
    ls '#1' \⏎ -l ¦ cat "# a \⏎ b"
    ls "x #1"\⏎ -l ¦ ls a\⏎ -l ¦ cat "a # b\⏎c" ¦ cat <<EOF⏎# a \⏎b⏎EOF
""")
UNTOLD = table(r"""
    ls ' #' ; el\⏎se ¦ ls ' # ' $\⏎(ls a) ¦ cat " # $\⏎(ls a)" ¦ cat " # ${x}\⏎y"
    ls `ls # a \⏎b` ¦ ls $'a\⏎b'
    ls " #1"\⏎a ¦ l\⏎s -l ¦ ls -l > /dev/nu\⏎ll ¦ cat <<EOF⏎a\⏎EOF⏎b⏎EOF ¦ cat <<EOF⏎EO\⏎F⏎ls⏎EOF⏎EOF
    cat <<'A\'⏎A\⏎ls a
""")


def test_a_denied_program_is_found_when_a_line_end_tears_something_apart() -> None:
    assert_answers("deny", TORN, decide)


def test_joined_lines_are_read_as_bash_reads_them() -> None:
    assert_answers("auto", KEPT, decide)


def test_what_cannot_be_joined_with_certainty_is_asked_about() -> None:
    assert_answers("approve", UNTOLD, decide)


def test_single_quotes_keep_the_backslash_and_the_line_end() -> None:
    (command,) = parse_shell("ls 'a\\\n\\\nb' \"c\\\nd\"").commands
    assert [word.text for word in command.words] == ["ls", "a\\\n\\\nb", "cd"]


def test_a_quoted_here_document_keeps_its_lines() -> None:
    (command,) = parse_shell("cat <<'E'\n\\\na\\\n\\\nb\nE\n").commands
    assert command.redirections[0].body == "\\\na\\\n\\\nb\n"
