"""A summary without a model, for conversations that no request can hold: what was asked, where it stands."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from robota.core.jsontext import decode
from robota.core.messages import AssistantMessage, Message, ToolCall, UserMessage
from robota.core.permissions.subjects import PATHS
from robota.core.plain_text import shorten
from robota.sessions.compaction.transcript import is_summary, read_summary

NOTE = (
    "This summary was put together by the program, because the conversation was too long for the model to "
    "read. Much of what happened is missing: look things up again before relying on them."
)
LATEST_REQUESTS = 3
MAX_FILES = 50


def summarize_by_rule(messages: Sequence[Message], limit: int) -> str:
    """First and latest requests, the last answer and the files in use, in about `limit` characters.

    `messages` is the whole timeline; what an earlier compaction hid from the model counts, too.
    """
    share = max(limit // (LATEST_REQUESTS + 4), 1)
    requests = [message.content for message in messages if isinstance(message, UserMessage)]
    answers = [
        message for message in messages if isinstance(message, AssistantMessage) and message.content.strip()
    ]
    spoken = [message.content for message in answers if not is_summary(message)]
    earlier = [read_summary(message) for message in answers if is_summary(message)]
    parts = [
        ("The first request", requests[:1]),
        ("The earlier summary", earlier[-1:]),
        ("The latest requests", requests[1:][-LATEST_REQUESTS:]),
        ("The last answer", spoken[-1:]),
        ("Files that were used, the latest first", ["\n".join(find_files(messages))]),
    ]
    told = [NOTE]
    for title, texts in parts:
        body = "\n\n".join(shorten(text.strip(), share) for text in texts)
        if body:
            told.append(f"{title}:\n{body}")
    return "\n\n".join(told)


def find_files(messages: Iterable[Message]) -> list[str]:
    """The files that tools were called with, the latest first."""
    found: dict[str, None] = {}
    for message in messages:
        for call in message.tool_calls if isinstance(message, AssistantMessage) else ():
            for path in _paths_in(call):
                found.pop(path, None)
                found[path] = None
    return list(reversed(found))[:MAX_FILES]


def _paths_in(call: ToolCall) -> list[str]:
    try:
        arguments = decode(call.arguments)
    except ValueError:
        return []
    if not isinstance(arguments, dict):
        return []
    return [path for name in PATHS if isinstance(path := arguments.get(name), str) and path]
