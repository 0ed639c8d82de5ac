"""Sessions to export, and text that must not do anything but be shown."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from robota.core.messages import (
    AssistantMessage,
    FilePart,
    HistoryEntry,
    ImagePart,
    ImageUriPart,
    Message,
    ReasoningBlock,
    SystemMessage,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from robota.sessions.store.message_codec import history_entry_to_record, message_to_record

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
HOSTILE = [
    "</script><script>document.title='owned'</script>",
    '"><img src=x onerror=alert(1)>',
    "' onmouseover='alert(1)",
    "<!--",
    "]]><svg/onload=alert(1)>",
    "</pre></details></article></main><h1>forged</h1>",
    "[click](javascript:alert(1)) ![pixel](https://tracker.example/p.png)",
    "[https://good.example](https://evil.example)",
    "<javascript:alert(1)> <https://evil.example>",
    "`` ` ``` \n```\n# forged\n~~~~\n<b>\n```",
    "\\`<b>` \\[x]\n\n[x]: javascript:alert(1)\n[^1]: note",
    "- # forged\n> # forged\n1. # forged\nforged\n===\nforged\n---",
    "| `a | <b>` |\n|---|---|\n| `x | <script>` |",
    "`\n`<script>alert(1)</script>`",
    "- x\n  ```\n  code\n```\n<b>\n```\n<i>",
    "    ```\n<b>\n",
    "&lt;script&gt; &#60;b&#62;",
    "## 1. User · 2026-03-01 12:00:00 UTC",
]


def record_of(*messages: Message, history: Sequence[HistoryEntry] = (), **fields: Any) -> dict[str, Any]:
    return {
        "id": "s1",
        "cwd": "/work",
        "createdAt": "2026-03-01T12:00:00Z",
        "updatedAt": "2026-03-01T12:00:00Z",
        "messages": [message_to_record(message) for message in messages],
        "history": [history_entry_to_record(entry) for entry in history],
        **fields,
    }


def record_full_of(text: str) -> dict[str, Any]:
    """A session that has the text in every place where a text can be."""
    calls = (ToolCall("c1", text, text), ToolCall("c2", "Edit", '{"old_string":"a","new_string":"b"}'))
    return record_of(
        SystemMessage(text, timestamp=NOON),
        UserMessage(
            text, (ImagePart(text, "image/png"), ImagePart("aaaa", text), ImageUriPart(text)), timestamp=NOON
        ),
        UserMessage(text, (FilePart(text, text, text),), timestamp=NOON, metadata={"isMeta": True}),
        AssistantMessage(
            text,
            calls,
            reasoning=(ReasoningBlock(text), ReasoningBlock(data=text)),
            timestamp=NOON,
            metadata={"model": text},
        ),
        ToolMessage(text, "c1", text, timestamp=NOON, metadata={"success": False, "toolName": text}),
        ToolMessage(text, "nobody", text, timestamp=NOON),
        AssistantMessage(text, timestamp=NOON, metadata={"compaction": True}),
        history=[HistoryEntry(category="event", type=text, data={text: [text]}, timestamp=NOON)],
        id=text,
        name=text,
        cwd=text,
        model=text,
        createdAt=text,
        updatedAt=text,
    )
