"""A conversation as text for somebody who is to summarise it, cut to a size.

Only the first line of a message begins at the margin, so no text inside one can pass for another message.
Sizes are bytes of JSON text, the unit of the shared estimator.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from msgspec import Struct

from robota.core.conversation import SUMMARY_HEADING
from robota.core.jsontext import encode
from robota.core.messages import (
    AssistantMessage,
    FilePart,
    ImagePart,
    Message,
    Part,
    SystemMessage,
    TextPart,
    UserMessage,
)
from robota.core.plain_text import clip, shorten
from robota.sessions.compaction.kept_state import drop_sections

LONGEST_OUTPUT = 16_000
SHORTEST_OUTPUT = 500
"""Characters kept of what a tool was given or gave back, when all of it is too much."""
SHORTEST_TEXT = 100
NOTE_ROOM = 200
NAME_SHOWN = 100
URI_SHOWN = 200
EARLIER_SUMMARY = "earlier summary"


class Entry(Struct, frozen=True):
    """One message, or one tool call, of the transcript."""

    speaker: str
    text: str
    verbose: bool = False
    """What a tool was given and gave back: the first to be cut."""

    @property
    def line(self) -> str:
        return f"{self.speaker}: " + "\n  ".join(self.text.splitlines())

    @property
    def size(self) -> int:
        return text_size(self.line) + 2  # and a line break


def text_size(text: str) -> int:
    """Bytes of the text inside JSON."""
    return len(encode(text)) - 2


def fit_text(text: str, size: int, measure: Callable[[str], int] = text_size) -> str:
    """The text, or its beginning and end, in at most `size` bytes; empty if there is no room to speak of."""
    length, taken = len(text), measure(text)
    while taken > size:
        length = min(length - 1, length * max(size, 0) // taken)
        if length < SHORTEST_TEXT:
            return ""
        text = shorten(text, length)
        taken = measure(text)
    return text


# --- from messages to entries ---------------------------------------------------------------------------


def is_summary(message: Message) -> bool:
    """Whether the message is a compaction's own."""
    return isinstance(message, AssistantMessage) and message.metadata.get("compaction") is True


def read_summary(message: Message) -> str:
    """A compaction's message without its heading and without what code added."""
    return drop_sections(message.content.removeprefix(SUMMARY_HEADING).lstrip("\n"))


def list_entries(messages: Iterable[Message]) -> list[Entry]:
    """The conversation without system messages; attachments are named, not shown."""
    return [entry for message in messages for entry in _entries_of(message)]


def _entries_of(message: Message) -> Iterator[Entry]:
    if isinstance(message, SystemMessage):
        return
    if isinstance(message, AssistantMessage):
        if is_summary(message):
            yield Entry(EARLIER_SUMMARY, read_summary(message))
            return
        if message.content.strip():
            yield Entry("assistant", message.content)
        for call in message.tool_calls:
            yield Entry(f"assistant called {_one_line(call.name)}", call.arguments, verbose=True)
        return
    names = "".join(f"\n[{_name_part(part)}]" for part in message.parts if not isinstance(part, TextPart))
    if isinstance(message, UserMessage):
        yield Entry("user", message.content + names)
    else:
        yield Entry(f"result of {_one_line(message.name)}", message.content + names, verbose=True)


def _one_line(name: str) -> str:
    """A tool's name may be the model's invention."""
    return clip(" ".join(name.split()), NAME_SHOWN)


def _name_part(part: Part) -> str:
    if isinstance(part, ImagePart):
        return f"image, {part.mime_type}, {_kilobytes(part.data)}"
    if isinstance(part, FilePart):
        return f"file {part.name or 'without a name'}, {part.mime_type}, {_kilobytes(part.data)}"
    if isinstance(part, TextPart):
        return part.text
    return f"image at {clip(part.uri, URI_SHOWN)}"


def _kilobytes(base64: str) -> str:
    return f"{max(len(base64) * 3 // 4 // 1024, 1):,} KB"


# --- to a size -------------------------------------------------------------------------------------------


def shrink_entries(entries: Sequence[Entry], size: int) -> list[Entry]:
    """Cut what tools were given and gave back, as little as makes everything fit, if that is enough."""
    shrunk, limit = list(entries), LONGEST_OUTPUT
    while sum(entry.size for entry in shrunk) > size and limit >= SHORTEST_OUTPUT:
        shrunk = [
            Entry(entry.speaker, shorten(entry.text, limit), verbose=True) if entry.verbose else entry
            for entry in entries
        ]
        limit //= 2
    return shrunk


def split_entries(entries: Sequence[Entry], size: int, max_pieces: int) -> list[list[Entry]]:
    """The entries in order, as at most `max_pieces` pieces of at most `size` bytes.

    What is too much for that is left out after the first piece, with a note: the beginning says what it is
    all about, the end where it stands.
    """
    room = size - NOTE_ROOM
    pieces: list[list[Entry]] = [[]]
    filled = 0
    for entry in entries:
        fitting = _fit_entry(entry, room)
        taken = fitting.size
        if pieces[-1] and filled + taken > room:
            pieces.append([])
            filled = 0
        pieces[-1].append(fitting)
        filled += taken
    if len(pieces) <= max_pieces:
        return pieces
    kept = [pieces[0], *pieces[len(pieces) - max_pieces + 1 :]]
    missing = len(entries) - sum(map(len, kept))
    kept[0].append(
        Entry("note", f"{missing:,} messages are left out here, because there is no room for them.")
    )
    return kept


def _fit_entry(entry: Entry, size: int) -> Entry:
    if entry.size <= size:
        return entry
    fitted = fit_text(entry.text, size, lambda text: Entry(entry.speaker, text).size)
    return Entry(entry.speaker, fitted, entry.verbose)
