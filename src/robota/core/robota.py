"""`Robota`: a provider, tools and a conversation. A prompt goes in, a result and events come out."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterable, Sequence
from functools import partial
from typing import Any, Unpack

from msgspec import Struct
from msgspec.structs import replace

from robota.core.bus import EventBus
from robota.core.closing import Closing
from robota.core.conversation import ConversationStore
from robota.core.errors import AgentBusyError, ConfigurationError
from robota.core.events import TurnEvent
from robota.core.given import Options, check_count, check_fields
from robota.core.loop import Loop
from robota.core.messages import HistoryEntry, Json, Message, Part, Prompt
from robota.core.models import get_model_context_window
from robota.core.plugin import Plugin, PluginChain, checked_plugins
from robota.core.ports import REAL_WORLD, Ports
from robota.core.provider import (
    ModelSettings,
    NativeWebTools,
    Provider,
    assert_native_web_tools_available,
    check_provider,
)
from robota.core.run import (
    CutRun,
    OutputKind,
    OutputT,
    RunOptions,
    RunResult,
    RunState,
    RunSteps,
    want_output,
)
from robota.core.run_task import RunTask, stream_run, wait_for_readers
from robota.core.tool import Ask, Delegate, FileVersions, Tool, Toolset, name_tools, tool_schema
from robota.core.tool_call import RunTool, invoke_tool

DEFAULT_MAX_ROUNDS = 10
DEFAULT_MAX_IDENTICAL_FAILURES = 3
DEFAULT_SETTINGS = ModelSettings()
DEFAULT_CAPACITY_HINT = "Start a new conversation, compact this one, or choose a model with a larger window."
NO_PLUGINS = PluginChain(())


class ModelChoice(Struct, frozen=True):
    """Who answers, and how. A value of its own, so that all of it changes at once, between two rounds."""

    provider: Provider
    model: str = ""
    settings: ModelSettings = DEFAULT_SETTINGS
    context_window: int | None = None
    """Tokens; `None` takes the shipped facts about the model."""
    native_web_tools: NativeWebTools | None = None
    """Tools of the model's own service to ask for."""

    def __post_init__(self) -> None:
        check_provider(self.provider)

    @property
    def window(self) -> int:
        return self.context_window or get_model_context_window(self.model)


class RunLimits(Options, frozen=True, kw_only=True):
    """How far a run may go before it gives up on something."""

    idle_timeout: float | None = None
    """Seconds a model call may be silent; `None` or a non-positive number waits for ever."""
    total_timeout: float | None = None
    """Seconds a model call may take in all, however much it says; likewise."""
    max_parallel_tools: float | None = None
    """`None` runs all tools of an answer at once; below 1 means one."""
    tool_timeout: float | None = None
    """Seconds a tool may run, unless it says otherwise itself; waiting for permission does not count."""
    max_identical_failures: int = DEFAULT_MAX_IDENTICAL_FAILURES
    """How often the same call may fail in consecutive rounds; 0 for ever."""
    capacity_hint: str = DEFAULT_CAPACITY_HINT
    """What the user is advised to do when the conversation no longer fits."""

    def __post_init__(self) -> None:
        check_fields(self)


class AgentConfig(Options, frozen=True, kw_only=True):
    """What surrounds an agent: what its tools are told, and what a session puts between it and the world."""

    name: str = ""
    session_id: str = ""
    agent_id: str = ""
    """Set for a subagent."""
    cwd: str = ""
    deps: Any = None
    """Handed to tools as `ctx.deps`."""
    ask: Ask | None = None
    run_tool: RunTool = invoke_tool
    """Carries a prepared call out; a session puts permissions and hooks here."""
    admit: Callable[[Provider], Provider] | None = None
    """What a provider becomes before a run may ask it; a session puts its budget here."""
    steps: RunSteps | None = None
    """What a session does inside a run."""
    delegate: Delegate | None = None
    """Runs another agent as a part of this one's session."""
    redact: Callable[[Json], Json] | None = None
    """Takes secrets out of what plugins write down or send."""
    notice: Callable[[str], None] | None = None
    """How plugins tell the user something."""
    ports: Ports = REAL_WORLD


DEFAULT_LIMITS = RunLimits()
DEFAULT_CONFIG = AgentConfig()
_OPTION_TYPES: dict[str, tuple[type, ...]] = {
    "model": (str,),
    "system_message": (str, type(None)),
    "plugins": (list, tuple),
    "settings": (ModelSettings,),
    "conversation": (ConversationStore, type(None)),
    "limits": (RunLimits,),
    "config": (AgentConfig,),
}


