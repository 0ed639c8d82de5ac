"""How a call ended, for the client and the model behind it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mcp import types

from robota.core.messages import JsonObject
from robota.transports.mcp_server.live_call import Ended, LiveCall
from robota.transports.result_frame import describe_failure

if TYPE_CHECKING:
    from robota.sdk.execution import ExecutionResult


def failure(words: str, facts: JsonObject | None = None) -> types.CallToolResult:
    """One sentence, as the result of a call."""
    return types.CallToolResult(
        content=[types.TextContent(type="text", text=words)], structured_content=facts, is_error=True
    )


def describe_end(call: LiveCall, ended: Ended) -> types.CallToolResult:
    """The answer and what is known about it; what was refused is named."""
    result = ended.result
    if result is None:
        return failure(describe_failure(ended.error or RuntimeError("The call was stopped.")))
    words = _words(result)
    denied = tuple(dict.fromkeys(call.denials.tools))
    if denied:
        words = f"{words}\n\n[{call.denials.describe()}]"
    good = result.success and (result.command is None or result.command.success)
    facts: JsonObject = {
        "sessionId": call.session.session_id,
        "text": words,
        "success": good,
        "stopReason": "aborted" if result.interrupted else result.stop_reason,
        "costUsd": call.session.session.usage.total.cost_usd or 0.0,
        "usage": {
            "inputTokens": result.usage.input_tokens,
            "outputTokens": result.usage.output_tokens,
        },
        "denied": list(denied),
    }
    if result.command is not None:
        facts["data"] = dict(result.command.data or {})
    return types.CallToolResult(
        content=[types.TextContent(type="text", text=words)], structured_content=facts, is_error=not good
    )


def _words(result: ExecutionResult[Any]) -> str:
    if result.error is not None:
        return describe_failure(result.error)
    if result.interrupted:
        return f"{result.text}\n\n[The turn was stopped.]".strip()
    return result.text
