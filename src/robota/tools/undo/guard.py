"""`guarded`: tool calls that are saved before they run, so that each can be undone."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, TypeAlias

import msgspec

from robota.core.errors import StorageError, describe_exception
from robota.core.messages import Json
from robota.core.permissions.subjects import subjects
from robota.core.tool import ToolContext, ToolResult
from robota.core.tool_call import PreparedCall, RunTool

if TYPE_CHECKING:
    from robota.tools.undo.journal import Saved
    from robota.tools.undo.plan import Plan
    from robota.tools.undo.snapshot import Unprotected
    from robota.tools.undo.store import UndoStore

Ask: TypeAlias = Callable[[PreparedCall, "tuple[Unprotected, ...]"], Awaitable[bool]]
"""Whether to run a call that could not be undone, or not completely."""
UNPROTECTED = "unprotected"
_CHANGING = ("command", "write")
FINISHING_SECONDS = 2.0
"""How long a call that was cancelled waits for its record."""


def guarded(
    run_tool: RunTool,
    store: UndoStore | Callable[[], UndoStore | None],
    *,
    workspace: Sequence[str] | Callable[[], Sequence[str]] = (),
    required: bool = False,
    ask: Ask | None = None,
    redact: Callable[[str], str] = str,
) -> RunTool:
    """`run_tool` with an undo entry for every call that may change files. A `store` that is a function is
    asked for it then; without one nothing is saved.

    It belongs behind the permission check: only what really runs is saved. Without a `workspace` it is the
    directory of the call; one that may change is given as a function. What cannot be saved is asked about;
    without `ask` the call runs with a note, or is refused if undo is `required`. `redact` is applied to what
    the entry shows of the call.
    """

    async def run(call: PreparedCall, context: ToolContext) -> ToolResult:
        from anyio import to_thread  # noqa: PLC0415 - loaded with the first call

        if not _may_change(call) or (kept := store() if callable(store) else store) is None:
            return await run_tool(call, context)
        directories = workspace() if callable(workspace) else workspace
        protection = _Protection(kept, call, context, tuple(directories), redact)
        try:
            await to_thread.run_sync(protection.begin)
            for notice in protection.notices:
                context.progress(notice)
            if protection.problems:
                refusal = await _refuse(call, protection.problems, required, ask)
                if refusal is not None:
                    return refusal
            result = await run_tool(call, context)
        finally:
            await protection.end()
        return protection.note(result)

    return run


async def _refuse(
    call: PreparedCall, problems: tuple[Unprotected, ...], required: bool, ask: Ask | None
) -> ToolResult | None:
    if await ask(call, problems) if ask is not None else not required:
        return None
    reasons = " ".join(problem.reason for problem in problems)
    return ToolResult(
        ok=False,
        denied=True,
        error=f"The call was not run because it could not be undone: {reasons}",
        error_code=UNPROTECTED,
    )


def _may_change(call: PreparedCall) -> bool:
    return call.tool is not None and call.answer is None and bool(_changed_by(call))


def _changed_by(call: PreparedCall) -> list[tuple[str, str | None]]:
    """The commands and files that the call names, each with its kind; None for what is not text."""
    touched = subjects(call.request.name, call.arguments, call.tool)
    return [
        (each.kind, each.value if isinstance(each.value, str) else None)
        for each in touched
        if each.kind in _CHANGING
    ]


class _Protection(msgspec.Struct):
    """The undo entry of one call. Nothing it does is raised: a failure is a problem to be shown."""

    store: UndoStore
    call: PreparedCall
    context: ToolContext
    workspace: tuple[str, ...]
    redact: Callable[[str], str]
    saved: Saved | None = None
    files: int = 0
    problems: tuple[Unprotected, ...] = ()

    @property
    def notices(self) -> tuple[str, ...]:
        return () if self.saved is None else self.saved.notices

    def begin(self) -> None:
        """Save; blocks."""
        try:
            plan, label = self._plan()
            if plan is None:
                return
            self.saved = self.store.save(
                plan,
                self.redact(label),
                tool=self.call.request.name,
                session_id=self.context.session_id,
                call_id=self.call.call_id,
            )
            self.problems = self.saved.unprotected
        except Exception as error:  # noqa: BLE001 - whatever it is, it must not cost the call
            self._fail("The undo store failed", error)

    async def end(self) -> None:
        """Record how the call left things, also when it was cancelled."""
        from anyio import move_on_after, to_thread  # noqa: PLC0415 - see above

        if self.saved is not None and self.saved.entry_id is not None:
            with move_on_after(FINISHING_SECONDS, shield=True):  # the thread goes on if that is too short
                await to_thread.run_sync(self._finish, self.saved.entry_id, abandon_on_cancel=True)

    def note(self, result: ToolResult) -> ToolResult:
        """The result with what undo has to say about it: a sentence only if something is wrong."""
        entry_id = None if self.saved is None else self.saved.entry_id
        if entry_id is None and not self.problems:
            return result
        reasons: list[Json] = [problem.reason for problem in self.problems]
        undo: dict[str, Json] = {"entry": entry_id, "files": self.files}
        if self.notices:
            undo["notices"] = list(self.notices)
        if not reasons:
            return msgspec.structs.replace(result, metadata={**result.metadata, "undo": undo})
        undo["unprotected"] = reasons
        lines = [result.content] if result.content else []
        content = "\n".join([*lines, *(f"[Cannot be undone completely: {each}]" for each in reasons)])
        return msgspec.structs.replace(result, content=content, metadata={**result.metadata, "undo": undo})

    def _plan(self) -> tuple[Plan | None, str]:
        from robota.tools.files.path import locate  # noqa: PLC0415 - loaded with the first call
        from robota.tools.undo.plan import plan_anything, plan_command, plan_files  # noqa: PLC0415

        changed = _changed_by(self.call)
        cwd = self.context.cwd or os.getcwd()
        workspace, where = self.workspace or (cwd,), os.path.join(cwd, self._started_in())
        files = [locate(text, cwd) for kind, text in changed if kind == "write" and text is not None]
        label = f"{self.call.request.name} {', '.join(files)}".rstrip()
        plan = plan_files(files, workspace) if files else None
        for kind, text in changed:
            if text is None:  # only the tool knows what that means
                more: Plan | None = plan_anything(where, workspace)
            elif kind == "command":
                more, label = plan_command(text, where, workspace), text
            else:
                continue
            plan = more if plan is None else plan.join(more)
        return plan, label

    def _started_in(self) -> str:
        given = self.call.arguments.get("working_directory", self.call.arguments.get("workingDirectory"))
        return given if isinstance(given, str) else ""

    def _finish(self, entry_id: str) -> None:
        try:
            self.files = self.store.finish(entry_id).files
        except Exception as error:  # noqa: BLE001 - nor its result
            self._fail("How the call left the files was not recorded, so undo will ask about each", error)

    def _fail(self, what: str, error: Exception) -> None:
        from robota.tools.undo.snapshot import Unprotected  # noqa: PLC0415 - only after a failure

        reason = str(error) if isinstance(error, StorageError) else describe_exception(error)
        self.problems = (*self.problems, Unprotected("store", f"{what}: {reason}"))
