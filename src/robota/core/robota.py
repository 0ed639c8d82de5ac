"""`Robota`: a provider, tools and a conversation. A prompt goes in, a result and events come out."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
from types import TracebackType
from typing import Any, Self

from msgspec import Struct

from robota.core.bus import EventBus
from robota.core.conversation import ConversationStore
from robota.core.engine import DEFAULT_CAPACITY_HINT, Engine, RunControl
from robota.core.errors import AgentBusyError, ConfigurationError
from robota.core.events import TurnEvent
from robota.core.history import HistoryEntry
from robota.core.messages import Message, Part, Prompt
from robota.core.models import DEFAULT_CONTEXT_WINDOW, get_model_context_window, is_known_model
from robota.core.plugin import Plugin, PluginChain
from robota.core.ports import REAL_WORLD, Ports
from robota.core.provider import (
    ModelSettings,
    NativeWebTools,
    Provider,
    ToolSchema,
    assert_native_web_tools_available,
)
from robota.core.tool import Ask, FileVersions, Tool, tool_schema
from robota.core.tool_batch import RunTool, invoke_tool
from robota.core.turn import OutputRequest, RunResult, Turn

DEFAULT_MAX_ROUNDS = 10
DEFAULT_MAX_IDENTICAL_FAILURES = 3
DEFAULT_SETTINGS = ModelSettings()
NO_PLUGINS = PluginChain(())


class AgentConfig(Struct, frozen=True, kw_only=True):
    """What few agents need to say."""

    name: str = ""
    session_id: str = ""
    cwd: str = ""
    deps: Any = None
    """Handed to tools as `ctx.deps`."""
    idle_timeout: float | None = None
    """Seconds a model call may be silent; `None` or a non-positive number waits for ever."""
    total_timeout: float | None = None
    """Seconds a model call may take in all, however much it says; likewise."""
    context_window: int | None = None
    """Tokens; `None` takes the shipped facts about the model."""
    capacity_hint: str = DEFAULT_CAPACITY_HINT
    max_parallel_tools: int | None = None
    """`None` runs all tools of an answer at once; below 1 means one."""
    max_identical_failures: int = DEFAULT_MAX_IDENTICAL_FAILURES
    """How often the same call may fail in consecutive rounds; 0 for ever."""
    native_web_tools: NativeWebTools | None = None
    run_tool: RunTool = invoke_tool
    """Carries a prepared call out; a session puts permissions and hooks here."""
    admit: Callable[[Provider], Provider] | None = None
    """What a provider becomes before a run may ask it; a session puts its budget here."""
    ask: Ask | None = None
    ports: Ports = REAL_WORLD


DEFAULT_CONFIG = AgentConfig()
OPTION_NAMES = ("model", "system_message", "plugins", "settings", "conversation", "config")
OPTION_TYPES: tuple[tuple[type, ...], ...] = (
    (str,),
    (str, type(None)),
    (list, tuple),
    (ModelSettings,),
    (ConversationStore, type(None)),
    (AgentConfig, type(None)),
)


class Robota:
    """An agent. Construction does nothing but remember; the first run makes the rest."""

    __slots__ = (
        "__weakref__", "_chain", "_config", "_control", "_conversation_id", "_files", "_max_rounds",
        "_noticed", "_schemas", "_system_message", "_tools", "conversation", "engine", "events", "model",
        "native_web_tools", "plugins", "provider", "settings", "streaming",
    )  # fmt: skip

    def __init__(
        self,
        provider: Provider,
        *,
        model: str = "",
        tools: Iterable[Tool] = (),
        system_message: str | None = None,
        plugins: Sequence[Plugin] = (),
        max_rounds: int = DEFAULT_MAX_ROUNDS,
        settings: ModelSettings = DEFAULT_SETTINGS,
        conversation: ConversationStore | None = None,
        config: AgentConfig | None = None,
    ) -> None:
        # Written out: this is a third of what constructing an agent costs.
        if not (
            isinstance(model, str)
            and (system_message is None or isinstance(system_message, str))
            and isinstance(plugins, (list, tuple))
            and isinstance(settings, ModelSettings)
            and (conversation is None or isinstance(conversation, ConversationStore))
            and (config is None or isinstance(config, AgentConfig))
        ):
            raise wrong_option((model, system_message, plugins, settings, conversation, config))
        self.provider = provider
        self.model = model
        self.settings = settings
        self.plugins = plugins
        self._config = config or DEFAULT_CONFIG
        self.native_web_tools = self._config.native_web_tools
        """Asked for from the next run on."""
        self._max_rounds = check_count("max_rounds", max_rounds)
        self.conversation = ConversationStore(self._config.ports) if conversation is None else conversation
        self.events = EventBus()
        self._tools: dict[str, Tool] = {}
        self._schemas: tuple[ToolSchema, ...] | None = None
        self._system_message = system_message
        self._chain: PluginChain | None = None
        self._control: RunControl | None = None
        self._conversation_id = ""
        self._files: FileVersions | None = None
        self._noticed = ""
        self.engine: Engine | None = None
        """What the run under way works with."""
        self.streaming = False
        """Whether a run is followed through `stream`."""
        self.tools = tools

    # --- what it is made of ----------------------------------------------------------------------------

    @property
    def tools(self) -> Sequence[Tool]:
        return tuple(self._tools.values())

    @tools.setter
    def tools(self, tools: Iterable[Tool]) -> None:
        named: dict[str, Tool] = {}
        try:
            given = iter(tools)
        except TypeError:
            raise ConfigurationError(f"tools must be a list of tools, not {tools!r}.") from None
        for tool in given:
            name = getattr(tool, "name", None)
            if not isinstance(name, str) or not name or isinstance(tool, type) or not hasattr(tool, "run"):
                raise ConfigurationError(f"{tool!r} is no tool: decorate the function with @tool.")
            if name in named:
                raise ConfigurationError(f"Two tools have the name {name!r}; rename one of them.")
            named[name] = tool
        self._tools = named
        self._schemas = None

    @property
    def messages(self) -> list[Message]:
        return self.conversation.messages

    @property
    def history(self) -> list[HistoryEntry]:
        return self.conversation.history

    @property
    def conversation_id(self) -> str:
        if not self._conversation_id:
            self._conversation_id = self._config.ports.new_id()
        return self._conversation_id

    @property
    def is_running(self) -> bool:
        return self._control is not None

    @property
    def system_message(self) -> str | None:
        return self._system_message

    @system_message.setter
    def system_message(self, text: str | None) -> None:
        self._system_message = text

    # --- running ----------------------------------------------------------------------------------------

    async def run(
        self,
        prompt: Prompt,
        *,
        max_rounds: int | None = None,
        output: Any = None,
        output_retries: int = 2,
        settings: ModelSettings | None = None,
    ) -> RunResult:
        """Take one prompt to its end. An abort or a failing model is a result, not an exception."""
        from anyio import CancelScope  # noqa: PLC0415 - 15 ms that an agent which never runs does not need

        limit = self._max_rounds if max_rounds is None else check_count("max_rounds", max_rounds)
        retries = check_count("output_retries", output_retries)
        wanted = None if output is None else OutputRequest(output, retries)
        if self.streaming:
            from robota.core.stream import let_go  # noqa: PLC0415 - loaded by the stream

            await let_go(self)
        self.require_idle()
        check_provider(self.provider)
        check_prompt(prompt)
        assert_native_web_tools_available(self.provider, self.native_web_tools)
        scope = CancelScope()
        control = RunControl(scope)
        engine = self._engine(settings or self.settings)
        turn = Turn(engine, control, limit, wanted)
        self._control, self.engine = control, engine
        try:
            try:
                with scope:
                    await turn.take(prompt, self._system_message, self._news())
                turn.interrupted = scope.cancelled_caught
                turn.finished = True
            finally:
                turn.settle()
            await turn.tell_plugins()
        finally:
            self._control = self.engine = None
            control.end()
        return turn.result()

    def require_idle(self) -> None:
        """Raise if a run is under way."""
        if self._control is not None:
            raise AgentBusyError(
                "This agent is running already: wait for that run, abort() it, or make another agent."
            )

    def run_sync(self, prompt: Prompt, **options: Any) -> RunResult:
        """`run` for code without an event loop; also in notebooks, any number of times."""
        from robota.core.sync import run_sync  # noqa: PLC0415 - starts a thread, for those who ask for it

        return run_sync(self.run(prompt, **options))

    def stream(self, prompt: Prompt, **options: Any) -> AsyncGenerator[TurnEvent, None]:
        """The run's turn events as they happen; the last says how it ended. Leaving early stops the run."""
        from robota.core.stream import stream_run  # noqa: PLC0415 - for those who stream

        return stream_run(self, prompt, options)

    def abort(self) -> None:
        """Stop the run under way, if there is one. Safe from any thread and from signal handlers."""
        control = self._control
        if control is not None:
            control.abort()

    async def wait_for_abort(self) -> None:
        """Wait until a run that was told to stop has ended."""
        control = self._control
        if control is not None and control.aborted:
            await control.wait_until_ended()

    # --- the conversation ---------------------------------------------------------------------------------

    def inject(self, message: Message) -> None:
        """Put a message into the conversation without asking the model."""
        self.conversation.append(message)

    def clear(self) -> None:
        """Forget the conversation; the next run begins a new one."""
        if self._control is not None:
            raise AgentBusyError(
                "The conversation cannot be cleared while a run is under way: abort() it first."
            )
        self.conversation.clear()
        self._conversation_id = ""

    # --- life -------------------------------------------------------------------------------------------

    async def aclose(self) -> None:
        """Stop what runs and let the plugins go. The provider may be shared and stays open."""
        self.abort()
        await self.wait_for_abort()
        if self._chain is not None:
            await self._chain.dispose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    # --- what a run needs ----------------------------------------------------------------------------------

    def _engine(self, settings: ModelSettings) -> Engine:
        config = self._config
        if self._schemas is None:
            self._schemas = tuple(map(tool_schema, self._tools.values()))
        if self._chain is None or self._chain.source is not self.plugins:
            self._chain = PluginChain(self.plugins) if self.plugins else NO_PLUGINS
        if self._files is None:
            self._files = FileVersions()
        window = config.context_window or get_model_context_window(self.model)
        return Engine(
            provider=self.provider if config.admit is None else config.admit(self.provider),
            model=self.model, tools=self._tools, schemas=self._schemas,
            conversation=self.conversation, events=self.events, plugins=self._chain, ports=config.ports,
            settings=settings, run_tool=config.run_tool, native_web_tools=self.native_web_tools,
            context_window=window, capacity_hint=config.capacity_hint,
            idle_timeout=_limit(config.idle_timeout), total_timeout=_limit(config.total_timeout),
            max_parallel_tools=config.max_parallel_tools,
            max_identical_failures=config.max_identical_failures,
            agent_id=config.name or self.conversation_id, agent_name=config.name,
            conversation_id=self.conversation_id, session_id=config.session_id, cwd=config.cwd,
            files=self._files, deps=config.deps, ask=config.ask,
        )  # fmt: skip

    def _news(self) -> str | None:
        """What the user should be told once: a window that is only assumed."""
        model = self.model
        if not model or self._noticed == model or self._config.context_window or is_known_model(model):
            return None
        self._noticed = model
        return (
            f"Nothing is known about the model {model!r}; a window of {DEFAULT_CONTEXT_WINDOW:,} tokens is "
            "assumed. Set the context window if it has another."
        )


