"""A session as a Markdown document.

Headings of level 1 to 3 are the document's own; what people, models and tools wrote stands in quotes and
fences and can make neither a heading nor a link nor HTML.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from robota.core.messages import (
    AssistantMessage,
    FilePart,
    ImagePart,
    ImageUriPart,
    Message,
    Part,
    ToolCall,
    ToolMessage,
)
from robota.sessions.export.call_view import is_difference, show_json, view_call
from robota.sessions.export.markdown_text import code, fence, plain, quote
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


def export_markdown(record: Exportable, *, redact: bool = True, secrets: Sequence[str] = ()) -> str:
    """The whole session; `secrets` are values to remove beside those that look like secrets."""
    source = read_source(record, redact=redact, secrets=secrets)
    blocks = list(_head(source))
    number = 0
    for turn in source.turns:
        for step in turn.steps:
            number += 1
            blocks += _step(step, number)
        usage = describe_usage(turn.usage)
        if usage:
            blocks.append(f"*Turn: {usage}*")
    return "\n\n".join(blocks) + "\n"


def _head(source: ExportSource) -> Iterator[str]:
    yield f"# {plain(source.title)}"
    yield "\n".join(f"- {name}: {plain(value)}" for name, value in source.facts)


def _step(step: Step, number: int) -> Iterator[str]:
    message, when = message_of(step), describe_time(step.entry.timestamp)
    if message is None:
        yield f"## {number}. Event {code(step.entry.type)} · {when}"
        yield fence(show_json(step.entry.data), "json")
        return
    yield f"## {number}. {_speaker(message)} · {when}"
    if isinstance(message, AssistantMessage):
        for block in message.reasoning:
            yield f"**Thinking**\n\n{quote(block.text)}" if block.text else "**Thinking** (encrypted)"
        if message.reasoning and message.content:
            yield "**Answer**"
    if isinstance(message, ToolMessage):
        yield from _output(message)
    else:
        if message.content:
            yield quote(message.content)
        yield from _attachments(getattr(message, "parts", ()))
    for call, result in step.calls:
        yield from _call(call, result)


def _speaker(message: Message) -> str:
    kind, model = describe_kind(message), message.metadata.get("model")
    return " ".join(
        (
            SPEAKERS[message.role],
            *([code(model)] if isinstance(model, str) and model else []),
            *([f"({kind})"] if kind else []),
        )
    )


def _call(call: ToolCall, result: ToolMessage | None) -> Iterator[str]:
    yield f"### Tool {code(call.name)}"
    view = view_call(call)
    if view.fields:
        yield fence(view.fields, "json")
    for name, text in view.texts:
        yield f"{code(name)}:"
        yield fence(text, "text")
    for change in view.changes:
        yield fence(change, "diff")
    if result is None:
        yield "No result was recorded."
        return
    failed = result.metadata.get("success") is False
    yield f"{'Failed' if failed else 'Result'} · {describe_time(result.timestamp)}:"
    yield from _output(result)


def _output(result: ToolMessage) -> Iterator[str]:
    if result.content:
        yield fence(result.content, "diff" if is_difference(result.content) else "text")
    elif not result.parts:
        yield "(empty)"
    yield from _attachments(result.parts)


def _attachments(parts: Sequence[Part]) -> Iterator[str]:
    for part in parts:
        if isinstance(part, ImageUriPart):
            yield f"Picture at {code(part.uri)}"
        elif isinstance(part, ImagePart | FilePart):
            named = f" {code(part.name)}" if isinstance(part, FilePart) and part.name else ""
            yield f"Attachment{named}: {code(part.mime_type)}, {attached_size(part):,} bytes"
