"""Files that decide what runs later: settings, hooks, shell start-up files, keys.

They are protected from `acceptEdits` and from allow rules that reach them only by a wildcard, existing or
not, whatever their spelling in upper or lower case.
"""

from __future__ import annotations

from collections.abc import Iterable

_CONFIGURATION = frozenset({"hooks", "commands", "agents", "skills", "plugins", "auth.json", "trust.json"})
_GIT = frozenset({"config", "config.worktree", "hooks", "commondir", "attributes"})
_FILES = frozenset({
    ".mcp.json", ".claude.json", ".gitmodules", ".gitconfig", ".git", ".bashrc", ".bash_profile",
    ".bash_login", ".bash_logout", ".bash_aliases", ".profile", ".zshrc", ".zshenv", ".zprofile",
    ".zlogin", ".zlogout", ".kshrc", ".mkshrc", ".cshrc", ".tcshrc", ".login", ".logout", ".inputrc",
    ".envrc", ".vimrc", ".gvimrc", ".nvimrc", ".exrc", ".emacs",
})  # fmt: skip
_DIRECTORIES = frozenset({".ssh", ".vscode", ".idea", ".zed", ".claude-plugin", ".emacs.d"})
_PAIRS = frozenset(
    {
        (".config", "git"),
        (".config", "fish"),
        (".config", "nvim"),
        ("etc", "profile.d"),
        ("etc", "ssh"),
        ("etc", "zsh"),
    }
)
_SYSTEM = frozenset(
    {"profile", "bash.bashrc", "bashrc", "zshrc", "zshenv", "zprofile", "environment", "csh.cshrc"}
)


def find_protection(paths: Iterable[str]) -> str | None:
    """The component that makes one of the paths protected, in lower case; None when none is."""
    for path in paths:
        components = [component for component in path.casefold().split("/") if component]
        for index, component in enumerate(components):
            if _protects(components, index, component):
                return component
    return None


def _protects(components: list[str], index: int, component: str) -> bool:
    rest = components[index + 1 :]
    following = rest[0] if rest else ""
    if component in (".robota", ".claude"):
        return following in _CONFIGURATION or following.startswith(("settings", "hooks."))
    if component == ".git" and rest:
        return not _GIT.isdisjoint(rest)
    if component in _FILES or component.endswith(".code-workspace"):
        return not rest
    if component in _DIRECTORIES or (component, following) in _PAIRS:
        return bool(rest)
    return component == "etc" and index == 0 and len(rest) == 1 and following in _SYSTEM
