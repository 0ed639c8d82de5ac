"""The turns of a conversation as the Messages API wants them: user and assistant by turns, calls answered.

A fragment is what one group of messages adds to the `messages` array: its blocks, after a comma if the turn
goes on, after the opening of a new turn otherwise. It depends on what came before it and on nothing that will
come, so it can be kept; joined, the fragments are the array without its last two brackets.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
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
from robota.core.provider import ChatRequest
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
from robota.providers.encoding import GroupEncoder, match_results, split_groups

Role: TypeAlias = Literal["user", "assistant"]
SYSTEM = b" "
"""The fragment of a system message, whose place is elsewhere: harmless between JSON tokens, countable."""
CACHE_MARK = {"type": "ephemeral"}
CLOSING_MARK = b',"cache_control":{"type":"ephemeral"}}'
_OPENING: dict[Role, bytes] = {
    "user": b']},{"role":"user","content":[',
    "assistant": b']},{"role":"assistant","content":[',
}
_CLOSING = b"]}"
_BEGIN_NOTE = text_block("[The beginning of this conversation is not shown.]")
_GO_ON_NOTE = text_block("Go on.")
_ANY = BlockDialect()
_CLEAN_ID = re.compile("[a-zA-Z0-9_-]+")


class TurnEncoder(GroupEncoder):
    """The turns of one request: as fragments to be kept and joined, or as objects."""

    __slots__ = ("_dialect",)

    def __init__(self, request: ChatRequest, dialect: BlockDialect) -> None:
        super().__init__(request)
        self._dialect = dialect

    def encode_group(self, group: Sequence[Message]) -> bytes:
        at = self.enter(group)
        if isinstance(group[0], SystemMessage):
            return SYSTEM
        fragment, role = b"", self._role_before(at)
        for next_role, blocks in self._pieces(group, at):
            fragment += (b"," if next_role == role else _OPENING[next_role]) + encode(blocks)[1:-1]
            role = next_role
        return fragment

    def join(self, fragments: list[bytes], *, marked: int) -> list[bytes]:
        """The array in pieces, with a cache mark at the end of the last `marked` user turns."""
        end = self._ending()
        if end:
            fragments = [*fragments, _OPENING["user"] + encode(end)[1:-1]]
        turns = _mark_turns(fragments, marked) if marked else list(fragments)
        first = next(place for place, fragment in enumerate(turns) if len(fragment) > len(SYSTEM))
        if turns[first].startswith(_OPENING["assistant"]):
            begin = _OPENING["user"] + encode(_BEGIN_NOTE)
            turns[first] = begin[len(_CLOSING) + 1 :] + turns[first]
        else:
            turns[first] = turns[first][len(_CLOSING) + 1 :]  # there is no turn before it to be closed
        return [b"[", *turns, _CLOSING, b"]"]

    def build(self, *, marked: int) -> list[JsonObject]:
        """The same array as objects."""
        turns: list[JsonObject] = []
        for group in split_groups(self.messages):
            for role, blocks in self._pieces(group, self.enter(group)):
                if turns and turns[-1]["role"] == role:
                    turns[-1]["content"] += blocks
                else:
                    turns.append({"role": role, "content": blocks})
        end = self._ending()
        if end:
            turns.append({"role": "user", "content": end})
        for turn in [turn for turn in turns if turn["role"] == "user"][-marked:] if marked else ():
            turn["content"] = mark_last(turn["content"])
        begin = {"role": "user", "content": [_BEGIN_NOTE]}
        return [begin, *turns] if turns[0]["role"] == "assistant" else turns

    def _pieces(self, group: Sequence[Message], at: int) -> list[tuple[Role, list[JsonObject]]]:
        """What a group adds to the turns."""
        first = group[0]
        pieces: list[tuple[Role, list[JsonObject]]] = []
        if isinstance(first, AssistantMessage):
            blocks = assistant_blocks(first, self.wire_ids(first, at) if first.tool_calls else ())
            pieces += [("user", self._unanswered(at)), ("assistant", blocks)] if blocks else []
        elif isinstance(first, UserMessage):
            blocks = user_blocks(first, self._dialect)
            pieces += [("user", self._unanswered(at) + blocks)] if blocks else []
        elif isinstance(first, ToolMessage):
            pieces.append(("user", self._result_blocks(group, at)))
        return [(role, blocks) for role, blocks in pieces if blocks]

    def _ending(self) -> list[JsonObject]:
        """The blocks of the user turn that the end of the history still needs; none if it has one."""
        end = len(self.messages)
        missing = self._unanswered(end)
        if missing or self._role_before(end) == "user":
            return missing
        return [] if self._is_paused() else [_GO_ON_NOTE]

    # --- calls and their results -----------------------------------------------------------------------

    def _result_blocks(self, group: Sequence[Message], at: int) -> list[JsonObject]:
        """Results first, as the API demands; then what can only be said as text."""
        results: list[JsonObject] = []
        strays: list[JsonObject] = []
        waiting = self.waiting(at)
        for _, message, wire_id in match_results(group, waiting):
            if wire_id is None:
                strays.append(stray_result_block(message))
            else:
                results.append(result_block(message, wire_id, self._dialect))
        return results + [missing_result_block(wire_id) for _, wire_id in waiting] + strays

    def _unanswered(self, at: int) -> list[JsonObject]:
        return [missing_result_block(wire_id) for _, wire_id in self.waiting(at)]

    def takes_id(self, id: str, at: int) -> bool:
        """The API takes these letters, and no id that an earlier call has."""
        return bool(_CLEAN_ID.fullmatch(id)) and self.is_first_use(id, at)

    # --- what came before --------------------------------------------------------------------------------

    def before(self, at: int) -> int:
        """Where the last message before this place stands that has blocks."""
        at -= 1
        while at >= 0 and not _has_blocks(self.messages[at]):
            at -= 1
        return at

    def _role_before(self, at: int) -> Role | None:
        at = self.before(at)
        if at < 0:
            return None
        return "assistant" if isinstance(self.messages[at], AssistantMessage) else "user"

    def _is_paused(self) -> bool:
        """Whether the service wants its own unfinished turn back as the last one, to go on with it."""
        at = self.before(len(self.messages))
        metadata = self.messages[at].metadata if at >= 0 else {}
        return metadata.get("stopReason") == "pause" and CONTENT_KEY in metadata


def mark_last(blocks: list[JsonObject]) -> list[JsonObject]:
    """The blocks with a cache mark at their end."""
    return [*blocks[:-1], {**blocks[-1], "cache_control": CACHE_MARK}] if blocks else blocks


def _mark_turns(fragments: Sequence[bytes], count: int) -> list[bytes]:
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
        if fragment.startswith(_OPENING["user"]):
            # a fragment that answers calls for the history has the user's turn in front of an answer
            turn, answer, rest = fragment.partition(_OPENING["assistant"])
            last = place if answer else last
            marked[last] = b"".join(((turn if answer else marked[last])[:-1], CLOSING_MARK, answer, rest))
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
