"""Commands that only look, as allow rules: what the setting `autoAllowReadOnly` adds.

The rules are prefixes; options of these programs that write a file or start another program ask all the same,
because no prefix reaches them.
"""

from __future__ import annotations

_PROGRAMS = """
    ls cat head tail wc nl grep egrep fgrep rg find tree stat file du df diff cmp comm cut paste sort uniq tr
    column basename dirname realpath readlink pwd echo printf true false test which type whoami id uname
    md5sum sha1sum sha256sum cksum jq
"""
_GIT = """
    status log diff show blame shortlog describe rev-parse rev-list ls-files ls-tree cat-file merge-base grep
"""
_EXACT = (
    "date", "git branch", "git branch -a", "git branch -v", "git branch -vv", "git branch --show-current",
    "git remote", "git remote -v", "git tag", "git stash list", "git worktree list", "git --version",
)  # fmt: skip

READ_ONLY_COMMANDS: tuple[str, ...] = (
    *(f"Bash({program}:*)" for program in _PROGRAMS.split()),
    *(f"Bash(git {command}:*)" for command in _GIT.split()),
    *(f"Bash({command})" for command in _EXACT),
)
