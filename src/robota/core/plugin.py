"""Plugins watch and shape a run by overriding hooks of `Plugin`.

Hooks run in priority order, equal priorities in registration order. A hook that raises is logged and the run
goes on, but a tool whose guard (`before_tool_execution`) broke is not run; a hook that wants to stop
something returns `Refusal`. Hooks nobody overrides cost nothing.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from enum import IntEnum
from time import time
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from msgspec import Struct

from robota.core.bus import HandlerTable
from robota.core.errors import ConfigurationError
from robota.core.event_names import NAMED_EVENTS, owner_path, plugin_events
from robota.core.given import nearest
from robota.core.messages import Json
from robota.core.ports import REAL_WORLD, Ports
from robota.core.tool import ToolResult

if TYPE_CHECKING:
    from logging import Logger

    from robota.core.bus import Unsubscribe
    from robota.core.events import OwnerPathSegment, TurnEvent
    from robota.core.messages import AssistantMessage, JsonObject, Message, Prompt, ToolCall
    from robota.core.provider import ChatRequest
    from robota.core.robota import Robota
    from robota.core.run import RunResult


PluginCategory: TypeAlias = Literal[
    "monitoring", "logging", "storage", "notification", "security", "performance", "error_handling",
    "limits", "event_processing", "custom",
]  # fmt: skip


class PluginPriority(IntEnum):
    """In which order plugins are called; higher comes first."""

    CRITICAL = 1000
    HIGH = 800
    NORMAL = 500
    LOW = 200
    MINIMAL = 100


class Refusal(Struct, frozen=True):
    """Returned by a `before_*` hook: do not do this, and say why."""

    reason: str
    plugin: str = ""
    """Whose it is; filled in by whoever asked."""


def _say_nothing(_: str) -> None:
    """Nobody listens."""


class PluginContext(Struct, frozen=True, kw_only=True):
    """Whom a plugin works for."""

    agent_name: str = ""
    session_id: str = ""
    agent_id: str = ""
    """Of a subagent; empty for the outermost agent."""
    conversation_id: Callable[[], str] = str
    provider: Callable[[], str] = str
    """The name of who answers now."""
    redact: Callable[[Json], Json] = lambda value: value
    """Takes secrets out of what is written down or sent."""
    notice: Callable[[str], None] = _say_nothing
    """Tells the user one sentence."""
    ports: Ports = REAL_WORLD


class PluginStatus(Struct, frozen=True, rename="camel"):
    """What a plugin is, and whether it works."""

    name: str
    category: PluginCategory
    priority: int
    enabled: bool
    initialized: bool


class Plugin:
    """Override what you need. Every hook declared here is really called."""

    name: str = ""
    category: PluginCategory = "custom"
    priority: int = PluginPriority.NORMAL
    enabled: bool = True
    context: PluginContext = PluginContext()
    """Whom it works for; known when `initialize` is called."""
    _initialized: bool = False
    _calls: int = 0
    _errors: int = 0
    _events: int = 0
    _last_activity: float | None = None

    def enable(self) -> None:
        self.enabled = True

    def disable(self) -> None:
        """Call none of its hooks until it is enabled again."""
        self.enabled = False

    def get_status(self) -> PluginStatus:
        return PluginStatus(
            self.name or type(self).__name__, self.category, self.priority, self.enabled, self._initialized
        )

    def get_stats(self) -> dict[str, Json]:
        """How often its hooks were called, how often they failed, and what it counts itself."""
        return {
            "calls": self._calls,
            "errors": self._errors,
            "eventsReceived": self._events,
            "lastActivity": self._last_activity,
        }

    def get_data(self) -> Json:
        """What it keeps, as far as it keeps something."""
        return None

    def for_child(self, agent_id: str) -> Plugin | None:
        """What watches a subagent; by default nothing does, and this one hears of it through `on_event`."""
        return None

    async def initialize(self, agent_name: str) -> None:
        """Once, before the first run."""

    async def dispose(self) -> None:
        """Once, when the agent is closed."""

    async def before_run(self, prompt: Prompt) -> Prompt | Refusal | None:
        """A prompt is about to be recorded; return another one to replace it."""

    async def after_run(self, result: RunResult) -> None:
        """The run is over, well or not."""

    async def on_error(self, error: Exception) -> None:
        """Something failed: a model call, a tool, a whole run."""

    async def on_stream_chunk(self, text: str) -> None:
        """A text delta arrived."""

    async def before_provider_call(self, request: ChatRequest) -> Refusal | None:
        """A model call is about to be made."""

    async def after_provider_call(self, message: AssistantMessage) -> None:
        """The reply is recorded."""

    async def before_tool_execution(
        self, call: ToolCall, arguments: JsonObject
    ) -> JsonObject | Refusal | None:
        """A tool is about to run; return other arguments to replace them."""

    async def after_tool_execution(self, call: ToolCall, result: ToolResult) -> ToolResult | None:
        """A tool has run; return another result to replace it."""

    async def on_message_added(self, message: Message) -> None:
        """A message is in the history."""

    async def on_event(self, name: str, event: TurnEvent, owner_path: Sequence[OwnerPathSegment]) -> None:
        """A named event (`execution.start`, `tool.execute_success` …); see `robota.core.event_names`."""


HOOKS = (
    "before_run", "after_run", "on_error", "on_stream_chunk", "before_provider_call", "after_provider_call",
    "before_tool_execution", "after_tool_execution", "on_message_added", "on_event",
)  # fmt: skip


_REPLACEMENTS: dict[str, tuple[type, ...]] = {
    "before_run": (str, list, tuple),
    "before_provider_call": (),
    "before_tool_execution": (dict,),
    "after_tool_execution": (ToolResult,),
}
"""What a hook may return in place of what it was given."""
_TOOL_GUARD = "before_tool_execution"
CLOSING_SECONDS = 4.0
"""How long a plugin may take to close; less than a session waits for what it owns."""
_FAILED = object()


def checked_plugins(plugins: Sequence[Plugin]) -> Sequence[Plugin]:
    """The same, once none of them is something else."""
    given: Sequence[object] = plugins  # a caller without a type checker can pass anything
    for plugin in given:
        if isinstance(plugin, Plugin):
            _refuse_misspelt_hooks(type(plugin))
            continue
        if isinstance(plugin, type) and issubclass(plugin, Plugin):
            raise ConfigurationError(
                f"{plugin.__name__} is not a plugin but the class of one: pass {plugin.__name__}()."
            )
        raise ConfigurationError(
            f"{plugin!r} is not a plugin: pass an instance of a subclass of robota.Plugin."
        )
    return plugins


def _refuse_misspelt_hooks(kind: type[Plugin]) -> None:
    """A guard that is never called must not look like one."""
    for base in kind.__mro__[: kind.__mro__.index(Plugin)]:
        for name in vars(base):
            if name.startswith(("before_", "after_", "on_")) and name not in HOOKS:
                near = nearest(name, HOOKS, 0.85)
                if near is not None:
                    raise ConfigurationError(
                        f"{base.__name__}.{name} is no hook and would never be called; did you mean {near!r}?"
                    )


class PluginChain:
    """The plugins of one agent, sorted once, with a list per hook of those that override it."""

    __slots__ = ("_agent", "_later", "_ready", "hooks", "plugins", "source")

    _agent: Robota

    def __init__(self, plugins: Sequence[Plugin]) -> None:
        self.source = checked_plugins(plugins)
        self.plugins = sorted(plugins, key=lambda plugin: -plugin.priority)
        self.hooks: dict[str, list[Plugin]] = {
            hook: [
                plugin for plugin in self.plugins if getattr(type(plugin), hook) is not getattr(Plugin, hook)
            ]
            for hook in HOOKS
        }
        self._ready = False
        self._later: deque[tuple[str, tuple[Any, ...]]] = deque()

    async def initialize(self, agent: Robota) -> None:
        if self._ready or not self.plugins:
            return
        self._ready = True
        context = describe_agent(agent)
        for plugin in self.plugins:
            plugin.context = context
            plugin._initialized = await _guarded(plugin, "initialize", agent.config.name) is not _FAILED

    async def dispose(self) -> None:
        if not self._ready:
            return
        self._ready = False
        async with asyncio.TaskGroup() as tasks:  # the slow ones shall not take the time of the others
            for plugin in self.plugins:
                tasks.create_task(_dispose(plugin))

    def has(self, hook: str) -> bool:
        return bool(self.hooks[hook])

    async def tell(self, hook: str, *args: Any) -> None:
        """Call the hook of every plugin that overrides it."""
        for plugin in self.hooks[hook]:
            if plugin.enabled:
                await _guarded(plugin, hook, *args)

    def later(self, hook: str, *args: Any) -> None:
        """Note a call of a hook from code that must not wait; `flush` makes it, in order."""
        if self.hooks[hook]:
            self._later.append((hook, args))

    async def flush(self) -> None:
        while self._later:
            hook, args = self._later.popleft()
            await self.tell(hook, *args)

    def watch(self, agent: Robota) -> Unsubscribe | None:
        """Have plugins hear of the run that begins, if one of them wants to."""
        if not self.hooks["on_event"]:
            return None
        self._agent = agent
        return agent.events.on_each(_NAMED, self)

    def note(self, event: TurnEvent) -> None:
        """Note a named event as it happens; plugins hear of it where the run may wait."""
        for name in plugin_events(event):
            self.later("on_event", name, event, owner_path(event, self._agent.agent_id))

    async def fold(self, hook: str, value: Any, *before: Any) -> Any:
        """Pass `value` through each plugin's hook: a returned value replaces it, a `Refusal` ends it."""
        refusal: Refusal | None = None
        for plugin in self.hooks[hook]:
            if not plugin.enabled:
                continue
            answer = await _guarded(plugin, hook, *before, value)
            if answer is _FAILED:
                if hook == _TOOL_GUARD:  # a guard that broke may have meant no
                    complaint = f"Plugin {_name(plugin)!r} failed in {hook}, so the call was not executed."
                    refusal = Refusal(complaint, _name(plugin))
                continue
            if isinstance(answer, Refusal) and hook.startswith("before_"):
                return Refusal(answer.reason, _name(plugin))
            if isinstance(answer, _REPLACEMENTS[hook]):
                value = answer
            elif answer is not None:
                complaint = f"Plugin {_name(plugin)!r} returned {type(answer).__name__} from {hook}"
                if hook == _TOOL_GUARD:  # likewise one that misspoke
                    return Refusal(f"{complaint}, so the call was not executed.", _name(plugin))
                _log().warning("%s; it was ignored.", complaint)
        return value if refusal is None else refusal


