"""`TelemetryPlugin`: a span for each run, model call and tool, and metrics of tokens and times.

What exports them is the program's choice: it sets up an OpenTelemetry SDK, or starts with one. Without, the
spans go nowhere and cost next to nothing. Needs the extra `otel`.
"""

from __future__ import annotations

from contextvars import Token
from copy import copy
from typing import TYPE_CHECKING, Any, Self

from robota._version import __version__
from robota.core.context import read_token_usage
from robota.core.errors import ConfigurationError, get_error_code
from robota.core.jsontext import encode
from robota.core.messages import AssistantMessage, Json, JsonObject, Prompt, TokenUsage, ToolCall
from robota.core.plugin import Plugin, PluginCategory, PluginPriority
from robota.core.provider import ChatRequest
from robota.core.run import RunResult
from robota.core.tool import ToolResult
from robota.plugins.telemetry import names

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.metrics import MeterProvider
    from opentelemetry.trace import Span, SpanKind, TracerProvider

CONTENT_KEPT = 32_768
"""Characters of the latest messages that a span may carry, if it may carry any."""
_SCOPE = "robota"


class Open:
    """A span that has begun, and how to make the one before it current again."""

    __slots__ = ("name", "span", "started", "token")

    def __init__(self, span: Span, token: Token[Context], started: float, name: str) -> None:
        self.span = span
        self.token = token
        self.started = started
        self.name = name


