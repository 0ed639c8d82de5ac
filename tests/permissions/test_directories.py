"""Where a command runs: `cd`, the working directory of a call, links on the way, and repositories of git."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.permissions.tables import assert_answers, table

from robota.core.permissions import evaluate_permission, explain_permission

RULES = [f"Bash({name}:*)" for name in ("make", "echo", "git", "ls", "ln", "cp", "mkdir")]


def decide(command: str, **more: object) -> str:
    rules = [*RULES, "Bash(cd:*)", "Bash(pushd *)"]
    terms = {"allow": rules, "cwd": "/w", "home": "/home/u", "mode": "acceptEdits"}
    return evaluate_permission("Bash", {"command": command}, **(terms | more))  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["working_directory", "workingDirectory"])
def test_the_working_directory_of_a_call_is_judged_like_cd(name: str) -> None:
    def judge(directory: object, *allow: str, deny: tuple[str, ...] = ()) -> str:
        call = {"command": "make test", name: directory}
        return evaluate_permission("Bash", call, allow=allow, deny=deny, cwd="/w", home="/home/u")

    assert judge("/tmp/x", "Bash(make *)") == "approve"
    assert judge("sub", "Bash(make *)") == "approve"
    assert judge("../w/sub", "Bash(make *)") == "approve"
    assert [judge(same, "Bash(make *)") for same in (".", "/w", "/w/", "sub/..", None)] == ["auto"] * 5
    assert judge("sub", "Bash(make *)", "Bash(cd sub)") == "auto"
    assert judge("other", "Bash(make *)", "Bash(cd sub)") == "approve"
    assert judge("/etc", "Bash", deny=("Bash(cd /etc)",)) == "deny"
    assert judge("/etc", "Bash", deny=("Bash(cd *)",)) == "deny"
    assert judge(7, "Bash") == "approve"
    why = explain_permission("Bash", {"command": "make", name: "/tmp"}, allow=["Bash(make:*)"], cwd="/w")
    assert (why.decision, why.part) == ("approve", "cd /tmp")


def test_a_file_is_judged_in_the_working_directory_of_the_call() -> None:
    call = {"command": "cat key", "working_directory": "secrets"}
    assert evaluate_permission("Bash", call, allow=["Bash"], deny=["Read(secrets/**)"], cwd="/w") == "deny"


STEADY = table(r"""
    cd sub && echo a > x ¦ cd sub; cd in; echo a > /w/x ¦ (cd /; ls); echo a > x ¦ (cd sub && make x) | ls
    cd sub⏎echo a > x
    cd sub && cd in && echo a > x ¦ { cd sub && echo a > x; }
    for d in a b; do (cd sub && ls); done; echo a > x
    cd sub || ls; echo a > x ¦ ls | ls; cd sub; echo a > x ¦ cd ./sub/.. && echo a > x
""")  # fmt: skip
LOST = table(r"""
    ls || cd sub && echo a > x ¦ ls || cd sub; echo a > x ¦ ls || cd .. && ls; echo a > x
    for d in a b; do cd sub; done; echo a > x ¦ while cd sub; do ls; done; echo a > x
    for d in a; do echo a > x; cd ..; done
    if cd sub; then ls; fi; echo a > x ¦ if ls; then cd ..; fi; echo a > x
    case a in a) cd ..;; esac; echo a > x
    until cd ..; do ls; done; echo a > x ¦ cd -P sub && echo a > x ¦ cd -L sub && echo a > x
    cd -- sub && echo a > x
    cd $X && echo a > x ¦ cd "$X" && echo a > x ¦ cd - && echo a > x ¦ cd && echo a > x
    cd ~ && echo a > x ¦ cd .. && echo a > x
    cd sub | ls; echo a > x ¦ cd .. & echo a > x ¦ ls && cd ..; echo a > x ¦ pushd sub && echo a > x
    cd s* && echo a > x
    [[ -d .. ]] && cd ..; echo a > x ¦ (for d in a; do cd ..; done; echo a > x) ¦ { cd ..; } ; echo a > x
    cd a b; echo a > x
