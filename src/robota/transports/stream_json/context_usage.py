"""What fills the context window, as a host may ask for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from robota.core.messages import JsonObject
from robota.sdk.commands.system.context import list_parts

if TYPE_CHECKING:
    from robota.sdk.interactive import InteractiveSession

_COLOURS = ("blue", "cyan", "green", "yellow", "magenta", "red")


def context_usage(session: InteractiveSession) -> JsonObject:
    state, inner = session.context_state, session.session
    parts = [(name, tokens) for name, tokens in list_parts(session) if tokens]
    free = max(0, state.max_tokens - state.used_tokens)
    categories = [
        {"name": name, "tokens": tokens, "color": _COLOURS[at % len(_COLOURS)]}
        for at, (name, tokens) in enumerate(parts)
    ]
    categories.append({"name": "Free space", "tokens": free, "color": "gray"})
    threshold = inner.auto_compact_threshold
    return {
        "categories": categories,
        "totalTokens": state.used_tokens,
        "maxTokens": state.max_tokens,
        "rawMaxTokens": state.max_tokens,
        "percentage": round(state.used_percentage),
        "model": inner.model,
        "isAutoCompactEnabled": threshold is not False,
        **({} if threshold is False else {"autoCompactThreshold": round(threshold * state.max_tokens)}),
        "memoryFiles": [
            {"path": file.path, "type": file.kind, "tokens": len(file.text) // 4}
            for file in session.project.context.files
        ],
        "mcpTools": [
            {
                "name": tool.name,
                "serverName": tool.connection.definition.name,
                "tokens": tool.tokens,
                "isLoaded": tool.name in inner.agent.toolset.tools,
            }
            for tool in session.kit.servers.all_tools
        ],
        "agents": [
            {"agentType": agent.name, "source": agent.scope, "tokens": len(agent.description) // 4}
            for agent in session.kit.subagents.agents.values()
        ],
        "gridRows": [],
    }
