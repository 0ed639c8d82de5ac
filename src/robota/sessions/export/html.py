"""A session as one HTML page that needs nothing else: no network, no other file, no script to be complete.

All text is treated as hostile. The page's own style and script are named by their hashes in a content policy,
so that nothing that got into the page by mistake could run or load anything. Work is linear in the session.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

from robota.core.context import normalize_usage
from robota.core.messages import (
    AssistantMessage,
    FilePart,
    ImagePart,
    ImageUriPart,
    Message,
    Part,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from robota.sessions.export.call_view import show_json, view_call
from robota.sessions.export.html_text import block, escape, escape_line, link, prose
from robota.sessions.export.source import (
    SPEAKERS,
    Exportable,
    ExportSource,
    Step,
    attached_size,
    describe_kind,
    describe_time,
    describe_usage,
    message_of,
    read_source,
)

PROMPT_PREVIEW = 80
_PICTURES = frozenset(("image/png", "image/jpeg", "image/gif", "image/webp"))
_BASE64 = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=")


def export_html(record: Exportable, *, redact: bool = True, secrets: Sequence[str] = ()) -> str:
    """The page; `secrets` are values to remove beside those that look like secrets."""
    source = read_source(record, redact=redact, secrets=secrets)
    style, script = _beside("page.css"), _beside("page.js")
    policy = (
        f"default-src 'none'; img-src data:; style-src '{_digest(style)}'; script-src '{_digest(script)}'; "
        "base-uri 'none'; form-action 'none'"
    )
    pieces = [
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n',
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n',
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n',
        '<meta name="referrer" content="no-referrer">\n<meta name="color-scheme" content="light dark">\n',
        f"<title>{escape_line(source.title)}</title>\n<style>{style}</style>\n</head>\n<body>\n",
        *_head(source),
        "<main>\n",
        *_turns(source),
        f"</main>\n<script>{script}</script>\n</body>\n</html>\n",
    ]
    return "".join(pieces)


def _beside(name: str) -> str:
    with open(os.path.join(os.path.dirname(__file__), name), encoding="utf-8", newline="") as file:
        return file.read()


def _digest(text: str) -> str:
    import base64  # noqa: PLC0415 - only an export needs them
    import hashlib  # noqa: PLC0415

    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def _head(source: ExportSource) -> Iterator[str]:
    yield f"<header>\n<h1>{escape_line(source.title)}</h1>\n<dl>"
    for name, value in source.facts:
        yield f"<div><dt>{name}</dt><dd>{escape_line(value)}</dd></div>"
    yield "</dl>\n"
    prompts = list(_prompts(source))
    if len(prompts) > 1:
        yield f'<details class="contents"><summary>{len(prompts):,} prompts</summary><ol>'
        yield from prompts
        yield "</ol></details>\n"
    yield (
        '</header>\n<div id="tools" hidden>'
        '<input id="search" type="search" placeholder="Search" aria-label="Search">'
        '<output id="found"></output><button id="unfold" type="button">Unfold all</button></div>\n'
    )


def _prompts(source: ExportSource) -> Iterator[str]:
    number = 1
    for turn in source.turns:
        message = message_of(turn.steps[0])
        if isinstance(message, UserMessage):
            words = escape_line(message.content[:PROMPT_PREVIEW]) or "(no text)"
            yield f'<li><a href="#m{number}">{words}</a></li>'
        number += len(turn.steps)


def _turns(source: ExportSource) -> Iterator[str]:
    number = 0
    for turn in source.turns:
        yield "<section>\n"
        for step in turn.steps:
            number += 1
            yield from _step(step, number)
        usage = describe_usage(turn.usage)
        if usage:
            yield f'<p class="usage">Turn: {usage}</p>\n'
        yield "</section>\n"


def _step(step: Step, number: int) -> Iterator[str]:
    message, entry = message_of(step), step.entry
    speaker = "Event" if message is None else SPEAKERS[message.role]
    note = escape_line(entry.type) if message is None else _note(message)
    when = f'<time datetime="{entry.timestamp.isoformat()}">{describe_time(entry.timestamp)}</time>'
    yield f'<article id="m{number}" class="{speaker.lower().replace(" ", "-")}">\n'
    yield f"<h2>{speaker}{f' <small>{note}</small>' if note else ''} "
    yield f'<a class="when" href="#m{number}">{when}</a></h2>\n'
    if message is None:
        yield _folded(escape_line(entry.type), block(show_json(entry.data)))
    elif isinstance(message, ToolMessage):
        yield from _output(message)
    else:
        yield from _said(message)
    for call, result in step.calls:
        yield from _call(call, result)
    yield "</article>\n"


def _said(message: Message) -> Iterator[str]:
    if isinstance(message, AssistantMessage):
        for thought in message.reasoning:
            yield _folded("Thinking", prose(thought.text) if thought.text else "<p>(encrypted)</p>")
    if message.metadata.get("isMeta") or message.metadata.get("compaction") or message.role == "system":
        yield _folded("Text", prose(message.content))
    else:
        yield prose(message.content)
    yield from _attachments(getattr(message, "parts", ()))


def _note(message: Message) -> str:
    usage, model = normalize_usage(message.metadata), message.metadata.get("model")
    notes = (
        escape_line(model) if isinstance(model, str) else "",
        describe_kind(message),
        describe_usage(usage) if usage is not None else "",
    )
    return " · ".join(note for note in notes if note)


def _folded(title: str, content: str, kind: str = "") -> str:
    attribute = f' class="{kind}"' if kind else ""
    return f"<details{attribute}><summary>{title}</summary>{content}</details>\n"


def _call(call: ToolCall, result: ToolMessage | None) -> Iterator[str]:
    view = view_call(call)
    inner = [block(view.fields)] if view.fields else []
    for name, text in view.texts:
        inner.append(f"<h3>{escape_line(name)}</h3>{block(text)}")
    inner += [block(change, "diff") for change in view.changes]
    if result is None:
        inner.append("<p>No result was recorded.</p>")
    else:
        inner.append(f"<h3>Result · {describe_time(result.timestamp)}</h3>")
        inner += _output(result)
    failed = result is None or result.metadata.get("success") is False
    gist = f" <code>{escape_line(view.gist)}</code>" if view.gist else ""
    summary = f"<b>{escape_line(call.name)}</b>{' failed' if failed else ''}{gist}"
    yield _folded(summary, "".join(inner), "call failed" if failed else "call")


def _output(result: ToolMessage) -> Iterator[str]:
    if result.content:
        yield block(result.content)
    elif not result.parts:
        yield "<p>(empty)</p>"
    yield from _attachments(result.parts)


def _attachments(parts: Sequence[Part]) -> Iterator[str]:
    for part in parts:
        if isinstance(part, ImageUriPart):
            yield f"<p>Picture at {link(part.uri)}</p>"
        elif isinstance(part, ImagePart) and _is_picture(part):
            yield f'<img alt="Picture" loading="lazy" src="data:{part.mime_type};base64,{part.data}">'
        elif isinstance(part, ImagePart | FilePart):
            name = f"{part.name} " if isinstance(part, FilePart) and part.name else ""
            facts = escape(f"{name}({part.mime_type}, {attached_size(part):,} bytes)")
            yield f'<p class="attachment">Attachment {facts}</p>'


def _is_picture(part: ImagePart) -> bool:
    return part.mime_type in _PICTURES and part.data.isascii() and _BASE64.issuperset(part.data.encode())
