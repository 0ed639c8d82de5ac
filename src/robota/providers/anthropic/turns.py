"""The turns of a conversation as the Messages API wants them: user and assistant by turns, calls answered.

A fragment is what one group of messages adds to the `messages` array: its blocks, after a comma if the turn
goes on, after the opening of a new turn otherwise. It depends on what came before it and on nothing that will
come, so it can be kept; joined, the fragments are the array without its last two brackets.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import Literal, TypeAlias

from robota.core.jsontext import encode
from robota.core.messages import (
    AssistantMessage,
    JsonObject,
    Message,
    SystemMessage,
    ToolMessage,
    UserMessage,
)
from robota.providers.anthropic.blocks import (
    CONTENT_KEY,
    BlockDialect,
    assistant_blocks,
    missing_result_block,
    result_block,
    stray_result_block,
    text_block,
    user_blocks,
)

Role: TypeAlias = Literal["user", "assistant"]
OPENING: dict[Role, bytes] = {
    "user": b']},{"role":"user","content":[',
    "assistant": b']},{"role":"assistant","content":[',
}
CLOSING = b"]}"
SYSTEM = b" "
"""The fragment of a system message, whose place is elsewhere: harmless between JSON tokens, countable."""
BEGIN_NOTE = text_block("[The beginning of this conversation is not shown.]")
GO_ON_NOTE = text_block("Go on.")
_ANY = BlockDialect()
_LOOK_UPS = 4
CLOSING_MARK = b',"cache_control":{"type":"ephemeral"}}'


class TurnFolder:
    """Encodes the groups of one request."""

    __slots__ = ("_dialect", "_messages", "_places", "_wire_ids")

    def __init__(self, messages: Sequence[Message], dialect: BlockDialect) -> None:
        self._messages = messages
        self._dialect = dialect
        self._places: dict[int, int] | None = None
        self._wire_ids: dict[int, Sequence[str]] = {}

    def encode_group(self, group: Sequence[Message]) -> bytes:
        first = group[0]
        if isinstance(first, SystemMessage):
            return SYSTEM
        place = self._place(first)
        if isinstance(first, AssistantMessage):
            return self._encode_answer(first, place)
        if isinstance(first, UserMessage):
            blocks = user_blocks(first, self._dialect)
            if blocks:
                blocks = self._unanswered_before(place) + blocks
        else:
            blocks = self._result_blocks(group, place)
        return self._fragment("user", blocks, place)

    def close(self) -> list[JsonObject]:
        """The blocks of the user turn that the end of the history still needs; none if it has one."""
        end = len(self._messages)
        missing = self._unanswered_before(end)
        if missing or self._role_before(end) == "user":
            return missing
        return [] if self._is_paused() else [GO_ON_NOTE]

    def _fragment(self, role: Role, blocks: list[JsonObject], place: int) -> bytes:
        if not blocks:
            return b""
        return (b"," if self._role_before(place) == role else OPENING[role]) + encode(blocks)[1:-1]

    def _encode_answer(self, message: AssistantMessage, place: int) -> bytes:
        blocks = assistant_blocks(message, self._wire_ids_at(place) if message.tool_calls else ())
        missing = self._unanswered_before(place) if blocks else []
        if not missing:
            return self._fragment("assistant", blocks, place)
        return b"".join((OPENING["user"], encode(missing)[1:-1], OPENING["assistant"], encode(blocks)[1:-1]))

    # --- calls and their results -----------------------------------------------------------------------

    def _result_blocks(self, group: Sequence[Message], place: int) -> list[JsonObject]:
        """Results first, as the API demands; then what can only be said as text."""
        results: list[JsonObject] = []
        strays: list[JsonObject] = []
        waiting = self._waiting_calls(place)
        for message in group:
            if isinstance(message, ToolMessage):
                call = next((call for call in waiting if call[0] == message.tool_call_id), None)
                if call is None:
                    strays.append(stray_result_block(message))
                else:
                    waiting.remove(call)
                    results.append(result_block(message, call[1], self._dialect))
        return results + [missing_result_block(wire_id) for _, wire_id in waiting] + strays

    def _unanswered_before(self, place: int) -> list[JsonObject]:
        return [missing_result_block(wire_id) for _, wire_id in self._waiting_calls(place)]

    def _waiting_calls(self, place: int) -> list[tuple[str, str]]:
        """Ids, ours and the wire's, of the calls in the turn before this place."""
        place = self._place_before(place)
        before = self._messages[place] if place >= 0 else None
        if not isinstance(before, AssistantMessage) or not before.tool_calls:
            return []
        wire_ids = self._wire_ids_at(place)
        return [(call.id, wire_id) for call, wire_id in zip(before.tool_calls, wire_ids, strict=True)]

    def _wire_ids_at(self, place: int) -> Sequence[str]:
        """The ids of the calls at that place: letters the API takes, and none that an earlier call has.

        A request adds one answer or two, which are looked up; a whole history is gone through once.
        """
        ids = self._wire_ids.get(place)
        if ids is None and len(self._wire_ids) < _LOOK_UPS:
            ids = _plain_ids(self._messages, place)
        if ids is None:
            self._wire_ids = _assign_ids(self._messages)
            ids = self._wire_ids[place]
        self._wire_ids[place] = ids
        return ids

    # --- what came before --------------------------------------------------------------------------------

    def _place(self, message: Message) -> int:
        messages = self._messages
        for place in range(len(messages) - 1, max(len(messages) - 9, -1), -1):
            if messages[place] is message:
                return place
        if self._places is None:
            self._places = {id(known): place for place, known in enumerate(messages)}
        return self._places[id(message)]

    def _role_before(self, place: int) -> Role | None:
        place = self._place_before(place)
        if place < 0:
            return None
        return "assistant" if isinstance(self._messages[place], AssistantMessage) else "user"

    def _place_before(self, place: int) -> int:
        """Where the last message before this place stands that has blocks; -1 if there is none."""
        place -= 1
        while place >= 0 and not _has_blocks(self._messages[place]):
            place -= 1
        return place

    def _is_paused(self) -> bool:
        """Whether the service wants its own unfinished turn back as the last one, to go on with it."""
        place = self._place_before(len(self._messages))
        metadata = self._messages[place].metadata if place >= 0 else {}
        return metadata.get("stopReason") == "pause" and CONTENT_KEY in metadata


