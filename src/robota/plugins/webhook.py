"""`WebhookPlugin`: tells other programs what happens, by signed posts."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Any

from msgspec import Struct, to_builtins

from robota.core.errors import ConfigurationError, describe_exception
from robota.core.event_names import innermost
from robota.core.events import (
    OwnerPathSegment,
    RunCompleted,
    RunFailed,
    RunInterrupted,
    RunStarted,
    ToolEnded,
    ToolStarted,
    TurnEvent,
)
from robota.core.given import require_texts, suggest
from robota.core.jsontext import encode
from robota.core.messages import Json, JsonObject
from robota.core.plugin import Plugin, PluginCategory, PluginPriority
from robota.core.run import RunResult
from robota.plugins.deliveries import Deliveries
from robota.plugins.options import check_number
from robota.plugins.posting import Patience, Poster

DEFAULT_EVENTS = ("execution.complete", "conversation.complete", "tool.executed", "error.occurred")
EVENTS = frozenset(
    (
        *DEFAULT_EVENTS, "user.input", "execution.start", "execution.error", "agent.completion",
        "agent.created", "tool.execute_start", "tool.execute_success", "tool.execute_error", "task.started",
        "task.completed", "task.failed",
    )
)  # fmt: skip
SIGNATURE = "X-Webhook-Signature"
USER_AGENT = "robota-webhook/1.0.0"


class WebhookEndpoint(Struct, frozen=True, kw_only=True):
    """One program that is told."""

    url: str
    events: tuple[str, ...] = DEFAULT_EVENTS
    """`*` for all."""
    secret: str = ""
    """Signs each body: `sha256=` and the HMAC-SHA256 in hexadecimal digits."""
    headers: Mapping[str, str] = {}


class WebhookPlugin(Plugin):
    """Posts run beside the run, at most three at a time; what cannot be delivered is counted and named."""

    name = "webhook"
    category: PluginCategory = "notification"
    priority = PluginPriority.LOW

    def __init__(
        self,
        *,
        url: str = "",
        secret: str = "",
        events: Collection[str] = DEFAULT_EVENTS,
        headers: Mapping[str, str] | None = None,
        endpoints: Sequence[WebhookEndpoint | Mapping[str, Any]] = (),
        allowed_hosts: Collection[str] = (),
        timeout: float = 5.0,
        max_retries: int = 3,
        retry_delay: float = 1.0,
        max_retry_delay: float = 10.0,
        max_concurrency: int = 3,
        batching: bool = False,
        batch_size: int = 10,
        batch_interval: float = 5.0,
        include_content: bool = False,
    ) -> None:
        """One endpoint by `url`, `secret`, `events` and `headers`, or several as `endpoints`. An address that
        is not public has to be named in `allowed_hosts`. `include_content` sends words of prompts, answers
        and tools along. With `batching` a body is `{"events": [...]}`; times are seconds."""
        number = self._number
        patience = Patience(
            timeout=number("timeout", timeout, above=True),
            retries=number("max_retries", max_retries, whole=True),
            first_delay=number("retry_delay", retry_delay),
            longest_delay=number("max_retry_delay", max_retry_delay),
        )
        given = [_read_endpoint(each) for each in endpoints]
        if url:
            chosen = require_texts("webhook.events", events)
            given.insert(0, WebhookEndpoint(url=url, secret=secret, events=chosen, headers=headers or {}))
        if not given:
            raise ConfigurationError("The plugin 'webhook' needs the option url, or endpoints.")
        hosts = require_texts("webhook.allowed_hosts", allowed_hosts)
        size = number("batch_size", batch_size, least=1, whole=True)
        interval = number("batch_interval", batch_interval, above=True)
        self._content = include_content
        self._deliveries = Deliveries(
            self.name, at_once=number("max_concurrency", max_concurrency, least=1, whole=True)
        )
        self._targets = [
            Target(each, Poster(each.url, headers={"User-Agent": USER_AGENT, **each.headers},
                                allowed_hosts=hosts, patience=patience), size if batching else 1,
                   interval, self._deliveries, batching=batching)
            for each in map(_check_events, given)
        ]  # fmt: skip

    def _number(self, name: str, value: float, **bounds: Any) -> Any:
        return check_number(self.name, name, value, **bounds)

    async def initialize(self, agent_name: str) -> None:
        self._deliveries.bind(self.context)

    async def dispose(self) -> None:
        for target in self._targets:
            target.close_batch()
        await self._deliveries.aclose()

    async def flush(self) -> None:
        """Wait until everything was delivered or given up."""
        for target in self._targets:
            target.close_batch()
        await self._deliveries.flush()

    # --- what happens -----------------------------------------------------------------------------------

    async def on_event(self, name: str, event: TurnEvent, owner_path: Sequence[OwnerPathSegment]) -> None:
        inner = innermost(event)
        names = (name, "tool.executed") if isinstance(inner, ToolEnded) else (name,)
        for each in names:
            if any(target.wants(each) for target in self._targets):
                path: list[Json] = [to_builtins(segment) for segment in owner_path]
                self.send(each, self._describe(inner), executionId=inner.execution_id, ownerPath=path)

    async def on_error(self, error: Exception) -> None:
        self.send("error.occurred", {"error": describe_exception(error)})

    async def after_run(self, result: RunResult) -> None:
        data: JsonObject = {
            "success": result.success,
            "interrupted": result.interrupted,
            "rounds": result.rounds,
            "tools": list(result.tools_executed),
            "inputTokens": result.usage.input_tokens,
            "outputTokens": result.usage.output_tokens,
        }
        if self._content:
            data["text"] = result.text
        self.send("conversation.complete", data, executionId=result.execution_id)

    def send(self, event: str, data: JsonObject, **more: Json) -> None:
        """Tell whoever wants to hear of this event; also for events of your own."""
        wanting = [target for target in self._targets if target.wants(event)]
        if not wanting or not self.enabled:
            return
        context = self.context
        payload: JsonObject = {
            "id": context.ports.new_id(),
            "event": event,
            "timestamp": context.ports.now(),
            "sessionId": context.session_id,
            **more,
            "data": data,
        }
        for target in wanting:
            target.put(payload, context.redact)

    def _describe(self, event: TurnEvent) -> JsonObject:
        match event:
            case RunStarted():
                return {"prompt": event.prompt} if self._content else {"promptLength": len(event.prompt)}
            case ToolStarted():
                more = {"arguments": dict(event.arguments)} if self._content else {}
                return {"tool": event.tool_name, "callId": event.call_id, **more}
            case ToolEnded():
                said = {"content": event.content, "error": event.error} if self._content else {}
                facts = {"tool": event.tool_name, "callId": event.call_id, "outcome": event.outcome}
                return {**facts, "seconds": event.duration, **said}
            case RunCompleted():
                text = {"text": event.text} if self._content else {}
                return {"interrupted": False, "rounds": event.rounds, "stopReason": event.stop_reason, **text}
            case RunInterrupted():
                return {"interrupted": True, **({"text": event.text} if self._content else {})}
            case RunFailed():
                return {"error": event.message, "code": event.code}
            case _:
                return {}

    def get_stats(self) -> dict[str, Json]:
        return super().get_stats() | self._deliveries.describe()


class Target:
    """One endpoint, and the batch that is being filled for it."""

    def __init__(
        self,
        endpoint: WebhookEndpoint,
        poster: Poster,
        size: int,
        interval: float,
        deliveries: Deliveries,
        *,
        batching: bool,
    ) -> None:
        self._endpoint = endpoint
        self._poster = poster
        self._size = size
        self._interval = interval
        self._deliveries = deliveries
        self._batching = batching
        self._batch: list[JsonObject] = []
        self._redact: Callable[[Json], Json] = lambda value: value

    def wants(self, event: str) -> bool:
        return event in self._endpoint.events or "*" in self._endpoint.events

    def put(self, payload: JsonObject, redact: Callable[[Json], Json]) -> None:
        self._batch.append(payload)
        self._redact = redact
        if len(self._batch) >= self._size:
            self.close_batch()
        elif len(self._batch) == 1:
            self._deliveries.call_later(self._interval, self.close_batch)

    def close_batch(self) -> None:
        batch, self._batch = self._batch, []
        if batch:
            self._deliveries.put(self._poster, partial(self._make, batch, self._redact))

    def _make(self, batch: list[JsonObject], redact: Callable[[Json], Json]) -> tuple[bytes, dict[str, str]]:
        body = encode(redact({"events": batch} if self._batching else batch[0]))
        return body, sign(body, self._endpoint.secret)


def sign(body: bytes, secret: str) -> dict[str, str]:
    """The header that proves who sent a body, if there is a secret."""
    if not secret:
        return {}
    return {SIGNATURE: "sha256=" + hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()}


def _read_endpoint(given: WebhookEndpoint | Mapping[str, Any]) -> WebhookEndpoint:
    if isinstance(given, WebhookEndpoint):
        return given
    import msgspec  # noqa: PLC0415 - for those of settings

    try:
        return msgspec.convert(dict(given), WebhookEndpoint)
    except (msgspec.ValidationError, TypeError, ValueError) as error:
        raise ConfigurationError(f"An endpoint of the plugin 'webhook' cannot be used: {error}.") from error


def _check_events(endpoint: WebhookEndpoint) -> WebhookEndpoint:
    for event in endpoint.events:
        if event != "*" and event not in EVENTS:
            raise ConfigurationError(
                f"The plugin 'webhook' knows no event {event!r}; {suggest(event, EVENTS)}"
            )
    return endpoint
