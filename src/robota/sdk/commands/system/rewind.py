"""Taking things back: the files of one call, or files and conversation to before a prompt."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from typing import TYPE_CHECKING

from robota.sdk.checkpoints import PARTS, Checkpoint, Part, SavedCall, TakenBack
from robota.sdk.commands.arguments import dispatch, usage
from robota.sdk.commands.effects import CommandResult, Rewound, failure

if TYPE_CHECKING:
    from robota.sdk.interactive import InteractiveSession
    from robota.tools.undo.journal import PathPreview

MOST_PATHS = 40
"""How many files an answer names."""
_OVERWRITE = "overwrite"
_MOST_SHOWN = 80


async def undo(host: InteractiveSession, args: str) -> CommandResult:
    if args.strip() == "list":
        calls = await host.kit.checkpoints.calls()
        lines = [_call_line(number, call) for number, call in enumerate(calls, 1)]
        return CommandResult("\n".join(lines) or "No call of this session changed a file.")
    words, overwrite = _split_overwrite(args)
    if len(words) > 1 or (words and not words[0].isdigit()):
        return usage("undo", "[list | N] [overwrite]")
    taken = await host.kit.checkpoints.undo(int(words[0]) if words else None, overwrite=overwrite)
    return _answer(host, f"Undone: {_shorten(taken.what)}", taken)


async def redo(host: InteractiveSession, args: str) -> CommandResult:
    taken = await host.kit.checkpoints.redo()
    return _answer(host, f"Done again: {_shorten(taken.what)}", taken, "came back")


async def rewind(host: InteractiveSession, args: str) -> CommandResult:
    actions = {"list": _list_checkpoints, "inspect": _inspect, "restore": _restore}
    return await dispatch(host, "rewind", args, actions)


async def _list_checkpoints(host: InteractiveSession, args: str) -> CommandResult:
    checkpoints = await host.kit.checkpoints.all()
    if not checkpoints:
        return CommandResult("There is no prompt to go back to yet.")
    return CommandResult("\n".join(map(_checkpoint_line, checkpoints)))


async def _inspect(host: InteractiveSession, args: str) -> CommandResult:
    if not args.isdigit():
        return usage("rewind", "inspect N")
    preview = await host.kit.checkpoints.inspect(int(args))
    lines = [
        f"Going back to before {preview.checkpoint.number} “{_shorten(preview.checkpoint.prompt)}”:",
        f"  {preview.messages} messages would be set aside",
        *(_path_line(host, each) for each in preview.paths[:MOST_PATHS]),
        *_rest(preview.paths),
    ]
    return CommandResult("\n".join(lines) if preview.paths else "\n".join([*lines, "  no file would change"]))


async def _restore(host: InteractiveSession, args: str) -> CommandResult:
    words, overwrite = _split_overwrite(args)
    part: Part = next((each for each in PARTS if words[1:] == [each]), "both")
    if not words or not words[0].isdigit() or words[1:] not in ([], [part]):
        return usage("rewind", "restore N [code | chat | both] [overwrite]")
    taken = await host.kit.checkpoints.restore(int(words[0]), part, overwrite=overwrite)
    said = f"Back to before {words[0]} “{_shorten(taken.what)}”"
    return _answer(host, said, taken, "were set aside", prompt=None if part == "code" else taken.what)


def _split_overwrite(args: str) -> tuple[list[str], bool]:
    words = args.split()
    return (words[:-1], True) if words[-1:] == [_OVERWRITE] else (words, False)


def _answer(
    host: InteractiveSession, said: str, taken: TakenBack, moved: str = "", prompt: str | None = None
) -> CommandResult:
    shown = host.project.places.shown
    lines = [f"{said}."]
    if taken.messages:
        lines.append(f"  {taken.messages} messages {moved}")
    for path in taken.restored[:MOST_PATHS]:
        done = "restored" if os.path.lexists(path) else "removed"
        lines += [f"  {done} {shown(path)}"]
    lines += _rest(taken.restored)
    lines += [f"  kept {shown(each.path)}: {each.reason}" for each in taken.kept[:MOST_PATHS]]
    lines += _rest(taken.kept)
    if not (taken.messages or taken.restored or taken.kept):
        lines.append("  everything was as it should be already")
    effect = Rewound(chat=taken.messages > 0, files=taken.restored, prompt=prompt)
    if taken.kept and not taken.restored and not taken.messages:
        return failure("\n".join(lines))
    return CommandResult("\n".join(lines), effect=effect)


def _rest(shown: tuple[object, ...]) -> Iterable[str]:
    return [f"  … and {len(shown) - MOST_PATHS} more"] if len(shown) > MOST_PATHS else []


def _checkpoint_line(checkpoint: Checkpoint) -> str:
    files = f"  [{_count(checkpoint.files)}]" if checkpoint.files else ""
    return (
        f"{checkpoint.number:>3}  {_clock(checkpoint.at.timestamp())}  {_shorten(checkpoint.prompt)}{files}"
    )


def _call_line(number: int, call: SavedCall) -> str:
    entry = call.entry
    state = "undone" if call.undone else _count(entry.files) if entry.ended else "cut off"
    return f"{number:>3}  {_clock(entry.at)}  {_shorten(entry.label)}  [{state}]"


def _path_line(host: InteractiveSession, path: PathPreview) -> str:
    note = " (changed by somebody else since: kept, unless you say overwrite)" if path.conflict else ""
    return f"  {path.action} {host.project.places.shown(path.path)}{note}"


def _count(files: int) -> str:
    return "1 file" if files == 1 else f"{files} files"


def _clock(at: float) -> str:
    return time.strftime("%H:%M:%S", time.localtime(at))


def _shorten(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _MOST_SHOWN else f"{line[: _MOST_SHOWN - 1]}…"