def mark_turns(fragments: Sequence[bytes], count: int) -> list[bytes]:
    """The fragments with a cache mark at the end of the last `count` user turns."""
    marked = list(fragments)
    last = None
    for place in range(len(marked) - 1, -1, -1):
        fragment = marked[place]
        if len(fragment) <= len(SYSTEM):
            continue
        last = place if last is None else last
        if fragment.startswith(b","):
            continue
        if fragment.startswith(OPENING["user"]):
            marked[last] = marked[last][:-1] + CLOSING_MARK
            count -= 1
            if count == 0:
                break
        last = None
    return marked


def _has_blocks(message: Message) -> bool:
    if isinstance(message, AssistantMessage):
        return bool(message.tool_calls or message.content.strip() or assistant_blocks(message, ()))
    if isinstance(message, UserMessage):
        return bool(message.content.strip() or user_blocks(message, _ANY))
    return isinstance(message, ToolMessage)


def _plain_ids(messages: Sequence[Message], place: int) -> list[str] | None:
    """The ids at that place as they are, if no id up to there needs changing."""
    ids = [
        call.id
        for message in islice(messages, place + 1)
        if type(message) is AssistantMessage
        for call in message.tool_calls
    ]
    if not all(ids) or not _is_clean("".join(ids)) or len(set(ids)) < len(ids):
        return None
    message = messages[place]
    return [call.id for call in message.tool_calls] if isinstance(message, AssistantMessage) else []


def _assign_ids(messages: Sequence[Message]) -> dict[int, Sequence[str]]:
    """Ids for all calls of a conversation."""
    assigned: dict[int, Sequence[str]] = {}
    taken: set[str] = set()
    for place, message in enumerate(messages):
        if type(message) is AssistantMessage and message.tool_calls:
            ids = []
            for number, call in enumerate(message.tool_calls):
                wire_id = _clean_id(call.id)
                wire_id = f"{wire_id}-{place}-{number}" if wire_id in taken else wire_id
                taken.add(wire_id)
                ids.append(wire_id)
            assigned[place] = ids
    return assigned


def _is_clean(id: str) -> bool:
    return id.isascii() and (id.isalnum() or id.replace("_", "a").replace("-", "a").isalnum())


def _clean_id(id: str) -> str:
    if _is_clean(id):
        return id
    return "".join(letter if letter.isascii() and letter.isalnum() else "_" for letter in id) or "call"
