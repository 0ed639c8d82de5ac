"""A session as one HTML page that needs nothing else: no network, no other file, no script to be complete.

All text is treated as hostile: everything is escaped, and only a written-out http(s) address becomes a link,
whose text is its own target. The page's own style and script are named by their hashes in a content policy,
so that nothing that got into the page by mistake could run or load anything. Work is linear in the session.
"""

from __future__ import annotations

import os
import re
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
from robota.sessions.export.source import (
    SPEAKERS,
    Exportable,
    ExportSource,
    OnStep,
    Step,
    attached_size,
    describe_kind,
    describe_time,
    describe_usage,
    end_of_fence,
    is_difference,
    on_one_line,
    read_source,
    show_hidden,
    show_json,
    view_call,
)

_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})[ \t]*([^\s`]*)")
_HEADING = re.compile(r" {0,3}#{1,6} ")
_INLINE = re.compile(
    r"`(?P<code>[^`\n]+)`|\*\*(?P<strong>[^*\n]+)\*\*"
    r"|(?P<link>https?://[A-Za-z0-9\-._~:/?#@!$&'()*+,;=%]+)"
)
_LINK_END = ".,;:!?'*)"
_ESCAPES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;"})


def escape(text: str) -> str:
    """Safe as the content of an element and as a quoted attribute's value."""
    return show_hidden(text).translate(_ESCAPES)


def escape_line(text: str) -> str:
    return on_one_line(text).translate(_ESCAPES)


def prose(text: str) -> str:
    """What people and models write: paragraphs as they are, code blocks, headings, addresses."""
    return "".join(_blocks(show_hidden(text).split("\n")))


def block(text: str, language: str = "") -> str:
    """Code or output, line for line; a difference in colours."""
    shown = show_hidden(text).removesuffix("\n")
    if language == "diff" or is_difference(shown):
        return f'<pre class="diff">\n{"".join(_coloured(shown))}</pre>'
    return f"<pre>\n{shown.translate(_ESCAPES)}</pre>"  # a newline right after the tag is not shown


def _coloured(text: str) -> Iterator[str]:
    kinds = {"+": "ins", "-": "del", "@": "hunk"}
    for line in text.split("\n"):
        kind = kinds.get(line[:1])
        escaped = line.translate(_ESCAPES)
        yield f'<span class="{kind}">{escaped}\n</span>' if kind else f"{escaped}\n"


def _blocks(lines: list[str]) -> Iterator[str]:
    start = place = 0
    while place < len(lines):
        opened = _FENCE.match(lines[place])
        if opened is None:
            place += 1
            continue
        yield _paragraphs(lines[start:place])
        end = end_of_fence(lines, place + 1, opened[1])
        yield block("\n".join(lines[place + 1 : end]), opened[2])
        start = place = end + 1
    yield _paragraphs(lines[start:])


def _paragraphs(lines: list[str]) -> str:
    heads = ("*" not in line and _HEADING.match(line) is not None for line in lines)
    shown = (f"**{line.strip()}**" if is_head else line for line, is_head in zip(lines, heads, strict=True))
    text = "\n".join(shown).strip("\n")
    return f'<div class="prose">{"".join(_inline(text))}</div>' if text else ""


def _inline(text: str) -> Iterator[str]:
    place = 0
    for found in _INLINE.finditer(text):
        yield text[place : found.start()].translate(_ESCAPES)
        place = found.end()
        if found["code"] is not None:
            yield f"<code>{found['code'].translate(_ESCAPES)}</code>"
        elif found["strong"] is not None:
            yield f"<strong>{found['strong'].translate(_ESCAPES)}</strong>"
        else:
            address = found["link"].rstrip(_LINK_END)
            yield link(address) + found["link"][len(address) :].translate(_ESCAPES)
    yield text[place:].translate(_ESCAPES)


def link(address: str) -> str:
    """A link that shows where it leads; anything but http and https stays text."""
    shown = escape_line(address)
    if not address.startswith(("http://", "https://")):
        return shown
    return f'<a href="{shown}" rel="noopener noreferrer nofollow" target="_blank">{shown}</a>'


PROMPT_PREVIEW = 80
_PICTURES = frozenset(("image/png", "image/jpeg", "image/gif", "image/webp"))
_BASE64 = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=")


def export_html(
    record: Exportable,
    *,
    redact: bool = True,
    secrets: Sequence[str] = (),
    on_step: OnStep | None = None,
) -> str:
    """The page; `secrets` are values to remove beside those that look like secrets."""
    source = read_source(record, redact=redact, secrets=secrets, on_step=on_step)
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
    for first in (turn.steps[0] for turn in source.turns):
        if isinstance(first.message, UserMessage):
            words = escape_line(first.message.content[:PROMPT_PREVIEW]) or "(no text)"
            yield f'<li><a href="#m{first.number}">{words}</a></li>'


def _turns(source: ExportSource) -> Iterator[str]:
    for turn in source.turns:
        yield "<section>\n"
        for step in turn.steps:
            yield from _step(step)
        usage = describe_usage(turn.usage)
        if usage:
            yield f'<p class="usage">Turn: {usage}</p>\n'
        yield "</section>\n"


def _step(step: Step) -> Iterator[str]:
    message, entry, number = step.message, step.entry, step.number
    speaker = "Event" if message is None else SPEAKERS[message.role]
    note = escape_line(entry.type) if message is None else _note(message)
    when = f'<time datetime="{entry.timestamp.isoformat()}">{step.when}</time>'
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