""")  # fmt: skip


def test_where_a_command_stands_is_followed_through_plain_lists() -> None:
    assert_answers("auto", STEADY, decide)


def test_a_cd_that_may_or_may_not_have_happened_leaves_relative_paths_unknown() -> None:
    assert_answers("approve", LOST, decide)


def test_a_relative_path_in_an_unknown_directory_may_be_a_denied_file() -> None:
    def judge(command: str) -> str:
        return decide(command, allow=["Bash"], deny=["Read(/srv/key)"], mode="default")

    commands = table(r"""
        cd $X; cat key ¦ cd -P /srv; cat key ¦ pushd /srv; cat key
    """)
    assert_answers("approve", commands, judge)
    denied = (
        "for d in a; do cd /srv; done; cat key ¦ cd /srv; cat key ¦ cd /; cat srv/key ¦ cd /srv && cat ./key"
    )
    assert_answers("deny", table(denied), judge)
    assert_answers("auto", table("cat key ¦ cd /srv && cat other ¦ (cd /srv); cat key"), judge)


def test_a_link_that_an_earlier_part_makes_leads_later_parts_anywhere() -> None:
    commands = table(r"""
        ln -s /etc d; echo a > d/x ¦ ln -s / d && echo a > d/etc/x ¦ cp -a l d; echo a > d/x
        cp -rs / d; echo a > d/x
        ln -sf ../.. d⏎echo a >> d/x ¦ ls | ln -s / d; echo a > x
    """)
    assert_answers("approve", commands, decide)

    def judge(command: str) -> str:
        return decide(command, allow=["Bash"], deny=["Read(/srv/secrets/**)"], mode="default")

    assert_answers("approve", table("ln -s .. d; cat d/key ¦ ln -s /sr d; cat d/secrets/key"), judge)
    assert judge("ln /srv/secrets/key k; cat k") == "deny"
    assert "auto" not in {judge(f"{make} /srv/secrets d; cat d/key") for make in ("ln -s", "mv", "cp -r")}
    assert_answers("auto", table("ln -s a b ¦ cp a b; cat c"), judge)


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    for name in ("bare/refs", "bare/objects", "repo/.git", "plain"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "bare" / "HEAD").write_text("ref: refs/heads/main\n")
    (tmp_path / "bare" / "config").write_text("[core]\n\tfsmonitor = touch ran\n")
    return tmp_path


def test_git_does_not_run_unasked_where_plain_files_would_be_its_settings(workspace: Path) -> None:
    def judge(command: str, directory: str = ".", **more: object) -> str:
        return decide(command, cwd=str(workspace / directory), mode="default", **more)

    assert judge("git status", "bare") == "approve"
    assert judge("git status", "bare/refs") == "approve"
    fine = table("git status ¦ cd repo && git status ¦ git -C repo log ¦ cd plain && git log")
    fine += [
        'cd "$(git rev-parse --show-toplevel)" && git status',
        "cd $(git rev-parse --show-toplevel); git log",
    ]
    assert_answers("auto", fine, judge)
    commands = table(r"""
        cd bare && git status ¦ git -C bare status ¦ git -C plain -C ../bare status ¦ (cd bare; git log)
        cd $X && git status
        ls && cd bare/refs && git status ¦ cd repo && cd ../bare && git diff ¦ git -C "$X" status
        cd bare; git status
    """)
    assert_answers("approve", commands, judge)
    call = {"command": "git status", "working_directory": "bare"}
    assert evaluate_permission("Bash", call, allow=[*RULES, "Bash(cd *)"], cwd=str(workspace)) == "approve"


def test_git_does_not_run_unasked_in_a_repository_that_the_command_makes() -> None:
    commands = table(r"""
        mkdir -p d/.git && cd d && git status ¦ echo x > HEAD; git status ¦ mkdir refs objects; git status
        cp -r x d/.git; cd d; git log ¦ echo x > d/config && cd d && git log
    """)
    assert_answers("approve", commands, decide)
