"""What a damaged journal has lost, taken from the snapshot beside it.

The journal is the truth: a snapshot fills its gaps where both agree about everything around them, and what
it gave is named. One that contradicts the journal is not used, and that is said too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from robota.core.conversation import ConversationStore
from robota.core.errors import ValidationError
from robota.core.messages import AssistantMessage, Message, ToolMessage, chat_entry_to_message, is_chat_entry
from robota.core.ports import REAL_WORLD, Ports
from robota.sessions.journal.reconstruction import LOST, LOST_RESULT
from robota.sessions.redaction import REDACTED
from robota.sessions.store.session_record import CHANGED

if TYPE_CHECKING:
    from robota.sessions.start import SessionStart
    from robota.sessions.store.session_record import SessionRecord


def is_made_up(message: Message) -> bool:
    """Whether it stands for one that is lost, or was cut."""
    return bool(message.metadata.get("recovered"))


def mend(start: SessionStart, snapshot: SessionRecord, ports: Ports = REAL_WORLD) -> None:
    """Put messages of the snapshot where the journal has lost its own; `start.mended` if there were some."""
    found = start.conversation.messages
    ahead = (snapshot.journal_seq or 0) >= start.last_seq
    if not any(message.metadata.get(LOST) for message in found) and not ahead:
        return
    if CHANGED in snapshot.problems:
        start.problems += (f"{CHANGED} It was not used.",)
        return
    try:
        known = snapshot.parse_messages()
    except ValidationError as error:
        start.problems += (f"The snapshot could not be used: {error}",)
        return
    pairs = list(zip(found, known, strict=False))
    other = next(
        (at for at, (ours, its) in enumerate(pairs) if not is_made_up(ours) and not _agree(ours, its)), None
    )
    if other is not None:
        message = f"The snapshot has another message {other + 1} than the journal: it was not used."
        start.problems += (message,)
        return
    start.problems += _name_differences(pairs)
    given = [at for at, (ours, its) in enumerate(pairs) if is_made_up(ours) and not is_made_up(its)]
    more = range(len(found), len(known) if ahead else 0)
    if given or more:
        start.conversation = _join(start.conversation, known, {*given, *more}, ports)
        start.steps += len(start.conversation) - len(found)
        start.cut, start.mended = None, True
        places = ", ".join(str(at + 1) for at in (*given, *more))
        start.problems += (f"The journal lost messages that the snapshot has; taken from there: {places}.",)


def _agree(ours: Message, its: Message) -> bool:
    """Whether they are one message; that of a result may have been made anew from its record."""
    if isinstance(ours, ToolMessage) and isinstance(its, ToolMessage):
        return ours.id == its.id or ours.tool_call_id == its.tool_call_id
    return ours.id == its.id


def _name_differences(pairs: list[tuple[Message, Message]]) -> tuple[str, ...]:
    """Which messages differ; secrets may be cut out of one and not the other."""
    different = (
        at
        for at, (ours, its) in enumerate(pairs, 1)
        if not is_made_up(ours)
        and ours.content != its.content
        and REDACTED not in ours.content
        and REDACTED not in its.content
    )
    return tuple(f"Message {at} of the snapshot differs from the journal, which counts." for at in different)


def _join(
    conversation: ConversationStore, known: list[Message], taken: set[int], ports: Ports
) -> ConversationStore:
    joined, renamed, place = ConversationStore(ports), dict[str, str](), 0
    for entry in conversation.history:
        if not is_chat_entry(entry):
            joined.add_entry(entry)
            continue
        message = chat_entry_to_message(entry)
        if place in taken:
            its = known[place]
            if isinstance(message, AssistantMessage) and isinstance(its, AssistantMessage):
                pairs = zip(message.tool_calls, its.tool_calls, strict=False)
                renamed |= {made_up.id: call.id for made_up, call in pairs}
            message = its
        elif isinstance(message, ToolMessage):
            message = replace(message, tool_call_id=renamed.get(message.tool_call_id, message.tool_call_id))
        _append(joined, message)
        place += 1
    for at in sorted(at for at in taken if at >= place):
        _append(joined, known[at])
    _answer_calls(joined)
    return joined


def _append(conversation: ConversationStore, message: Message) -> None:
    """Results without a call are of no use to a model, and calls without one not allowed."""
    if isinstance(message, ToolMessage):
        if message.tool_call_id not in {call.id for call in conversation.open_calls}:
            return
    else:
        _answer_calls(conversation)
    if isinstance(message, AssistantMessage) and message.metadata.get("compaction"):
        conversation.restore_mark(message)
    else:
        conversation.append(message)


def _answer_calls(conversation: ConversationStore) -> None:
    for at, call in enumerate(conversation.open_calls):
        last = conversation.timeline[-1 - at]  # the answer
        identity: Any = {"id": f"{last.id}-{LOST}-{at}", "timestamp": last.timestamp}
        metadata = {"success": False, "toolName": call.name, "error": LOST, "recovered": True}
        conversation.append(ToolMessage(LOST_RESULT, call.id, call.name, metadata=metadata, **identity))
