"""The conversation as a file for others: Markdown, a page, or JSON, without secrets."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from anyio import to_thread
from msgspec import Raw

from robota.core.jsontext import decode
from robota.core.messages import JsonObject
from robota.sdk.commands.arguments import split_first, usage
from robota.sdk.commands.effects import CommandResult, Written, failure
from robota.sdk.commands.system.permissions import is_denied

if TYPE_CHECKING:
    from robota.sdk.interactive import InteractiveSession
    from robota.sessions.store.session_record import SessionRecord

ENDINGS = {"markdown": "md", "html": "html", "json": "json"}


async def export(host: InteractiveSession, args: str) -> CommandResult:
    session, (word, path) = host.session, split_first(args)
    form = word.lower() or "markdown"
    if form not in ENDINGS:
        form, path = {ending: name for name, ending in ENDINGS.items()}.get(word.rpartition(".")[2], ""), args
    if not form:
        return usage("export", "[markdown | html | json] [path]", f"{word!r} is no form to export to.")
    if not session.messages:
        return failure("There is nothing to export yet.")
    name = path.strip() or f"session-{session.session_id[:8]}.{ENDINGS[form]}"
    target = _place(session.cwd, name)
    if is_denied(host, "Write", file_path=target):
        return failure(f"{target} may not be written: a deny rule covers it.")
    from robota.sessions.description import describe_snapshot  # noqa: PLC0415 - for those who export
    from robota.sessions.snapshots import RedactedHistory  # noqa: PLC0415 - as above

    make = describe_snapshot(session, RedactedHistory())  # here: a conversation is read where it is changed
    try:
        await to_thread.run_sync(lambda: _write(form, _record(make()), target))
    except FileExistsError:
        return failure(f"{target} exists already: give another path, /export {form} PATH.")
    except OSError as error:
        return failure(f"{target} cannot be written: {error.strerror}.")
    return CommandResult(f"Written to {target}", effect=Written(target))


def _place(cwd: str, name: str) -> str:
    return os.path.join(cwd, os.path.expanduser(name))


def _record(described: SessionRecord | JsonObject) -> JsonObject:
    fields = described if isinstance(described, dict) else described.to_mapping()
    return {key: decode(bytes(value)) if isinstance(value, Raw) else value for key, value in fields.items()}


def _write(form: str, record: JsonObject, target: str) -> None:
    from robota.sessions import export_html, export_json, export_markdown  # noqa: PLC0415 - as above

    make = {"markdown": export_markdown, "html": export_html, "json": export_json}[form]
    text = make(record)
    with open(target, "x", encoding="utf-8") as file:
        file.write(text)
