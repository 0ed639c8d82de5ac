"""What few sessions need to say; the rest are keywords of `Session`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from msgspec import Struct

from robota.core.engine import DEFAULT_CAPACITY_HINT
from robota.core.messages import Json
from robota.core.ports import REAL_WORLD, Ports
from robota.core.provider import ModelSettings, NativeWebTools
from robota.core.robota import DEFAULT_SETTINGS
from robota.core.tool import Ask
from robota.core.tool_batch import RunTool, invoke_tool
from robota.sessions.context_window_tracker import DEFAULT_AUTO_COMPACT_THRESHOLD, AutoCompactThreshold
from robota.sessions.permissions.rule_book import PermissionRules

if TYPE_CHECKING:
    from robota.core.hooks import HooksConfig
    from robota.core.hooks.runner import Executors
    from robota.core.plugin import Plugin
    from robota.sessions.compaction.sections import CompactionSection
    from robota.sessions.journal.session_logger import FileSessionLogger
    from robota.sessions.permissions.approval import RuleSaver
    from robota.sessions.permissions.judgement import Judge, WorkspaceGuard
    from robota.sessions.redaction import Redactor
    from robota.sessions.session_hooks import HookPort
    from robota.sessions.usage.budget import Budget
    from robota.sessions.usage.ledger import UsageLedger

Sections: TypeAlias = "Callable[[], Sequence[CompactionSection]]"


class SessionOptions(Struct, frozen=True, kw_only=True):
    rules: PermissionRules = PermissionRules()
    additional_dirs: tuple[str, ...] = ()
    home: str | None = None
    guard: WorkspaceGuard | None = None
    """Knows which files lie outside the directories the session works in."""
    judge: Judge | None = None
    """Decides instead of the rules and the guard: a replay repeats what was decided."""
    save_rule: RuleSaver | None = None
    """Where a rule goes that the user allowed for the project."""
    run_tool: RunTool = invoke_tool
    """Carries out a call that was permitted; an undo store goes here."""
    hooks: HooksConfig | Mapping[str, Json] | None = None
    hook_executors: Executors = ()
    hook_port: HookPort | None = None
    """Runs hooks instead of the configured ones: a replay repeats what they said."""
    max_turns: int = 0
    """Model calls per prompt; 0 for no limit."""
    idle_timeout: float | None = None
    """Seconds a model call may be silent."""
    total_timeout: float | None = None
    """Seconds a model call may take in all, however much it says."""
    context_window: int | None = None
    capacity_hint: str = DEFAULT_CAPACITY_HINT
    auto_compact_threshold: AutoCompactThreshold = DEFAULT_AUTO_COMPACT_THRESHOLD
    compact_instructions: str = ""
    compaction_sections: Sections | None = None
    """What must survive a compaction word for word: rules, open todos, the plan."""
    settings: ModelSettings = DEFAULT_SETTINGS
    native_web_tools: NativeWebTools | None = None
    plugins: Sequence[Plugin] = ()
    max_parallel_tools: int | None = None
    ask: Ask | None = None
    deps: Any = None
    name: str | None = None
    """What the user calls the session."""
    agent_id: str = ""
    """Set for a sub-agent."""
    budget: Budget | None = None
    ledger: UsageLedger | None = None
    """Given to share it: a sub-agent counts into its parent's."""
    logger: FileSessionLogger | None = None
    """Given to keep the journal elsewhere than in the store."""
    durable: bool = True
    """Wait for the disk where a power cut must not lose anything."""
    redactor: Redactor | None = None
    """Knows the secrets of this process, so that they are written nowhere."""
    ports: Ports = REAL_WORLD


DEFAULT_OPTIONS = SessionOptions()
