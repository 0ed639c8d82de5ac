"""What few sessions need to say, in groups; the rest are keywords of `Session`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ForwardRef, TypeAlias, TypedDict

from robota.core.given import Options, check_fields, require_kind, require_texts
from robota.core.messages import Json
from robota.core.ports import REAL_WORLD, Ports
from robota.core.provider import ModelSettings, NativeWebTools
from robota.core.robota import DEFAULT_LIMITS, DEFAULT_SETTINGS, RunLimits
from robota.core.tool_call import RunTool, invoke_tool
from robota.sessions.context_window_tracker import (
    DEFAULT_AUTO_COMPACT_THRESHOLD,
    AutoCompactThreshold,
    check_threshold,
)
from robota.sessions.permissions.live_rules import LiveRules, PermissionRules

if TYPE_CHECKING:
    from robota.core.bus import EventBus
    from robota.core.hooks import HooksConfig
    from robota.core.hooks.runner import Executors
    from robota.core.plugin import Plugin
    from robota.sessions.compaction.kept_state import CompactionSection
    from robota.sessions.hooks import HookPort
    from robota.sessions.journal.port import SessionJournal, SessionLogger
    from robota.sessions.permissions.case import RuleSaver
    from robota.sessions.permissions.judgement import Judge, WorkspaceGuard
    from robota.sessions.questions import QuestionHandler, Questions
    from robota.sessions.redaction import Redactor
    from robota.sessions.usage.budget import Budget
    from robota.sessions.usage.ledger import UsageLedger
else:  # named, not loaded: `help` and `inspect.signature` evaluate the annotations of a Struct
    for _name in (
        "Budget", "CompactionSection", "EventBus", "Executors", "HookPort", "HooksConfig", "Judge", "Plugin",
        "QuestionHandler", "Questions", "Redactor", "RuleSaver", "SessionJournal", "SessionLogger",
        "UsageLedger", "WorkspaceGuard",
    ):  # fmt: skip
        globals()[_name] = ForwardRef(_name)

Sections: TypeAlias = Callable[[], Sequence["CompactionSection"]]


class SubmitOptions(TypedDict, total=False):
    """What `Session.submit` may be told beside the prompt and the type of its answer."""

    id: str
    display_input: str | None
    raw_input: str | None
    max_rounds: int | None
    settings: ModelSettings | None


class PermissionOptions(Options, frozen=True, kw_only=True):
    """How it is decided what tools may do."""

    rules: PermissionRules | LiveRules = PermissionRules()
    """`LiveRules` to share them with tools that have to obey too."""
    guard: WorkspaceGuard | None = None
    """Knows which files lie outside the directories the session works in."""
    judge: Judge | None = None
    """Decides instead of the rules and the guard: a replay repeats what was decided."""
    save_rule: RuleSaver | None = None
    """Where a rule goes that the user allowed for the project."""
    refresh: Callable[[], Awaitable[None]] | None = None
    """Called before each call is judged, for rules and hooks that may have changed elsewhere."""
    run_tool: RunTool = invoke_tool
    """Carries out a call that was permitted; an undo store goes here."""

    def __post_init__(self) -> None:
        require_kind("PermissionOptions.rules", self.rules, PermissionRules, LiveRules)


class HookOptions(Options, frozen=True, kw_only=True):
    """Which hooks are fired, and who runs them."""

    config: HooksConfig | Mapping[str, Json] | None = None
    executors: Executors = ()
    keep_variables: Sequence[str] | Callable[[], Sequence[str]] = ()
    """Credentials of the environment that commands may have."""
    port: HookPort | None = None
    """Runs hooks instead of the configured ones: a replay repeats what they said."""

    def __post_init__(self) -> None:
        require_kind("HookOptions.config", self.config, Mapping, type(None))
        require_kind("HookOptions.executors", self.executors, Iterable)
        if not callable(self.keep_variables):
            require_texts("HookOptions.keep_variables", self.keep_variables)


class CompactionOptions(Options, frozen=True, kw_only=True):
    """When a conversation is summarised, and what of it must stay."""

    threshold: AutoCompactThreshold = DEFAULT_AUTO_COMPACT_THRESHOLD
    instructions: str = ""
    """What to mind in each summary of this project."""
    sections: Sections | None = None
    """What must survive a compaction word for word: rules, open todos, the plan."""

    def __post_init__(self) -> None:
        check_fields(self)
        check_threshold(self.threshold)


class JournalOptions(Options, frozen=True, kw_only=True):
    """How a session is written down."""

    journal: SessionJournal | None = None
    """Given to keep the records elsewhere than in the store."""
    logger: SessionLogger | None = None
    """Told of every record besides; it needs no store."""
    durable: bool = True
    """Wait for the disk where a power cut must not lose anything."""
    redactor: Redactor | None = None
    """Knows the secrets of this process, so that they are written nowhere."""

    def __post_init__(self) -> None:
        check_fields(self)


class SessionOptions(Options, frozen=True, kw_only=True):
    """What a session needs beyond a provider, tools and a directory. All of it is optional."""

    permissions: PermissionOptions | PermissionRules | LiveRules = PermissionOptions()
    """Rules alone are enough."""
    hooks: HookOptions | HooksConfig | Mapping[str, Json] | None = None
    """The configuration alone is enough."""
    limits: RunLimits = DEFAULT_LIMITS
    max_rounds: int = 0
    """Model calls per prompt; 0 for no limit."""
    settings: ModelSettings = DEFAULT_SETTINGS
    context_window: int | None = None
    native_web_tools: NativeWebTools | None = None
    compaction: CompactionOptions = CompactionOptions()
    journal: JournalOptions = JournalOptions()
    budget: Budget | None = None
    ledger: UsageLedger | None = None
    """Given to share it: a sub-agent counts into its parent's."""
    plugins: Sequence[Plugin] = ()
    ask: QuestionHandler | None = None
    """Asks the user what tools want to know; calls are the business of `permission_handler`."""
    questions: Questions | None = None
    """Given to share them: a sub-agent's are asked where its parent's are."""
    events: EventBus | None = None
    """Given to listen before the session is made."""
    deps: Any = None
    name: str | None = None
    """What the user calls the session."""
    agent_id: str = ""
    """Set for a sub-agent."""
    ports: Ports = REAL_WORLD

    def __post_init__(self) -> None:
        kinds = (PermissionOptions, PermissionRules, LiveRules)
        require_kind("SessionOptions.permissions", self.permissions, *kinds)
        require_kind("SessionOptions.hooks", self.hooks, HookOptions, Mapping, type(None))
        require_kind("SessionOptions.limits", self.limits, RunLimits)
        require_kind("SessionOptions.settings", self.settings, ModelSettings)
        require_kind("SessionOptions.compaction", self.compaction, CompactionOptions)
        require_kind("SessionOptions.journal", self.journal, JournalOptions)
        check_fields(self)

    def hook_options(self) -> HookOptions:
        given = self.hooks
        if given is None:
            return _NO_HOOKS
        return given if isinstance(given, HookOptions) else HookOptions(config=given)


def permission_options(given: PermissionOptions | PermissionRules | LiveRules) -> PermissionOptions:
    return given if isinstance(given, PermissionOptions) else PermissionOptions(rules=given)


_NO_HOOKS = HookOptions()
DEFAULT_OPTIONS = SessionOptions()