def describe_agent(agent: Robota) -> PluginContext:
    """What the plugins of an agent may know of it."""
    config = agent.config
    return PluginContext(
        agent_name=config.name,
        session_id=config.session_id,
        agent_id=config.agent_id,
        conversation_id=lambda: agent.conversation_id,
        provider=lambda: agent.provider.name,
        redact=config.redact or PluginContext().redact,
        notice=config.notice or _say_nothing,
        ports=config.ports,
    )


def plugins_for_child(plugins: Iterable[Plugin], agent_id: str) -> tuple[Plugin, ...]:
    """Those that watch an agent below the one that has these."""
    found = (plugin.for_child(agent_id) for plugin in plugins)
    return tuple(plugin for plugin in found if plugin is not None)


async def _dispose(plugin: Plugin) -> None:
    plugin._initialized = False
    try:
        async with asyncio.timeout(CLOSING_SECONDS):
            await _guarded(plugin, "dispose")
    except TimeoutError:
        _log().warning("Plugin %r was left behind: it took too long to close.", _name(plugin))


async def _guarded(plugin: Plugin, hook: str, *args: Any) -> Any:
    plugin._calls += 1
    plugin._last_activity = time()  # of no run, so it must not take a moment from a replay's clock
    if hook == "on_event":
        plugin._events += 1
    try:
        answer = getattr(plugin, hook)(*args)
        return await answer if hasattr(answer, "__await__") else answer  # a guard may forget to be async
    except Exception:  # noqa: BLE001 - a plugin is a guest: its failure is logged, the run goes on
        plugin._errors += 1
        _log().exception("Plugin %r failed in %s; the run goes on.", _name(plugin), hook)
        return _FAILED


def _name(plugin: Plugin) -> str:
    return plugin.name or type(plugin).__name__


def _log() -> Logger:
    import logging  # noqa: PLC0415 - only when something went wrong

    return logging.getLogger("robota.plugins")


_NAMED: HandlerTable = dict.fromkeys(NAMED_EVENTS, PluginChain.note)
