"""`LoggingPlugin`: what an agent does, in lines for people or programs."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import IO, Literal, TypeAlias, Unpack

from robota.core.errors import describe_exception
from robota.core.jsontext import encode
from robota.core.messages import AssistantMessage, Json, JsonObject, Message, Prompt, ToolCall, prompt_text
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

LogLevel: TypeAlias = Literal["debug", "info", "warn", "error"]
LEVELS: tuple[LogLevel, ...] = ("debug", "info", "warn", "error")
LogFormat: TypeAlias = Literal["console", "json"]


class LoggingPlugin(RecordingPlugin):
    """Runs, model calls, tools and failures. What was said is left out, unless it is asked for."""

    name = "logging"
    category: PluginCategory = "logging"
    priority = PluginPriority.LOW

    def __init__(
        self,
        *,
        strategy: str = "console",
        level: LogLevel = "info",
        format: LogFormat = "console",
        include_content: bool = False,
        max_logs: int = 10_000,
        batch_size: int = 100,
        flush_interval: float = 30.0,
        stream: IO[str] | None = None,
        **where: Unpack[StorageOptions],
    ) -> None:
        """`console` writes to `stream`, by default to standard error; beside a terminal interface choose
        another strategy. `include_content` adds the words of prompts, answers and tools."""
        strategy = check_strategy(self.name, strategy, ("console", *STORAGE_STRATEGIES, "silent"))
        limit = check_number(self.name, "max_logs", max_logs, least=1, whole=True)
        self._least = LEVELS.index(check_strategy(self.name, level, LEVELS))
        self._format = check_strategy(self.name, format, ("console", "json"))
        self._content = include_content
        self._stream = stream
        self._console = strategy == "console"
        self.records = Records(
            self.name,
            make_storage(self.name, strategy, limit, where),
            limit=0 if strategy == "silent" else limit,
            batch=check_number(self.name, "batch_size", batch_size, least=1, whole=True),
            interval=check_number(self.name, "flush_interval", flush_interval, above=True),
        )

    # --- for programs -----------------------------------------------------------------------------------

    def debug(self, message: str, **data: Json) -> None:
        self.log("debug", message, data)

    def info(self, message: str, **data: Json) -> None:
        self.log("info", message, data)

    def warn(self, message: str, **data: Json) -> None:
        self.log("warn", message, data)

    def error(self, message: str, **data: Json) -> None:
        self.log("error", message, data)

    def log(self, level: LogLevel, message: str, data: Mapping[str, Json]) -> None:
        """Note one line, if its level is wanted and the plugin is enabled."""
        if not self.enabled or LEVELS.index(level) < self._least:
            return
        record = self.origin() | {"level": level, "message": message, **data}
        if self._console:
            record = self.context.redact(record)
            stream = self._stream or sys.stderr
            stream.write(format_line(record) if self._format == "console" else encode(record).decode() + "\n")
        self.records.add(record)

    def _words(self, name: str, text: str) -> JsonObject:
        return {name: text} if self._content else {f"{name}Length": len(text)}

    # --- what happens -----------------------------------------------------------------------------------

    async def before_run(self, prompt: Prompt) -> None:
        self.info("run started", **self._words("prompt", prompt_text(prompt)))

    async def after_run(self, result: RunResult) -> None:
        facts: JsonObject = {
            "executionId": result.execution_id,
            "rounds": result.rounds,
            "inputTokens": result.usage.input_tokens,
            "outputTokens": result.usage.output_tokens,
            "tools": list(result.tools_executed),
            **self._words("answer", result.text),
        }
        if result.interrupted:
            self.warn("run interrupted", **facts)
        elif result.error is not None:
            self.error("run failed", error=str(result.error), code=result.error.code, **facts)
        else:
            self.info("run completed", **facts)

    async def on_error(self, error: Exception) -> None:
        self.error("something failed", error=describe_exception(error))

    async def before_provider_call(self, request: ChatRequest) -> None:
        self.debug(
            "model called",
            provider=self.context.provider(),
            model=request.model,
            messages=len(request.messages),
            tools=len(request.tools),
        )

    async def after_provider_call(self, message: AssistantMessage) -> None:
        calls: list[Json] = [call.name for call in message.tool_calls]
        self.debug("model answered", calls=calls, **self._words("answer", message.content))

    async def before_tool_execution(self, call: ToolCall, arguments: JsonObject) -> None:
        more: JsonObject = {"arguments": arguments} if self._content else {}
        self.debug("tool called", tool=call.name, callId=call.id, **more)

    async def after_tool_execution(self, call: ToolCall, result: ToolResult) -> None:
        outcome = "ok" if result.ok else "denied" if result.denied else "failed"
        words = self._words("result", result.content)
        self.info("tool ended", tool=call.name, callId=call.id, outcome=outcome, **words)

    async def on_message_added(self, message: Message) -> None:
        self.debug("message added", role=message.role, id=message.id)


def format_line(record: Mapping[str, Json]) -> str:
    """One line for people."""
    facts = {**record}
    time = datetime.fromtimestamp(facts.pop("timestamp"), UTC).isoformat(timespec="milliseconds")
    level, message = str(facts.pop("level")).upper(), facts.pop("message")
    more = " ".join(f"{name}={encode(value).decode()}" for name, value in facts.items())
    return f"{time} {level:<5} {message} {more}".rstrip() + "\n"
