"""`PerformancePlugin`: how long runs, model calls and tools take."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Unpack

from robota.core.messages import AssistantMessage, Json, JsonObject, Prompt, ToolCall
from robota.core.plugin import PluginCategory, PluginPriority
from robota.core.provider import ChatRequest
from robota.core.run import RunResult
from robota.core.tool import ToolResult
from robota.plugins.options import (
    STORAGE_STRATEGIES,
    StorageOptions,
    check_number,
    check_strategy,
    make_storage,
)
from robota.plugins.recording import RecordingPlugin
from robota.plugins.records import Records
from robota.plugins.stopwatch import Stopwatch


class PerformancePlugin(RecordingPlugin):
    """One record for each operation: `run`, `model` and `tool`."""

    name = "performance"
    category: PluginCategory = "performance"
    priority = PluginPriority.NORMAL

    def __init__(
        self,
        *,
        strategy: str = "memory",
        max_entries: int = 5000,
        threshold: float = 1.0,
        aggregation_interval: float = 60.0,
        batch_size: int = 50,
        flush_interval: float = 60.0,
        **where: Unpack[StorageOptions],
    ) -> None:
        """What takes longer than `threshold` counts as slow; times are seconds."""
        strategy = check_strategy(self.name, strategy, ("memory", *STORAGE_STRATEGIES, "silent"))
        limit = check_number(self.name, "max_entries", max_entries, least=1, whole=True)
        self._threshold = check_number(self.name, "threshold", threshold)
        self._span = check_number(self.name, "aggregation_interval", aggregation_interval, above=True)
        self.records = Records(
            self.name,
            make_storage(self.name, strategy, limit, where),
            limit=limit,
            batch=check_number(self.name, "batch_size", batch_size, least=1, whole=True),
            interval=check_number(self.name, "flush_interval", flush_interval, above=True),
        )
        self.begin()

    def begin(self) -> None:
        self._watch = Stopwatch(lambda: self.context.ports.monotonic())
        self._cpu = 0.0

    async def before_run(self, prompt: Prompt) -> None:
        self._watch.start_run()
        self._cpu = time.process_time()

    async def before_provider_call(self, request: ChatRequest) -> None:
        self._watch.ask(request.model)

    async def after_provider_call(self, message: AssistantMessage) -> None:
        seconds = self._watch.answer()
        if seconds is not None:
            self._note("model", self._watch.model, seconds, "providerError" not in message.metadata)

    async def before_tool_execution(self, call: ToolCall, arguments: JsonObject) -> None:
        self._watch.start_tool(call.id, call.name)

    async def after_tool_execution(self, call: ToolCall, result: ToolResult) -> None:
        seconds = self._watch.end_tool(call.id)
        if seconds is not None:
            self._note("tool", call.name, seconds, result.ok)

    async def after_run(self, result: RunResult) -> None:
        seconds = self._watch.answer()
        if seconds is not None:
            self._note("model", self._watch.model, seconds, success=False)
        for name, spent in self._watch.cut():
            self._note("tool", name, spent, success=False)
        cpu = round(time.process_time() - self._cpu, 6)
        name = self.context.agent_id or self.context.agent_name
        self._note("run", name, self._watch.end_run(), result.success, cpuSeconds=cpu)

    def _note(self, operation: str, name: str, seconds: float, success: bool, **more: Json) -> None:
        facts: JsonObject = {
            "operation": operation,
            "name": name,
            "seconds": round(seconds, 6),
            "slow": seconds > self._threshold,
            "success": success,
            **more,
        }
        self.records.add(self.origin() | facts)

    def summarize(self) -> dict[str, JsonObject]:
        """Count, mean, median, 95th percentile and longest time of each operation, of the latest records."""
        return {
            operation: describe_times(found)
            for operation in ("run", "model", "tool")
            if (found := [record for record in self.records.latest if record["operation"] == operation])
        }

    def aggregate(self) -> list[JsonObject]:
        """The same over `aggregation_interval` seconds each, the oldest first."""
        spans: dict[tuple[float, str], list[JsonObject]] = {}
        for record in self.records.latest:
            start = record["timestamp"] // self._span * self._span
            spans.setdefault((start, record["operation"]), []).append(record)
        return [
            {"start": start, "operation": operation, **describe_times(found)}
            for (start, operation), found in sorted(spans.items(), key=lambda item: item[0])
        ]

    def get_stats(self) -> dict[str, Json]:
        slow = sum(record["slow"] for record in self.records.latest)
        return super().get_stats() | {"slow": slow, "operations": self.summarize()}


def describe_times(records: Iterable[JsonObject]) -> JsonObject:
    found = list(records)
    times = sorted(record["seconds"] for record in found)
    count = len(times)
    return {
        "count": count,
        "failed": sum(not record["success"] for record in found),
        "meanSeconds": round(sum(times) / count, 6),
        "medianSeconds": times[count // 2],
        "p95Seconds": times[min(count - 1, int(count * 0.95))],
        "maxSeconds": times[-1],
    }