def _limit(seconds: float | None) -> float | None:
    return seconds if seconds is not None and 0 < seconds < float("inf") else None


def wrong_option(given: tuple[object, ...]) -> ConfigurationError:
    """What is wrong with the options of an agent, by the name of the first that is."""
    name, value, kinds = next(
        (name, value, kinds)
        for name, value, kinds in zip(OPTION_NAMES, given, OPTION_TYPES, strict=True)
        if not isinstance(value, kinds)
    )
    wanted = " or ".join(kind.__name__.replace("NoneType", "None") for kind in kinds)
    return ConfigurationError(f"{name} must be {wanted}, not {value!r:.80}.")


def check_provider(provider: object) -> None:
    named = isinstance(getattr(provider, "name", None), str)
    if isinstance(provider, type) or not named or not callable(getattr(provider, "stream", None)):
        raise ConfigurationError(
            f"{provider!r} is no provider: it needs a `name` and an async generator method `stream(request)`."
        )


def check_prompt(prompt: object) -> None:
    if isinstance(prompt, str):
        return
    if not isinstance(prompt, list | tuple) or not all(isinstance(part, Part) for part in prompt):
        raise ConfigurationError(
            f"A prompt must be text or a sequence of parts such as TextPart, not {prompt!r:.80}."
        )


def check_count(name: str, value: int) -> int:
    """A usable limit: a whole number, not negative."""
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return value
    raise ConfigurationError(f"{name} must be a non-negative integer, not {value!r}.")