class TelemetryPlugin(Plugin):
    """Watches one agent; those below it are watched by copies, and their spans lie inside the tool's."""

    name = "telemetry"
    category: PluginCategory = "monitoring"
    priority = PluginPriority.MINIMAL

    def __init__(
        self,
        *,
        capture_content: bool = False,
        tracer_provider: TracerProvider | None = None,
        meter_provider: MeterProvider | None = None,
    ) -> None:
        """`capture_content` puts words of prompts, answers and tools into spans, without known secrets. The
        providers are by default those that the program has set up."""
        try:
            from opentelemetry import context, metrics, trace  # noqa: PLC0415 - an extra
        except ImportError as error:
            raise ConfigurationError("Telemetry needs OpenTelemetry: pip install 'robota[otel]'.") from error
        self._otel_context, self._trace = context, trace
        self._capture = capture_content
        self._given = tracer_provider is not None
        self._tracer = trace.get_tracer(_SCOPE, __version__, tracer_provider)
        meter = metrics.get_meter(_SCOPE, __version__, meter_provider)
        self._tokens = meter.create_histogram(names.TOKEN_USAGE_METRIC, "{token}", "Tokens of model calls.")
        self._durations = meter.create_histogram(names.DURATION_METRIC, "s", "Times of operations.")
        self._runs = 0
        self._reset()

    def _reset(self) -> None:
        self._run: Span | None = None
        self._run_started = 0.0
        self._inside: Context | None = None
        """The context of the run: what happens in it lies below its span."""
        self._chat: Open | None = None
        self._open_tools: dict[str, Open] = {}

    def for_child(self, agent_id: str) -> Self:
        child = copy(self)
        child._reset()
        child._given = True  # what there is to tell was told
        return child

    async def initialize(self, agent_name: str) -> None:
        provider = self._trace.get_tracer_provider()
        if not self._given and isinstance(provider, self._trace.ProxyTracerProvider):
            self.context.notice(
                "Telemetry is on, but this process has no OpenTelemetry SDK, so nothing is exported: start "
                "robota with opentelemetry-instrument, or see docs/telemetry.md."
            )

    # --- runs -------------------------------------------------------------------------------------------

    async def before_run(self, prompt: Prompt) -> None:
        context = self.context
        whose = context.agent_id or context.agent_name
        facts: dict[str, Any] = {
            names.OPERATION: names.INVOKE_AGENT,
            names.PROVIDER: context.provider(),
            names.CONVERSATION: context.session_id or context.conversation_id(),
        }
        if whose:
            facts |= {names.AGENT_NAME: whose, names.AGENT_ID: whose}
        self._reset()
        title = f"{names.INVOKE_AGENT} {whose}".rstrip()
        self._run = self._tracer.start_span(title, attributes=facts)
        self._run_started = context.ports.monotonic()
        self._inside = self._trace.set_span_in_context(self._run)
        self._runs += 1

    async def after_run(self, result: RunResult) -> None:
        """Told in another task than the rest, so nothing is made current again here."""
        if self._chat is not None:
            self._close(self._chat, {}, interrupted=result.interrupted)
        for opened in self._open_tools.values():
            self._close(opened, {}, interrupted=result.interrupted)
        span = self._run
        if span is None:
            return
        span.set_attributes(self._describe_usage(result.usage) | {names.ROUNDS: result.rounds})
        span.set_attribute(names.FINISH_REASONS, [result.stop_reason])
        if result.error is not None:
            self._mark_failed(span, get_error_code(result.error), result.error)
        if result.interrupted:
            span.set_attribute(names.INTERRUPTED, True)
        span.end()
        kind = get_error_code(result.error) if result.error is not None else ""
        self._note_time(names.INVOKE_AGENT, self._run_started, {}, kind)
        self._reset()

    # --- model calls ------------------------------------------------------------------------------------

    async def before_provider_call(self, request: ChatRequest) -> None:
        self._leave_chat({})  # one without an answer
        settings = request.settings
        facts: dict[str, Any] = {
            names.OPERATION: names.CHAT,
            names.PROVIDER: self.context.provider(),
            names.CONVERSATION: self.context.session_id or self.context.conversation_id(),
            names.REQUEST_MODEL: request.model,
        }
        if settings.max_tokens is not None:
            facts[names.REQUEST_MAX_TOKENS] = settings.max_tokens
        if settings.temperature is not None:
            facts[names.REQUEST_TEMPERATURE] = settings.temperature
        if self._capture:
            facts[names.INPUT_MESSAGES] = self._show(_latest(request))
        kind = self._trace.SpanKind.CLIENT
        self._chat = self._enter(f"{names.CHAT} {request.model}".rstrip(), facts, request.model, kind)

    async def after_provider_call(self, message: AssistantMessage) -> None:
        usage = read_token_usage(message)
        facts: dict[str, Any] = {} if usage is None else self._describe_usage(usage)
        if reason := message.metadata.get("stopReason"):
            facts[names.FINISH_REASONS] = [str(reason)]
        if self._capture:
            facts[names.OUTPUT_MESSAGES] = self._show([{"role": "assistant", "content": message.content}])
        if self._chat is not None and usage is not None:
            self._note_tokens(usage, self._chat.name)
        self._leave_chat(facts)

    async def on_error(self, error: Exception) -> None:
        if self._chat is not None:  # tools run when no model is being asked
            self._mark_failed(self._chat.span, get_error_code(error), error)
            self._leave_chat({}, get_error_code(error))

    def _leave_chat(self, facts: dict[str, Any], error_type: str = "") -> None:
        chat, self._chat = self._chat, None
        if chat is not None:
            self._otel_context.detach(chat.token)
            self._close(chat, facts)
            self._note_time(names.CHAT, chat.started, {names.REQUEST_MODEL: chat.name}, error_type)

    # --- tools ------------------------------------------------------------------------------------------

    async def before_tool_execution(self, call: ToolCall, arguments: JsonObject) -> None:
        facts: dict[str, Any] = {
            names.OPERATION: names.EXECUTE_TOOL,
            names.TOOL_NAME: call.name,
            names.TOOL_TYPE: "function",
            names.TOOL_CALL_ID: call.id,
        }
        if self._capture:
            facts[names.TOOL_ARGUMENTS] = self._show(arguments)
        kind = self._trace.SpanKind.INTERNAL
        self._open_tools[call.id] = self._enter(f"{names.EXECUTE_TOOL} {call.name}", facts, call.name, kind)

    async def after_tool_execution(self, call: ToolCall, result: ToolResult) -> None:
        opened = self._open_tools.pop(call.id, None)
        if opened is None:
            return
        self._otel_context.detach(opened.token)
        kind = ""
        if not result.ok:
            kind = "denied" if result.denied else result.error_code or "tool_error"
            self._mark_failed(opened.span, kind, None)
        self._close(opened, {names.TOOL_RESULT: self._show(result.text)} if self._capture else {})
        self._note_time(names.EXECUTE_TOOL, opened.started, {names.TOOL_NAME: call.name}, kind)

    # --- spans and figures ------------------------------------------------------------------------------

    def _enter(self, title: str, facts: dict[str, Any], name: str, kind: SpanKind) -> Open:
        """Begin a span and make it current in this task, so that what happens meanwhile lies below it."""
        span = self._tracer.start_span(title, self._inside, kind, facts)
        token = self._otel_context.attach(self._trace.set_span_in_context(span))
        return Open(span, token, self.context.ports.monotonic(), name)

    def _close(self, opened: Open, facts: dict[str, Any], *, interrupted: bool = False) -> None:
        opened.span.set_attributes(facts | ({names.INTERRUPTED: True} if interrupted else {}))
        opened.span.end()

    def _mark_failed(self, span: Span, kind: str, error: Exception | None) -> None:
        span.set_attribute(names.ERROR_TYPE, kind)
        words = "" if error is None else str(self.context.redact(str(error)))
        span.set_status(self._trace.Status(self._trace.StatusCode.ERROR, words or None))

    def _describe_usage(self, usage: TokenUsage) -> dict[str, Any]:
        facts = {names.INPUT_TOKENS: usage.input_tokens, names.OUTPUT_TOKENS: usage.output_tokens}
        cached = {
            names.CACHE_READ_TOKENS: usage.cache_read_tokens,
            names.CACHE_WRITE_TOKENS: usage.cache_write_tokens,
        }
        return facts | {name: count for name, count in cached.items() if count}

    def _note_tokens(self, usage: TokenUsage, model: str) -> None:
        facts = {
            names.OPERATION: names.CHAT,
            names.PROVIDER: self.context.provider(),
            names.REQUEST_MODEL: model,
        }
        self._tokens.record(usage.input_tokens, {**facts, names.TOKEN_TYPE: "input"})
        self._tokens.record(usage.output_tokens, {**facts, names.TOKEN_TYPE: "output"})

    def _note_time(self, operation: str, started: float, more: dict[str, str], error_type: str) -> None:
        facts = {names.OPERATION: operation, names.PROVIDER: self.context.provider(), **more}
        if error_type:
            facts[names.ERROR_TYPE] = error_type
        self._durations.record(self.context.ports.monotonic() - started, facts)

    def _show(self, value: Json) -> str:
        return encode(self.context.redact(value)).decode()[:CONTENT_KEPT]

    def get_stats(self) -> dict[str, Json]:
        return super().get_stats() | {"runs": self._runs}


def _latest(request: ChatRequest) -> list[Json]:
    """The latest messages that fit into a span, the oldest first."""
    found: list[Json] = []
    room = CONTENT_KEPT
    for message in reversed(request.messages):
        room -= len(message.content)
        if room < 0 and found:
            break
        found.append({"role": message.role, "content": message.content})
    return found[::-1]
