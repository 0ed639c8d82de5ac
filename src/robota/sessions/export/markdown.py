"""A session as a Markdown document.

Headings of level 1 to 3 are the document's own. Text of others can look like Markdown, but not act: it is
quoted, line by line, so that it cannot end its own block; its headings become plain lines, its links and
pictures show their address instead of hiding or loading it, HTML stays text, and fenced code is fenced anew
with a fence longer than any in it. Every function is linear.
"""

from __future__ import annotations

import re
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
from robota.sessions.export.source import (
    SPEAKERS,
    Exportable,
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

_MARKERS = r"((?:[ \t]*(?:[-+*>]|[0-9]{1,9}[.)]))*[ \t]*)"
_FENCE = re.compile(_MARKERS + r"(`{3,}|~{3,})(.*)")
_HEADING_OR_DEFINITION = re.compile(_MARKERS + r"(?=#{1,6}(?:[ \t]|$)|\[)")
_WITH_MEANING = re.compile(r"([\\`*_\[\]<>#|~&])")
_RUN = re.compile("`+")
_LANGUAGE = re.compile(r"[A-Za-z0-9+#_.-]{1,32}")


def quote(text: str) -> str:
    """Content as a block quote in which Markdown may shape words and lists, and nothing else."""
    lines = list(_shape(show_hidden(text).split("\n")))
    return "\n".join(f"> {line}".rstrip() for line in lines)


def fence(text: str, language: str = "") -> str:
    """Content as code, word for word."""
    shown = show_hidden(text)
    ticks = max("```", _ticks_around(shown), key=len)
    return f"{ticks}{language}\n{shown}{'' if shown.endswith(chr(10)) else chr(10)}{ticks}"


def code(text: str) -> str:
    """Content as code within a line."""
    shown = on_one_line(text)
    ticks = _ticks_around(shown)
    space = " " if not shown or shown[0] == "`" or shown[-1] == "`" else ""
    return f"{ticks}{space}{shown}{space}{ticks}" if shown else ""


def _ticks_around(shown: str) -> str:
    """As many as the text cannot end."""
    return "`" + max(_RUN.findall(shown), key=len, default="")


def plain(text: str) -> str:
    """Content within a line of ours, without any shape."""
    return _WITH_MEANING.sub(r"\\\1", on_one_line(text))


def _shape(lines: Sequence[str]) -> Iterator[str]:
    """The lines with their fenced code fenced anew; the rest paragraph by paragraph."""
    paragraph: list[str] = []
    place = 0
    while place < len(lines):
        opened = _FENCE.match(lines[place])
        if opened is None or (opened[2][0] == "`" and "`" in opened[3]):
            if lines[place].strip():
                paragraph.append(lines[place])
            else:
                yield from _disarm(paragraph)
                paragraph = []
                yield ""
            place += 1
            continue
        before = paragraph + [opened[1]] * bool(opened[1].strip())
        yield from _disarm(before)
        paragraph = []
        end = end_of_fence(lines, place + 1, opened[2], " \t>")
        language = _LANGUAGE.match(opened[3].strip())
        if before:
            yield ""
        yield from fence("\n".join(lines[place + 1 : end]), language[0] if language else "").split("\n")
        place = end + 1
    yield from _disarm(paragraph)


def _disarm(paragraph: Sequence[str]) -> Iterator[str]:
    trusted = all(_spans_are_plain(line) for line in paragraph)
    for line in paragraph:
        yield "".join(
            piece if is_code and trusted else _disarm_words(piece)
            for piece, is_code in _split_code(_disarm_line(line))
        )


def _disarm_line(line: str) -> str:
    """The line without what makes it a heading, the underline of one, or the target of a link."""
    found = _HEADING_OR_DEFINITION.match(line)
    if found is not None:
        return f"{found[1]}\\{line[found.end() :]}"
    line = line.rstrip()
    return line if line.strip("> \t=-") else f"{line[:-1]}\\{line[-1:]}"


def _disarm_words(text: str) -> str:
    return text.replace("<", "&lt;").replace("](", "]\\(").replace("![", "!\\[").replace("][", "]\\[")


def _spans_are_plain(line: str) -> bool:
    """Whether everybody agrees which parts of a line are code: each run of backticks closed within it."""
    if "\\`" in line:
        return False
    return all(
        "|" not in piece if is_code else "`" not in piece  # a table ends a cell within code
        for piece, is_code in _split_code(line)
    )


def _split_code(line: str) -> Iterator[tuple[str, bool]]:
    """The line in pieces, and whether each is a code span."""
    runs = [(found.start(), found.end()) for found in _RUN.finditer(line)]
    later: dict[int, list[int]] = {}
    for number in range(len(runs) - 1, -1, -1):
        later.setdefault(runs[number][1] - runs[number][0], []).append(number)
    place = number = 0
    while number < len(runs):
        start, end = runs[number]
        same = later[end - start]
        while same and same[-1] <= number:
            same.pop()
        if not same:
            number += 1
            continue
        closing = same.pop()
        yield line[place:start], False
        yield line[start : runs[closing][1]], True
        place, number = runs[closing][1], closing + 1
    yield line[place:], False


def export_markdown(
    record: Exportable,
    *,
    redact: bool = True,
    secrets: Sequence[str] = (),
    on_step: OnStep | None = None,
) -> str:
    """The whole session; `secrets` are values to remove beside those that look like secrets."""
    source = read_source(record, redact=redact, secrets=secrets, on_step=on_step)
    facts = "\n".join(f"- {name}: {plain(value)}" for name, value in source.facts)
    blocks = [f"# {plain(source.title)}", facts]
    for turn in source.turns:
        for step in turn.steps:
            blocks += _step(step)
        usage = describe_usage(turn.usage)
        if usage:
            blocks.append(f"*Turn: {usage}*")
    return "\n\n".join(blocks) + "\n"


def _step(step: Step) -> Iterator[str]:
    message = step.message
    if message is None:
        yield f"## {step.number}. Event {code(step.entry.type)} · {step.when}"
        yield fence(show_json(step.entry.data), "json")
        return
    yield f"## {step.number}. {_speaker(message)} · {step.when}"
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