class Robota(Closing):
    """An agent. Construction does nothing but remember; the first run makes the rest."""

    __slots__ = (
        "__weakref__", "_chain", "_conversation_id", "_files", "_tools", "_toolset", "aborts", "config",
        "control", "conversation", "events", "limits", "max_rounds", "noticed", "plugins", "run_state",
        "streaming", "system_message", "using",
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
        context_window: int | None = None,
        native_web_tools: NativeWebTools | None = None,
        messages: Iterable[Message] = (),
        conversation: ConversationStore | None = None,
        limits: RunLimits = DEFAULT_LIMITS,
        config: AgentConfig = DEFAULT_CONFIG,
    ) -> None:
        check_options(model, system_message, plugins, settings, conversation, limits, config)
        self.using = ModelChoice(provider, model, settings, context_window, native_web_tools)
        """Read when a round begins: another one counts from the next round on."""
        self.plugins = checked_plugins(plugins)
        self.limits = limits
        self.config = config
        self.system_message = system_message
        self.max_rounds = check_count("max_rounds", max_rounds)
        self.conversation = ConversationStore(config.ports) if conversation is None else conversation
        for message in messages:
            self.inject(message)
        self.events = EventBus()
        self._chain: PluginChain | None = None
        self.control: RunTask | None = None
        self.aborts = 0
        self.run_state: RunState | None = None  # of the run under way
        self._conversation_id = ""
        self._files: FileVersions | None = None
        self.noticed = ""
        """The model whose assumed window the user was told of."""
        self.streaming = 0
        """How many streams there are: one may begin while another that was left is still ending."""
        self.tools = tools

    # --- what it is made of ----------------------------------------------------------------------------

    @property
    def tools(self) -> Sequence[Tool]:
        return tuple(self._tools.values())

    @tools.setter
    def tools(self, tools: Iterable[Tool]) -> None:
        self._tools = name_tools(tools)
        self._toolset: Toolset | None = None

    def tool_names(self) -> Iterable[str]:
        return self._tools.keys()

    @property
    def toolset(self) -> Toolset:
        """The tools as a round offers them: another set counts from the next round on."""
        if self._toolset is None:
            self._toolset = Toolset(self._tools, tuple(map(tool_schema, self._tools.values())))
        return self._toolset

    @toolset.setter
    def toolset(self, toolset: Toolset) -> None:
        self._tools, self._toolset = dict(toolset.tools), toolset

    @property
    def provider(self) -> Provider:
        return self.using.provider

    @provider.setter
    def provider(self, provider: Provider) -> None:
        self.using = replace(self.using, provider=provider)

    @property
    def model(self) -> str:
        return self.using.model

    @model.setter
    def model(self, model: str) -> None:
        self.using = replace(self.using, model=model)

    @property
    def settings(self) -> ModelSettings:
        return self.using.settings

    @settings.setter
    def settings(self, settings: ModelSettings) -> None:
        self.using = replace(self.using, settings=settings)

    @property
    def messages(self) -> list[Message]:
        return self.conversation.messages

    @property
    def history(self) -> list[HistoryEntry]:
        return self.conversation.history

    @property
    def conversation_id(self) -> str:
        self._conversation_id = self._conversation_id or self.config.ports.new_id()
        return self._conversation_id

    @property
    def agent_id(self) -> str:
        """The name of the agent in the owner paths of events."""
        return self.config.name or self.conversation_id

    @property
    def is_running(self) -> bool:
        return self.control is not None

    @property
    def is_in_own_task(self) -> bool:
        """Whether the caller is a part of the run under way."""
        return self.control is not None and self.control.task is asyncio.current_task()

    # --- running ----------------------------------------------------------------------------------------

    def __repr__(self) -> str:
        return f"<Robota {self.model!r} of {self.provider.name}, {len(self.messages)} messages>"

    async def run(
        self,
        prompt: Prompt,
        *,
        output: OutputKind[OutputT] | None = None,
        max_rounds: int | None = None,
        output_retries: int = 2,
        settings: ModelSettings | None = None,
        cut: CutRun | None = None,
    ) -> RunResult[OutputT]:
        """Take one prompt to its end, or in its place a run that was `cut`, from the conversation as it was
        then. An abort or a failing model is a result, not an exception."""
        aborts = self.aborts
        limit = self.max_rounds if max_rounds is None else check_count("max_rounds", max_rounds)
        if self.streaming:
            await wait_for_readers(self)
        self.require_idle()
        check_prompt(prompt)
        check_agent(self)
        self._conversation_id = self._conversation_id if cut is None else cut.conversation_id
        run = Loop(self, max_rounds=limit, settings=settings, state=None if cut is None else cut.state)
        run.wanted = want_output(output, check_count("output_retries", output_retries))
        run.tries_left = 0 if run.wanted is None else run.wanted.retries
        self.control = run.control = RunTask(run.run(prompt, cut), self._forget_task)
        self.run_state = run.state
        async with run.control:
            await run.control.finish(self, aborts)
            await run.tell_plugins()
        return run.result()

    async def perform(self, work: Coroutine[Any, Any, None]) -> bool:
        """Do something else in the place of a run; whether `abort` stopped it before its end."""
        try:
            self.require_idle()
        except AgentBusyError:
            work.close()
            raise
        self.control = control = RunTask(work, self._forget_task)
        async with control as task:
            await control.finish(self, self.aborts)
        return task.cancelled()

    def _forget_task(self) -> None:
        self.control = self.run_state = None

    def require_idle(self) -> None:
        """Raise if a run is under way."""
        if self.control is not None:
            raise AgentBusyError(
                "This agent is running already: wait for that run, abort() it, or make another agent."
            )

    def run_sync(
        self, prompt: Prompt, *, output: OutputKind[OutputT] | None = None, **options: Unpack[RunOptions]
    ) -> RunResult[OutputT]:
        """`run` for code without an event loop; also in notebooks, any number of times."""
        from robota.core.sync import run_sync  # noqa: PLC0415 - starts a thread, for those who ask for it

        return run_sync(self.run(prompt, output=output, **options))

    def stream(
        self, prompt: Prompt, *, output: OutputKind[Any] | None = None, **options: Unpack[RunOptions]
    ) -> AsyncGenerator[TurnEvent, None]:
        """The run's turn events as they happen; the last says how it ended. Leaving early stops the run."""
        return stream_run(self, partial(self.run, prompt, output=output, **options))

    def abort(self) -> None:
        """Stop the run under way, if there is one. Safe from any thread and from signal handlers."""
        self.aborts += 1
        if (task := self.control) is not None:
            task.abort()

    async def wait_for_abort(self) -> None:
        """Wait until a run that was told to stop has ended."""
        if (task := self.control) is not None and task.aborted:
            await task.wait()

    # --- the conversation ---------------------------------------------------------------------------------

    def inject(self, message: Message) -> None:
        """Put a message into the conversation without asking the model."""
        self.conversation.append(check_message(message))

    def clear(self) -> None:
        """Forget the conversation; the next run begins a new one."""
        if self.control is not None:
            raise AgentBusyError(
                "The conversation cannot be cleared while a run is under way: abort() it first."
            )
        self.conversation.clear()
        self._conversation_id = ""

    def as_tool(self, name: str, description: str) -> Tool:
        """A tool by which another agent gives tasks to agents like this one."""
        from robota.core.agent_tool import AgentTool  # noqa: PLC0415 - for those who use it

        return AgentTool(self, name, description)

    # --- life -------------------------------------------------------------------------------------------

    async def aclose(self) -> None:
        """Stop what runs and let the plugins go. The provider may be shared and stays open."""
        self.abort()
        await self.wait_for_abort()
        if self._chain is not None:
            await self._chain.dispose()

    # --- what a run needs ----------------------------------------------------------------------------------

    @property
    def chain(self) -> PluginChain:
        if self._chain is None or self._chain.source is not self.plugins:
            self._chain = PluginChain(self.plugins) if self.plugins else NO_PLUGINS
        return self._chain

    @property
    def files(self) -> FileVersions:
        self._files = self._files or FileVersions()
        return self._files


