"""`ExecutionAnalyticsPlugin`: one record for each run, with what it did and how it ended."""

from __future__ import annotations

from collections import Counter

from robota.core.errors import describe_exception
from robota.core.messages import AssistantMessage, Json, JsonObject, Prompt, ToolCall
from robota.core.plugin import PluginCategory, PluginPriority
from robota.core.provider import ChatRequest
from robota.core.run import RunResult
from robota.core.tool import ToolResult
from robota.plugins.options import check_number
from robota.plugins.recording import RecordingPlugin
from robota.plugins.records import Records
from robota.plugins.stopwatch import Stopwatch

ERRORS_KEPT = 20
"""Failures that the record of one run names."""


class ExecutionAnalyticsPlugin(RecordingPlugin):
    """How often runs succeed, how long they take, and what they take it for."""

    name = "execution-analytics"
    category: PluginCategory = "monitoring"
    priority = PluginPriority.LOW

    def __init__(self, *, max_entries: int = 1000, warn_after: float = 5.0) -> None:
        """A run that takes longer than `warn_after` seconds is named in the log."""
        limit = check_number(self.name, "max_entries", max_entries, least=1, whole=True)
        self._warn_after = check_number(self.name, "warn_after", warn_after)
        self.records = Records(self.name, None, limit=limit)
        self.begin()

    def begin(self) -> None:
        self._watch = Stopwatch(lambda: self.context.ports.monotonic())
        self._tools: Counter[str] = Counter()
        self._tool_seconds = self._model_seconds = 0.0
        self._model_calls = 0
        self._errors_seen: list[str] = []

    async def before_run(self, prompt: Prompt) -> None:
        self.begin()
        self._watch.start_run()

    async def before_provider_call(self, request: ChatRequest) -> None:
        self._watch.ask(request.model)
        self._model_calls += 1

    async def after_provider_call(self, message: AssistantMessage) -> None:
        self._model_seconds += self._watch.answer() or 0.0

    async def before_tool_execution(self, call: ToolCall, arguments: JsonObject) -> None:
        self._watch.start_tool(call.id, call.name)
        self._tools[call.name] += 1

    async def after_tool_execution(self, call: ToolCall, result: ToolResult) -> None:
        self._tool_seconds += self._watch.end_tool(call.id) or 0.0

    async def on_error(self, error: Exception) -> None:
        if len(self._errors_seen) < ERRORS_KEPT:
            self._errors_seen.append(describe_exception(error))

    async def after_run(self, result: RunResult) -> None:
        self._model_seconds += self._watch.answer() or 0.0
        self._tool_seconds += sum(seconds for _, seconds in self._watch.cut())
        seconds = self._watch.end_run()
        outcome = "interrupted" if result.interrupted else "error" if result.error else "success"
        self.records.add(
            self.origin()
            | {
                "executionId": result.execution_id,
                "outcome": outcome,
                "stopReason": result.stop_reason,
                "seconds": round(seconds, 6),
                "modelSeconds": round(self._model_seconds, 6),
                "toolSeconds": round(self._tool_seconds, 6),
                "modelCalls": self._model_calls,
                "rounds": result.rounds,
                "tools": dict(self._tools),
                "inputTokens": result.usage.input_tokens,
                "outputTokens": result.usage.output_tokens,
                "errors": self._errors_seen,
            }
        )
        if seconds > self._warn_after:
            import logging  # noqa: PLC0415 - only for runs that take long

            logging.getLogger("robota.plugins").warning(
                "The run %s took %.1f s (%.1f s of them in models, %.1f s in tools).",
                result.execution_id,
                seconds,
                self._model_seconds,
                self._tool_seconds,
            )

    def get_stats(self) -> dict[str, Json]:
        runs = self.records.latest
        outcomes = Counter(run["outcome"] for run in runs)
        tools: Counter[str] = Counter()
        for run in runs:
            tools.update(run["tools"])
        count = len(runs)
        own: dict[str, Json] = {
            "runs": count,
            "succeeded": outcomes["success"],
            "failed": outcomes["error"],
            "interrupted": outcomes["interrupted"],
            "successRate": round(outcomes["success"] / count, 4) if count else None,
            "meanSeconds": round(sum(run["seconds"] for run in runs) / count, 6) if count else None,
            "slow": sum(run["seconds"] > self._warn_after for run in runs),
            "tools": dict(tools.most_common()),
        }
        return super().get_stats() | own
