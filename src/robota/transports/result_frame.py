"""How a turn ended, as its last frame."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from robota.core.errors import PromptBlockedError, RobotaError, StructuredOutputError, describe_exception
from robota.core.messages import JsonObject, TokenUsage
from robota.core.models import get_model_context_window, get_model_max_output
from robota.core.run import ENDINGS
from robota.transports.blocks import usage_fields
from robota.transports.partial import stop_reason

if TYPE_CHECKING:
    from robota.sdk.execution import ExecutionResult
    from robota.sdk.interactive import InteractiveSession
    from robota.transports.turn_frames import TurnFrames

INTERRUPTED = "The turn was interrupted."


class Ending:
    """One turn from its beginning to its result."""

    __slots__ = ("_began", "_frames", "_session")

    def __init__(self, session: InteractiveSession, frames: TurnFrames) -> None:
        self._session = session
        self._frames = frames
        self._began = time.monotonic()

    def frame(self, result: ExecutionResult[Any]) -> JsonObject:
        """The result of a turn that came to some end by itself."""
        frames = self._frames
        told: JsonObject = {
            **_classify(result, frames),
            "duration_ms": round((time.monotonic() - self._began) * 1000),
            "duration_api_ms": round(frames.api_seconds * 1000),
            "num_turns": result.rounds,
            "stop_reason": stop_reason(frames.last_stop),
            "usage": usage_fields(result.usage),
            "permission_denials": frames.denials,
            **_costs(self._session),
        }
        if result.parsed is not None:
            told["structured_output"] = result.parsed
        return {"type": "result", **told}


def failure_frame(error: BaseException | str) -> JsonObject:
    """The result of something that failed before or outside a turn."""
    words = error if isinstance(error, str) else describe_failure(error)
    return {
        "type": "result",
        **_error("error_during_execution", "error", words),
        "duration_ms": 0,
        "duration_api_ms": 0,
        "num_turns": 0,
        "stop_reason": None,
        "total_cost_usd": 0.0,
        "usage": usage_fields(TokenUsage()),
        "modelUsage": {},
        "permission_denials": [],
    }


def describe_failure(error: BaseException) -> str:
    return str(error) if isinstance(error, RobotaError) else describe_exception(error)


def _classify(result: ExecutionResult[Any], frames: TurnFrames) -> JsonObject:
    if result.interrupted:
        reason = "aborted_tools" if frames.was_in_tools else "aborted_streaming"
        return _error("error_during_execution", reason, INTERRUPTED)
    if isinstance(result.error, PromptBlockedError):  # a hook's answer takes the place of the model's
        frames.tell(str(result.error))
        return {"subtype": "success", "is_error": False, "result": str(result.error)}
    if result.error is not None:
        return _classify_error(result.error)
    if result.stop_reason == "max_rounds":
        words = ENDINGS["max_rounds"].format(rounds=result.rounds)
        return _error("error_max_turns", "max_turns", words) | {"result": result.text}
    if result.stop_reason == "context_overflow":
        return _success(result.text, "prompt_too_long") | {"is_error": True}
    if result.stop_reason == "hook":
        return _success(result.text, "hook_stopped")
    return _success(result.text, "completed" if result.stop_reason not in ENDINGS else result.stop_reason)


def _classify_error(error: Exception) -> JsonObject:
    words = describe_failure(error)
    code = getattr(error, "code", "")
    if isinstance(error, StructuredOutputError):
        return _error("error_max_structured_output_retries", "structured_output_retry_exhausted", words)
    if code == "BUDGET_EXCEEDED":
        return _error("error_max_budget_usd", "budget_exhausted", words)
    if getattr(error, "provider", None) is not None or code == "MODEL_NOT_AVAILABLE":
        told = _success(words, "api_error") | {"is_error": True}
        return told | {"api_error_status": getattr(error, "status", None)}
    return _error("error_during_execution", "error", words)


def _success(text: str, reason: str) -> JsonObject:
    return {"subtype": "success", "is_error": False, "result": text, "terminal_reason": reason}


def _error(subtype: str, reason: str, words: str) -> JsonObject:
    return {"subtype": subtype, "is_error": True, "errors": [words], "terminal_reason": reason}


def _costs(session: InteractiveSession) -> JsonObject:
    """Over the whole session, also what it used before it was resumed."""
    report = session.session.usage.book.report()
    models = {
        row.model: {
            "inputTokens": row.uncached_tokens,
            "outputTokens": row.output_tokens,
            "cacheReadInputTokens": row.cache_read_tokens,
            "cacheCreationInputTokens": row.cache_write_tokens,
            "webSearchRequests": 0,
            "costUSD": row.cost_usd or 0.0,
            "contextWindow": get_model_context_window(row.model),
            "maxOutputTokens": get_model_max_output(row.model),
        }
        for row in report.models
    }
    return {"total_cost_usd": report.total.cost_usd or 0.0, "modelUsage": models}