def check_options(*given: object) -> None:
    """Refuse options of an agent that have the wrong type, by the name of the first that has."""
    if all(map(isinstance, given, _OPTION_TYPES.values())):
        return
    for value, (name, kinds) in zip(given, _OPTION_TYPES.items(), strict=True):
        if not isinstance(value, kinds):
            wanted = " or ".join(kind.__name__.replace("NoneType", "None") for kind in kinds)
            raise ConfigurationError(f"{name} must be {wanted}, not {value!r:.80}.")


def check_agent(agent: Robota) -> None:
    """Refuse what cannot work before anything begins: web tools the provider lacks, an unusable schema."""
    assert_native_web_tools_available(agent.provider, agent.using.native_web_tools)
    assert agent.toolset is not None


def check_prompt(prompt: object) -> None:
    if isinstance(prompt, str):
        return
    if not isinstance(prompt, list | tuple) or not all(isinstance(part, Part) for part in prompt):
        raise ConfigurationError(
            f"A prompt must be text or a sequence of parts such as TextPart, not {prompt!r:.80}."
        )


def check_message(message: Message) -> Message:
    if isinstance(message, Message):
        return message
    raise ConfigurationError(
        "A message must be a UserMessage, AssistantMessage, ToolMessage or SystemMessage, "
        f"not {message!r:.80}."
    )
