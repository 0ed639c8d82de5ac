"""Whether a reply can be written as it is: to look at a whole record costs more than to write it."""

from __future__ import annotations

from robota.core.messages import AssistantMessage, TokenUsage
from robota.core.reply import usage_metadata
from robota.sessions.journal.stream_writer import StreamWriter
from robota.sessions.redaction import Redactor

ORDINARY_METADATA = frozenset(
    ("model", "responseId", "stopReason", "stopDetail", *usage_metadata(TokenUsage(1, 1, 1, 1, 1)))
)
"""What nearly every reply brings; none of it is the name of a secret."""


def is_plain_reply(message: AssistantMessage, stream: StreamWriter, redactor: Redactor) -> bool:
    """Whether the message is known to be without secrets: by what its stream has shown, and by its facts."""
    if not stream.has_shown(message) or not message.metadata.keys() <= ORDINARY_METADATA:
        return False
    words = [str(fact) for fact in message.metadata.values() if type(fact) is not int]
    for call in message.tool_calls:
        words += (call.id, call.name)
    return redactor.are_plain(words)
