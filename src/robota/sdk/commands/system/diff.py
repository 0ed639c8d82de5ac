"""What is different: from the last commit, or from how this session found the files."""

from __future__ import annotations

from typing import TYPE_CHECKING

from anyio import to_thread

from robota.sdk.commands.arguments import split_first, usage
from robota.sdk.commands.effects import CommandResult, failure
from robota.sdk.commands.system.permissions import is_denied
from robota.sdk.git import run_git

if TYPE_CHECKING:
    from robota.sdk.interactive import InteractiveSession

GIT_SECONDS = 30.0
MAX_CHARACTERS = 100_000
_OUTPUT = 2 * MAX_CHARACTERS
_DIFF = (
    "diff", "--no-ext-diff", "--no-textconv", "--no-color", "--relative", "--ignore-submodules=dirty", "HEAD",
    "--", ".",
)  # fmt: skip


async def diff(host: InteractiveSession, args: str) -> CommandResult:
    word, _ = split_first(args)
    if word not in ("", "session"):
        return usage("diff", "[session]", f"{word!r} is nothing to compare with.")
    if word == "session":
        return await _session_diff(host)
    # Git obeys the configuration of a repository in much, so the project has to be trusted.
    if not host.project.trusted:
        return await _session_diff(host, "[Git was not run: this project is not trusted.]")
    if is_denied(host, "Bash", command="git diff HEAD"):
        return await _session_diff(host, "[Git was not run: a deny rule forbids it.]")
    shown = await _git_diff(host.session.cwd)
    if shown is None:
        return await _session_diff(host)
    return CommandResult(shown or "Nothing differs from the last commit.")


async def _git_diff(cwd: str) -> str | None:
    """What differs from the last commit; `None` where there is no repository, or no commit in it."""
    changes = await run_git(cwd, *_DIFF, timeout=GIT_SECONDS, output_limit=_OUTPUT)
    if changes.exit_code != 0:
        return None
    new = await run_git(cwd, "ls-files", "--others", "--exclude-standard", "--", ".", timeout=GIT_SECONDS)
    lines = [f"new: {path}" for path in new.stdout.splitlines()]
    return _cut("\n".join([*changes.stdout.rstrip("\n").splitlines(), *lines]))


async def _session_diff(host: InteractiveSession, note: str = "") -> CommandResult:
    from robota.tools.undo.changes import changed_files, show_changes  # noqa: PLC0415 - for those who ask

    store, session = host.kit.undo, host.session
    if store is None:
        return failure("There is no undo on this system, so nobody knows what the session changed.")
    files = await to_thread.run_sync(changed_files, store.base_dir, session.session_id)
    text = await to_thread.run_sync(show_changes, store.base_dir, files, session.cwd)
    return CommandResult(f"{_cut(text) or 'This session has changed no files.'}\n{note}".rstrip())


def _cut(text: str) -> str:
    if len(text) <= MAX_CHARACTERS:
        return text
    return f"{text[:MAX_CHARACTERS]}\n[{len(text) - MAX_CHARACTERS:,} more characters were left out.]"
