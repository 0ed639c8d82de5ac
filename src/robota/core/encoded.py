"""The wire form of a conversation, kept so that no message is ever encoded twice.

The unit is a *group*: one system, user or assistant message, or all tool messages that answer one assistant
message, because that is what vendors fold together. An adapter asks for the fragments of a history under its
own key; what was encoded under that key before is reused. Dropping the object never changes a request.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import TypeAlias, overload

from msgspec import Struct

from robota.core.messages import Message

EncodeGroup: TypeAlias = Callable[[Sequence[Message]], bytes]


class MessageView(Sequence[Message]):
    """The messages that an append-only list has now, without copying it."""

    __slots__ = ("_length", "_messages")

    def __init__(self, messages: list[Message]) -> None:
        self._messages = messages
        self._length = len(messages)

    def __len__(self) -> int:
        return self._length

    @overload
    def __getitem__(self, index: int) -> Message: ...
    @overload
    def __getitem__(self, index: slice) -> list[Message]: ...
    def __getitem__(self, index: int | slice) -> Message | list[Message]:
        if isinstance(index, slice):
            return [self._messages[at] for at in range(*index.indices(self._length))]
        if not -self._length <= index < self._length:
            raise IndexError(f"message {index} of {self._length}")
        return self._messages[index + self._length if index < 0 else index]

    def __iter__(self) -> Iterator[Message]:
        messages = self._messages
        return (messages[at] for at in range(self._length))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)

    def __repr__(self) -> str:
        return f"MessageView({list(self)!r})"

    __hash__ = None  # type: ignore[assignment]  # a view of something that grows is not a key


class EncodedHistory(Struct, eq=False):
    """Fragments of one growing history, per dialect. `messages` and `starts` belong to the conversation."""

    _messages: list[Message]
    _starts: list[int]
    encodings: int = 0
    """How often a group was encoded: the counted work that tests guard."""
    _epoch: int = 0
    _key: Hashable = None
    _fragments: list[bytes] = []
    _end: int = 0

    def restart(self, messages: list[Message], starts: list[int]) -> None:
        """The conversation continues from another beginning (compaction): forget every fragment."""
        self._messages = messages
        self._starts = starts
        self._epoch += 1

    def forget(self) -> None:
        """Let go of what is kept for a dialect that nobody will ask for soon."""
        self._key = None
        self._fragments.clear()

    def fragments(self, dialect: Hashable, length: int, encode: EncodeGroup) -> list[bytes]:
        """One fragment per group of the first `length` messages.

        The list belongs to the history: join it, do not change it.
        """
        key = (dialect, self._epoch)
        if key != self._key:
            self._key = key
            self._fragments.clear()
        if length < len(self._messages):  # a look back: what is kept may reach further than it
            return [self._encode(at, length, encode) for at in range(bisect_left(self._starts, length))]
        kept = self._fragments
        if kept and self._group_end(len(kept) - 1, length) != self._end:
            kept.pop()  # results were added to this tool group after it was encoded
        kept.extend(self._encode(at, length, encode) for at in range(len(kept), len(self._starts)))
        self._end = length
        return kept

    def _group_end(self, at: int, length: int) -> int:
        return self._starts[at + 1] if at + 1 < len(self._starts) else length

    def _encode(self, at: int, length: int, encode: EncodeGroup) -> bytes:
        self.encodings += 1
        end = min(self._group_end(at, length), length)
        return encode(self._messages[self._starts[at] : end])
