"""`/memory`: the notes of a project, and what waits to become one."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from robota.core.errors import ValidationError
from robota.core.given import suggest
from robota.sdk.commands.arguments import dispatch, usage
from robota.sdk.commands.effects import CommandResult, Written
from robota.sdk.memory.files import INDEX
from robota.sdk.memory.note import GENERAL, TYPES, make_slug, read_note

if TYPE_CHECKING:
    from robota.sdk.interactive import InteractiveSession
    from robota.sdk.memory.memory import Memory

_OFF = 'Memory is off: set "memory": {"enabled": true} in your settings, or ROBOTA_MEMORY=1.'
_LABEL = re.compile(rf"({'|'.join(TYPES)})(?:/([^\s:]+))?:\s+(.+)", re.DOTALL)


async def memory(host: InteractiveSession, args: str) -> CommandResult:
    actions = {
        "list": _list_topics,
        "show": _show,
        "add": _add,
        "pending": _show_pending,
        "approve": _approve,
        "reject": _reject,
        "used": _show_used,
    }
    return await dispatch(host, "memory", args, actions)


async def _list_topics(host: InteractiveSession, args: str) -> CommandResult:
    files = host.kit.memory.files
    lines = [f"Memory: {host.kit.memory.mode.replace('_', ' ')}"]
    for topic in files.topics():
        notes = [line for line in files.read_topic(topic).splitlines() if read_note(line) is not None]
        lines.append(f"  {topic}: {len(notes)} {'note' if len(notes) == 1 else 'notes'}")
    waiting = len(files.pending())
    if waiting:
        lines.append(f"  {waiting} waiting for your consent: /memory pending")
    return CommandResult("\n".join(lines if host.kit.memory.mode != "disabled" else [_OFF, *lines[1:]]))


async def _show(host: InteractiveSession, args: str) -> CommandResult:
    files = host.kit.memory.files
    if not args:
        return CommandResult(files.read_start() or "Nothing is remembered yet.")
    text, topics = files.read_topic(args), files.topics()
    if not text:
        known = suggest(make_slug(args), topics) if topics else "nothing is remembered yet."
        raise ValidationError(f"There is no topic {args!r}; {known}")
    return CommandResult(text.rstrip())


async def _add(host: InteractiveSession, args: str) -> CommandResult:
    found = _LABEL.fullmatch(args)
    type, topic, text = (found[1], found[2] or GENERAL, found[3]) if found else ("project", GENERAL, args)
    saved = await host.kit.memory.add(text, type, topic)
    said = "Known already" if saved.deduplicated else "Remembered"
    note = "" if host.kit.memory.mode != "disabled" else f"\n{_OFF}"
    path = f"{host.kit.memory.files.directory}/{INDEX}"
    return CommandResult(f"{said}: {saved.note.line[2:]}{note}", effect=Written(path))


async def _show_pending(host: InteractiveSession, args: str) -> CommandResult:
    waiting = host.kit.memory.files.pending()
    lines = [f"{each.id}  ({each.type}/{each.topic}) {each.text}" for each in waiting]
    return CommandResult("\n".join(lines) or "Nothing is waiting.")


async def _approve(host: InteractiveSession, args: str) -> CommandResult:
    memory = host.kit.memory
    if not args:
        return usage("memory", "approve ID | all")
    saved = [await memory.approve(id) for id in _choose(memory, args)]
    return CommandResult("\n".join(f"Remembered: {each.note.line[2:]}" for each in saved))


async def _reject(host: InteractiveSession, args: str) -> CommandResult:
    memory = host.kit.memory
    if not args:
        return usage("memory", "reject ID | all")
    return CommandResult(
        "\n".join([f"Forgotten: {(await memory.reject(id)).text}" for id in _choose(memory, args)])
    )


def _choose(memory: Memory, args: str) -> list[str]:
    ids = [each.id for each in memory.files.pending()] if args == "all" else args.split()
    if not ids:
        raise ValidationError("Nothing is waiting.")
    return ids


async def _show_used(host: InteractiveSession, args: str) -> CommandResult:
    used = [each for each in host.kit.memory.used if isinstance(each, dict)]
    lines = [f"{each['topic']} (score {each['score']})" for each in used]
    return CommandResult("\n".join(lines) or "Nothing was recalled for a prompt of this session yet.")
