"""A git repository with one of everything, and a picture of it that two moments can be compared by."""

from __future__ import annotations

import os
import stat
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

_SETUP = r"""
set -e
git init -q -b main --template= .
git config user.name A; git config user.email a@example.invalid; git config gc.auto 0
git config commit.gpgsign false; git config advice.detachedHead false
mkdir -p src/util bin data readonly
printf 'read\nme\nplease\n' > README.md
printf 'print(1)\n' > src/main.py; printf 'x = 1\ny = 2\n' > src/util/helpers.py
printf '#!/bin/sh\necho run\n' > bin/run.sh; chmod 755 bin/run.sh
printf 'note\n' > notes.txt; printf 'both\n' > both.txt
printf 'only\n' > readonly/file; chmod 444 readonly/file
printf 'a\n' > 'name with blanks.txt'; printf 'b\n' > "$(printf 'new\nline.txt')"
printf 'c\n' > "quote's.txt"; printf 'd\n' > ünïcode-文.txt;
printf 'f\n' > "$(printf '\377\376.bin')"; printf 'locked\n' > readonly.txt; chmod 444 readonly.txt
printf 'clean:\n\trm -rf src build\n' > Makefile; printf 'rm -rf src\n' > wipe.sh
printf 'README.md\nnotes.txt\n' > list.txt
printf 'build/\n*.log\n.env\n*.key\n' > .gitignore
ln -s README.md link; ln -s nowhere dangling; ln -s src dirlink
git add -A; git commit -q -m one
git tag v1; git tag -a v2 -m two
git checkout -q -b feature; printf 'feature\n' > src/main.py; printf 'f\n' > feature.txt
git add -A; git commit -q -m feature
git checkout -q -b topic main; printf 'topic\n' > topic.txt; git add -A; git commit -q -m topic
git checkout -q main; printf 'read\nme\nnow\n' > README.md; git commit -q -a -m three
git clone -q --bare . ../remote.git; git remote add origin ../remote.git; git fetch -q origin
git checkout -q -b temporary; git branch -q -D temporary 2>/dev/null || git checkout -q main
git checkout -q main; git branch -q -D temporary 2>/dev/null || true
printf 's1\n' > notes.txt; git stash -q; printf 's2\n' > notes.txt; git stash -q
printf 'note changed\n' > notes.txt; printf 'staged\n' > staged.txt; git add staged.txt
printf 'both staged\n' > both.txt; git add both.txt; printf 'both changed\n' > both.txt
mkdir -p build/sub untracked/deep empty empty-outer/empty-inner vendor/lib
printf 'object' > build/out.o; printf 'more' > build/sub/more.o; printf 'README' > build/README.md
printf 'inner\n' > untracked/inner.txt; printf 'e\n' > untracked/-dash.txt; printf 'loose\n' > loose.txt
printf 'SECRET=1\n' > .env; printf 'key' > secret.key; chmod 600 secret.key; printf 'log\n' > trace.log
git hash-object -w --stdin <<< lost > /dev/null
head -c 1500000 /dev/urandom > data/big.bin
printf 'linked\n' > hard1; ln hard1 hard2
cd vendor/lib; git init -q --template=; git config user.name A; git config user.email a@b
echo l > l; git add l; git commit -q -m l; cd ../..
mkdir -p packed/src; printf 'from the archive\n' > packed/README.md; printf 'packed\n' > packed/src/main.py
tar cf archive.tar -C packed .; (cd packed && zip -qr ../archive.zip . 2>/dev/null || true); rm -r packed
printf -- '--- a/README.md\n+++ b/README.md\n@@ -1,3 +1,3 @@\n read\n me\n-now\n+patched\n' > change.patch
sqlite3 data/rows.db 'create table rows(x); insert into rows values (1), (2);' 2>/dev/null || true
find . -exec touch -h -d '2020-02-02 02:02:02.123456789' {} +
"""

ENVIRONMENT = {
    "PATH": os.environ["PATH"],
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_ALLOW_PROTOCOL": "file",
    "GIT_MERGE_AUTOEDIT": "no",
    "GIT_EDITOR": "true",
    "LC_ALL": "C.UTF-8",
}
QUESTIONS = (
    "status --porcelain --ignored",
    "for-each-ref",
    "stash list",
    "reflog --all",
    "fsck --connectivity-only --no-dangling",
)


def run_bash(command: str, where: Path) -> None:
    """Run it; whether it succeeds is its own affair."""
    environment = {**ENVIRONMENT, "HOME": str(where.parent)}
    subprocess.run(
        ["bash", "-c", "--", command], cwd=where, env=environment, capture_output=True, check=False
    )


def build_repository(where: Path) -> None:
    where.mkdir()
    environment = {**ENVIRONMENT, "HOME": str(where.parent)}
    done = subprocess.run(
        ["bash", "-c", _SETUP], cwd=where, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def take_picture(top: Path) -> dict[bytes, Any]:
    """Kind, mode, owner, time and content of everything."""
    root = os.fsencode(top)
    if not top.exists():
        return {}
    found: dict[bytes, Any] = {b".": _describe(root, os.lstat(root))}
    folders = [root]
    while folders:
        with os.scandir(folders.pop()) as entries:
            for entry in entries:
                found[entry.path[len(root) + 1 :]] = _describe(entry.path, entry.stat(follow_symlinks=False))
                if entry.is_dir(follow_symlinks=False):
                    folders.append(entry.path)
    return found


def _describe(path: bytes, facts: os.stat_result) -> tuple[Any, ...]:
    content: bytes | None = None
    if stat.S_ISLNK(facts.st_mode):
        content = os.readlink(path)
    elif stat.S_ISREG(facts.st_mode):
        with open(path, "rb", buffering=0) as file:
            content = file.read()
    return facts.st_mode, facts.st_uid, facts.st_gid, facts.st_mtime_ns, content


def ask_git(top: Path, questions: Sequence[str] = QUESTIONS) -> dict[str, bytes]:
    environment = {**ENVIRONMENT, "HOME": str(top.parent), "GIT_OPTIONAL_LOCKS": "0"}
    return {
        question: subprocess.run(
            ["git", *question.split()], cwd=top, env=environment, capture_output=True, check=False
        ).stdout
        for question in questions
    }


def differences(before: dict[bytes, Any], after: dict[bytes, Any]) -> dict[bytes, tuple[Any, Any]]:
    """What is not equal. Git's objects may have become more: they are never taken away again."""
    return {
        path: (before.get(path), after.get(path))
        for path in before.keys() | after.keys()
        if before.get(path) != after.get(path) and not _is_more_objects(path, before, after)
    }


def _is_more_objects(path: bytes, before: dict[bytes, Any], after: dict[bytes, Any]) -> bool:
    if b".git/objects" not in path or b".git/HEAD" not in before:
        return False
    if path not in before:
        return True
    # Git sets the times of objects it would have written again.
    return path in after and [*before[path][:3], before[path][4]] == [*after[path][:3], after[path][4]]
