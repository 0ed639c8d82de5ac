"""Sessions: one agent with permissions, a bounded context, and a journal from which nothing is lost.

Names are loaded when they are first used.
"""

from __future__ import annotations

from robota._lazy import lazy_names

_MODULES = {
    "robota.sessions.compaction.compaction_orchestrator": "CompactionOrchestrator",
    "robota.sessions.compaction.kept_state": "CompactionSection",
    "robota.sessions.compaction.summarizer": "CompactionError",
    "robota.sessions.context_window_tracker": "ContextWindowTracker",
    "robota.sessions.export.artifact": "export_json import_json",
    "robota.sessions.export.html": "export_html",
    "robota.sessions.export.markdown": "export_markdown",
    "robota.sessions.journal.port": "JournalError SessionJournal SessionLockedError SessionLogger",
    "robota.core.questions": "PermissionAnswer PermissionQuestion",
    "robota.sessions.questions": "PermissionHandler Questions",
    "robota.sessions.permissions.permission_enforcer": "PermissionEnforcer",
    "robota.sessions.permissions.live_rules": "PermissionRules",
    "robota.sessions.redaction": "Redactor redact",
    "robota.sessions.replay.session_replay": "ReplayReport replay_session",
    "robota.sessions.session": "Session",
    "robota.sessions.journal.entries": "SessionLogReader load_session_log_entries",
    "robota.sessions.replay.log_entries": ("replay_session_log_entries validate_session_replay_log_entries"),
    "robota.sessions.journal.event_log": "FileSessionLogger",
    "robota.sessions.options": (
        "CompactionOptions HookOptions JournalOptions PermissionOptions SessionOptions"
    ),
    "robota.sessions.start": "SessionStart restore",
    "robota.sessions.store.session_record": "SessionRecord",
    "robota.sessions.store.session_store": "SessionStore SessionStorePort",
    "robota.sessions.transcripts.claude_transcript": "read_claude_transcript",
    "robota.sessions.transcripts.files": "find_claude_transcripts",
    "robota.sessions.usage.budget": "Budget BudgetExceededError",
    "robota.sessions.usage.ledger": "UsageLedger",
    "robota.sessions.usage.report": "UsageReport format_usage",
}
_HOMES = {name: module for module, names in _MODULES.items() for name in names.split()}

__all__ = list(_HOMES)

__getattr__, __dir__ = lazy_names(__name__, _HOMES, globals())
