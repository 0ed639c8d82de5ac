"""The setting `autoAllowReadOnly`: what only looks runs without a question, nothing else does."""

from __future__ import annotations

import pytest
from tests.sdk.settings.conftest import House

from robota.core.permissions import evaluate_permission


@pytest.fixture
def allow(house: House) -> tuple[str, ...]:
    return house.write(user={"autoAllowReadOnly": True}).load().rules.allow


@pytest.mark.parametrize(
    "command",
    [
        "ls -la src",
        "cat README.md | head -n 20",
        "rg -n 'def main' src",
        "grep -rn todo . | wc -l",
        "find . -name '*.py' -newer setup.py",
        "git status --short",
        "git log --oneline -5",
        "git diff HEAD~1 -- src",
        "git show HEAD",
        "git branch",
        "pwd && ls",
        "sort names.txt | uniq -c",
        "date",
    ],
)
def test_commands_that_only_look_run(allow: tuple[str, ...], command: str) -> None:
    assert evaluate_permission("Bash", {"command": command}, allow=allow, cwd="/tmp") == "auto"


@pytest.mark.parametrize(
    "command",
    [
        "ls > out.txt",
        "cat a | tee b",
        "find . -delete",
        "find . -exec rm {} +",
        "find . -fprint out",
        "sort -o out a",
        "sort --compress-program=./x a",
        "rg --pre ./x pattern",
        "tree -o out.html",
        "uniq a b",
        "date -s 2020-01-01",
        "git branch new",
        "git branch -D main",
        "git tag v1",
        "git diff --output=x",
        "git -c core.pager=./x log",
        "git log --output=x",
        "git grep -O./x y",
        "git remote add x y",
        "git stash",
        "echo $(rm -rf x)",
        "jq --rawfile a /etc/passwd . ; rm x",
        "file -C -m x",
        "cat /proc/self/environ",
        "ls; curl example.com",
        "env ls",
        "xargs rm",
    ],
)
def test_whatever_else_they_can_do_asks(allow: tuple[str, ...], command: str) -> None:
    assert evaluate_permission("Bash", {"command": command}, allow=allow, cwd="/tmp") == "approve"


def test_it_is_off_unless_the_user_turns_it_on(house: House) -> None:
    assert house.load().rules.allow == ()
