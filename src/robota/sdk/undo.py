"""Undo for a session: every call that may change files is saved first, in a store of the project's own.

Stores lie below robota's home, where no project can reach them. One that was not used for as long as its
entries are kept is removed when a session begins.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from robota._lazy_pattern import lazy_pattern
from robota.core.tool import ToolContext, ToolResult
from robota.core.tool_call import PreparedCall, RunTool, invoke_tool
from robota.sdk.places import Places

if TYPE_CHECKING:
    from robota.tools.undo.store import UndoStore

_UNSAFE = lazy_pattern(r"[^A-Za-z0-9_.-]+")
_DAY_SECONDS = 86_400.0
HAS_UNDO = os.name == "posix"
MAX_AGE_DAYS = 30.0


def undo_directory(places: Places) -> str:
    """Where the entries of the project are: `~/.robota/undo/<name>-<hash>`."""
    from hashlib import sha256  # noqa: PLC0415 - loads OpenSSL, for sessions that change something

    real = os.path.realpath(places.cwd)
    name = _UNSAFE.sub("-", os.path.basename(real))[:40]
    return places.user("undo", f"{name}-{sha256(os.fsencode(real)).hexdigest()[:16]}")


def open_undo(places: Places) -> UndoStore | None:
    """The store of the project; none where the system has no way for it."""
    if not HAS_UNDO:
        return None
    from robota.tools.undo.store import UndoStore  # noqa: PLC0415 - with the first call that changes a file

    return UndoStore(undo_directory(places), max_age_days=MAX_AGE_DAYS)


def run_with_undo(
    find_store: Callable[[], UndoStore | None],
    *,
    enabled: Callable[[], bool],
    workspace: Callable[[], Sequence[str]],
    redact: Callable[[str], str],
) -> RunTool:
    """What runs the tools of a session with undo.

    Before each call it is asked whether files are to be saved, and which directories belong to the session;
    `redact` makes what an entry shows. The store is asked for when there is something to save.
    """
    if not HAS_UNDO:
        return invoke_tool
    from robota.tools.undo.guard import guarded  # noqa: PLC0415 - for those who have undo

    saving = guarded(invoke_tool, find_store, workspace=workspace, redact=redact)

    async def run_tool(call: PreparedCall, context: ToolContext) -> ToolResult:
        return await (saving if enabled() else invoke_tool)(call, context)

    return run_tool


def remove_unused_stores(
    places: Places, max_age_days: float = MAX_AGE_DAYS, now: float | None = None
) -> list[str]:
    """Remove the stores of projects that nobody worked in for so long that their entries are too old."""
    oldest = (time.time() if now is None else now) - max_age_days * _DAY_SECONDS
    removed: list[str] = []
    with suppress(OSError), os.scandir(places.user("undo")) as found:  # a save would say what is wrong
        for each in found:
            with suppress(OSError):  # one without a journal was never used
                journal = os.lstat(os.path.join(each.path, "journal.jsonl"))
                if each.is_dir(follow_symlinks=False) and journal.st_mtime < oldest:
                    from shutil import rmtree  # noqa: PLC0415 - once in a month

                    rmtree(each.path, ignore_errors=True)
                    removed.append(each.name)
    return removed
