"""When the tools of servers are offered at once, and when only a search for them is."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Literal

from msgspec import Struct

from robota.core.messages import AssistantMessage, Json, Message, ToolMessage

if TYPE_CHECKING:
    from robota.tools.mcp.connection import ServerConnection

VARIABLE = "ENABLE_TOOL_SEARCH"
TOOL_SEARCH = "ToolSearch"
ASSUMED_TOKENS = 1500
"""What the tools of a server take that has not said yet what it has."""


class SearchPolicy(Struct, frozen=True):
    """Whether schemas are deferred: always, never, or once they would take more of the window than this."""

    mode: Literal["always", "auto", "never"] = "auto"
    share: float = 0.1


def read_policy(setting: Json, variables: Mapping[str, str]) -> SearchPolicy:
    """What the variable says, else the setting; what is neither is the usual."""
    word = (variables.get(VARIABLE) or str("auto" if setting is None else setting)).strip().lower()
    if word in ("true", "1", "yes", "on"):
        return SearchPolicy("always")
    if word in ("false", "0", "no", "off"):
        return SearchPolicy("never")
    kind, _, percent = word.partition(":")
    if kind == "auto" and percent.isdecimal() and int(percent) <= 100:
        return SearchPolicy("auto", int(percent) / 100)
    return SearchPolicy()


def is_too_much(policy: SearchPolicy, costs: Mapping[ServerConnection, int], window: int) -> bool:
    """Whether what all servers offer, as far as it is known, is to be searched for."""
    if policy.mode != "auto":
        return policy.mode == "always"
    total = 0
    for connection, tokens in costs.items():
        if connection.state == "pending" and not connection.offer.tools:
            tokens = ASSUMED_TOKENS
        total += 0 if connection.definition.always_load else tokens
    return total > policy.share * window


def recall_found(messages: Iterable[Message]) -> set[str]:
    """The tools that a conversation has found or used: one that goes on with it has them again."""
    found: set[str] = set()
    for message in messages:
        match message:
            case ToolMessage(name=name) if name == TOOL_SEARCH:
                listed = message.metadata.get("tools")
                found.update(map(str, listed) if isinstance(listed, list) else ())
            case AssistantMessage():
                found.update(call.name for call in message.tool_calls if call.name.startswith("mcp__"))
    return found
