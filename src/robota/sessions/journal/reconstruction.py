"""The messages that records add up to, with something in the place of those that are missing.

Whoever reads a journal tells it what the records say, in order. It knows the last answer, its calls and their
results, and the pieces of a reply that has no message yet. A record that cannot be read costs itself: in its
place stands a sentence that says so, and whatever refers to it still finds its place by the number of the
run, the round and the call.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from robota.core.conversation import ConversationStore
from robota.core.jsontext import encode, is_json
from robota.core.messages import (
    AssistantMessage,
    JsonObject,
    Message,
    SystemMessage,
    ToolCall,
    ToolMessage,
    user_message,
)
from robota.core.tool_call import result_metadata
from robota.sessions.journal import records
from robota.sessions.journal.file.payloads import KIND
from robota.sessions.journal.pieces import ANSWER, INPUT, Pieces
from robota.sessions.journal.records import CallEnded, Record, Unknown

LOST = "lost"
"""In the metadata of what stands for something that is lost."""
LOST_MESSAGE = "[A message of this conversation was lost: the session's journal is damaged here.]"
LOST_ANSWER = "[The words of this answer were lost: the session's journal is damaged here.]"
LOST_RESULT = (
    "Error: its result was lost. The session's journal is damaged here; the call may have had its effects."
)
MOST_LOST = 10_000
"""Messages in a row that get something in their place: a number beyond reason must not use up the memory."""
MADE_UP: JsonObject = {"recovered": True, LOST: True}


class Reconstruction(Struct, eq=False):
    store: ConversationStore
    _unanswered: str
    """What the model is told about a call without a result."""
    steps: int = 0
    """Messages so far, those of conversations that were cleared included."""
    repairs: list[str] = []
    """What had to be put right, for people."""
    _streams: list[Pieces] = []
    """The pieces of a reply that has no message yet."""
    _streamed: tuple[int, int] = (0, 0)
    """The run and the round of that reply."""
    calls: tuple[ToolCall, ...] = ()
    """All calls of the last answer, in order."""
    answer: tuple[int, int] = (0, 0)
    """The run and the round of that answer."""
    _without_answer: bool = False
    """Its record is lost: what is known of its calls comes from their own."""
    _early: tuple[dict[int, CallEnded], set[int]] | None = None
    """What stood before the answer to whose calls it belongs."""
    damaged: bool = False
    """Something after that answer cannot be read."""
    results: dict[int, CallEnded] = {}
    begun: set[int] = set()
    """Of these calls."""
    prompt: records.UserRecord | None = None
    """The prompt that was accepted and is no message yet."""
    round: int = 0
    _last: Message | None = None

    def settle(self, *, lost: bool = True) -> None:
        """Repair what was cut before this point; `lost` if the session went on behind it."""
        self.keep_partial_reply()
        self.answer_calls(lost=lost)

    # --- what is there ------------------------------------------------------------------------------------

    def add_pieces(self, place: tuple[int, int], pieces: Pieces) -> None:
        if self._streams and place != self._streamed:
            self.keep_partial_reply()
        self._streamed = place
        self._streams.append(pieces)

    def forget_pieces(self, place: tuple[int, int] | None = None) -> None:
        """They are in a message; those of another reply are not."""
        if place in (None, self._streamed):
            self._streams.clear()

    def begin_result(self, record: records.MessageRecord, message: ToolMessage) -> bool:
        """Whether the message has a call to answer, after what stood before it."""
        if record.round and record.index > len(self.store):
            self.find_answer(record)
        if self._without_answer:
            self._restore_answer(record.index - 1, ToolCall(message.tool_call_id, message.name, "{}"))
        self._answer_before(record.index, message.tool_call_id)
        return self.is_open(message)

    def make_result(self, record: records.ToolMessageRecord) -> ToolMessage | None:
        """The message of a recorded result, if it has a call to answer."""
        self.find_answer(record)
        if self._without_answer:
            self.begun.add(record.result)
            self._restore_answer(record.index - record.result - 1)
        if record.result >= len(self.calls):
            self.repairs.append("A tool result without a call was left out.")
            return None
        at = record.result
        message = _make_result(record, self.calls[at], self.results.get(at), self.round)
        if message.content == LOST_RESULT:
            self.repairs.append(f"The result of {message.name} was lost; the model is told so.")
        self._answer_before(record.index, message.tool_call_id)
        if not self.is_open(message):
            self.repairs.append(f"A second result of {message.name} for one call was left out.")
            return None
        return message

    def is_open(self, message: ToolMessage) -> bool:
        return message.tool_call_id in {call.id for call in self.store.open_calls}

    def begin_message(self, record: records.MessageRecord) -> bool:
        """Have everything there that stood before a message; false if it is there itself."""
        if record.reply:
            self.forget_pieces((record.run, record.round))
        early = None
        if self._without_answer and record.reply and (record.run, record.round) == self.answer:
            early, self._without_answer = (self.results, self.begun), False  # the order is another
        self.settle()
        if record.index < len(self.store) and self._has_begun_again(record):
            return False
        self._fill(record.index)
        self.answer, self._early = (record.run, record.round), early
        return True

    def add_mark(self, message: AssistantMessage) -> None:
        self.settle()
        self.store.restore_mark(message)
        self.steps += 1
        self.calls, self.results, self._last = (), {}, message

    def clear(self) -> None:
        self._streams.clear()
        self.calls, self.results, self._last, self._without_answer = (), {}, None, False
        self.store.clear()

    def add(self, message: Message) -> Message:
        if isinstance(message, AssistantMessage):
            self.results, self.begun = self._early or ({}, set())
            self.calls, self._early, self.damaged = message.tool_calls, None, False
        self.store.append(message)
        self.steps += 1
        self._last = message
        return message

    # --- what a crash cut ---------------------------------------------------------------------------------

    def keep_partial_reply(self) -> None:
        if self._without_answer:
            self._restore_answer(len(self.store))
        streams, self._streams = self._streams, []
        text = "".join(pieces.answer() for pieces in streams) + (streams[-1].tail if streams else "")
        if not text:
            return
        self.answer_calls(lost=True)
        identity = _identify(self._last, "partial")
        message = AssistantMessage(text, state="interrupted", metadata={"recovered": True}, **identity)
        self.repairs.append(f"An answer was cut after {len(text):,} characters; they are kept.")
        self.add(message)

    def answer_calls(self, *, lost: bool = False) -> None:
        """Give every call a result; `lost` if the session went on, so that there was one."""
        opened = {call.id for call in self.store.open_calls}
        for at, call in enumerate(self.calls):
            if call.id in opened:
                self._answer_call(at, call, lost=lost)
        self.calls, self.results = (), {}

    def _answer_call(self, at: int, call: ToolCall, *, lost: bool) -> None:
        ended, identity = self.results.get(at), _identify(self._last, f"result-{at}")
        if ended is not None:
            result = ended.to_result()
            content, metadata = result.text, result_metadata(result, call.name, self.round)
        else:
            metadata = {"success": False, "toolName": call.name, "recovered": True}
            content, metadata["error"] = (LOST_RESULT, LOST) if lost else (self._unanswered, "interrupted")
            what = "was cut before it reported a result; its effects are unknown"
            message = f"The result of {call.name} was lost; the model is told so." if lost else ""
            self.repairs.append(message or f"{call.name} {what}.")
        self.store.append(ToolMessage(content, call.id, call.name, metadata=metadata, **identity))
        self.steps += 1

    # --- what is lost -------------------------------------------------------------------------------------

    def lose(self, record: Unknown) -> None:
        """A record of which nothing is left but its place."""
        self.damaged = True
        if record.kind == records.MessageRecord.name and record.fields.get("reply"):
            self._settle_before(record)
            self.answer = int(record.fields.get("run", 0)), int(record.fields.get("round", 0))
            self._without_answer = True
            if isinstance(rest := record.fields.get("rest"), dict):
                self.add_pieces(self.answer, msgspec.json.decode(encode(rest), type=Pieces))
        elif record.kind in (records.MessageRecord.name, records.MarkRecord.name):
            self._settle_before(record)
            self._fill(len(self.store) + 1)

    def _settle_before(self, record: Unknown) -> None:
        index = record.fields.get("index")
        if isinstance(index, int) and not record.fields.get("reply") and self.store.open_calls:
            self._answer_before(index)
            return
        self.keep_partial_reply()
        self.answer_calls(lost=True)
        if isinstance(index, int):
            self._fill(index)

    def find_answer(self, record: records.RunRecord) -> None:
        """See that a result is not taken for that of a call of another answer, whose own is lost."""
        place = record.run, record.round
        if place == self.answer:
            return
        if self._without_answer:
            self._restore_answer(len(self.store))
        self.answer_calls(lost=True)
        self.answer, self._without_answer, self.begun = place, True, set()

    def _restore_answer(self, index: int, *calls: ToolCall) -> None:
        """Put an answer in the place of one that is lost, with the calls of which something is known."""
        self._without_answer = False
        self._fill(index)
        own = self._streamed == self.answer
        text, streamed = read_reply(self._streams if own else ())
        if own:
            self._streams = []
        results, begun = self.results, self.begun
        found = [*(streamed or calls)]
        names = {at: ended.tool_name for at, ended in results.items()}
        for at in range(len(found), max((*results, *begun), default=-1) + 1):
            place = "-".join(map(str, (*self.answer, at)))
            found.append(ToolCall(f"{LOST}-{place}", names.get(at) or "unknown", "{}"))
        self.repairs.append(
            f"The record of answer {len(self.store) + 1} was lost; what else tells of it is kept."
        )
        metadata = MADE_UP
        identity = _identify(self._last, f"{LOST}-{len(self.store)}")
        self.add(AssistantMessage(text or LOST_ANSWER, tuple(found), metadata=metadata, **identity))
        self.results, self.begun, self.damaged = results, begun, True

    def _answer_before(self, index: int, own: str = "") -> None:
        """Answer the calls whose messages stood before this place; `own` is the call of the one there."""
        opened = {call.id for call in self.store.open_calls}
        for at, call in enumerate(self.calls):
            if call.id in opened and call.id != own and len(self.store) < index:
                self._answer_call(at, call, lost=True)
        if not own and self.store.open_calls:
            at = next(at for at, call in enumerate(self.calls) if call.id == self.store.open_calls[0].id)
            self._answer_call(at, self.calls[at], lost=True)

    def _fill(self, index: int) -> None:
        """Have something in the places of messages that are lost, so that the next has this index."""
        if index - len(self.store) > MOST_LOST:
            return
        while len(self.store) < index:
            identity = _identify(self._last, f"{LOST}-{len(self.store)}")
            said = self.prompt if len(self.store) == index - 1 else None
            self.prompt = None if said is not None else self.prompt
            prompt = LOST_MESSAGE if said is None else said.read_prompt()
            metadata = MADE_UP | ({"origin": "engine"} if said is None else {})
            what = "the model is told so" if said is None else "the prompt was taken from the user's record"
            self.repairs.append(f"Message {len(self.store) + 1} was lost; {what}.")
            self.store.append(user_message(prompt, metadata=metadata, **identity))
            self.steps += 1

    def _has_begun_again(self, record: records.MessageRecord) -> bool:
        """A message stands where there is one already: the conversation was cleared, and perhaps the record
        of that is lost. True if it is the system message, which such a beginning repeats."""
        system = self.store.system
        if (
            isinstance(record.message, SystemMessage)
            and system is not None
            and system.id == record.message.id
        ):
            return True
        if record.index <= (system is not None):
            self.repairs.append("The conversation begins again here; the record of that was lost.")
            self.store.clear()
        return False


def _identify(last: Message | None, what: str) -> dict[str, Any]:
    """The same id and time stamp at every repair of the same place."""
    if last is None:
        return {"id": f"recovered-{what}", "timestamp": datetime.fromtimestamp(0, UTC)}
    return {"id": f"{last.id}-{what}", "timestamp": last.timestamp}


def _make_result(
    record: records.ToolMessageRecord, call: ToolCall, ended: CallEnded | None, round_number: int
) -> ToolMessage:
    """The message, with what the record of its result says."""
    result = None if ended is None else ended.to_result()
    known = record.metadata
    if known is None:
        known = {} if result is None else result_metadata(result, call.name, round_number)
    content = record.content
    if content is None:
        content = LOST_RESULT if result is None else result.text
    return ToolMessage(
        content,
        call.id,
        record.tool_name or call.name,
        record.parts,
        id=record.id,
        timestamp=record.sent_at,
        metadata={**known, **MADE_UP} if content == LOST_RESULT else known,
    )


def salvage(record: Unknown) -> Record | None:
    """A record of ours without what it refers to and is lost; `None` if it says nothing without that."""
    kind = records.RECORD_TYPES.get(record.kind)
    if kind is None or not record.seq:
        return None
    lost = {name for name, value in record.fields.items() if is_reference(value)}
    if kind is records.UserRecord and lost:
        return None  # half a prompt is none
    left: JsonObject = {name: value for name, value in record.fields.items() if name not in lost}
    try:
        found = msgspec.json.decode(encode(left), type=kind)
    except msgspec.ValidationError:
        return None
    if isinstance(found, CallEnded) and lost & {"content", "error"}:
        failed = found.outcome != "success"
        return replace(found, content=LOST_RESULT, error=LOST_RESULT if failed else None)
    if isinstance(found, records.ToolMessageRecord) and "content" in lost:
        return replace(found, content=LOST_RESULT)
    return found


def is_reference(value: object) -> bool:
    return isinstance(value, dict) and value.get("kind") == KIND


def read_reply(streams: Sequence[Pieces]) -> tuple[str, tuple[ToolCall, ...]]:
    """The words and the calls of a reply, as far as its stream has them whole."""
    words: list[str] = []
    calls: dict[int, tuple[str, str, list[str]]] = {}
    for pieces in streams:
        for kind, text, beside in pieces.each(native=False):
            if kind in ANSWER:
                words.append(text)
            elif kind == INPUT:
                at, call_id, name = beside
                known = calls.setdefault(at, (call_id or "", name or "", []))
                calls[at] = (known[0] or call_id or "", known[1] or name or "", known[2])
                known[2].append(text)
    found: list[ToolCall] = []
    for at, (call_id, name, texts) in sorted(calls.items()):
        if at != len(found) or not call_id or not name or not is_json(arguments := "".join(texts)):
            break  # later ones would be counted wrongly
        found.append(ToolCall(call_id, name, arguments))
    return "".join(words) + (streams[-1].tail if streams else ""), tuple(found)
